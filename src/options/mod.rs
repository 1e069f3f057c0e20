//! The options of a fit: one table of names, types, ranges, defaults and help texts.
//!
//! Enters: values by name, as lines of text or as fields. Leaves: [`Options`]. The command line, the C interface and the
//! bindings are all made from [`OPTION_TABLE`].
//!
//! Open `table` first: its macro call lists every option and defines the struct. `algorithms` is the table of algorithms with
//! their properties, `choices` has the enums of other options that take one of several words, `value` parses and prints values, `presets` has the named
//! sets of options, `effective` knows which given options a fit does not use and what it does instead.
//!
//! To add an option, append a row to `table`, at its end: the random streams of a search are numbered by position in the
//! table (`stream_number` in `solver/tune/trial_sampler.rs`). The row says which algorithms use it and, by its roles, how
//! searches and checkpoints treat it.

mod algorithms;
mod choices;
mod effective;
mod presets;
mod table;
mod value;

pub use algorithms::Algorithm;
#[doc(hidden)]
pub use algorithms::{AlgorithmProperties, ExternalAlgorithm, OwnOption, ZeroFilling};
pub use choices::{
    Initialization, KernelChoice, LearningRateSchedule, LikelihoodChoice, ModelKind, Penalty,
    PenaltyScaling,
};
pub use presets::PRESETS;
pub use table::{OPTION_TABLE, OptionInfo, Options};
pub use value::OptionKind;

pub(crate) use table::{DEFAULT_LAMBDA_BIAS, OptionRole};
