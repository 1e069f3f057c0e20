//! Options of the generator, and their validation.

use super::popularity::ZipfMandelbrot;
use crate::error::{Error, Result};
use crate::format::ValueKind;
use crate::options::ModelKind;
use crate::parallel::MAX_THREADS;

/// Clipping and rounding of values, as in ratings.
#[derive(Debug, Clone, Copy)]
pub struct Rounding {
    /// The smallest value.
    pub low: f64,
    /// The largest value.
    pub high: f64,
    /// The distance between consecutive values.
    pub step: f64,
}

/// The observed entries of a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatrixEntries {
    /// All entries.
    All,
    /// A sample of this many entries.
    Sampled(u64),
}

/// A matrix that shares the planted factor of a mode.
#[derive(Debug, Clone, Copy)]
pub struct MatrixSpec {
    /// The mode, counted from 0.
    pub mode: usize,
    /// The number of columns.
    pub columns: u64,
    /// The observed entries.
    pub entries: MatrixEntries,
    /// If set, values are binary: 1 for this fraction of the largest planted values and 0 for the rest, as in a table of
    /// attributes. At 1 all values are 1, as in a list of friends.
    pub ones_fraction: Option<f64>,
    /// If set, each row belongs to one group, one per column, and the matrix is the indicator of that group, as in a
    /// table of categories. Rows of a group share this fraction of the variance of their factor rows. All entries are
    /// observed.
    pub group_fraction: Option<f64>,
}

/// Options of [`generate`](super::generate).
#[derive(Debug, Clone)]
pub struct GenerateOptions {
    /// The size of each mode.
    pub dims: Vec<u64>,
    /// The number of training and test entries together. Their positions are distinct.
    pub entries: u64,
    /// The kind of the planted model.
    pub model: ModelKind,
    /// Its rank in each mode, or one rank for all modes.
    pub ranks: Vec<usize>,
    /// Standard deviation of the planted values before noise.
    pub deviation: f64,
    /// Standard deviation of the noise, relative to `deviation`.
    pub noise: f64,
    /// If set, an offset shifts the values to this mean. Without it the values are those of factors and core alone.
    pub mean: Option<f64>,
    /// The mean of the factor entries, which have standard deviation 1. At 0 values are pure interactions; at 1 rows also
    /// have main effects (biases).
    pub factor_mean: f64,
    /// Whether factors, core and column factors of matrices are all non-negative.
    pub nonneg: bool,
    /// The popularity distribution of the rows of each mode, or one for all modes.
    pub skew: Vec<ZipfMandelbrot>,
    /// Clips and rounds values, if set.
    pub rounding: Option<Rounding>,
    /// Coupled matrices.
    pub matrices: Vec<MatrixSpec>,
    /// The fraction of the entries that goes to the test tensor.
    pub test_fraction: f64,
    /// The type of stored values.
    pub value_kind: ValueKind,
    /// Whether the planted model is written too.
    pub write_truth: bool,
    /// The seed of all random numbers.
    pub seed: u64,
    /// The number of threads. The result does not depend on it.
    pub threads: usize,
}

/// The largest number of core entries (256 MiB). The size of the core grows as J^N.
const MAX_CORE_ENTRIES: usize = 1 << 26;

/// The largest rank of a mode.
const MAX_RANK: usize = 65_536;

impl GenerateOptions {
    /// Returns options for a Tucker model of rank 5 without noise, with uniform rows and no test entries, on one thread.
    pub fn new(dims: &[u64], entries: u64) -> Self {
        GenerateOptions {
            dims: dims.to_vec(),
            entries,
            model: ModelKind::Tucker,
            ranks: vec![5],
            deviation: 1.0,
            noise: 0.0,
            mean: None,
            factor_mean: 0.0,
            nonneg: false,
            skew: vec![ZipfMandelbrot::UNIFORM],
            rounding: None,
            matrices: Vec::new(),
            test_fraction: 0.0,
            value_kind: ValueKind::F32,
            write_truth: true,
            seed: 0,
            threads: 1,
        }
    }

    pub(super) fn order(&self) -> usize {
        self.dims.len()
    }

    /// The rank of mode `n`.
    pub(super) fn rank(&self, n: usize) -> usize {
        if self.ranks.len() == 1 {
            self.ranks[0]
        } else {
            self.ranks[n]
        }
    }

    /// The popularity distribution of mode `n`.
    pub(super) fn popularity(&self, n: usize) -> ZipfMandelbrot {
        if self.skew.len() == 1 {
            self.skew[0]
        } else {
            self.skew[n]
        }
    }

    pub(super) fn test_count(&self) -> u64 {
        (self.test_fraction * self.entries as f64).round() as u64
    }

    pub(super) fn validate(&self) -> Result<()> {
        self.validate_tensor()?;
        self.validate_values()?;
        for n in 0..self.order() {
            self.popularity(n).validate()?;
        }
        for (m, spec) in self.matrices.iter().enumerate() {
            self.validate_matrix(m + 1, spec)?;
        }
        self.validate_groups()?;
        Error::check_range("threads", self.threads, 1..=MAX_THREADS)
    }

