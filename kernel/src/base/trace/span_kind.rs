//! The names of spans.

/// What a span marks. The outermost spans of the calling thread are the phases of a fit, from [`SpanKind::Reading`] to
/// [`SpanKind::Saving`]. A thread that works for the calling thread has a span of the same kind for its part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpanKind {
    /// Opening and validating the input.
    Reading,
    /// Options chosen from the data, starting values, and the copy of the entries.
    Initialization,
    /// The updates of an epoch.
    Epoch,
    /// Measuring errors.
    Evaluation,
    /// Writing a checkpoint.
    Checkpoint,
    /// Selecting, orthonormalizing and completing the model after the last epoch.
    Completion,
    /// Writing the model.
    Saving,
    /// SGD updates with the entries of a block.
    Block,
    /// Merging replicas of parameters.
    Merge,
    /// Waiting for other threads.
    Wait,
    /// Solving for or sampling rows of a mode or columns of a matrix.
    Rows,
    /// Solving for or sampling the core.
    Core,
    /// Solving for the biases.
    Biases,
}

impl SpanKind {
    /// All kinds, in the order of their declaration.
    pub const ALL: [SpanKind; 13] = [
        SpanKind::Reading,
        SpanKind::Initialization,
        SpanKind::Epoch,
        SpanKind::Evaluation,
        SpanKind::Checkpoint,
        SpanKind::Completion,
        SpanKind::Saving,
        SpanKind::Block,
        SpanKind::Merge,
        SpanKind::Wait,
        SpanKind::Rows,
        SpanKind::Core,
        SpanKind::Biases,
    ];

    /// Returns the name of such spans in a trace.
    pub fn name(self) -> &'static str {
        match self {
            SpanKind::Reading => "reading",
            SpanKind::Initialization => "initialization",
            SpanKind::Epoch => "epoch",
            SpanKind::Evaluation => "evaluation",
            SpanKind::Checkpoint => "checkpoint",
            SpanKind::Completion => "completion",
            SpanKind::Saving => "saving",
            SpanKind::Block => "block",
            SpanKind::Merge => "merge",
            SpanKind::Wait => "wait",
            SpanKind::Rows => "rows",
            SpanKind::Core => "core",
            SpanKind::Biases => "biases",
        }
    }

    /// Returns the position in [`SpanKind::ALL`].
    pub(super) fn index(self) -> usize {
        self as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_kinds_are_at_their_index() {
        for (index, kind) in SpanKind::ALL.into_iter().enumerate() {
            assert_eq!(kind.index(), index);
        }
    }
}
