//! Answers from models.

mod evaluate;

pub use evaluate::{Evaluation, evaluate};
