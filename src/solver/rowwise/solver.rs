//! What a fit sees of the exact solvers.

use std::borrow::Cow;
use std::sync::Arc;

use super::cold_start::ColdBiases;
use super::holdout::{HeldOut, Squares, Undo};
use super::sweep::{Exact, Given, GivenMatrix, State, Turn, Way};
use crate::error::{Error, Result};
use crate::model::{FactorMatrix, Model, PosteriorSample, PosteriorSamples, QuantizedRows};

use crate::kernel::CoreKind;

use crate::options::{Algorithm, Options, Penalty};
use crate::parallel::ThreadPool;
use crate::simd::padded_len;
use crate::solver::algorithm::{EvaluationSet, FitContext, InitialState, Origin};
use crate::solver::entries::{Entries, Shuffled};

/// A sample whose errors on the training entries are so many times those of the last is from before
/// the draws came to rest.
const EARLY: f64 = 1.1;

/// An exact solver at work.
pub(in crate::solver) struct Solver {
    exact: Exact,
    state: State,
    test: Option<HeldOut>,
    valid: Option<HeldOut>,
    /// Whether rows are drawn; and when: the sweeps before samples, and the sweeps for each.
    draws: Option<(u64, u64)>,
    entries: usize,
}

impl Solver {
    pub(in crate::solver) fn new(
        model: &mut Model,
        context: &FitContext,
        initial: &InitialState<'_>,
    ) -> Result<Solver> {
        let FitContext {
            options,
            data,
            level,
            pool,
            ..
        } = context;
        let (level, origin) = (*level, initial.origin);
        check(options)?;
        let draws =
            (options.algorithm == Algorithm::Gibbs).then_some((options.burn_in, options.thin));
        let tensor = data.tensor.shuffled();
        let undo = match draws {
            Some(_) => {
                // A mean far from 0 is gone already.
                let (low, high) = model.range;
                standard(tensor, (low - model.mean, high - model.mean))
            }
            None => Undo {
                by: 1.0,
                plus: 0.0,
                range: model.range,
            },
        };
        let way = match draws {
            Some(_) => Way::Draw { seed: options.seed },
            None => Way::Best {
                ridge: data.penalty.lambda,
                nonneg: options.nonneg,
            },
        };
        let biased = draws.is_some() && options.biases;
        let limits: Vec<usize> = model.modes.iter().map(|m| m.rows.len()).collect();
        let given = Given {
            limits: limits.clone(),
            rows: &tensor.rows,
            values: Cow::Owned(undo.apply(if tensor.values_with_biases.is_empty() {
                &tensor.values
            } else {
                &tensor.values_with_biases
            })),
            weights: &tensor.weights,
        };
        let matrices: Vec<GivenMatrix<'_>> = data
            .matrices
            .iter()
            .zip(&model.matrices)
            .map(|(m, columns)| {
                let entries = m.entries.shuffled();
                let graph = m.kind.is_graph();
                let columns = if graph {
                    limits[m.mode]
                } else {
                    columns.columns.len()
                };
                GivenMatrix {
                    mode: m.mode,
                    weight: f64::from(m.weight),
                    ridges: m
                        .column_weights
                        .iter()
                        .map(|&weight| m.penalty.of_row(weight) as f32)
                        .collect(),
                    graph,
                    full: m.full.clone(),
                    entries: Given {
                        limits: vec![limits[m.mode], columns],
                        rows: &entries.rows,
                        values: Cow::Borrowed(&entries.values),
                        weights: &entries.weights,
                    },
                }
            })
            .collect();
        let setting = (undo, way, biased, level);
        let mut exact = Exact::new(&model.shape, &given, &matrices, setting, pool)?;
        if draws.is_some() {
            exact.find_partners(pool)?;
        }
        let mut state = State {
            biases: model
                .modes
                .iter()
                .map(|m| vec![0.0; if biased { m.factor.len() } else { 0 }])
                .collect(),
            smooth: (Vec::new(), Vec::new()),
            squares: None,
            precision: 1.0,
            weights: Vec::new(),
            cold: model.modes.iter().map(|_| None).collect(),
            priors: model.modes.iter().map(|_| None).collect(),
        };
        match origin {
            Origin::Random if draws.is_some() => exact.start(model, options.seed, pool)?,
            Origin::Checkpoint => {
                if let Some(samples) = &model.samples {
                    state.biases.clone_from(&samples.biases);
                }
            }
            Origin::Random => take_in_core(model, undo.by)?,
            Origin::Model(other) => {
                take_in_core(model, undo.by)?;
                if biased {
                    take_biases(&mut state.biases, model, other, undo.by);
                }
            }
        }
        for (mode, prior) in model.modes.iter().zip(&data.prior_means) {
            let weight = |i: usize| match mode.counts[i] {
                0 => 1.0,
                _ => mode.row_weight(i),
            };
            let penalty = |i: usize| data.penalty.of_row(weight(i)) as f32;
            let penalties = (0..mode.counts.len()).map(penalty).collect();
            exact.ridges.push((penalties, prior.clone()));
        }
        if let Origin::Model(other) = origin {
            // Draws are as wide as what they were drawn from. Fitted rows are narrower, and what is learnt from them
            // would hold rows with few entries back.
            exact.first = u64::from(other.samples.is_none());
        }
        let with_mean: Vec<usize> = limits.iter().map(|n| n + 1).collect();
        let hold = |entries: Option<&Entries>| -> Result<Option<HeldOut>> {
            let Some(entries) = entries.filter(|e| draws.is_some() && e.len() > 0) else {
                return Ok(None);
            };
            let (mut rows, mut values, mut weights) = (Vec::new(), Vec::new(), Vec::new());
            let weighted = entries.is_weighted();
            entries.for_each(|row, value, weight| {
                rows.extend_from_slice(row);
                values.push(value);
                weights.extend(weighted.then_some(weight));
            });
            HeldOut::new(&with_mean, &rows, (&undo.apply(&values), &weights)).map(Some)
        };
        let mut solver = Solver {
            exact,
            state,
            test: hold(initial.test)?,
            valid: hold(initial.validation)?,
            draws,
            entries: tensor.len(),
        };
        if draws.is_some() {
            if !matches!(origin, Origin::Checkpoint) || model.samples.is_none() {
                model.samples = Some(PosteriorSamples {
                    mean: model.mean + undo.plus,
                    scale: undo.by,
                    has_biases: biased,
                    conditional_mode: *solver.exact.order.last().unwrap_or(&0),
                    samples: Vec::new(),
                    biases: solver.state.biases.clone(),
                });
            }
            solver.recall(model, pool)?;
        }
        Ok(solver)
    }

