//! What is to be generated.

use super::Skew;
use crate::error::{Error, Result};
use crate::format::ValueKind;
use crate::options::ModelKind;

/// Values limited and rounded as ratings are.
#[derive(Debug, Clone, Copy)]
pub struct Rounding {
    /// The smallest value.
    pub low: f64,
    /// The largest.
    pub high: f64,
    /// The distance between two values.
    pub step: f64,
}

/// Which cells of a matrix are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellChoice {
    /// All.
    Full,
    /// This many.
    Entries(u64),
}

/// A matrix coupled to a mode through the planted factor of that mode.
#[derive(Debug, Clone, Copy)]
pub struct MatrixSpec {
    /// The mode, counted from 0.
    pub mode: usize,
    /// The number of columns.
    pub columns: u64,
    /// Which cells are listed.
    pub cells: CellChoice,
    /// With a number: values are 1 where the planted value is among the largest of this share, and
    /// 0 elsewhere, as in a table of attributes. With 1 all are 1, as in a list of friends.
    pub ones: Option<f64>,
    /// With a number: rows belong to groups, one for each column, and the matrix says to which, 1 there and 0 elsewhere,
    /// as a table of categories does. Rows of a group have this share of the variance of their factor rows in common.
    /// All cells are listed.
    pub groups: Option<f64>,
}

/// Everything [`generate`](super::generate) needs to know.
#[derive(Debug, Clone)]
pub struct GenerateOptions {
    /// The size of each mode.
    pub dims: Vec<u64>,
    /// The number of entries, training and test together; all cells are different.
    pub entries: u64,
    /// The planted model.
    pub model: ModelKind,
    /// Its rank in each mode, or one rank for all.
    pub ranks: Vec<usize>,
    /// Standard deviation of the planted values before noise.
    pub deviation: f64,
    /// Standard deviation of the noise relative to that of the planted values.
    pub noise: f64,
    /// Shifts the values to this mean; without it they are the planted model and nothing else.
    pub mean: Option<f64>,
    /// The mean of the factor entries, which have standard deviation 1. At 0 values are pure
    /// interaction; at 1 rows have a tendency of their own (a bias) as well.
    pub factor_mean: f64,
    /// Whether factors, core and columns of matrices are all non-negative.
    pub nonneg: bool,
    /// How uneven the rows of each mode are, or one for all.
    pub skew: Vec<Skew>,
    /// Limits and rounds values.
    pub rounding: Option<Rounding>,
    /// Coupled matrices.
    pub matrices: Vec<MatrixSpec>,
    /// The part of the entries that goes to the test tensor.
    pub test: f64,
    /// How values are stored.
    pub value_kind: ValueKind,
    /// Whether the planted model is written too.
    pub truth: bool,
    /// Decides everything.
    pub seed: u64,
    /// The number of threads; it does not change the result.
    pub threads: usize,
}

/// More threads than any machine has CPUs.
const MOST_THREADS: usize = 4096;

/// A core of more entries than this is refused: J^N grows fast.
const LARGEST_CORE: usize = 1 << 26;

/// Rows longer than this are not factors any more.
const LARGEST_RANK: usize = 65_536;

