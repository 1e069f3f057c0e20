//! Answers from models.

mod chunks;
mod evaluate;
mod export;
mod predict;
mod spread;

pub use evaluate::{Errors, Evaluation, evaluate};
pub use export::export;
pub use predict::{predict_all, predict_cells};
pub use spread::{Spread, predict_spread, predict_spread_cells};
pub(crate) use spread::{normal_quantile, samples_for, spreader};
