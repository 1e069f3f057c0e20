//! Answers from models.

mod evaluate;
mod export;
mod predict;

pub use evaluate::{Errors, Evaluation, evaluate};
pub use export::export;
pub use predict::{Predictor, predict_all};
