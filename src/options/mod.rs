//! The options of a fit: one table of names, types, ranges, defaults and help texts.
//!
//! Enters: values by name, as lines of text or as fields. Leaves: [`Options`]. The command line, the C interface and the
//! bindings are all made from [`OPTION_TABLE`].
//!
//! Open `table` first: its macro call lists every option and defines the struct. `choices` has the enums of options that
//! take one of several words, `value` parses and prints values, `presets` has the named sets of options.
//! To add an option, add it to `table`; nothing else has to know it.

mod choices;
mod presets;
mod table;
mod value;

pub use choices::{
    Algorithm, Initialization, KernelChoice, LearningRateSchedule, ModelKind, Penalty,
    PenaltyScaling,
};
pub use presets::PRESETS;
pub use table::{OPTION_TABLE, OptionInfo, Options};
pub use value::OptionKind;

pub(crate) use table::DEFAULT_LAMBDA_BIAS;
