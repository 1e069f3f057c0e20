//! The result of a command that ran to its end.

/// Decides the exit code of a command that ran to its end.
pub enum Outcome {
    Success,
    /// The input is invalid, and the output lists the reasons.
    InvalidInput,
}
