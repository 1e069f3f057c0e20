//! Answers from models.

mod chunks;
mod evaluate;
mod export;
mod intervals;
mod values;

pub use evaluate::{Errors, Evaluation, evaluate};
pub use export::export;
pub use intervals::{Spread, predict_spread, predict_spread_cells};
pub(crate) use intervals::{normal_quantile, samples_for, spreader};
pub use values::{predict_all, predict_cells};
