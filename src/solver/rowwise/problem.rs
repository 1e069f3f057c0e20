//! The inputs of a sweep: entries grouped by row, matrices, graphs, penalties and settings.

use std::sync::{Arc, Mutex};

use super::core_layout::permute_core;
use super::core_sums::CoreSums;
use super::data_term::{DataTerm, FullMatrixTerms, matrix_term};
use super::default_priors::hyperprior;
use super::graph::{Adjacency, colour_classes};
use super::normal_wishart::NormalWishart;
use super::probit::Probit;
use super::row_tasks::RowTasks;
use super::spectral::UnfoldingGram;
use super::update::Update;
use super::value_scaling::ValueScaling;
use crate::error::Result;
use crate::kernel::{CooSlices, CoreKind, CoreShape, ModeCsr, OtherMode, Partials, RowGroup};
use crate::model::{FactorMatrix, Model};
use crate::parallel::{ThreadPool, lock_ignoring_poison};
use crate::simd::Level;
use crate::solver::full_matrix::FullMatrix;
use crate::sort::stable_sort_by_key;
use crate::try_alloc::try_to_vec;

/// A coupled matrix with its entries grouped by row and by column.
pub(super) struct RowwiseMatrix {
    pub mode: usize,
    /// Its number among the matrices and graphs of the model.
    pub number: usize,
    pub weight: f64,
    /// Penalty on each of its columns.
    pub column_penalties: Vec<f32>,
    pub by_row: Arc<ModeCsr>,
    pub by_column: Arc<ModeCsr>,
    /// The tasks that update its columns.
    pub column_tasks: RowTasks,
    /// Weighted mean square of its entries; 1 if all are 0.
    pub mean_square: f64,
    /// Present if unobserved positions count.
    pub full: Option<Arc<FullMatrix>>,
}

/// A similarity graph between the rows of a mode.
pub(super) struct SimilarityGraph {
    pub mode: usize,
    pub weight: f64,
    pub adjacency: Adjacency,
}

/// The l2 penalty on the rows of a mode; `als` only.
pub(super) struct ModePenalty {
    /// The strength for each row.
    pub strengths: Vec<f32>,
    /// The row that the penalty shrinks to.
    pub target: Vec<f32>,
}

/// The data and settings of `als` or `gibbs`. Values are scaled by [`Self::scaling`].
pub(super) struct RowwiseProblem {
    /// The tensor's entries, grouped by the rows of each mode.
    pub tensor: Vec<ModeCsr>,
    /// For each mode the tasks that update its rows, in batches of rows of the same colour in its graphs.
    pub row_tasks: Vec<Vec<RowTasks>>,
    /// Present if the core is full.
    pub core_sums: Option<CoreSums>,
    pub matrices: Vec<RowwiseMatrix>,
    pub graphs: Vec<SimilarityGraph>,
    pub hyperpriors: Vec<NormalWishart>,
    /// One per mode.
    pub penalties: Vec<ModePenalty>,
    /// The modes in the order of a sweep, by their number of rows.
    pub modes_by_size: Vec<usize>,
    pub scaling: ValueScaling,
    /// Present if the likelihood is probit. The values of the entries are then latent values.
    pub probit: Option<Probit>,
    pub update: Update,
    /// Number of tensor entries whose weight is not 0.
    pub training_count: usize,
    /// Damping of the biases of each mode; empty without biases.
    pub bias_damping: Vec<f64>,
    /// Whether biases are sampled as elements of rows.
    pub has_biases: bool,
    /// Number of the sweep that starts from rows without information, of which hyperparameters cannot be learned; 0 if
    /// there is none.
    pub uninformed_sweep: u64,
    /// For the smaller modes with enough pairs of entries.
    pub unfolding_grams: Vec<UnfoldingGram>,
    /// Modes with spectral starting values, which the uninformed sweep keeps.
    pub spectral_modes: Vec<usize>,
    pub level: Level,
}

/// A coupled matrix or graph from which [`RowwiseProblem::new`] builds its own.
pub(super) struct MatrixInput<'a> {
    pub mode: usize,
    pub weight: f64,
    pub column_penalties: Vec<f32>,
    pub is_graph: bool,
    pub full: Option<Arc<FullMatrix>>,
    pub entries: CooSlices<'a>,
}

