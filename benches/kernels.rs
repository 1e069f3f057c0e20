//! The kernels of one entry at every level of this machine. Items are floating-point operations, to be compared
//! with the peak rate, which is printed first.

use std::fmt;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use s3cmtf::kernel::{Method, TensorKernel, peak_flops};

use s3cmtf::kernel::{CoreKind, CoreShape};
use s3cmtf::simd::Level;

fn main() {
    for level in Level::available() {
        let peak = peak_flops(level, 0.2) / 1e9;
        println!("peak of {} on one thread: {peak:.1} GFLOP/s", level.name());
    }
    divan::main();
}

/// A level and the rank of all three modes.
struct Case(Level, usize);

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, J = {}", self.0.name(), self.1)
    }
}

fn cases() -> Vec<Case> {
    let ranks = [8, 12, 16, 32];
    ranks
        .into_iter()
        .flat_map(|rank| Level::available().map(move |level| Case(level, rank)))
        .collect()
}

/// Returns a kernel with a core and one row per mode.
fn kernel_and_inputs(case: &Case) -> (TensorKernel, Vec<f32>, Vec<f32>) {
    let &Case(level, rank) = case;
    let shape = CoreShape::new(CoreKind::Full, &[rank; 3]);
    let values = |n: usize| -> Vec<f32> { (0..n).map(|k| (k as f32).sin()).collect() };
    let core = shape.padded_core(&values(rank * rank * rank)).unwrap();
    let mut rows = vec![0.0; shape.rows_len()];
    for n in 0..3 {
        rows[shape.row(n)][..rank].copy_from_slice(&values(rank));
    }
    (
        TensorKernel::new(&shape, Method::Shared(level)).unwrap(),
        core,
        rows,
    )
}

/// Two multiply-adds per core entry.
#[divan::bench(args = cases())]
fn gradients(bencher: Bencher, case: &Case) {
    let (mut kernel, core, rows) = kernel_and_inputs(case);
    let mut gradients = vec![0.0; rows.len()];
    bencher
        .counter(ItemsCount::new(4 * case.1.pow(3)))
        .bench_local(|| kernel.gradients(black_box(&core), black_box(&rows), &mut gradients));
}

/// One multiply-add per core entry.
#[divan::bench(args = cases())]
fn value(bencher: Bencher, case: &Case) {
    let (mut kernel, core, rows) = kernel_and_inputs(case);
    bencher
        .counter(ItemsCount::new(2 * case.1.pow(3)))
        .bench_local(|| kernel.value(black_box(&core), black_box(&rows)));
}
