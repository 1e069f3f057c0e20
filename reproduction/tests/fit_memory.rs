//! The memory that fits by `tucker-als` allocate, compared with the estimate by which too large ones are refused. This is a single
//! test in a process of its own, since all allocations are counted.

#[path = "../../tests/common/mod.rs"]
mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use common::in_memory::Entries;
use common::next_unit;
use s3cmtf::options::{Algorithm, Options};
use s3cmtf::problem::{MatrixKind, Problem};
use s3cmtf::simd::padded_len;
use s3cmtf::solver::{FitInput, FitSizes, MatrixSize, fit, further_bytes};

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// Counts the allocated bytes.
struct Counting;

impl Counting {
    fn add(bytes: usize) {
        PEAK.fetch_max(ALLOCATED.fetch_add(bytes, Relaxed) + bytes, Relaxed);
    }
}

// SAFETY: every call is passed on to the allocator of the system.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Counting::add(layout.size());
        // SAFETY: the obligations are those of the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Counting::add(layout.size());
        // SAFETY: the obligations are those of the caller.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the obligations are those of the caller.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A tensor with random entries, and perhaps a matrix with this many columns on a mode.
struct Shape {
    dims: &'static [u64],
    entries: usize,
    matrix: Option<(usize, u64)>,
    rank: usize,
}

/// Returns the largest number of bytes that a fit of one epoch has allocated, and the estimate.
fn peak_and_estimate(shape: &Shape) -> [f64; 2] {
    let mut state = 5;
    let mut random = |limit: u64| (next_unit(&mut state) * limit as f64) as u32;
    let mut tensor = Entries::new(shape.dims);
    // Every row of every mode occurs.
    for e in 0..shape.entries as u32 {
        let index = |&dim: &u64| match u64::from(e) < dim {
            true => e,
            false => random(dim),
        };
        let index: Vec<u32> = shape.dims.iter().map(index).collect();
        tensor.push(&index, 1.0 + f64::from(e % 7));
    }
    let matrix = shape.matrix.map(|(mode, columns)| {
        let mut matrix = Entries::new(&[shape.dims[mode], columns]);
        for k in 0..5000 {
            // Entries have different cells.
            let column = k * (columns / 5000) as u32;
            matrix.push(&[random(shape.dims[mode]), column], 1.0);
        }
        (mode, matrix)
    });
    let mut builder = Problem::builder(tensor.view());
    if let Some((mode, matrix)) = &matrix {
        builder = builder.matrix(*mode, matrix.view(), 1.0, MatrixKind::Full);
    }
    let problem = builder.build(&()).unwrap();
    let mut o = Options::default();
    (o.algorithm, o.rank) = (
        Algorithm::External(&s3cmtf_reproduction::algorithms::TUCKER_ALS),
        vec![shape.rank],
    );
    (o.epochs, o.threads) = (1, 2);
    let mut sizes = FitSizes::new(shape.entries as u64, shape.dims, &o);
    for mode in &mut sizes.modes {
        mode.rank = mode.rank.min(mode.rows as usize);
    }
    if let Some((mode, matrix)) = &matrix {
        sizes.matrices.push(MatrixSize {
            mode: *mode,
            columns: matrix.dims[1],
            entries: 5000,
        });
    }
    // The factors of the model are mapped, which is not counted.
    let mapped = sizes
        .factors()
        .map(|(rows, rank)| 4 * rows as usize * padded_len(rank));
    let mapped: usize = mapped.sum();
    let before = ALLOCATED.load(Relaxed);
    PEAK.store(before, Relaxed);
    fit(&problem, &o, &FitInput::default(), &mut (), &()).unwrap();
    let peak = PEAK.load(Relaxed) - before;
    [
        (peak + mapped) as f64,
        sizes.common_bytes() + further_bytes(&o, &sizes),
    ]
}

#[test]
fn the_estimate_covers_what_a_fit_allocates() {
    let shape = |dims, entries, matrix, rank| Shape {
        dims,
        entries,
        matrix,
        rank,
    };
    for shape in [
        // Many columns of a matrix on a mode of few rows, whose M M^T is formed, and on one of many rows.
        shape(&[20, 300, 30], 20_000, Some((0, 1_000_000)), 1),
        shape(&[20, 300, 30], 20_000, Some((0, 300_000)), 10),
        shape(&[20, 300, 30], 20_000, Some((1, 300_000)), 10),
        // Tall, and wide.
        shape(&[100_000, 40, 30], 200_000, None, 10),
        shape(&[300_000, 50, 30], 400_000, None, 1),
        shape(&[60, 70, 80], 50_000, None, 30),
        shape(&[400, 300, 200, 100], 100_000, None, 10),
        shape(&[100_000, 50, 20, 10], 200_000, None, 1),
    ] {
        let [peak, estimate] = peak_and_estimate(&shape);
        let ratio = peak / estimate;
        let (dims, rank) = (shape.dims, shape.rank);
        println!(
            "{dims:?} {:?} rank {rank}: {:.1} MB of {:.1} MB, {ratio:.2}",
            shape.matrix,
            peak / 1e6,
            estimate / 1e6
        );
        assert!(
            (0.45..1.05).contains(&ratio),
            "{dims:?} rank {rank}: {ratio}"
        );
    }
}