    /// Whether this is `gibbs`, whose errors are measured here.
    pub(in crate::solver) fn draws(&self) -> bool {
        self.draws.is_some()
    }

    /// One sweep; `als` takes the values to be `biases` less. The sum of squared errors on the training entries, or `None` if `cancelled` said so.
    /// The model is of no use then.
    pub(in crate::solver) fn sweep(
        &mut self,
        model: &mut Model,
        biases: &[Vec<f32>],
        number: u64,
        pool: &ThreadPool,
        cancelled: &mut dyn FnMut() -> bool,
    ) -> Result<Option<f64>> {
        if !self.draws() && !biases.is_empty() {
            self.state.biases = biases.to_vec();
        }
        let kept = self.draws.is_some_and(|(before, every)| {
            number > before && (number - before).is_multiple_of(every)
        });
        let turn = Turn {
            number,
            kept,
            settles: self.draws.is_some_and(|(before, _)| number <= before),
        };
        let done = self
            .exact
            .sweep(model, &mut self.state, turn, pool, cancelled)?;
        if done.is_none() {
            return Ok(None);
        }
        if !self.draws() {
            return Ok(Some(0.0));
        }
        let last = *self.exact.order.last().unwrap_or(&0);
        if kept {
            self.state.swap_cold(last);
            self.keep(model)?;
        }
        let squares = self.note_noise(model, pool)?;
        if kept {
            if !self.drop_early(model, pool)? {
                self.count(model, pool)?;
            }
            self.state.swap_cold(last);
        }
        if let Some(samples) = &mut model.samples {
            samples.biases.clone_from(&self.state.biases);
        }
        Ok(Some(squares * self.exact.undo.by.powi(2)))
    }