    /// Checks sizes, counts and ranks.
    fn validate_tensor(&self) -> Result<()> {
        let order = self.order();
        crate::format::Header::plan(&self.dims, self.entries, self.value_kind, None)?;
        let positions = self
            .dims
            .iter()
            .fold(1u128, |all, &d| all.saturating_mul(u128::from(d)));
        if self.entries == 0 {
            return invalid("0 entries; at least 1 is needed".into());
        }
        if u128::from(self.entries) > positions {
            return invalid(format!(
                "{} entries, but the tensor has only {positions} positions",
                self.entries
            ));
        }
        if self.ranks.len() != 1 && self.ranks.len() != order {
            return invalid(format!(
                "{} ranks for {order} modes; give one, or one per mode",
                self.ranks.len()
            ));
        }
        if self.skew.len() != 1 && self.skew.len() != order {
            return invalid(format!(
                "{} skews for {order} modes; give one, or one per mode",
                self.skew.len()
            ));
        }
        if (0..order).any(|n| self.rank(n) == 0) {
            return invalid("a rank is 0; ranks are at least 1".into());
        }
        if self.model == ModelKind::Cp && (0..order).any(|n| self.rank(n) != self.rank(0)) {
            return invalid("a CP model has the same rank in every mode".into());
        }
        let core = (0..order).try_fold(1usize, |size, n| size.checked_mul(self.rank(n)));
        if self.model == ModelKind::Tucker && core.is_none_or(|size| size > MAX_CORE_ENTRIES) {
            return invalid(format!(
                "the core would have more than {MAX_CORE_ENTRIES} entries; lower the ranks, or plant a cp model"
            ));
        }
        if (0..order).any(|n| self.rank(n) > MAX_RANK) {
            return invalid(format!("ranks are at most {MAX_RANK}"));
        }
        Ok(())
    }

    /// Checks the distribution of the values and the test fraction.
    fn validate_values(&self) -> Result<()> {
        for (name, value, is_positive) in [
            ("noise", self.noise, false),
            ("deviation", self.deviation, true),
            ("factor mean", self.factor_mean, false),
        ] {
            if !value.is_finite() || value < 0.0 || (is_positive && value == 0.0) {
                let bound = if is_positive { "above 0" } else { "0 or more" };
                return invalid(format!(
                    "{name} {value}; it must be a finite number, {bound}"
                ));
            }
        }
        if self.mean.is_some_and(|m| !m.is_finite()) {
            return invalid("the mean must be a finite number".into());
        }
        if let Some(r) = self.rounding
            && !(r.low < r.high && r.step > 0.0 && r.high.is_finite() && r.low.is_finite())
        {
            return invalid(format!(
                "values from {} to {} in steps of {}; the bounds must be finite and ascending, and the step above 0",
                r.low, r.high, r.step
            ));
        }
        if !(0.0..1.0).contains(&self.test_fraction)
            || (self.test_fraction > 0.0 && self.test_count() == 0)
            || self.test_count() == self.entries
        {
            return invalid(format!(
                "a test fraction of {} leaves no test entries or no training entries; it must be 0 or between 0 and 1",
                self.test_fraction
            ));
        }
        Ok(())
    }

    /// Checks matrix number `m`, counted from 1.
    fn validate_matrix(&self, m: usize, spec: &MatrixSpec) -> Result<()> {
        let order = self.order();
        if spec.mode >= order {
            return invalid(format!(
                "matrix {m} is coupled to mode {}, but there are modes 1 to {order}",
                spec.mode + 1
            ));
        }
        let dims = [self.dims[spec.mode], spec.columns];
        let positions = u128::from(dims[0]) * u128::from(dims[1]);
        let entries = match spec.entries {
            MatrixEntries::All => u64::try_from(positions).unwrap_or(u64::MAX),
            MatrixEntries::Sampled(n) => n,
        };
        crate::format::Header::plan(&dims, entries, self.value_kind, None)
            .map_err(|e| Error::argument(format!("matrix {m}: {e}")))?;
        if u128::from(entries) > positions || entries == 0 {
            return invalid(format!(
                "matrix {m}: {entries} entries; it has {positions} positions"
            ));
        }
        let is_plain = spec.ones_fraction.is_none() && spec.entries == MatrixEntries::All;
        if spec.group_fraction.is_some() && !is_plain {
            return invalid(format!(
                "matrix {m}: a table of groups has all its entries, with a one in each row; give neither a number of \
                 entries nor a fraction of ones"
            ));
        }
        if spec.ones_fraction.is_some_and(|s| !(s > 0.0 && s <= 1.0)) {
            return invalid(format!(
                "matrix {m}: the fraction of ones must be above 0 and at most 1"
            ));
        }
        Ok(())
    }

    /// Checks that the groups of a mode explain at most all of the variance of its rows.
    fn validate_groups(&self) -> Result<()> {
        for n in 0..self.order() {
            let of_mode = self.matrices.iter().filter(|m| m.mode == n);
            let fractions: Vec<f64> = of_mode.filter_map(|m| m.group_fraction).collect();
            let is_valid = |s: &f64| *s > 0.0 && *s <= 1.0;
            if !fractions.iter().all(is_valid) || fractions.iter().sum::<f64>() > 1.0 + 1e-9 {
                return invalid(format!(
                    "group fractions of mode {} are {fractions:?}; each must be above 0, and their sum at most 1",
                    n + 1
                ));
            }
        }
        Ok(())
    }
}

fn invalid(message: String) -> Result<()> {
    Err(Error::argument(message))
}
