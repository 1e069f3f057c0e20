//! Block updates at every level against plain `f64` loops over the same batches in the same order.

use std::sync::Arc;

use super::block_update::{BlockScratch, BlockUpdateSettings, update_block};
use super::core_layout::CoreLayout;
use super::job::Regularizer;
use super::residuals::{BlockModel, squared_residuals};
use crate::entries::block::EntryBlock;
use crate::entries::chunk::EntryChunk;
use crate::entries::chunk::SortedChunk;
use crate::entries::exclusive_rows::RowsMut;
use crate::entries::grid::BlockingSpec;
use crate::per_entry::reference;
use crate::progress::StopFlag;
use crate::random::RandomStream;
use crate::shape::core_shape::{CoreKind, CoreShape};
use crate::simd::Level;
use crate::simd::padded_len;
use crate::value_range::ValueRange;

const ETA: f64 = 0.01;
const CORE_ETA: f64 = 0.004;
const LIMIT: usize = 5;
/// Key of the random stream that orders batches.
const NAME: [u64; 2] = [3, 4];
/// Curvature along the direction in which updates of the fiber mode's rows are damped.
const STEEPNESS: f64 = 23.0;

/// Rows of all modes, unpadded, and a core.
#[derive(Clone)]
struct State {
    rows: Vec<Vec<Vec<f64>>>,
    core: Vec<f64>,
}

struct Case {
    shape: CoreShape,
    fiber: Option<usize>,
    regularizer: Regularizer,
    block: EntryBlock,
    start: State,
    penalties: Vec<Vec<f32>>,
    /// Prior mean of each mode.
    priors: Vec<Vec<f32>>,
    core_eta: f64,
}

const ROWS: [usize; 5] = [6, 5, 3, 4, 2];

impl Case {
    fn new(
        kind: CoreKind,
        ranks: &[usize],
        (fiber, weighted): (Option<usize>, bool),
        regularizer: Regularizer,
    ) -> Case {
        let order = ranks.len();
        let mut s = RandomStream::new(&[7, order as u64]);
        let mut number = |low: f64| {
            let x = if regularizer.nonneg {
                s.uniform()
            } else {
                s.standard_normal()
            };
            // Some exact zeros, where the L1 penalty has no derivative.
            if x.abs() < low {
                0.0
            } else {
                f64::from(x as f32)
            }
        };
        // Small enough that 40 entries do not diverge.
        let scale = |rank: usize| {
            let rank = rank as f64;
            if regularizer.nonneg {
                1.0 / rank
            } else {
                0.8 / rank.sqrt()
            }
        };
        let rows = (0..order)
            .map(|n| {
                (0..ROWS[n])
                    .map(|_| {
                        let row = (0..ranks[n]).map(|_| number(0.1) * scale(ranks[n]));
                        row.map(|x| f64::from(x as f32)).collect()
                    })
                    .collect()
            })
            .collect();
        let entries = match kind {
            CoreKind::Full => ranks.iter().product(),
            CoreKind::Diagonal => ranks[0],
        };
        let core = (0..entries)
            .map(|_| f64::from((0.7 * number(0.1)) as f32))
            .collect();
        let n = if cfg!(miri) { 2 } else { 40 };
        let mut s = RandomStream::new(&[8, order as u64]);
        let chunk = EntryChunk {
            rows: (0..order)
                .map(|m| (0..n).map(|_| s.below(ROWS[m] as u64) as u32).collect())
                .collect(),
            values: (0..n).map(|_| s.standard_normal() as f32).collect(),
            weights: (0..if weighted { n } else { 0 })
                .map(|_| 2.0 * s.uniform() as f32)
                .collect(),
        };
        let spec = Arc::new(BlockingSpec {
            row_counts: ROWS[..order].to_vec(),
            fiber_mode: fiber,
            cuts: vec![None; order],
            parts_per_axis: 1,
            axes: 1,
            seed: 5,
            weighted,
        });
        let block =
            EntryBlock::new(&spec, &[SortedChunk::new(&spec, &chunk, 0).unwrap()], 0).unwrap();
        Case {
            shape: CoreShape::new(kind, ranks),
            fiber,
            regularizer,
            block,
            start: State { rows, core },
            penalties: (0..order)
                .map(|m| vec![0.3 / (m + 1) as f32; ROWS[m]])
                .collect(),
            priors: (0..order)
                .map(|m| {
                    let mut prior = vec![0.0; padded_len(ranks[m])];
                    // The prior mean of mode 0 is 0, as most are.
                    let places = prior[..ranks[m]].iter_mut().enumerate();
                    places.for_each(|(j, x)| *x = (m * (j % 3)) as f32 * 0.4);
                    prior
                })
                .collect(),
            core_eta: CORE_ETA,
        }
    }

