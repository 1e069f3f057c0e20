//! Random tensors with matrices and a graph on every mode. They have no structure to find.

use s3cmtf::format::{CooView, Values};
use s3cmtf::problem::{MatrixKind, Problem};

/// A tensor with entries at random positions and values from 0 to 4.
pub struct RandomTensor {
    pub dims: Vec<u64>,
    pub columns: Vec<Vec<u32>>,
    pub values: Vec<f32>,
}

/// The columns of a matrix: entry k is in column `multiplier` k modulo `count`.
#[derive(Clone, Copy)]
pub struct MatrixColumns {
    pub multiplier: u32,
    pub count: u32,
}

/// Returns a number below its argument.
type Draw<'a> = &'a mut dyn FnMut(u64) -> u64;

impl RandomTensor {
    /// Creates entries at uniformly distributed positions.
    pub fn uniform(dims: &[u64], count: usize) -> RandomTensor {
        RandomTensor::new(dims, count, |dim, draw| draw(dim))
    }

    /// Creates more entries in rows of low index than in others.
    pub fn skewed(dims: &[u64], count: usize) -> RandomTensor {
        RandomTensor::new(dims, count, |dim, draw| draw(dim).min(draw(dim)))
    }

    fn new(dims: &[u64], count: usize, index: fn(u64, Draw<'_>) -> u64) -> RandomTensor {
        let mut state = 1u64;
        let mut draw = |n: u64| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) % n
        };
        let columns = dims
            .iter()
            .map(|&d| (0..count).map(|_| index(d, &mut draw) as u32).collect())
            .collect();
        let values = (0..count).map(|_| draw(1000) as f32 / 250.0).collect();
        RandomTensor {
            dims: dims.to_vec(),
            columns,
            values,
        }
    }

    /// Builds a problem and returns the result of `act` on it. Every mode has the given matrices and a graph, each with up to
    /// `matrix_entries` entries.
    pub fn with_matrices<T>(
        &self,
        matrix_entries: usize,
        matrices: &[MatrixColumns],
        act: impl FnOnce(&Problem<'_>) -> T,
    ) -> T {
        let columns: Vec<&[u32]> = self.columns.iter().map(Vec::as_slice).collect();
        let tensor = CooView::new("x", &self.dims, &columns, Values::F32(&self.values)).unwrap();
        let mut builder = Problem::builder(tensor);
        let n = matrix_entries.min(self.values.len());
        let matrix_columns: Vec<Vec<u32>> = matrices
            .iter()
            .map(|m| (0..n as u32).map(|k| k * m.multiplier % m.count).collect())
            .collect();
        let reversed: Vec<Vec<u32>> = self
            .columns
            .iter()
            .map(|c| c[..n].iter().rev().copied().collect())
            .collect();
        for (mode, reversed) in reversed.iter().enumerate() {
            let rows = &self.columns[mode][..n];
            let values = Values::F32(&self.values[..n]);
            for (columns, spec) in matrix_columns.iter().zip(matrices) {
                let dims = [self.dims[mode], u64::from(spec.count)];
                let both = [rows, &columns[..]];
                let matrix = CooView::new("y", &dims, &both, values).unwrap();
                builder = builder.matrix(mode, matrix, 0.3, MatrixKind::Observed);
            }
            let both = [rows, &reversed[..]];
            let graph = CooView::new("w", &[self.dims[mode]; 2], &both, values).unwrap();
            builder = builder.matrix(mode, graph, 0.01, MatrixKind::Graph);
        }
        act(&builder.build(&()).unwrap())
    }
}
