//! The objective f and its gradient by all parameters.

use std::sync::Arc;

use super::grouped_entries::GroupedEntries;
use super::parameter_vector::ParameterVector;
use super::row_pass::{AllCells, PassSums, RowPass, RowPenalties};
use s3cmtf::error::Result;
use s3cmtf::internals::FullMatrix;
use s3cmtf::internals::row_moments;
use s3cmtf::internals::{Model, ModelMode};
use s3cmtf_kernel::kernel::{OtherMode, Partials};
use s3cmtf_kernel::linalg::dot;
use s3cmtf_kernel::parallel::ThreadPool;
use s3cmtf_kernel::simd::Level;
use s3cmtf_kernel::try_alloc::try_zeroed;

/// The objective of a problem.
pub(super) struct Objective {
    /// The entries of the tensor by the rows of each mode.
    pub tensor: Vec<GroupedEntries>,
    /// The sum of the squared values of the tensor if its unobserved cells are zeros; `None` if they are unknown.
    pub zero_filled: Option<f64>,
    pub matrices: Vec<MatrixTerm>,
    /// Of each block of parameters.
    pub penalties: Vec<RowPenalties>,
    pub level: Level,
}

/// The squared errors of a coupled matrix.
pub(super) struct MatrixTerm {
    pub mode: usize,
    /// Factor of the squared errors.
    pub weight: f64,
    pub by_row: GroupedEntries,
    pub by_column: GroupedEntries,
    /// If every position counts: the matrix, and the sum of its squared values.
    pub full: Option<(Arc<FullMatrix>, f64)>,
}

/// The objective at some parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Value {
    /// f without the constant penalty of the core and the penalty of the biases.
    pub total: f64,
    /// The sum of squared errors of the tensor: of its entries, or of all cells if unobserved ones are zeros.
    pub tensor: f64,
}

impl Objective {
    /// Computes f without the constant penalty of the core and the penalty of the biases, and writes its gradient.
    pub(super) fn evaluate(
        &self,
        model: &Model,
        biases: &[Vec<f32>],
        gradient: &mut ParameterVector,
        pool: &ThreadPool<'_>,
    ) -> Result<Value> {
        let order = self.tensor.len();
        let (mode_gradients, column_gradients) = gradient.blocks.split_at_mut(order);
        let grams = match self.zero_filled {
            Some(_) => grams(model, pool)?,
            None => Vec::new(),
        };
        let (mut penalties, mut entries) = (0.0, 0.0);
        for (n, gradient) in mode_gradients.iter_mut().enumerate() {
            let sums = self.tensor_pass(n, model, biases, &grams, gradient, pool)?;
            penalties += sums.penalties;
            // The same for every mode, up to rounding.
            entries = sums.entries;
        }
        let tensor = match self.zero_filled {
            Some(squares) => zero_filled_error(squares, entries, &grams),
            None => entries,
        };
        let mut total = 0.5 * (tensor + penalties);
        for (m, matrix) in self.matrices.iter().enumerate() {
            if matrix.weight != 0.0 {
                let by_row = &mut mode_gradients[matrix.mode];
                let by_column = &mut column_gradients[m];
                total += self.matrix(m, model, by_row, by_column, pool)?;
            }
        }
        Ok(Value { total, tensor })
    }

    /// Computes the sum of squared errors of the tensor over all cells if unobserved ones are zeros; `None` otherwise.
    pub(super) fn squared_error_of_all_cells(
        &self,
        model: &Model,
        pool: &ThreadPool<'_>,
    ) -> Result<Option<f64>> {
        let Some(squares) = self.zero_filled else {
            return Ok(None);
        };
        let fewest = (0..self.tensor.len()).min_by_key(|&n| model.modes[n].rows.len());
        let n = fewest.unwrap_or(0);
        let grams = grams(model, pool)?;
        let mode = &model.modes[n];
        let len = mode.rows.len() * mode.factor.rank();
        let mut gradient: Vec<f32> = try_zeroed(len, "elements of the gradient")?;
        let sums = self.tensor_pass(n, model, &[], &grams, &mut gradient, pool)?;
        Ok(Some(zero_filled_error(squares, sums.entries, &grams)))
    }