    /// Returns the product of component `k` of all rows but that of mode `without`.
    fn product(rows: &[&[f64]], k: usize, without: Option<usize>) -> f64 {
        let others = rows.iter().enumerate().filter(|(m, _)| without != Some(*m));
        others.map(|(_, row)| row[k]).product()
    }

    fn value(&self, core: &[f64], rows: &[&[f64]]) -> f64 {
        match self.shape.kind() {
            CoreKind::Full => reference::value(core, rows),
            CoreKind::Diagonal => {
                let each = core.iter().enumerate();
                each.map(|(k, g)| g * Self::product(rows, k, None)).sum()
            }
        }
    }

    /// Returns the derivative of the value by the row of mode `m`.
    fn gradient(&self, core: &[f64], rows: &[&[f64]], m: usize) -> Vec<f64> {
        match self.shape.kind() {
            CoreKind::Full => reference::gradient(core, rows, m),
            CoreKind::Diagonal => {
                let each = core.iter().enumerate();
                each.map(|(k, g)| g * Self::product(rows, k, Some(m)))
                    .collect()
            }
        }
    }

    /// Returns the derivative of the value by the core.
    fn outer(&self, rows: &[&[f64]]) -> Vec<f64> {
        match self.shape.kind() {
            CoreKind::Full => reference::outer(rows),
            CoreKind::Diagonal => {
                let each = 0..self.shape.ranks()[0];
                each.map(|k| Self::product(rows, k, None)).collect()
            }
        }
    }

    fn updated(
        &self,
        x: f64,
        prior: f32,
        (eta, weighted_residual): (f64, f64),
        penalty: f64,
    ) -> f64 {
        let off = x - f64::from(prior);
        let weight = if self.regularizer.l1 {
            f64::from(i8::from(off > 0.0) - i8::from(off < 0.0))
        } else {
            off
        };
        let x = x + eta * weighted_residual - eta * penalty * weight;
        if self.regularizer.nonneg {
            x.max(0.0)
        } else {
            x
        }
    }

