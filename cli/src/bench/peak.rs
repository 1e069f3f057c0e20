//! The peak of the machine in floating-point operations.

use std::sync::Barrier;

use s3cmtf::kernel::peak_flops;
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
