//! The combinations of algorithm, instruction set and number of threads that are measured.

use s3cmtf::options::{Algorithm, Options};
use s3cmtf::parallel::available_threads;
use s3cmtf::simd::Level;
use s3cmtf::{Error, Result};

use super::arguments::Arguments;

/// A combination of algorithm, instruction set and number of threads, with its measurements.
pub(super) struct Variant {
    pub options: Options,
    pub level: Level,
    /// Tensor entries per second of the fastest epoch.
    pub entries_per_second: f64,
    pub test_rmse: f64,
    /// The ranks of the model, which may be lower than requested.
    pub ranks: Vec<usize>,
}

impl Variant {
    pub fn is_naive(&self) -> bool {
        self.options.algorithm == Algorithm::Naive
    }

    pub fn algorithm_name(&self) -> String {
        self.options.get("algorithm").unwrap_or_default()
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