impl GenerateOptions {
    /// A Tucker model of rank 5 without noise, uniform rows, no test part, on one thread.
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
            skew: vec![Skew::UNIFORM],
            rounding: None,
            matrices: Vec::new(),
            test: 0.0,
            value_kind: ValueKind::F32,
            truth: true,
            seed: 0,
            threads: 1,
        }
    }

    pub(super) fn order(&self) -> usize {
        self.dims.len()
    }

    pub(super) fn rank(&self, n: usize) -> usize {
        if self.ranks.len() == 1 {
            self.ranks[0]
        } else {
            self.ranks[n]
        }
    }

    pub(super) fn skew(&self, n: usize) -> Skew {
        if self.skew.len() == 1 {
            self.skew[0]
        } else {
            self.skew[n]
        }
    }

    pub(super) fn test_count(&self) -> u64 {
        (self.test * self.entries as f64).round() as u64
    }

    pub(super) fn validate(&self) -> Result<()> {
        let bad = |what: String| Err(Error::argument(what));
        let order = self.order();
        crate::format::Header::plan(&self.dims, self.entries, self.value_kind, None)?;
        let cells = self
            .dims
            .iter()
            .fold(1u128, |all, &d| all.saturating_mul(u128::from(d)));
        if self.entries == 0 {
            return bad("0 entries; at least 1 is needed".into());
        }
        if u128::from(self.entries) > cells {
            return bad(format!(
                "{} entries, but the tensor has only {cells} cells",
                self.entries
            ));
        }
        if self.ranks.len() != 1 && self.ranks.len() != order {
            return bad(format!(
                "{} ranks for {order} modes; give one, or one per mode",
                self.ranks.len()
            ));
        }
        if self.skew.len() != 1 && self.skew.len() != order {
            return bad(format!(
                "{} skews for {order} modes; give one, or one per mode",
                self.skew.len()
            ));
        }
        if (0..order).any(|n| self.rank(n) == 0) {
            return bad("a rank is 0; ranks are at least 1".into());
        }
        if self.model == ModelKind::Cp && (0..order).any(|n| self.rank(n) != self.rank(0)) {
            return bad("a CP model has the same rank in every mode".into());
        }
        let core = (0..order).try_fold(1usize, |size, n| size.checked_mul(self.rank(n)));
        if self.model == ModelKind::Tucker && core.is_none_or(|size| size > LARGEST_CORE) {
            return bad(format!(
                "the core would have more than {LARGEST_CORE} entries; lower the ranks, or plant a cp model"
            ));
        }
        if (0..order).any(|n| self.rank(n) > LARGEST_RANK) {
            return bad(format!("ranks are at most {LARGEST_RANK}"));
        }
        for (name, value, positive) in [
            ("noise", self.noise, false),
            ("deviation", self.deviation, true),
            ("factor mean", self.factor_mean, false),
        ] {
            if !value.is_finite() || value < 0.0 || (positive && value == 0.0) {
                let bound = if positive { "above 0" } else { "0 or more" };
                return bad(format!(
                    "{name} {value}; it must be a finite number, {bound}"
                ));
            }
        }
        if self.mean.is_some_and(|m| !m.is_finite()) {
            return bad("the mean must be a finite number".into());
        }
        if let Some(r) = self.rounding
            && !(r.low < r.high && r.step > 0.0 && r.high.is_finite() && r.low.is_finite())
        {
            return bad(format!(
                "values from {} to {} in steps of {} make no sense",
                r.low, r.high, r.step
            ));
        }
        if !(0.0..1.0).contains(&self.test)
            || (self.test > 0.0 && self.test_count() == 0)
            || self.test_count() == self.entries
        {
            return bad(format!(
                "a test part of {} leaves nothing to test or nothing to train on; it is 0 or between 0 and 1",
                self.test
            ));
        }
        for n in 0..order {
            self.skew(n).validate()?;
        }
        for (m, spec) in self.matrices.iter().enumerate() {
            let m = m + 1;
            if spec.mode >= order {
                return bad(format!(
                    "matrix {m} is coupled to mode {}, but there are modes 1 to {order}",
                    spec.mode + 1
                ));
            }
            let dims = [self.dims[spec.mode], spec.columns];
            let cells = u128::from(dims[0]) * u128::from(dims[1]);
            let entries = match spec.cells {
                CellChoice::Full => u64::try_from(cells).unwrap_or(u64::MAX),
                CellChoice::Entries(n) => n,
            };
            crate::format::Header::plan(&dims, entries, self.value_kind, None)
                .map_err(|e| Error::argument(format!("matrix {m}: {e}")))?;
            if u128::from(entries) > cells || entries == 0 {
                return bad(format!(
                    "matrix {m}: {entries} entries; it has {cells} cells"
                ));
            }
            if spec.groups.is_some() && (spec.ones.is_some() || spec.cells != CellChoice::Full) {
                return bad(format!(
                    "matrix {m}: a table of groups lists all cells, with a one in each row; leave out what else is said of them"
                ));
            }
            if spec.ones.is_some_and(|s| !(s > 0.0 && s <= 1.0)) {
                return bad(format!(
                    "matrix {m}: the share of ones must be above 0 and at most 1"
                ));
            }
        }
        for n in 0..order {
            let of_mode = self.matrices.iter().filter(|m| m.mode == n);
            let shares: Vec<f64> = of_mode.filter_map(|m| m.groups).collect();
            let fine = |s: &f64| *s > 0.0 && *s <= 1.0;
            if !shares.iter().all(fine) || shares.iter().sum::<f64>() > 1.0 + 1e-9 {
                return bad(format!(
                    "shares of groups of mode {} are {shares:?}; they must be above 0 and at most 1 together",
                    n + 1
                ));
            }
        }
        if !(1..=MOST_THREADS).contains(&self.threads) {
            return bad(format!(
                "{} threads; it must be 1 to {MOST_THREADS}",
                self.threads
            ));
        }
        Ok(())
    }
}