    /// Drops samples from before the draws came to rest: those that fit the entries much worse than the
    /// last. If there are some, counts what is left anew.
    fn drop_early(&mut self, model: &mut Model, pool: &ThreadPool) -> Result<bool> {
        let Some(samples) = &mut model.samples else {
            return Ok(false);
        };
        let most = EARLY
            * samples
                .samples
                .last()
                .map_or(f64::INFINITY, |s| s.noise_deviation);
        let before = samples.samples.len();
        samples.samples.retain(|s| s.noise_deviation <= most);
        if samples.samples.len() == before {
            return Ok(false);
        }
        for held in [&mut self.test, &mut self.valid].into_iter().flatten() {
            held.forget();
        }
        self.recall(model, pool)?;
        Ok(true)
    }

    /// Makes a sample of the present draw, and the draw what the sample keeps of it.
    fn keep(&mut self, model: &mut Model) -> Result<()> {
        let biased = self.exact.biased;
        let mut modes = Vec::new();
        for (mode, biases) in model.modes.iter_mut().zip(&mut self.state.biases) {
            modes.push(round(&mut mode.factor, biases)?);
        }
        let last = *self.exact.order.last().unwrap_or(&0);
        let rank = model.shape.ranks[last];
        let mut rows = FactorMatrix::zeros(model.modes[last].factor.len(), rank)?;
        rows.as_mut_slice()?.copy_from_slice(&self.state.smooth.0);
        // Rows never seen are the mean in either case.
        let mean = (rows.len() - 1) * padded_len(rank);
        rows.as_mut_slice()?[mean..].copy_from_slice(&model.modes[last].factor.as_slice()[mean..]);
        let smooth = round(&mut rows, &mut self.state.smooth.1)?;
        self.state.smooth.0.copy_from_slice(rows.as_slice());
        let core = match model.shape.kind {
            CoreKind::Full => model.core.to_vec(),
            CoreKind::Diagonal => Vec::new(),
        };
        // The chain goes on with columns as they are: only samples of rows are predicted from.
        let columns = model.matrices.iter().map(|m| {
            let (rank, stride) = (m.factor.rank(), m.factor.stride());
            let rows = m.factor.as_slice().chunks_exact(stride);
            let all: Vec<f32> = rows.flat_map(|row| &row[..rank]).copied().collect();
            QuantizedRows::quantize(rank, &all)
        });
        let weights = self.state.weights.clone();
        let sample = PosteriorSample {
            noise_deviation: 0.0,
            core,
            modes,
            conditional_means: smooth,
            columns: columns.take(weights.len()).collect(),
            weights,
            cold_bias: self
                .state
                .cold
                .iter()
                .map(|c| c.as_ref().map_or(Vec::new(), ColdBiases::numbers))
                .collect(),
        };
        if let Some(samples) = &mut model.samples {
            debug_assert_eq!(samples.has_biases, biased);
            samples.samples.push(Arc::new(sample));
        }
        Ok(())
    }

    /// Counts the predictions of the present draw towards the mean.
    fn count(&mut self, model: &Model, pool: &ThreadPool) -> Result<()> {
        for held in [&mut self.test, &mut self.valid].into_iter().flatten() {
            let (_, predictions) =
                self.exact
                    .measure(model, &self.state, held, (true, true), pool)?;
            held.keep(predictions);
        }
        Ok(())
    }

