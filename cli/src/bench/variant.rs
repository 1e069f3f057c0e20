//! The combinations of algorithm, instruction set and number of threads that are measured.

use s3cmtf::options::{Algorithm, Options};
use s3cmtf::parallel::available_threads;
use s3cmtf::simd::Level;
use s3cmtf::{Error, Result};

use super::arguments::Arguments;
use crate::output::format_count;

/// A combination of algorithm, instruction set and number of threads, with its measurements.
pub(super) struct Variant {
    pub options: Options,
    pub level: Level,
    /// Tensor entries per second of the fastest epoch.
    pub entries_per_second: f64,
    pub test_rmse: f64,
    /// The ranks of the model, which may be lower than requested.
    pub ranks: Vec<usize>,
    /// The same threads as several independent fits.
    pub independent: Vec<Split>,
}

/// A number of independent fits that run at the same time, with their measurement.
pub(super) struct Split {
    pub fits: u64,
    pub threads_per_fit: u64,
    /// Tensor entries per second of all fits together, in the fastest epoch.
    pub entries_per_second: f64,
}

/// Returns every split of `threads` threads into two or more fits with the same number of threads each.
fn splits(threads: u64) -> Vec<Split> {
    let fits = (2..=threads).rev().filter(|&k| threads.is_multiple_of(k));
    fits.map(|fits| Split {
        fits,
        threads_per_fit: threads / fits,
        entries_per_second: 0.0,
    })
    .collect()
}

impl Variant {
    pub fn is_naive(&self) -> bool {
        self.options.algorithm == Algorithm::Naive
    }

    pub fn algorithm_name(&self) -> String {
        self.options.get("algorithm").unwrap_or_default()
    }

    /// Returns the name of the variant in a trace.
    pub fn name(&self) -> String {
        let (algorithm, level) = (self.algorithm_name(), self.level.name());
        let threads = format_count(self.options.threads, "thread", "threads");
        format!("{algorithm}, {level}, {threads}")
    }

    pub fn threads(&self) -> f64 {
        self.options.threads as f64
    }
}

/// Returns every requested combination.
pub(super) fn variants(a: &Arguments) -> Result<Vec<Variant>> {
    let mut base = Options::preset("paper")?;
    base.set("model", &a.model)?;
    base.rank = vec![a.rank as usize];
    base.seed = a.seed;
    base.orthogonal = false;
    let mut threads = a.threads.clone();
    if threads.is_empty() {
        threads = vec![1, available_threads() as u64];
    }
    let mut levels = Vec::new();
    for name in &a.kernel {
        base.set("kernel", name)?;
        levels.push(Level::choose(base.kernel.level())?);
    }
    let mut variants: Vec<Variant> = Vec::new();
    let mut add = |options: &Options, level: Level, threads: u64| {
        let mut options = options.clone();
        options.set("kernel", level.name())?;
        options.threads = threads;
        // `naive` is slow, and one epoch gives its speed.
        options.epochs = match options.algorithm {
            Algorithm::Naive => 1,
            _ => a.epochs,
        };
        options.eval_every = options.epochs;
        if !variants.iter().any(|v| v.options == options) {
            variants.push(Variant {
                options,
                level,
                entries_per_second: 0.0,
                test_rmse: f64::NAN,
                ranks: Vec::new(),
                independent: if a.independent {
                    splits(threads)
                } else {
                    Vec::new()
                },
            });
        }
        Ok::<(), Error>(())
    };
    for name in &a.algorithm {
        base.set("algorithm", name)?;
        let levels = match base.algorithm {
            Algorithm::Naive => &[Level::Scalar][..],
            _ => &levels,
        };
        for &level in levels {
            for &threads in &threads {
                add(&base, level, threads)?;
            }
        }
    }
    Ok(variants)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_split_by_every_divisor() {
        let pairs = |threads| {
            let splits = splits(threads).into_iter();
            splits
                .map(|s| (s.fits, s.threads_per_fit))
                .collect::<Vec<_>>()
        };
        assert_eq!(pairs(16), [(16, 1), (8, 2), (4, 4), (2, 8)]);
        assert_eq!(pairs(3), [(3, 1)]);
        assert_eq!(pairs(1), []);
    }
}