/// Settings of [`RowwiseProblem::new`]; see the fields of the same names.
#[derive(Clone, Copy)]
pub(super) struct Settings {
    pub scaling: ValueScaling,
    pub update: Update,
    pub has_biases: bool,
    pub level: Level,
}

impl RowwiseProblem {
    /// Groups the entries by the rows of every mode. `inputs` are the matrices and graphs in the order of the model.
    pub(super) fn new(
        shape: &CoreShape,
        tensor: CooSlices<'_>,
        inputs: &[MatrixInput<'_>],
        settings: Settings,
        pool: &ThreadPool<'_>,
    ) -> Result<RowwiseProblem> {
        let order = tensor.row_counts.len();
        let by_mode = group_by_modes(tensor, pool)?;
        let (mut matrices, mut graphs) = (Vec::new(), Vec::new());
        for (number, input) in inputs.iter().enumerate() {
            if input.is_graph {
                let CooSlices { rows, values, .. } = input.entries;
                graphs.push(SimilarityGraph {
                    mode: input.mode,
                    weight: input.weight,
                    adjacency: Adjacency::new(tensor.row_counts[input.mode], rows, values)?,
                });
            } else {
                matrices.push(RowwiseMatrix::new(number, input, pool)?);
            }
        }
        let tasks_of_mode = |(): &mut (), n: usize| {
            let matrices = matrices.iter().filter(|m: &&RowwiseMatrix| m.mode == n);
            let entries: Vec<&ModeCsr> = [&by_mode[n]]
                .into_iter()
                .chain(matrices.map(|m| &*m.by_row))
                .collect();
            let graphs = graphs.iter().filter(|g: &&SimilarityGraph| g.mode == n);
            let graphs: Vec<&Adjacency> = graphs.map(|g| &g.adjacency).collect();
            let mut tasks = Vec::new();
            for rows in colour_classes(tensor.row_counts[n], &graphs)? {
                tasks.extend(RowTasks::batches(&entries, &rows)?);
            }
            Ok(tasks)
        };
        let row_tasks = pool.try_map(order, || Ok(()), tasks_of_mode)?;
        let mut modes_by_size: Vec<usize> = (0..order).collect();
        stable_sort_by_key(&mut modes_by_size, &|&n| tensor.row_counts[n]);
        Ok(RowwiseProblem {
            core_sums: match shape.kind() {
                CoreKind::Full => Some(CoreSums::new(&by_mode[modes_by_size[0]])),
                CoreKind::Diagonal => None,
            },
            tensor: by_mode,
            row_tasks,
            matrices,
            graphs,
            hyperpriors: (0..order).map(|n| hyperprior(&modes_by_size, n)).collect(),
            modes_by_size,
            scaling: settings.scaling,
            probit: None,
            update: settings.update,
            training_count: tensor.values.len(),
            bias_damping: Vec::new(),
            penalties: Vec::new(),
            has_biases: settings.has_biases,
            uninformed_sweep: 1,
            unfolding_grams: Vec::new(),
            spectral_modes: Vec::new(),
            level: settings.level,
        })
    }

    /// The mode with the most rows.
    pub(super) fn largest_mode(&self) -> usize {
        *self.modes_by_size.last().unwrap_or(&0)
    }

    /// The inputs of the partial derivatives by rows of mode `n`, with the core from [`Self::permuted_core`].
    pub(super) fn partials<'a>(
        &self,
        model: &'a Model,
        biases: &'a [Vec<f32>],
        n: usize,
        core: Option<&'a [f32]>,
    ) -> Partials<'a> {
        let others = self.tensor[n].other_modes().iter().map(|&m| OtherMode {
            rows: model.modes[m].factor.as_slice(),
            rank: model.shape.ranks()[m],
            biases: &biases[m],
        });
        Partials {
            others: others.collect(),
            core,
            rank: model.shape.ranks()[n],
            level: self.level,
        }
    }

    /// The full core for scaled values, with its modes in the order that partial derivatives by rows of mode `n` need;
    /// `None` if the core is hyper-diagonal.
    pub(super) fn permuted_core(
        &self,
        model: &Model,
        n: usize,
        pool: &ThreadPool<'_>,
    ) -> Result<Option<Vec<f32>>> {
        if self.core_sums.is_none() {
            return Ok(None);
        }
        let others = self.tensor[n].other_modes().iter().copied();
        let order: Vec<usize> = others.chain([n]).collect();
        let scale = self.scaling.scale;
        permute_core(&model.shape, &model.core, &order, scale, pool.monitor()).map(Some)
    }

    /// The squared errors of the tensor, times `weight`, as a function of the rows of mode `n`.
    pub(super) fn tensor_term<'a>(
        &'a self,
        model: &'a Model,
        biases: &'a [Vec<f32>],
        n: usize,
        core: Option<&'a [f32]>,
        weight: f64,
    ) -> DataTerm<'a> {
        DataTerm {
            csr: &self.tensor[n],
            partials: self.partials(model, biases, n, core),
            weight,
            has_bias: self.has_biases,
            full_matrix: None,
        }
    }

    /// The squared errors of a matrix, whose entries are grouped by one side, given the factor rows of the other.
    pub(super) fn matrix_term<'a>(
        &self,
        csr: &'a ModeCsr,
        other_rows: &'a FactorMatrix,
        weight: f64,
        full_matrix: Option<FullMatrixTerms<'a>>,
    ) -> DataTerm<'a> {
        let (rows, rank) = (other_rows.as_slice(), other_rows.rank());
        matrix_term(csr, rows, rank, weight, full_matrix, self.level)
    }

    /// The squared errors of all matrices of mode `n` as functions of its rows. `weight` is the factor of a matrix.
    pub(super) fn matrix_terms<'a>(
        &'a self,
        model: &'a Model,
        n: usize,
        weight: impl Fn(&RowwiseMatrix) -> f64,
        pool: &ThreadPool<'_>,
    ) -> Result<Vec<DataTerm<'a>>> {
        let matrices = self.matrices.iter().filter(|m| m.mode == n);
        matrices
            .map(|matrix| {
                let columns = &model.matrices[matrix.number].factor;
                let full = matrix.full.as_deref();
                let full = full.map(|full| FullMatrixTerms::of_rows(full, columns, pool));
                Ok(self.matrix_term(&matrix.by_row, columns, weight(matrix), full.transpose()?))
            })
            .collect()
    }
}