    /// Counts the predictions of all samples there are.
    fn recall(&mut self, model: &mut Model, pool: &ThreadPool) -> Result<()> {
        let Some(samples) = model.samples.clone().filter(|s| !s.is_empty()) else {
            return Ok(());
        };
        let (now, biases) = (model.snapshot()?, self.state.biases.clone());
        let smooth = self.state.smooth.clone();
        for sample in samples.iter() {
            for (n, mode) in model.modes.iter_mut().enumerate() {
                unround(
                    &sample.modes[n],
                    &mut mode.factor,
                    &mut self.state.biases[n],
                )?;
            }
            let mut rows = model.modes[samples.conditional_mode].factor.try_clone()?;
            self.state
                .smooth
                .1
                .resize(self.state.biases[samples.conditional_mode].len(), 0.0);
            unround(
                &sample.conditional_means,
                &mut rows,
                &mut self.state.smooth.1,
            )?;
            self.state.smooth.0 = rows.as_slice().to_vec();
            if !sample.core.is_empty() {
                model.core.copy_from_slice(&sample.core);
            }
            self.count(model, pool)?;
        }
        model.restore(&now)?;
        (self.state.biases, self.state.smooth) = (biases, smooth);
        Ok(())
    }

    /// A fit that ends before its first sample has the last whole draw as one.
    pub(in crate::solver) fn add_last_sample(
        &mut self,
        model: &mut Model,
        pool: &ThreadPool,
    ) -> Result<()> {
        let Some(samples) = model.samples.as_ref().filter(|s| s.is_empty()) else {
            return Ok(());
        };
        let last = samples.conditional_mode;
        self.state.biases.clone_from(&samples.biases);
        self.state.smooth = (
            model.modes[last].factor.as_slice().to_vec(),
            self.state.biases[last].clone(),
        );
        // No sweep was kept, so none has them. The draw stays as it is: its biases are those of the chain.
        for n in 0..model.order() {
            self.exact
                .cold_biases(model, &mut self.state, (n, 0), pool)?;
        }
        self.keep(model)?;
        self.note_noise(model, pool)?;
        self.count(model, pool)
    }

    /// Gives the last sample its noise. Returns the sum of squared errors of the draw.
    fn note_noise(&mut self, model: &mut Model, pool: &ThreadPool) -> Result<f64> {
        let squares = self.exact.squares(model, &self.state, pool)?;
        self.state.squares = Some(squares);
        let noise = self.exact.undo.by * (squares / self.entries as f64).sqrt();
        if let Some(last) = model.samples.as_mut().and_then(|s| s.samples.last_mut())
            && last.noise_deviation == 0.0
        {
            Arc::make_mut(last).noise_deviation = noise;
        }
        Ok(squares)
    }

    /// Errors on the training entries, of the present draw.
    pub(in crate::solver) fn train_squares(&self, model: &Model, pool: &ThreadPool) -> Result<f64> {
        let squares = match self.state.squares {
            Some(squares) => squares,
            None => self.exact.squares(model, &self.state, pool)?,
        };
        Ok(squares * self.exact.undo.by.powi(2))
    }

    /// The error on some entries: of the mean of the samples, or of the present
    /// draw while there are none. NaN without entries.
    pub(in crate::solver) fn error_on(
        &self,
        on: EvaluationSet,
        model: &Model,
        clip: bool,
        pool: &ThreadPool,
    ) -> Result<f64> {
        let held = match on {
            EvaluationSet::Test => &self.test,
            EvaluationSet::Validation => &self.valid,
        };
        let Some(held) = held else {
            return Ok(f64::NAN);
        };
        let squares = match held.of_mean(self.exact.undo) {
            Some(squares) => squares,
            None => {
                self.exact
                    .measure(model, &self.state, held, (true, false), pool)?
                    .0
            }
        };
        let Squares { plain, clipped } = squares;
        Ok(((if clip { clipped } else { plain }) / held.total()).sqrt())
    }
}

/// What these solvers cannot do.
fn check(options: &Options) -> Result<()> {
    if options.penalty == Penalty::L1 {
        return Err(Error::argument(
            "als and gibbs solve for rows exactly, which an l1 penalty does not allow; use l2, or \
             another algorithm",
        ));
    }
    if options.algorithm == Algorithm::Gibbs && options.nonneg {
        return Err(Error::argument(
            "gibbs draws numbers of either sign; for numbers of 0 and above use als, or blocked",
        ));
    }
    Ok(())
}

