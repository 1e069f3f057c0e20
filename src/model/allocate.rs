//! Allocates a model of zeros for a problem.

use super::factor_matrix::FactorMatrix;
use super::factor_model::Model;
use super::factors::{ModelMatrix, ModelMode, RowPrior};
use super::fit_record::FitRecord;
use crate::error::{Error, Result};
use crate::kernel::{CoreKind, CoreShape};
use crate::options::{ModelKind, Options};
use crate::problem::Problem;
use crate::simd::AlignedVec;
use crate::try_alloc::{CORE_ENTRIES, try_to_vec};

/// Largest number of entries of a full core (64 MiB). J^N grows fast, so larger cores are refused.
const MAX_CORE_ENTRIES: usize = 1 << 24;

impl Model {
    /// Allocates a model of zeros for `problem`, with the ranks of `options` lowered to the number of rows of each mode.
    /// Also returns one message for each rank that was lowered.
    #[doc(hidden)]
    pub fn zeros(problem: &Problem<'_>, options: &Options) -> Result<(Model, Vec<String>)> {
        let kind = match options.model {
            ModelKind::Cp => CoreKind::Diagonal,
            _ => CoreKind::Full,
        };
        let (ranks, messages) = feasible_ranks(problem, options, kind)?;
        let core_entries = ranks
            .iter()
            .try_fold(1usize, |size, &j| size.checked_mul(j));
        if kind == CoreKind::Full && core_entries.is_none_or(|n| n > MAX_CORE_ENTRIES) {
            return Err(Error::argument(format!(
                "a core of {} entries is more than the {MAX_CORE_ENTRIES} allowed; lower the ranks or fit a cp model",
                ranks
                    .iter()
                    .map(usize::to_string)
                    .collect::<Vec<_>>()
                    .join(" x ")
            )));
        }
        let shape = CoreShape::new(kind, &ranks);
        let mut modes = Vec::new();
        for (mode, &rank) in problem.modes().iter().zip(&ranks) {
            modes.push(ModelMode {
                rows: mode.rows().clone(),
                counts: mode.counts.clone(),
                weights: try_to_vec(mode.weights(), "rows")?,
                factor: FactorMatrix::zeros(mode.rows().len() + 1, rank)?,
                biases: Vec::new(),
                prior: RowPrior::default(),
            });
        }
        let mut matrices = Vec::new();
        for (m, weight) in problem
            .matrices()
            .iter()
            .zip(problem.matrix_weights(options))
        {
            matrices.push(ModelMatrix {
                mode: m.mode,
                weight,
                penalty: m.penalty,
                kind: m.kind,
                columns: m.columns.rows().clone(),
                factor: FactorMatrix::zeros(m.columns.rows().len(), ranks[m.mode])?,
                offsets: Vec::new(),
                precision: None,
                weight_unit: m.entries.weights.unit(),
            });
        }
        let model = Model {
            core: AlignedVec::try_zeroed(shape.core_len(), CORE_ENTRIES)?,
            shape,
            modes,
            matrices,
            mean: 0.0,
            precision: None,
            weight_unit: problem.tensor().weights.unit(),
            range: problem.range(),
            clips: options.clip.unwrap_or_else(|| problem.is_bounded()),
            options: options.clone(),
            plan: None,
            history: Vec::new(),
            record: FitRecord::default(),
            orthogonal: false,
            core_prior_mean: Vec::new(),
            samples: None,
        };
        Ok((model, messages))
    }
}

/// Refuses given ranks that no model of this order has.
pub(crate) fn check_ranks(ranks: &[usize], order: usize, is_cp: bool) -> Result<()> {
    if ranks.len() > 1 && ranks.len() != order {
        return Err(Error::argument(format!(
            "{} ranks for {order} modes; give one, or one per mode",
            ranks.len()
        )));
    }
    if is_cp && ranks.iter().any(|&rank| rank != ranks[0]) {
        return Err(Error::argument(
            "a cp model has the same rank in every mode; give one rank for all",
        ));
    }
    Ok(())
}

/// Returns the rank of each mode, lowered to its number of rows, and one message for each rank that was lowered.
fn feasible_ranks(
    problem: &Problem<'_>,
    options: &Options,
    kind: CoreKind,
) -> Result<(Vec<usize>, Vec<String>)> {
    let order = problem.order();
    if options.rank.is_empty() {
        return Err(Error::argument(
            "the rank is still auto; choose it before a model is allocated",
        ));
    }
    check_ranks(&options.rank, order, kind == CoreKind::Diagonal)?;
    let requested = |n: usize| {
        if options.rank.len() == 1 {
            options.rank[0]
        } else {
            options.rank[n]
        }
    };
    let mut ranks = Vec::new();
    let mut messages = Vec::new();
    for (n, mode) in problem.modes().iter().enumerate() {
        let rows = mode.rows().len().max(1);
        // The diagonal core of cp needs equal ranks; there a rank above the number of rows is meaningful.
        if kind == CoreKind::Full && requested(n) > rows {
            messages.push(format!(
                "mode {} has {rows} rows; its rank is lowered from {} to that",
                n + 1,
                requested(n)
            ));
            ranks.push(rows);
        } else {
            ranks.push(requested(n));
        }
    }
    Ok((ranks, messages))
}
