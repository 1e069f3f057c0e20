//! One sweep over everything: modes, columns of matrices and the core in turn.

use std::borrow::Cow;
use std::sync::Arc;

use super::cold_start::{ColdBiases, side_source};
use super::core_update::{CoreRule, CoreWork};
use super::graph::{Links, colours};
use super::holdout::{HeldOut, Squares, Undo};
use super::hyperpriors::FIRST_VARIANCE;
use super::initialization::belief;
use super::normal_wishart::{Belief, Prior, draw};
use super::spectral_init::Partners;
use super::work::{Pull, Rule, Source, Whole, Work, update};
use crate::error::Result;
use crate::kernel::{CooSlices, ModeCsr, OtherMode, Partials};

use crate::model::{FactorMatrix, Model};
use crate::simd::Level;

use crate::kernel::{CoreKind, CoreShape};

use crate::linalg::WARM_START_PASSES;
use crate::parallel::ThreadPool;
use crate::random::RandomStream;
use crate::simd::padded_len;
use crate::solver::full_matrix::FullMatrix;
use crate::solver::gram::row_moments;
use crate::sort::stable_sort_by_key;

/// Names the random streams.
pub(super) mod stream {
    pub const ROWS: u64 = 201;
    pub const HYPER: u64 = 202;
    pub const NOISE: u64 = 203;
    pub const CORE: u64 = 204;
    pub const COLD: u64 = 205;
    pub const FOLD: u64 = 206;
    pub const AGREE: u64 = 207;
    /// Matrices count from here, modes from 0.
    pub const MATRIX: u64 = 1 << 16;
}

/// A coupled matrix.
pub(super) struct Side {
    pub mode: usize,
    /// Its number among the matrices and graphs of the model.
    pub number: usize,
    pub weight: f64,
    /// The penalty on each of its columns.
    ridges: Vec<f32>,
    pub by_row: Arc<ModeCsr>,
    pub by_column: Arc<ModeCsr>,
    pub work: Work,
    /// The mean over its entries of the squares of their values times their weights; 1 if they are all 0.
    pub square: f64,
    /// If all its cells count.
    pub full: Option<Arc<FullMatrix>>,
}

/// A similarity graph.
pub(super) struct Graph {
    mode: usize,
    weight: f64,
    links: Links,
}

/// How rows are found.
#[derive(Debug, Clone, Copy)]
pub(super) enum Way {
    /// The best, with this penalty on the core.
    Best { ridge: f64, nonneg: bool },
    /// Drawn.
    Draw { seed: u64 },
}

/// What a sweep reads.
pub(super) struct Exact {
    pub tensor: Vec<ModeCsr>,
    /// For each mode, one per colour.
    work: Vec<Vec<Work>>,
    core: Option<CoreWork>,
    pub sides: Vec<Side>,
    graphs: Vec<Graph>,
    pub beliefs: Vec<Belief>,
    /// For each mode the penalty of each row, and the row that it pulls to.
    pub ridges: Vec<(Vec<f32>, Vec<f32>)>,
    /// The modes in the order of a sweep, that with the most rows last.
    pub order: Vec<usize>,
    pub undo: Undo,
    pub way: Way,
    pub biased: bool,
    /// The sweep that begins with rows which mean nothing yet; 0 for none.
    pub first: u64,
    /// Of the smaller modes, entries that have others to agree with.
    pub partners: Vec<Partners>,
    /// Modes whose rows do mean something, and which that sweep leaves as they are.
    pub waits: Vec<usize>,
    pub level: Level,
}

/// Which sweep it is.
#[derive(Clone, Copy)]
pub(super) struct Turn {
    pub number: u64,
    /// Whether what it draws is kept.
    pub kept: bool,
    /// Whether draws may still be far from where they come to rest.
    pub settles: bool,
}