/// What gives values mean 0 and a deviation between 0.7 and 1.4: the scale is a power of two, so that
/// nothing is rounded by it.
fn standard(entries: &Shuffled, range: (f64, f64)) -> Undo {
    let total = entries.total_weight();
    let total = if total > 0.0 { total } else { 1.0 };
    let by_weight = |of: &dyn Fn(f64) -> f64| {
        let each = entries.values.iter().enumerate();
        let each = each.map(|(i, &x)| f64::from(entries.weight(i)) * of(f64::from(x)));
        each.sum::<f64>() / total
    };
    let mean = by_weight(&|x| x);
    let variance = by_weight(&|x| (x - mean).powi(2));
    let by = variance.sqrt().log2().round().exp2();
    Undo {
        // Constant values have no scale.
        by: if by.is_normal() && variance > 1e-12 * mean * mean {
            by
        } else {
            1.0
        },
        plus: mean,
        range,
    }
}

impl Undo {
    /// Values of the data as they are here.
    fn apply(&self, values: &[f32]) -> Vec<f32> {
        let each = values
            .iter()
            .map(|&x| ((f64::from(x) - self.plus) / self.by) as f32);
        each.collect()
    }
}

/// Rows and biases of a mode as a sample, and rounded as it keeps them.
fn round(rows: &mut FactorMatrix, biases: &mut [f32]) -> Result<QuantizedRows> {
    let numbers = rows.rank() + usize::from(!biases.is_empty());
    let mut all = Vec::with_capacity(rows.len() * numbers);
    for i in 0..rows.len() {
        all.extend_from_slice(rows.row(i));
        all.extend(biases.get(i));
    }
    let kept = QuantizedRows::quantize(numbers, &all);
    unround(&kept, rows, biases)?;
    Ok(kept)
}

/// The opposite.
pub(in crate::solver) fn unround(
    kept: &QuantizedRows,
    rows: &mut FactorMatrix,
    biases: &mut [f32],
) -> Result<()> {
    let (rank, stride) = (rows.rank(), rows.stride());
    for (i, row) in rows.as_mut_slice()?.chunks_exact_mut(stride).enumerate() {
        kept.read_row(i, &mut row[..rank]);
    }
    for (i, bias) in biases.iter_mut().enumerate() {
        *bias = kept.last_value(i);
    }
    Ok(())
}

/// Takes over the biases of another model: they are part of what draws begin with, like its rows.
fn take_biases(biases: &mut [Vec<f32>], model: &Model, other: &Model, by: f64) {
    for ((to, mode), old) in biases.iter_mut().zip(&model.modes).zip(&other.modes) {
        let known = |index| old.biases.get(old.rows.compact(index)? as usize).copied();
        for (to, index) in to.iter_mut().zip(mode.rows.indices()) {
            *to = (f64::from(known(index).unwrap_or(0.0)) / by) as f32;
        }
        // The mean of the values is gone, whatever the other model had of it in its biases.
        if let Some((last, seen)) = to.split_last_mut() {
            let mean = mode.mean_bias(seen);
            seen.iter_mut().for_each(|b| *b -= mean);
            *last = 0.0;
        }
    }
}

/// Multiplies the diagonal core of a model into its first mode, down to `by`: the solvers find rows, and
/// one factor for each component is enough. A full core stays.
fn take_in_core(model: &mut Model, by: f64) -> Result<()> {
    if model.shape.kind == CoreKind::Full {
        return Ok(());
    }
    let rank = model.shape.ranks[0];
    let core = model.core[..rank].to_vec();
    let factor = &mut model.modes[0].factor;
    let stride = factor.stride();
    for row in factor.as_mut_slice()?.chunks_exact_mut(stride) {
        row.iter_mut()
            .zip(&core)
            .for_each(|(u, g)| *u *= g / by as f32);
    }
    // Matrices of that mode have to follow.
    for matrix in model.matrices.iter_mut().filter(|m| m.mode == 0) {
        for row in matrix.factor.as_mut_slice()?.chunks_exact_mut(stride) {
            row.iter_mut()
                .zip(&core)
                .filter(|(_, g)| **g != 0.0)
                .for_each(|(v, g)| *v /= g / by as f32);
        }
    }
    model.core[..rank].fill(by as f32);
    model.update_mean_rows()
}
