//! The memory of a fit, estimated from the sizes of the problem before anything is allocated.

use std::io;

use super::factor_update::Eigenproblem;
use super::unfolded_rows::{block_rows, stored_bytes};
use super::unfolding::{MAX_GROUPS, MAX_SUM_BYTES};
use crate::error::{Error, Result};
use crate::kernel::DENSE_LANES;
use crate::memory::available_memory;
use crate::model::Model;
use crate::options::Options;
use crate::parallel::available_threads;
use crate::problem::Problem;
use crate::simd::padded_len;
use crate::solver::default_rank::TUCKER_RANK;

/// Refuses a fit that needs more memory than is available. `init` is the model to start from, if one is given.
pub(in crate::solver) fn check_memory(
    problem: &Problem<'_>,
    options: &Options,
    init: Option<&Model>,
) -> Result<()> {
    let sizes = Sizes::new(problem, options, init);
    let needed = sizes.bytes();
    let Some(available) = available_memory().filter(|a| needed > *a as f64) else {
        return Ok(());
    };
    let (n, rows) = sizes.largest_mode();
    Err(Error::io(
        format!(
            "tucker-als needs about {} of memory, and {} are available; lower the ranks or the size of mode {} ({rows} rows), \
             or use another algorithm",
            describe(needed),
            describe(available as f64),
            n + 1
        ),
        io::ErrorKind::OutOfMemory.into(),
    ))
}

/// Writes a number of bytes with its unit.
fn describe(bytes: f64) -> String {
    let units = ["MB", "GB", "TB", "PB", "EB"];
    let unit = ((bytes.log10() / 3.0) as usize).clamp(2, units.len() + 1);
    format!(
        "{:.1} {}",
        bytes / 1000f64.powi(unit as i32),
        units[unit - 2]
    )
}

/// The sizes that determine the memory.
struct Sizes {
    entries: f64,
    matrix_entries: f64,
    threads: usize,
    modes: Vec<ModeSize>,
}

/// The sizes of a mode.
struct ModeSize {
    /// All rows, if there are matrices; unlisted rows of these are 0.
    rows: u64,
    rank: usize,
    /// The columns of its matrices.
    matrix_columns: u64,
}

impl Sizes {
    fn new(problem: &Problem<'_>, options: &Options, init: Option<&Model>) -> Sizes {
        let ranks = match (&options.rank[..], init) {
            ([], Some(init)) => init.shape().ranks().to_vec(),
            ([], None) => vec![TUCKER_RANK],
            (ranks, _) => ranks.to_vec(),
        };
        let weights = problem.matrix_weights(options);
        let matrices = || {
            let all = problem.matrices().iter().zip(&weights);
            all.filter(|(_, weight)| **weight > 0.0).map(|(m, _)| m)
        };
        let modes = problem.modes().iter().enumerate().map(|(n, mode)| {
            let columns = matrices().filter(|m| m.mode == n).map(|m| m.columns.dim());
            let rows = match columns.clone().next() {
                Some(_) => mode.dim(),
                None => mode.rows().len() as u64,
            };
            let rank = ranks.get(n).or(ranks.first()).copied().unwrap_or(1);
            ModeSize {
                rows,
                rank: rank.min(rows.max(1) as usize),
                matrix_columns: columns.sum(),
            }
        });
        Sizes {
            entries: problem.tensor().len() as f64,
            matrix_entries: matrices().map(|m| m.entries.len() as f64).sum(),
            threads: match options.threads {
                0 => available_threads(),
                threads => threads as usize,
            },
            modes: modes.collect(),
        }
    }

    /// Returns the number of the mode with the most rows, and these.
    fn largest_mode(&self) -> (usize, u64) {
        let rows = self.modes.iter().map(|m| m.rows).enumerate();
        rows.max_by_key(|(_, rows)| *rows).unwrap_or_default()
    }

    /// Returns the number of elements of the core.
    fn core(&self) -> f64 {
        self.modes.iter().map(|m| m.rank as f64).product()
    }

    /// Returns the most bytes that are allocated at a time.
    fn bytes(&self) -> f64 {
        let order = self.modes.len() as f64;
        // A list of the entries, a list for each mode, and parts of them while they are sorted.
        let of_entry = 4.0 * (order + 1.0) + order * 4.0 * order + 8.0 * (order + 2.0);
        // A list, and one by rows and by columns.
        let of_matrix_entry = 12.0 + 2.0 * 8.0;
        // The core of the model and of its copies, and those in `f64` that the objective needs.
        let of_core_element = 3.0 * 4.0 * 2.0 + 4.0 * 8.0;
        let mut bytes = self.entries * of_entry
            + self.matrix_entries * of_matrix_entry
            + self.core() * of_core_element;
        for mode in &self.modes {
            // The factors of the model and of two copies, counts, penalties, and the starts of lists.
            let of_row = 4.0 * (padded_len(mode.rank) as f64 + 2.0 * mode.rank as f64) + 48.0;
            bytes += (mode.rows as f64 + mode.matrix_columns as f64) * of_row;
        }
        let updates = (0..self.modes.len()).map(|n| self.update_bytes(n));
        bytes + updates.fold(0.0, f64::max)
    }

    /// Returns the bytes that the update of mode `n` needs besides the model and the entries.
    fn update_bytes(&self, n: usize) -> f64 {
        let ModeSize {
            rows,
            rank,
            matrix_columns,
        } = self.modes[n];
        let of_w = self.core() / rank as f64;
        let (rank, rows_f64) = (rank as f64, rows as f64);
        let columns = of_w + matrix_columns as f64;
        // The columns of a core whose size is allowed fit.
        let width = of_w.min(1e15) as usize;
        let (row, all_columns) = (rows as usize, columns.min(1e15) as usize);
        let w = match stored_bytes(row, width) {
            Some(bytes) => bytes as f64,
            None => {
                let arrays = width.div_ceil(DENSE_LANES);
                (self.threads * block_rows(arrays)) as f64 * 8.0 * of_w
            }
        };
        // The factor and the one that iterations start from.
        let factor = 2.0 * 8.0 * rows_f64 * rank;
        // Three blocks of vectors, their products, and the block that rotates them.
        let blocks = 7.0 * 8.0 * rank;
        let sums = |bytes: f64| bytes.max((MAX_GROUPS as f64 * bytes).min(MAX_SUM_BYTES as f64));
        let product = 8.0 * rank * columns + sums(8.0 * rank * of_w);
        let eigenproblem = match Eigenproblem::choose(row, all_columns, rank as usize) {
            Eigenproblem::Gram => blocks * columns + sums(8.0 * columns * columns),
            Eigenproblem::Columns => blocks * columns + product + 8.0 * rows_f64 * rank,
            Eigenproblem::Rows => blocks * rows_f64 + product + 8.0 * rows_f64 * rank,
        };
        w + factor + eigenproblem
    }
}