/// Groups the entries of a tensor by the rows of each mode.
pub fn group_by_modes(tensor: CooSlices<'_>, pool: &ThreadPool<'_>) -> Result<Vec<ModeCsr>> {
    let stop = pool.stop();
    let count_rows = |(): &mut (), mode| ModeCsr::with_row_starts(mode, tensor, stop);
    let mut by_mode = pool.try_map(tensor.row_counts.len(), || Ok(()), count_rows)?;
    let groups = by_mode.iter_mut().flat_map(ModeCsr::row_groups);
    let groups: Vec<Mutex<RowGroup<'_>>> = groups.map(Mutex::new).collect();
    pool.try_map(
        groups.len(),
        || Ok(()),
        |(), g| lock_ignoring_poison(&groups[g]).fill(tensor, stop),
    )?;
    drop(groups);
    Ok(by_mode)
}

impl RowwiseMatrix {
    fn new(number: usize, input: &MatrixInput<'_>, pool: &ThreadPool<'_>) -> Result<RowwiseMatrix> {
        let entries = input.entries;
        let (by_row, by_column) = match &input.full {
            Some(full) => (full.by_row.clone(), full.by_column.clone()),
            None => (
                Arc::new(ModeCsr::new(0, entries, pool.monitor())?),
                Arc::new(ModeCsr::new(1, entries, pool.monitor())?),
            ),
        };
        let weight = |i: usize| f64::from(entries.weights.get(i).copied().unwrap_or(1.0));
        let squares = entries.values.iter().map(|&y| f64::from(y) * f64::from(y));
        let squares = squares.enumerate().map(|(i, square)| weight(i) * square);
        let (squares, count) = match &input.full {
            Some(full) => (full.sum_of_squares(), full.position_count()),
            None => (squares.sum(), entries.values.len() as f64),
        };
        Ok(RowwiseMatrix {
            mode: input.mode,
            number,
            weight: input.weight,
            column_penalties: try_to_vec(&input.column_penalties, "columns")?,
            column_tasks: RowTasks::all(&[&by_column])?,
            by_row,
            by_column,
            mean_square: if squares > 0.0 { squares / count } else { 1.0 },
            full: input.full.clone(),
        })
    }
}