    /// Returns the state after all batches by definition, and the weighted sum of squared residuals. The core and
    /// the fiber mode's row are updated once per batch, with the other rows before their own updates.
    fn expected(&self, name: &[u64]) -> (State, f64) {
        let mut state = self.start.clone();
        let order = self.shape.order();
        let mut batches = Vec::new();
        self.block.shuffled_batches(LIMIT, name, &mut batches);
        let mut squared_error = 0.0;
        for batch in &batches {
            let core = state.core.clone();
            let mut core_pull = vec![0.0; state.core.len()];
            let mut fiber_pull: Option<(u32, Vec<f64>)> = None;
            for words in batch
                .record_slices(&self.block)
                .concat()
                .chunks(self.block.record_words())
            {
                let mut entry = vec![batch.run.fiber_row; order];
                let non_fiber = (0..order).filter(|&m| self.fiber != Some(m));
                non_fiber.zip(words).for_each(|(m, &row)| entry[m] = row);
                let core = match self.fiber {
                    Some(_) => core.clone(),
                    // Without a fiber mode every entry updates the core.
                    None => state.core.clone(),
                };
                let rows: Vec<Vec<f64>> = (0..order)
                    .map(|m| state.rows[m][entry[m] as usize].clone())
                    .collect();
                let views: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
                let numbers = &words[self.shape.order() - usize::from(self.fiber.is_some())..];
                let numbers: Vec<f64> = numbers
                    .iter()
                    .map(|&bits| f64::from(f32::from_bits(bits)))
                    .collect();
                let residual = numbers[0] - self.value(&core, &views);
                let pull_by = numbers.get(1).copied().unwrap_or(1.0) * residual;
                squared_error += residual * pull_by;
                let outer = self.outer(&views);
                let each = core_pull.iter_mut().zip(outer);
                each.for_each(|(weighted_residual, x)| *weighted_residual += pull_by * x);
                for m in 0..order {
                    let gradient = self.gradient(&core, &views, m);
                    let row = entry[m] as usize;
                    if self.fiber == Some(m) {
                        let (_, weighted_residual) =
                            fiber_pull.get_or_insert((entry[m], vec![0.0; gradient.len()]));
                        weighted_residual
                            .iter_mut()
                            .zip(&gradient)
                            .for_each(|(p, d)| *p += pull_by * d);
                        continue;
                    }
                    let penalty = f64::from(self.penalties[m][row]);
                    let each = state.rows[m][row].iter_mut().zip(&gradient);
                    for ((x, d), &prior) in each.zip(&self.priors[m]) {
                        *x = self.updated(*x, prior, (ETA, pull_by * d), penalty);
                    }
                }
                if self.fiber.is_none() {
                    self.step_core(&mut state.core, &mut core_pull);
                }
            }
            if let (Some(f), Some((row, mut weighted_residual))) = (self.fiber, fiber_pull) {
                let count = f64::from(batch.len);
                damp(&mut weighted_residual, ETA * STEEPNESS * count);
                let penalty = count * f64::from(self.penalties[f][row as usize]);
                let each = state.rows[f][row as usize]
                    .iter_mut()
                    .zip(&weighted_residual);
                for ((x, p), &prior) in each.zip(&self.priors[f]) {
                    *x = self.updated(*x, prior, (ETA, *p), penalty);
                }
                self.step_core(&mut state.core, &mut core_pull);
            }
        }
        (state, squared_error)
    }

    fn step_core(&self, core: &mut [f64], weighted_residual: &mut [f64]) {
        for (g, p) in core.iter_mut().zip(weighted_residual) {
            *g = self.updated(*g, 0.0, (self.core_eta, *p), 0.0);
            *p = 0.0;
        }
    }

    /// Compares all levels with the definition. Under Miri, which checks accesses, updates are not compared, because the definition
    /// would take most of the time.
    fn check(&self) {
        let wanted = (!cfg!(miri)).then(|| self.expected(&NAME));
        Level::available().for_each(|level| self.check_at(level, wanted.as_ref()));
    }

