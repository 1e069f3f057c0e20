//! Answers from models.

mod chunks;
mod evaluate;
mod export;
mod predict;

pub use evaluate::{Errors, Evaluation, evaluate};
pub use export::export;
pub use predict::{predict_all, predict_cells};
