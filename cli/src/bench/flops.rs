//! Floating-point operations: the peak of the machine, and the operations per entry of each algorithm.

use std::sync::Barrier;

use s3cmtf::kernel::peak_flops;
use s3cmtf::options::{Algorithm, ModelKind, Options};
use s3cmtf::simd::Level;

/// Measurements of a peak, of which the best counts.
const PEAK_TRIES: usize = 5;
/// Seconds of one such measurement.
const PEAK_SECONDS: f64 = 0.02;

/// The peak of an instruction set and a number of threads.
pub(super) struct Peak {
    pub level: Level,
    pub threads: u64,
    /// Floating-point operations per second.
    pub flops: f64,
}

/// Measures the peak of all threads together, in floating-point operations per second. Takes the best of several tries,
/// since other processes may run on the machine.
pub(super) fn measure_peak(level: Level, threads: u64) -> f64 {
    let start = Barrier::new(threads as usize);
    let measure = || {
        (0..PEAK_TRIES)
            .map(|_| {
                start.wait();
                peak_flops(level, PEAK_SECONDS)
            })
            .collect::<Vec<f64>>()
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = (1..threads).map(|_| scope.spawn(measure)).collect();
        let mut totals = measure();
        // A thread that panicked is left out.
        for other in running.into_iter().filter_map(|t| t.join().ok()) {
            totals.iter_mut().zip(other).for_each(|(sum, x)| *sum += x);
        }
        totals.into_iter().fold(0.0, f64::max)
    })
}

/// Returns the floating-point operations per entry of an algorithm. The help of `bench` has the formulas.
pub(super) fn flops_per_entry(options: &Options, algorithm: Algorithm, ranks: &[usize]) -> f64 {
    let n = ranks.len() as f64;
    let threads = options.threads as f64;
    let core: f64 = ranks.iter().map(|&j| j as f64).product();
    let largest = ranks.iter().copied().max().unwrap_or(1) as f64;
    match (options.model, algorithm) {
        (ModelKind::Auto | ModelKind::Tucker, Algorithm::Blocked) => 6.0 * core / largest,
        (ModelKind::Auto | ModelKind::Tucker, Algorithm::Opt) => (4.0 + 2.0 / threads) * core,
        (ModelKind::Auto | ModelKind::Tucker, Algorithm::Naive) => {
            (n * n + n + 1.0 + 2.0 / threads) * core
        }
        (ModelKind::Cp, Algorithm::Blocked) => (7.0 * n - 8.0) * largest,
        (ModelKind::Cp, Algorithm::Opt) => (7.0 * n - 3.0 + 3.0 / threads) * largest,
        (ModelKind::Cp, Algorithm::Naive) => (n * n + 3.0 * n + 1.0 + 3.0 / threads) * largest,
        (ModelKind::Tucker | ModelKind::Auto, Algorithm::Als | Algorithm::Gibbs) => {
            n * (largest * largest + 2.0 * core / largest)
        }
        (ModelKind::Cp, Algorithm::Als | Algorithm::Gibbs) => n * (largest + n + 2.0) * largest,
        // It fits CP models only.
        (_, Algorithm::Sals) => {
            let blocks = (largest / options.subset_size as f64).ceil();
            let block = largest / blocks;
            let updates = options.inner_epochs as f64 * (block + n + 2.0);
            // Residuals without the first block, and the exchange of blocks before each of the others.
            let residuals = n + 2.0 * n * (1.0 - 1.0 / blocks);
            n * (updates + residuals) * largest
        }
        // The gradient by the rows of each mode, for one evaluation per iteration.
        (_, Algorithm::CmtfOpt) => n * (n + 2.0) * largest,
        // The products with the factors, if no two entries share rows of two modes.
        (_, Algorithm::TuckerAls) => 2.0 * n * (largest + core / largest),
    }
}