    fn check_at(&self, level: Level, wanted: Option<&(State, f64)>) {
        let order = self.shape.order();
        let ranks = &self.shape.ranks();
        let layout = CoreLayout::tensor(&self.shape, self.fiber);
        let narrow = |xs: &[f64]| xs.iter().map(|&x| x as f32).collect::<Vec<f32>>();
        let model_core = match self.shape.kind() {
            CoreKind::Full => self.shape.padded_core(&narrow(&self.start.core)).unwrap(),
            CoreKind::Diagonal => {
                let mut core = narrow(&self.start.core);
                core.resize(padded_len(ranks[0]), 0.0);
                core
            }
        };
        let mut core = layout.to_fiber_first(&model_core, &()).unwrap();
        let mut rows: Vec<Vec<f32>> = (0..order)
            .map(|m| {
                let mut all = vec![0.0; ROWS[m] * padded_len(ranks[m])];
                for (to, row) in all
                    .chunks_exact_mut(padded_len(ranks[m]))
                    .zip(&self.start.rows[m])
                {
                    to[..ranks[m]].copy_from_slice(&narrow(row));
                }
                all
            })
            .collect();
        let context = format!(
            "{level:?} {:?} {ranks:?} {:?} {:?}",
            self.shape.kind(),
            self.fiber,
            self.regularizer
        );
        let (mut scratch, stop) = (BlockScratch::default(), StopFlag::new());
        // Residuals before any update.
        let views: Vec<&[f32]> = rows.iter().map(Vec::as_slice).collect();
        let [plain, clipped] = squared_residuals(
            &self.block,
            &BlockModel {
                layout: &layout,
                core: &core,
                rows: &views,
                level,
            },
            ValueRange::UNBOUNDED,
            &[],
            &mut scratch,
            &stop,
        )
        .unwrap();
        let mut squared_error = 0.0;
        self.block.for_each_entry(|entry, value, weight| {
            let rows: Vec<&[f64]> = (0..order)
                .map(|m| self.start.rows[m][entry[m] as usize].as_slice())
                .collect();
            let x = self.value(&self.start.core, &rows);
            squared_error += f64::from(weight) * (f64::from(value) - x).powi(2);
        });
        assert!(
            (plain - squared_error).abs() < 1e-3 * (1.0 + squared_error),
            "{plain} {squared_error}: {context}"
        );
        assert_eq!(plain, clipped, "{context}");
        let mut steepest = vec![0.0; padded_len(*ranks.iter().max().unwrap())];
        if let Some(f) = self.fiber {
            let place = |j: usize| direction(j, ranks[f]) as f32;
            (0..ranks[f]).for_each(|j| steepest[j] = place(j));
        }
        let penalties: Vec<&[f32]> = self.penalties.iter().map(Vec::as_slice).collect();
        let priors: Vec<&[f32]> = self.priors.iter().map(Vec::as_slice).collect();
        let settings = BlockUpdateSettings {
            level,
            eta: ETA as f32,
            loss_weight: 1.0,
            regularizer: self.regularizer,
            core_eta: self.core_eta as f32,
            prior_means: &priors,
            core_update_interval: 1,
            penalties: &penalties,
            batch_len: LIMIT,
            max_batch_len: LIMIT,
            curvature_direction: &steepest,
            curvature: STEEPNESS as f32,
            batch_range: 0.0..1.0,
            stop: &stop,
        };
        let mut access: Vec<RowsMut<'_>> =
            rows.iter_mut().map(|r| RowsMut::of_replica(r)).collect();
        let squares = update_block(
            &self.block,
            &layout,
            &mut core,
            &mut access,
            &settings,
            &NAME,
            &mut scratch,
        )
        .unwrap();
        let Some((expected, met_squares)) = wanted else {
            return;
        };
        // With an L1 penalty, rounding decides on which side of the prior mean a value ends.
        let near = if self.regularizer.l1 { 0.02 } else { 0.0 };
        let close = |a: f32, b: f64, prior: f32| {
            let far = (f64::from(a) - b).abs();
            let at_prior = (b - f64::from(prior)).abs() < near;
            far < 2e-4 * (1.0 + b.abs()) || (far < near && at_prior)
        };
        assert!(
            (squares - met_squares).abs() < 2e-3 * (1.0 + met_squares),
            "{} {met_squares}: {context}",
            squares
        );
        for m in 0..order {
            for (i, row) in rows[m].chunks_exact(padded_len(ranks[m])).enumerate() {
                for (j, &x) in row.iter().enumerate() {
                    let want = expected.rows[m][i].get(j).copied().unwrap_or(0.0);
                    assert!(
                        close(x, want, self.priors[m][j]),
                        "mode {m} row {i} {j}: {x} {want}: {context}"
                    );
                }
            }
        }
        let mut back = model_core.clone();
        layout.copy_from_fiber_first(&core, &mut back);
        let got = match self.shape.kind() {
            CoreKind::Full => self.shape.dense_core(&back).unwrap(),
            CoreKind::Diagonal => back[..ranks[0]].to_vec(),
        };
        for (k, (&x, &want)) in got.iter().zip(&expected.core).enumerate() {
            assert!(close(x, want, 0.0), "core {k}: {x} {want}: {context}");
        }
    }
}

/// Returns component `j` of a direction of length 1.
fn direction(j: usize, rank: usize) -> f64 {
    let sign = if j % 3 == 1 { -1.0 } else { 1.0 };
    sign / (rank as f64).sqrt()
}

/// Damps the gradient along the direction. `x` is eta times the curvature times the number of entries.
fn damp(weighted_residual: &mut [f64], x: f64) {
    if x <= 0.1 {
        return;
    }
    let rank = weighted_residual.len();
    let along: f64 = (0..rank)
        .map(|j| weighted_residual[j] * direction(j, rank))
        .sum();
    let left = 1.0 / (1.0 + 0.5 * x + x * x / 12.0);
    (0..rank).for_each(|j| weighted_residual[j] += (left - 1.0) * along * direction(j, rank));
}

