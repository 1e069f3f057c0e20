//! The kinds of coupled matrices.

use std::fmt;

/// How a coupled matrix enters the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MatrixKind {
    /// Factorized as U V^T over its observed entries.
    #[default]
    Observed,
    /// A square matrix of similarities between the rows of its mode. It is not factorized: its entries w_ij penalize
    /// the squared distance between rows i and j.
    Graph,
    /// Factorized as U V^T over all its positions: those without an entry are 0. All rows of its mode and all its columns
    /// then occur.
    Full,
    /// As `Observed`, with this many zeros sampled for every entry that is not 0, among the positions of its row without
    /// an entry. A row with fewer such positions gets all of them.
    Sampled(u32),
    /// `Observed`, or `Full` if all entries have the same value and a fit predicts held-out entries better with zeros at the
    /// other positions. A problem and a model have one of the other kinds.
    Auto,
}

impl MatrixKind {
    /// Returns whether it is a graph, which has no columns of its own.
    pub fn is_graph(self) -> bool {
        self == MatrixKind::Graph
    }

    /// Parses `auto`, `observed`, `graph`, `full` or `sampled=K`.
    pub fn from_name(name: &str) -> Option<MatrixKind> {
        Some(match name {
            "auto" => MatrixKind::Auto,
            "observed" => MatrixKind::Observed,
            "graph" => MatrixKind::Graph,
            "full" => MatrixKind::Full,
            _ => {
                let zeros = name.strip_prefix("sampled")?.strip_prefix(['=', ':'])?;
                MatrixKind::Sampled(zeros.parse().ok()?)
            }
        })
    }
}

impl fmt::Display for MatrixKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MatrixKind::Auto => f.write_str("auto"),
            MatrixKind::Observed => f.write_str("observed"),
            MatrixKind::Graph => f.write_str("graph"),
            MatrixKind::Full => f.write_str("full"),
            MatrixKind::Sampled(zeros) => write!(f, "sampled={zeros}"),
        }
    }
}
