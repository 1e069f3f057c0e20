//! Estimate of the memory of a job, before it starts, from the sizes of its files and its options.
//!
//! The estimate is a sum over allocations, with all rows of a mode counted as if they occurred. An estimate that is too
//! high leaves memory unused; one that is too low may exhaust the memory of the whole batch. `docs/notes/batch-memory.md`
//! compares estimates with measurements. Memory-mapped files do not count, since the system can evict their pages.

use std::fs;

use s3cmtf::options::{Initialization, Options};
use s3cmtf::problem::MatrixKind;
use s3cmtf::simd::padded_len;
use s3cmtf::solver::{FitSizes, MAX_SAMPLE_ENTRIES, MatrixSize, further_bytes};
use s3cmtf::{Error, Result};

use super::data_size::DataSize;
use super::job::{FitTask, Job, Task};

/// Bytes of a job without data: code, allocator and tables. Far more than was ever measured.
const BASE_BYTES: u64 = 8 << 20;

/// Bytes of the stack of a thread, which it rarely uses completely.
const STACK_BYTES: u64 = 2 << 20;

/// The largest number of entries that a thread reads at a time (`solver::entry_layout`).
const CHUNK_ENTRIES: u64 = 1 << 17;

/// The number of copies of the parameters during a fit: the model; `last_good`, `before_epoch` and `best` of
/// `solver::driver::Fit`; the snapshot that `gibbs` takes to predict from earlier samples
/// (`solver::rowwise::posterior_samples`); and one in reserve for temporary copies.
const FIT_COPIES: u64 = 6;

/// The further copies of a fit that is initialized by Gibbs sampling (`solver::gibbs_init`): the model of the chain, its
/// `last_good` if there is a time limit, the conditional means, and one in reserve.
const GIBBS_INIT_COPIES: u64 = 4;

/// Bytes of a page of a [`RowMap`](s3cmtf::format::RowMap), with its entry in the page table.
const PAGE_BYTES: u64 = 84;

/// Returns the estimated memory of a job, in bytes.
pub(super) fn estimate_bytes(job: &Job, options: &Options) -> Result<u64> {
    let stacks = options.threads.saturating_mul(STACK_BYTES);
    let base = stacks.saturating_add(BASE_BYTES);
    let data = match &job.task {
        Task::Fit(task) => fit_bytes(task, options)?,
        Task::Predict(task) => {
            // The data file is mapped, and text is converted into a file. Its size is only read to find errors.
            DataSize::of_file(&task.file)?;
            fs::metadata(&task.model)
                .map_err(|e| Error::cannot_open(&task.model, e))?
                .len()
        }
    };
    Ok(base.saturating_add(data))
}

/// The sum of allocations, which saturates.
#[derive(Default)]
struct ByteSum(u64);

impl ByteSum {
    fn add(&mut self, count: u64, bytes_each: u64) {
        self.0 = self.0.saturating_add(count.saturating_mul(bytes_each));
    }
}

fn fit_bytes(task: &FitTask, options: &Options) -> Result<u64> {
    let is_rowwise = options.algorithm.is_rowwise();
    let has_gibbs_init = !is_rowwise
        && (options.start == Initialization::Gibbs
            || (options.start == Initialization::Auto && !options.nonneg));
    let has_mode_csr = is_rowwise || has_gibbs_init;
    let copies = FIT_COPIES + if has_gibbs_init { GIBBS_INIT_COPIES } else { 0 };
    let has_weights = u64::from(task.weights.is_some());
    let tensor = DataSize::of_file(&task.tensor)?;
    let mut sizes = FitSizes::new(tensor.entries, &tensor.rows, options);
    sizes.is_weighted = task.weights.is_some();
    let mut total = ByteSum::default();
    // The indices of an entry, its value and its weight.
    let entry_bytes = |order: u64| 4 * (order + 1 + has_weights);
    // Sorted chunks and the blocks made from them (`solver::entry_layout`). The shuffled entries and residuals of
    // other algorithms take less.
    let block_bytes = |order: u64| 2 * entry_bytes(order);
    // For each mode a list with the other indices, the value and the weight of each entry (`kernel::ModeCsr`), built
    // from a copy of the entries. While a thread sorts a list, it has two copies of longer records. Beside blocks,
    // which do not exist yet, those of further threads count.
    let csr_bytes = |order: u64| {
        let lists = order * 4 * (order + has_weights) + entry_bytes(order);
        let further_threads = options.threads.min(order).saturating_sub(1);
        lists + further_threads * 2 * entry_bytes(order)
    };
    // Gibbs initialization takes a sample of the tensor, and all entries of matrices.
    let csr_entries = |entries: u64| match (is_rowwise, has_gibbs_init) {
        (true, _) => entries,
        (false, true) => entries.min(MAX_SAMPLE_ENTRIES),
        (false, false) => 0,
    };
    total.add(tensor.entries, block_bytes(tensor.order()));
    total.add(csr_entries(tensor.entries), csr_bytes(tensor.order()));
    total.add(tensor.pages, PAGE_BYTES);
    total.add(
        options.threads,
        CHUNK_ENTRIES.min(tensor.entries) * entry_bytes(tensor.order()),
    );
    for held_out in [&task.test, &task.valid].into_iter().flatten() {
        let size = DataSize::of_file(held_out)?;
        // Sorted into blocks as well, without weights.
        total.add(size.entries, 2 * 4 * (size.order() + 1));
    }
    for matrix in &task.matrices {
        let size = DataSize::of_file(&matrix.file)?;
        let entries = match matrix.kind {
            MatrixKind::Sampled(zeros) => size.entries.saturating_mul(1 + u64::from(zeros)),
            _ => size.entries,
        };
        total.add(entries, block_bytes(2));
        if has_mode_csr {
            total.add(entries, csr_bytes(2));
        }
        total.add(size.pages, PAGE_BYTES);
        let is_full = match matrix.kind {
            MatrixKind::Full => true,
            MatrixKind::Observed | MatrixKind::Auto => options.is_zero_filled(),
            _ => false,
        };
        if let Some(mode) = sizes.modes.get_mut(matrix.mode) {
            let occurring = mode.rows.saturating_add(size.rows[0]);
            mode.rows = match is_full {
                // All rows of the mode occur.
                true => occurring.max(tensor.dims[matrix.mode]).max(size.dims[0]),
                false => occurring,
            };
        }
        sizes.matrices.push(MatrixSize {
            mode: matrix.mode,
            columns: match matrix.kind.is_graph() {
                true => 0,
                false if is_full => size.dims[1],
                false => size.rows[1],
            },
            entries,
        });
    }
    for (count, rank) in sizes.factors() {
        // The values and the bias of a row; its counts in problem and model, the sums of its weights, and two penalties.
        let row = 4 * padded_len(rank) as u64 + 4;
        let per_row = 2 * 8 + has_weights * 2 * 8 + 2 * 4;
        total.add(count, (copies * row).saturating_add(per_row));
    }
    // Each thread has a replica of the core, its gradient, and buffers of the batch kernels.
    let core = sizes.core_elements() as u64;
    total.add(core, 4 * (copies + 4 * options.threads));
    total.add(further_bytes(options, &sizes) as u64, 1);
    Ok(total.0)
}