const RULES: [Regularizer; 4] = [
    Regularizer {
        l1: false,
        nonneg: false,
    },
    Regularizer {
        l1: true,
        nonneg: false,
    },
    Regularizer {
        l1: false,
        nonneg: true,
    },
    Regularizer {
        l1: true,
        nonneg: true,
    },
];

/// Largest ranks that are tested with weights too: those around which the kernel changes.
const WEIGHTED: [usize; 12] = [1, 4, 5, 8, 10, 12, 16, 17, 18, 20, 33, 48];

fn everywhere(kind: CoreKind, ranks: &[usize], regularizer: Regularizer) {
    for fiber in (0..ranks.len()).map(Some).chain([None]) {
        let with_weights = WEIGHTED.contains(ranks.iter().max().unwrap());
        // Under Miri, entries have weights for every second fiber mode.
        let is_left_out =
            |weighted: bool| cfg!(miri) && weighted == fiber.is_some_and(|m| m % 2 == 0);
        for weighted in [false, true]
            .into_iter()
            .take(1 + usize::from(with_weights))
            .filter(|&weighted| !is_left_out(weighted))
        {
            let mut case = Case::new(kind, ranks, (fiber, weighted), regularizer);
            case.check();
            // Non-fiber rows without priors have kernels of their own.
            let others = (0..ranks.len()).filter(|&m| fiber != Some(m));
            others.for_each(|m| case.priors[m].fill(0.0));
            if !cfg!(miri) {
                case.check();
            }
            case.core_eta = 0.0;
            case.check();
        }
    }
}

/// Returns the ranks to test: under Miri, one that needs two vectors.
fn ranks(all: impl IntoIterator<Item = usize>) -> Vec<usize> {
    if cfg!(miri) {
        vec![17]
    } else {
        all.into_iter().collect()
    }
}

#[test]
fn order_3_at_many_ranks() {
    // One and two vectors with every remainder, then the ends of three and four.
    for rank in ranks((1..=34).chain([47, 48, 49, 63, 64, 65, 72])) {
        everywhere(CoreKind::Full, &[rank, 3, 2], RULES[0]);
        everywhere(CoreKind::Full, &[2, rank, 3], RULES[rank % 4]);
        everywhere(CoreKind::Full, &[3, 2, rank], RULES[0]);
    }
    // Under Miri, cores of a few hundred elements are enough.
    for rank in ranks([7, 8, 12, 16, 17, 20])
        .into_iter()
        .filter(|_| !cfg!(miri))
    {
        everywhere(CoreKind::Full, &[rank; 3], RULES[0]);
    }
}

#[test]
fn order_2_and_cp_at_every_rank() {
    for rank in ranks(1..=72) {
        everywhere(CoreKind::Full, &[rank, 3], RULES[0]);
        everywhere(CoreKind::Full, &[2, rank], RULES[rank % 4]);
        everywhere(CoreKind::Diagonal, &[rank; 2], RULES[0]);
    }
    for rank in ranks([1, 2, 15, 16, 17, 33, 48, 64]) {
        everywhere(CoreKind::Diagonal, &[rank; 3], RULES[rank % 4]);
        everywhere(CoreKind::Diagonal, &[rank; 4], RULES[0]);
        everywhere(CoreKind::Diagonal, &[rank; 5], RULES[0]);
    }
}

#[test]
fn order_4_and_all_rules() {
    // Under Miri, the penalty with all branches.
    for regularizer in RULES.into_iter().skip(if cfg!(miri) { 3 } else { 0 }) {
        everywhere(CoreKind::Full, &[3, 2, 4, 2], regularizer);
        everywhere(CoreKind::Full, &[2, 3, 2, 17], regularizer);
        everywhere(CoreKind::Full, &[4, 5, 3], regularizer);
        if !cfg!(miri) {
            everywhere(CoreKind::Full, &[18, 20, 3], regularizer);
        }
        everywhere(CoreKind::Diagonal, &[5; 3], regularizer);
        everywhere(CoreKind::Diagonal, &[40; 3], regularizer);
    }
}
