//! The sizes that determine the memory of a fit, known before anything is allocated.

use super::default_rank::{TUCKER_RANK, likely_rank, take_shape};
use crate::model::Model;
use crate::options::{ModelKind, Options};
use crate::problem::{MatrixKind, Problem};
use crate::simd::padded_len;

/// The sizes of the data and of the model of a fit, or upper bounds of them.
#[derive(Debug, Clone)]
pub struct FitSizes {
    /// Number of entries of the tensor.
    pub entries: u64,
    /// Whether entries have weights.
    pub is_weighted: bool,
    /// Whether the core is diagonal.
    pub is_cp: bool,
    /// The modes of the tensor.
    pub modes: Vec<ModeSize>,
    /// The coupled matrices.
    pub matrices: Vec<MatrixSize>,
}

/// The size of a mode.
#[derive(Debug, Clone, Copy)]
pub struct ModeSize {
    /// Number of rows that occur. All rows of a mode with a full matrix do.
    pub rows: u64,
    /// Rank of the model.
    pub rank: usize,
}

/// The size of a coupled matrix.
#[derive(Debug, Clone, Copy)]
pub struct MatrixSize {
    /// Mode it is coupled to, counted from 0.
    pub mode: usize,
    /// Number of its columns that the model has; 0 for a graph.
    pub columns: u64,
    /// Number of entries.
    pub entries: u64,
}

impl FitSizes {
    /// Returns the sizes of a fit to a tensor with this many entries and these numbers of rows. Ranks that the options leave open
    /// are those that the fit will probably have. Entries have no weights, and there are no matrices.
    pub fn new(entries: u64, rows: &[u64], options: &Options) -> FitSizes {
        let kind = match (options.algorithm.only_model(), options.model) {
            (Some(only), _) => only,
            (None, ModelKind::Auto) if options.rank.is_empty() => ModelKind::Cp,
            (None, kind) => kind,
        };
        let is_cp = kind == ModelKind::Cp;
        let rank_of = |n: usize| match options.rank.as_slice() {
            [] if is_cp => likely_rank(entries, rows, options.algorithm),
            [] => TUCKER_RANK,
            [one] => *one,
            list => list.get(n).copied().unwrap_or(1),
        };
        let mode = |(n, &rows): (usize, &u64)| ModeSize {
            rows,
            rank: rank_of(n),
        };
        FitSizes {
            entries,
            is_weighted: false,
            is_cp,
            modes: rows.iter().enumerate().map(mode).collect(),
            matrices: Vec::new(),
        }
    }

    /// Returns the sizes of a fit to a problem whose matrices have these kinds. `init` is the model to start from, if one is
    /// given.
    pub(super) fn of_problem(
        problem: &Problem<'_>,
        kinds: &[MatrixKind],
        options: &Options,
        init: Option<&Model>,
    ) -> FitSizes {
        let mut shape = options.clone();
        take_shape(&mut shape, init);
        let mut rows: Vec<u64> = problem
            .modes()
            .iter()
            .map(|m| m.rows().len() as u64)
            .collect();
        let mut matrices = Vec::new();
        let weights = problem.matrix_weights(options);
        for ((matrix, kind), weight) in problem.matrices().iter().zip(kinds).zip(weights) {
            if weight == 0.0 {
                continue;
            }
            let is_full = match kind {
                MatrixKind::Full => true,
                MatrixKind::Observed => options.is_zero_filled(),
                _ => false,
            };
            if is_full {
                rows[matrix.mode] = problem.modes()[matrix.mode].dim();
            }
            matrices.push(MatrixSize {
                mode: matrix.mode,
                columns: match is_full {
                    true => matrix.columns.dim(),
                    false => matrix.columns.rows().len() as u64,
                },
                entries: matrix.entries.len() as u64,
            });
        }
        let mut sizes = FitSizes::new(problem.tensor().len() as u64, &rows, &shape);
        sizes.is_weighted = problem.tensor().is_weighted();
        sizes.matrices = matrices;
        if !sizes.is_cp {
            for mode in &mut sizes.modes {
                mode.rank = mode.rank.min(mode.rows.max(1) as usize);
            }
        }
        sizes
    }

    /// Returns the number of columns of all matrices that are coupled to mode `n`.
    pub fn matrix_columns(&self, n: usize) -> u64 {
        let of_mode = self.matrices.iter().filter(|m| m.mode == n);
        of_mode.map(|m| m.columns).sum()
    }

    /// Returns the number of rows and the rank of each mode, then the number of columns and the rank of each matrix.
    pub fn factors(&self) -> impl Iterator<Item = (u64, usize)> {
        let modes = self.modes.iter().map(|m| (m.rows, m.rank));
        let rank_of = |mode: usize| self.modes.get(mode).map_or(0, |m| m.rank);
        let matrices = self.matrices.iter();
        modes.chain(matrices.map(move |m| (m.columns, rank_of(m.mode))))
    }

    /// Returns the number of elements of the core, whose last mode is padded.
    pub fn core_elements(&self) -> f64 {
        let Some((last, others)) = self.modes.split_last() else {
            return 0.0;
        };
        let padded = padded_len(last.rank) as f64;
        match self.is_cp {
            true => padded,
            false => others.iter().fold(padded, |size, m| size * m.rank as f64),
        }
    }

    /// Returns the bytes of the entries and of the parameters, with their copies, for an algorithm that has lists of the entries
    /// by the rows of each mode.
    pub fn common_bytes(&self) -> f64 {
        let order = self.modes.len() as f64;
        let weight = if self.is_weighted { 4.0 } else { 0.0 };
        // A list of the entries, a list for each mode, and parts of them while they are sorted.
        let of_entry = 4.0 * (order + 1.0)
            + weight
            + order * (4.0 * order + weight)
            + 2.0 * (4.0 * (order + 2.0) + weight);
        // A list, and one by rows and by columns.
        let of_matrix_entry = 12.0 + 2.0 * 8.0;
        // The core of the model and of its copies, and those in `f64` that the objective needs.
        let of_core_element = 3.0 * 4.0 * 2.0 + 4.0 * 8.0;
        let matrix_entries: f64 = self.matrices.iter().map(|m| m.entries as f64).sum();
        self.entries as f64 * of_entry
            + matrix_entries * of_matrix_entry
            + self.core_elements() * of_core_element
            + self.factor_bytes()
    }

    /// Returns the bytes of the factors of the model and of two copies, of counts, penalties, and the starts of lists.
    pub(super) fn factor_bytes(&self) -> f64 {
        let bytes = |(rows, rank): (u64, usize)| {
            rows as f64 * (4.0 * (padded_len(rank) as f64 + 2.0 * rank as f64) + 48.0)
        };
        self.factors().map(bytes).sum()
    }
}