/// What a sweep changes besides the model. Biases are those of values as they are here.
pub(super) struct State {
    pub biases: Vec<Vec<f32>>,
    /// The means of the distributions that the rows of the last mode were drawn from: their rows, and
    /// their biases. Nothing without draws.
    pub smooth: (Vec<f32>, Vec<f32>),
    /// The sum of squared errors of the tensor here, if it is known.
    pub squares: Option<f64>,
    /// The precision of the noise.
    pub precision: f64,
    /// What squared errors of each matrix count.
    pub weights: Vec<f64>,
    /// For each mode with matrices, the biases of rows without tensor entries in the last sweep that kept them.
    pub cold: Vec<Option<ColdBiases>>,
    /// For each mode what its rows were last drawn with.
    pub priors: Vec<Option<Prior>>,
}

/// The entries of one tensor or matrix, rows one after the other, with the number of rows of each mode.
pub(super) struct Given<'a> {
    pub limits: Vec<usize>,
    pub rows: &'a [u32],
    pub values: Cow<'a, [f32]>,
    /// Empty if entries have none.
    pub weights: &'a [f32],
}

/// A coupled matrix or graph as it is given.
pub(super) struct GivenMatrix<'a> {
    pub mode: usize,
    pub weight: f64,
    pub ridges: Vec<f32>,
    pub graph: bool,
    pub full: Option<Arc<FullMatrix>>,
    pub entries: Given<'a>,
}

impl Exact {
    pub(super) fn new(
        shape: &CoreShape,
        tensor: &Given<'_>,
        matrices: &[GivenMatrix<'_>],
        (undo, way, biased, level): (Undo, Way, bool, Level),
        pool: &ThreadPool,
    ) -> Result<Exact> {
        let modes = tensor.limits.len();
        let lists = |given: &Given<'_>, mode| {
            let entries = CooSlices {
                row_counts: &given.limits,
                rows: given.rows,
                values: &given.values,
                weights: given.weights,
            };
            ModeCsr::new(mode, entries)
        };
        let made = pool.map(modes, &mut || false, || (), |(), n| lists(tensor, n))?;
        let per_mode: Vec<ModeCsr> = made
            .unwrap_or_default()
            .into_iter()
            .collect::<Result<_>>()?;
        let (mut sides, mut graphs) = (Vec::new(), Vec::new());
        for (number, m) in matrices.iter().enumerate() {
            let given = &m.entries;
            if m.graph {
                let links = Links::new(tensor.limits[m.mode], given.rows, &given.values);
                graphs.push(Graph {
                    mode: m.mode,
                    weight: m.weight,
                    links,
                });
                continue;
            }
            let (by_row, by_column) = match &m.full {
                Some(full) => (full.by_row.clone(), full.by_column.clone()),
                None => (Arc::new(lists(given, 0)?), Arc::new(lists(given, 1)?)),
            };
            let weight = |i: usize| f64::from(given.weights.get(i).copied().unwrap_or(1.0));
            let squares = given.values.iter().map(|&y| f64::from(y) * f64::from(y));
            let squares = squares.enumerate().map(|(i, square)| weight(i) * square);
            let (squares, count) = match &m.full {
                Some(full) => (full.sum_of_squares(), full.position_count()),
                None => (squares.sum(), given.values.len() as f64),
            };
            sides.push(Side {
                mode: m.mode,
                number,
                weight: m.weight,
                ridges: m.ridges.clone(),
                work: Work::new(&[&by_column]),
                by_row,
                by_column,
                square: if squares > 0.0 { squares / count } else { 1.0 },
                full: m.full.clone(),
            });
        }
        let work = (0..modes).map(|n| {
            let sides = sides
                .iter()
                .filter(|s: &&Side| s.mode == n)
                .map(|s| &*s.by_row);
            let all: Vec<&ModeCsr> = [&per_mode[n]].into_iter().chain(sides).collect();
            let linked: Vec<&Links> = graphs
                .iter()
                .filter(|g| g.mode == n)
                .map(|g| &g.links)
                .collect();
            let classes = colours(tensor.limits[n], &linked).into_iter();
            classes.map(|rows| Work::on(&all, rows)).collect()
        });
        let work = work.collect();
        let mut order: Vec<usize> = (0..modes).collect();
        stable_sort_by_key(&mut order, &|&n| tensor.limits[n]);
        let beliefs = (0..modes).map(|n| belief(&order, n)).collect();
        let core = match shape.kind {
            CoreKind::Full => Some(CoreWork::new(&per_mode[order[0]], order[0])),
            CoreKind::Diagonal => None,
        };
        Ok(Exact {
            core,
            tensor: per_mode,
            work,
            sides,
            graphs,
            beliefs,
            order,
            undo,
            way,
            ridges: Vec::new(),
            biased,
            first: 1,
            partners: Vec::new(),
            waits: Vec::new(),
            level,
        })
    }