    /// Writes the gradient of the tensor's term and of the penalties by the rows of mode `n`. `grams` are the Gram matrices of
    /// all modes if unobserved cells are zeros.
    fn tensor_pass(
        &self,
        n: usize,
        model: &Model,
        biases: &[Vec<f32>],
        grams: &[Vec<f64>],
        gradient: &mut [f32],
        pool: &ThreadPool<'_>,
    ) -> Result<PassSums> {
        let biases = |m: usize| biases.get(m).map_or(&[][..], Vec::as_slice);
        let entries = &self.tensor[n];
        let rank = model.shape.ranks()[n];
        let others = entries.csr.other_modes().iter().map(|&m| OtherMode {
            rows: model.modes[m].factor.as_slice(),
            rank,
            biases: biases(m),
        });
        let all_cells = self.zero_filled.map(|_| AllCells {
            gram: hadamard_product(grams, Some(n)),
            linear: Vec::new(),
            scales: None,
        });
        let pass = RowPass {
            entries,
            partials: self.partials(others.collect(), rank),
            rows: model.modes[n].factor.as_slice(),
            biases: biases(n),
            weight: 1.0,
            all_cells,
            penalties: Some(&self.penalties[n]),
        };
        pass.run(gradient, pool)
    }

    /// Adds the gradient of the term of matrix `m` by the rows of its mode and writes that by its columns. Returns its part of f.
    fn matrix(
        &self,
        m: usize,
        model: &Model,
        by_row: &mut [f32],
        by_column: &mut [f32],
        pool: &ThreadPool<'_>,
    ) -> Result<f64> {
        let matrix = &self.matrices[m];
        let (rows, columns) = (&model.modes[matrix.mode].factor, &model.matrices[m].factor);
        let rank = rows.rank();
        let side = |rows| {
            let other = OtherMode {
                rows,
                rank,
                biases: &[],
            };
            self.partials(vec![other], rank)
        };
        let mut all_cells = [None, None];
        // |Y|^2 - 2 <B, Y^> + |Y^|^2, where every cell of B has the unobserved value of its column.
        let mut unobserved = 0.0;
        if let Some((full, squares)) = &matrix.full {
            let u = row_moments(rows, full.by_row.row_count(), &[], pool)?;
            let v = row_moments(columns, columns.len(), &[], pool)?;
            let (u_gram, v_gram) = (u.gram(), v.gram());
            let linear = full.unobserved_column_sum(columns);
            unobserved = squares + dot(&u_gram, &v_gram) - 2.0 * dot(&linear, &u.sum);
            all_cells = [
                Some(AllCells {
                    gram: v_gram,
                    linear,
                    scales: None,
                }),
                Some(AllCells {
                    gram: u_gram,
                    linear: u.sum,
                    scales: Some(&full.unobserved_values),
                }),
            ];
        }
        let [of_rows, of_columns] = all_cells;
        let row_pass = RowPass {
            entries: &matrix.by_row,
            partials: side(columns.as_slice()),
            rows: rows.as_slice(),
            biases: &[],
            weight: matrix.weight,
            all_cells: of_rows,
            penalties: None,
        };
        row_pass.run(by_row, pool)?;
        let column_pass = RowPass {
            entries: &matrix.by_column,
            partials: side(rows.as_slice()),
            rows: columns.as_slice(),
            biases: &[],
            weight: matrix.weight,
            all_cells: of_columns,
            penalties: Some(&self.penalties[self.tensor.len() + m]),
        };
        let sums = column_pass.run(by_column, pool)?;
        let squared_error = match matrix.full {
            Some(_) => (unobserved - 2.0 * sums.entries).max(0.0),
            None => sums.entries,
        };
        Ok(0.5 * (matrix.weight * squared_error + sums.penalties))
    }

    fn partials<'a>(&self, others: Vec<OtherMode<'a>>, rank: usize) -> Partials<'a> {
        Partials {
            others,
            core: None,
            rank,
            level: self.level,
        }
    }
}

/// Returns the Gram matrix of the rows of each mode.
pub(super) fn grams(model: &Model, pool: &ThreadPool<'_>) -> Result<Vec<Vec<f64>>> {
    let gram = |mode: &ModelMode| Ok(row_moments(&mode.factor, mode.rows.len(), &[], pool)?.gram());
    model.modes.iter().map(gram).collect()
}

/// Returns the Hadamard product of the Gram matrices of all modes but one, or of all.
pub(super) fn hadamard_product(grams: &[Vec<f64>], without: Option<usize>) -> Vec<f64> {
    let mut product = vec![1.0; grams[0].len()];
    for (_, gram) in grams
        .iter()
        .enumerate()
        .filter(|(n, _)| Some(*n) != without)
    {
        product.iter_mut().zip(gram).for_each(|(p, x)| *p *= x);
    }
    product
}

/// Returns the squared errors over all cells, given the sum of squares of the values and the sum of values times predictions.
fn zero_filled_error(squares: f64, products: f64, grams: &[Vec<f64>]) -> f64 {
    let predictions: f64 = hadamard_product(grams, None).iter().sum();
    // Rounding can make the error of a perfect fit negative.
    (squares - 2.0 * products + predictions).max(0.0)
}