    /// What the slopes by rows of mode `n` are made of, with the core as [`Exact::core_for`] gives it.
    pub(super) fn slopes<'a>(
        &self,
        model: &'a Model,
        biases: &'a [Vec<f32>],
        n: usize,
        core: Option<&'a [f32]>,
    ) -> Partials<'a> {
        let others = self.tensor[n].other_modes().iter().map(|&m| OtherMode {
            rows: model.modes[m].factor.as_slice(),
            rank: model.shape.ranks[m],
            biases: &biases[m],
        });
        Partials {
            others: others.collect(),
            core,
            rank: model.shape.ranks[n],
            level: self.level,
        }
    }

    /// The core with the modes as slopes by rows of mode `n` need them; `None` if it is diagonal.
    pub(super) fn core_for(&self, model: &Model, n: usize) -> Option<Vec<f32>> {
        self.core.as_ref()?;
        let order: Vec<usize> = self.tensor[n]
            .other_modes()
            .iter()
            .copied()
            .chain([n])
            .collect();
        Some(super::core_update::permuted(
            &model.shape,
            &model.core,
            &order,
            self.undo.by,
        ))
    }

    pub(super) fn side_source<'a>(
        &self,
        rows: &'a FactorMatrix,
        lists: &'a ModeCsr,
        weight: f64,
        whole: Option<Whole<'a>>,
    ) -> Source<'a> {
        side_source(
            lists,
            rows.as_slice(),
            (rows.rank(), self.level),
            weight,
            whole,
        )
    }

    /// What all cells of a full matrix say about the rows of its mode, given its columns; or about its
    /// `columns`, given those rows.
    pub(super) fn whole<'a>(
        &self,
        model: &Model,
        side: &'a Side,
        columns: bool,
        pool: &ThreadPool,
    ) -> Result<Option<Whole<'a>>> {
        let Some(full) = side.full.as_deref() else {
            return Ok(None);
        };
        let narrow = |x: &[f64]| x.iter().map(|&x| x as f32).collect();
        Ok(Some(match columns {
            true => {
                let rows = &model.modes[side.mode].factor;
                let u = row_moments(rows, full.by_row.row_count(), &[], pool)?;
                Whole {
                    gram: narrow(&u.gram()),
                    right: narrow(&u.sum),
                    by: Some(&full.unobserved_values),
                }
            }
            false => Whole::of_rows(full, &model.matrices[side.number].factor, pool)?,
        }))
    }

    /// Finds everything once, given the rest; what is kept has biases for rows without tensor entries too.
    /// `None` if `cancelled` said so; model and state are then of no use.
    pub(super) fn sweep(
        &self,
        model: &mut Model,
        state: &mut State,
        turn: Turn,
        pool: &ThreadPool,
        cancelled: &mut dyn FnMut() -> bool,
    ) -> Result<Option<()>> {
        let Turn { number, kept, .. } = turn;
        state.precision = self.noise_precision(model, state, number, pool)?;
        if turn.settles {
            self.look(model, state, number, pool)?;
        }
        let mut precisions = Vec::new();
        for side in &self.sides {
            precisions.push(self.side_precision(model, side, number, pool)?);
        }
        state.weights = vec![0.0; model.matrices.len()];
        for (side, precision) in self.sides.iter().zip(&precisions) {
            state.weights[side.number] = side.weight * precision;
        }
        for &n in &self.order {
            if self
                .find_rows(model, state, &precisions, (n, number), pool, cancelled)?
                .is_none()
            {
                return Ok(None);
            }
            if kept {
                self.cold_biases(model, state, (n, number), pool)?;
            }
            for (side, &precision) in self.sides.iter().zip(&precisions).filter(|s| s.0.mode == n) {
                let found = self.find_columns(model, side, precision, number, pool, cancelled)?;
                if found.is_none() {
                    return Ok(None);
                }
            }
        }
        if let Some(core) = &self.core {
            let rule = CoreRule {
                way: self.way,
                precision: state.precision,
                number,
                by: self.undo.by,
                order: &self.order,
                level: self.level,
            };
            let lists = &self.tensor[self.order[0]];
            let found = core.find(model, &state.biases, lists, &rule, pool, cancelled)?;
            if found.is_none() {
                return Ok(None);
            }
        }
        model.update_mean_rows()?;
        state.squares = None;
        Ok(Some(()))
    }

    /// Finds the rows of mode `n`.
    fn find_rows(
        &self,
        model: &mut Model,
        state: &mut State,
        precisions: &[f64],
        (n, number): (usize, u64),
        pool: &ThreadPool,
        cancelled: &mut dyn FnMut() -> bool,
    ) -> Result<Option<()>> {
        let (rank, width) = (model.shape.ranks[n], padded_len(model.shape.ranks[n]));
        let prior = self.prior(&model.modes[n].factor, &state.biases[n], (n, number), pool)?;
        let core = self.core_for(model, n);
        let smooth = self.order.last() == Some(&n);
        let waits = number == self.first && self.waits.contains(&n);
        let waits = self.partners.iter().find(|p| waits && p.mode == n);
        if smooth {
            state
                .smooth
                .0
                .resize(model.modes[n].factor.as_slice().len(), 0.0);
            state.smooth.1.clone_from(&state.biases[n]);
        }
        for work in &self.work[n] {
            let mut sources = vec![Source {
                lists: &self.tensor[n],
                slopes: self.slopes(model, &state.biases, n, core.as_deref()),
                weight: state.precision,
                biased: self.biased,
                whole: None,
            }];
            for (side, precision) in self.sides.iter().zip(precisions).filter(|s| s.0.mode == n) {
                let columns = &model.matrices[side.number].factor;
                let whole = self.whole(model, side, false, pool)?;
                let weight = side.weight * precision;
                sources.push(self.side_source(columns, &side.by_row, weight, whole));
            }
            let graphs = self.graphs.iter().filter(|g| g.mode == n);
            let rule = Rule {
                prior: &prior,
                biases: if self.biased { &[] } else { &state.biases[n] },
                ridges: self.ridges_of(&self.ridges[n].0, &self.ridges[n].1),
                draw: self.name(number, n as u64),
                names: None,
                means: smooth,
                rows: model.modes[n].factor.as_slice(),
                nonneg: self.nonneg(),
                graphs: graphs
                    .map(|g| (&g.links, g.weight * state.precision))
                    .collect(),
                level: self.level,
            };
            let Some(found) = update(work, &sources, &rule, pool, cancelled)? else {
                return Ok(None);
            };
            let numbers = found.len() / work.rows.len().max(1);
            let rows = model.modes[n].factor.as_mut_slice()?;
            for (&i, found) in work.rows.iter().zip(found.chunks_exact(numbers.max(1))) {
                let place = i as usize * width..i as usize * width + rank;
                if !waits.is_some_and(|p| p.known(i as usize)) {
                    rows[place.clone()].copy_from_slice(&found[..rank]);
                }
                if self.biased {
                    state.biases[n][i as usize] = found[rank];
                }
                let mean = &found[prior.size.min(numbers)..];
                if smooth && !mean.is_empty() {
                    state.smooth.0[place].copy_from_slice(&mean[..rank]);
                    if self.biased {
                        state.smooth.1[i as usize] = mean[rank];
                    }
                }
            }
        }
        if self.biased
            && let Some((last, biases)) = state.biases[n].split_last_mut()
        {
            *last = model.modes[n].mean_bias(biases);
        }
        if smooth && let Some((last, biases)) = state.smooth.1.split_last_mut() {
            *last = model.modes[n].mean_bias(biases);
        }
        state.priors[n] = Some(prior);
        Ok(Some(()))
    }

    /// Finds the rows of the columns of a matrix.
    fn find_columns(
        &self,
        model: &mut Model,
        side: &Side,
        precision: f64,
        number: u64,
        pool: &ThreadPool,
        cancelled: &mut dyn FnMut() -> bool,
    ) -> Result<Option<()>> {
        let target = stream::MATRIX + side.number as u64;
        let columns = &model.matrices[side.number].factor;
        let (rank, width) = (columns.rank(), columns.stride());
        let prior = match self.way {
            Way::Best { .. } => Prior::ridge(rank, 0.0),
            Way::Draw { .. } if number == self.first => Prior::ridge(rank, 1.0 / FIRST_VARIANCE),
            Way::Draw { seed } => {
                let moments = row_moments(columns, columns.len(), &[], pool)?;
                let mut s = RandomStream::new(&[seed, stream::HYPER, number, target]);
                let belief = Belief {
                    mean: 0.0,
                    ..self.beliefs[side.mode]
                };
                draw(&moments, &belief, false, &mut s)
            }
        };
        let center = vec![0.0; rank];
        let rule = Rule {
            prior: &prior,
            biases: &[],
            ridges: self.ridges_of(&side.ridges, &center),
            draw: self.name(number, target),
            names: None,
            means: false,
            rows: columns.as_slice(),
            nonneg: self.nonneg(),
            graphs: Vec::new(),
            level: self.level,
        };
        let rows = &model.modes[side.mode].factor;
        let weight = side.weight * precision;
        let whole = self.whole(model, side, true, pool)?;
        let source = [self.side_source(rows, &side.by_column, weight, whole)];
        let Some(found) = update(&side.work, &source, &rule, pool, cancelled)? else {
            return Ok(None);
        };
        let numbers = (found.len() / side.by_column.row_count().max(1)).max(1);
        let columns = model.matrices[side.number].factor.as_mut_slice()?;
        for (row, found) in columns
            .chunks_exact_mut(width)
            .zip(found.chunks_exact(numbers))
        {
            row[..rank].copy_from_slice(&found[..rank]);
        }
        Ok(Some(()))
    }

    /// The penalties of rows, where nothing is drawn.
    fn ridges_of<'r>(&self, ridges: &'r [f32], center: &'r [f32]) -> Option<(&'r [f32], Pull<'r>)> {
        let pull = Pull {
            metric: &[],
            right: center,
        };
        matches!(self.way, Way::Best { .. }).then_some((ridges, pull))
    }

    fn nonneg(&self) -> Option<usize> {
        // The next sweep goes on from there.
        matches!(self.way, Way::Best { nonneg: true, .. }).then_some(WARM_START_PASSES)
    }

    /// The name of a stream for rows, if they are drawn.
    fn name(&self, number: u64, target: u64) -> Option<[u64; 4]> {
        match self.way {
            Way::Best { .. } => None,
            Way::Draw { seed } => Some([seed, stream::ROWS, number, target]),
        }
    }

    /// The squared errors of the model on some entries; with smooth rows if there are some. Also its
    /// predictions, if asked for.
    pub(super) fn measure(
        &self,
        model: &Model,
        state: &State,
        on: &HeldOut,
        (smooth, predictions): (bool, bool),
        pool: &ThreadPool,
    ) -> Result<(Squares, Vec<Vec<f32>>)> {
        let n = on.mode;
        let core = self.core_for(model, n);
        let mut slopes = self.slopes(model, &state.biases, n, core.as_deref());
        let mut own = (model.modes[n].factor.as_slice(), &state.biases[n][..]);
        let last = self.order[self.order.len() - 1];
        if smooth && !state.smooth.0.is_empty() {
            match self.tensor[n].other_modes().iter().position(|&m| m == last) {
                Some(k) => {
                    slopes.others[k].rows = &state.smooth.0;
                    slopes.others[k].biases = &state.smooth.1;
                }
                None => own = (&state.smooth.0, &state.smooth.1),
            }
        }
        let source = Source {
            lists: &on.lists,
            slopes,
            weight: 1.0,
            biased: self.biased,
            whole: None,
        };
        on.measure(&source, own, self.undo, predictions, pool)
    }
}
