//! Planted factor matrices: rows that are functions of the seed and their index.

use super::options::GenerateOptions;
use super::popularity::ZipfMandelbrot;
use crate::random::{RandomStream, hash_words, unit_interval};

/// Purposes of the random streams; each is used once.
pub(super) mod stream {
    pub const FACTOR: u64 = 1;
    pub const CORE: u64 = 2;
    pub const ROW: u64 = 3;
    pub const ROW_ORDER: u64 = 5;
    pub const TEST: u64 = 6;
    pub const PILOT: u64 = 7;
    pub const GROUP: u64 = 8;
    /// Multiplied by the number of the matrix, counted from 1.
    pub const MATRIX: u64 = 1 << 32;
}

/// The largest factor, in bytes, that is kept in memory. Rows of larger factors are computed on demand.
const MAX_TABLE_BYTES: u64 = 256 << 20;

/// The sizes of groups: the largest of ten groups has about three times the rows of the smallest.
const GROUP_SIZES: ZipfMandelbrot = ZipfMandelbrot {
    exponent: 1.0,
    shift: 3.0,
};

/// A partition of the rows of a factor into groups, one per column of a matrix. Rows of a group have a common centre.
pub(super) struct RowGroups {
    seed: u64,
    /// The stream number of the matrix.
    matrix_stream: u64,
    count: u64,
    /// The square root of the fraction of the variance that the rows of a group share.
    weight: f64,
    /// The centres, row-major: the column factor of the matrix without its mean.
    centres: Vec<f64>,
}

impl RowGroups {
    /// Returns the groups of matrix `m`, counted from 0, if it is a table of groups.
    pub(super) fn of_matrix(options: &GenerateOptions, m: usize, rank: usize) -> Option<RowGroups> {
        let spec = &options.matrices[m];
        let matrix_stream = stream::MATRIX * (m as u64 + 1);
        let centres = || {
            let factor = PlantedFactor::new(options, matrix_stream, spec.columns, rank);
            let mut row = vec![0.0; rank];
            let mut all = Vec::new();
            for g in 0..spec.columns {
                factor.row(g as u32, &mut row);
                all.extend(row.iter().map(|&x| f64::from(x) - options.factor_mean));
            }
            all
        };
        spec.group_fraction.map(|fraction| RowGroups {
            seed: options.seed,
            matrix_stream,
            count: spec.columns,
            weight: fraction.sqrt(),
            centres: centres(),
        })
    }

    /// Returns the group of a row.
    pub(super) fn group(&self, row: u64) -> u64 {
        let key = [self.seed, stream::GROUP, self.matrix_stream, row, 1];
        let quantile = unit_interval(hash_words(&key));
        GROUP_SIZES.rank_at_quantile(quantile, self.count)
    }
}

/// A factor matrix whose rows are functions of the seed and their index.
pub(super) struct PlantedFactor {
    pub rows: u64,
    pub rank: usize,
    seed: u64,
    /// The stream number of the factor: its mode, or that of its matrix.
    stream: u64,
    mean: f64,
    scale: f32,
    nonneg: bool,
    groups: Vec<RowGroups>,
    /// All rows, if they fit in memory.
    table: Option<Vec<f32>>,
}

impl PlantedFactor {
    pub(super) fn new(
        options: &GenerateOptions,
        stream: u64,
        rows: u64,
        rank: usize,
    ) -> PlantedFactor {
        PlantedFactor::with_groups(options, stream, rows, rank, Vec::new())
    }

    /// As [`new`](Self::new), with rows that belong to groups.
    pub(super) fn with_groups(
        options: &GenerateOptions,
        stream: u64,
        rows: u64,
        rank: usize,
        groups: Vec<RowGroups>,
    ) -> PlantedFactor {
        let mut factor = PlantedFactor {
            rows,
            rank,
            seed: options.seed,
            stream,
            mean: options.factor_mean,
            scale: 1.0,
            nonneg: options.nonneg,
            groups,
            table: None,
        };
        if rows * rank as u64 * 4 <= MAX_TABLE_BYTES {
            let mut table = vec![0.0; rows as usize * rank];
            // Fewer rows do not repay the start of a thread.
            let per_thread = (rows as usize).div_ceil(options.threads).max(4096);
            std::thread::scope(|scope| {
                for (thread, piece) in table.chunks_mut(per_thread * rank).enumerate() {
                    let factor = &factor;
                    scope.spawn(move || {
                        for (k, row) in piece.chunks_exact_mut(rank).enumerate() {
                            factor.compute((thread * per_thread + k) as u64, row);
                        }
                    });
                }
            });
            factor.table = Some(table);
        }
        factor
    }

    /// Computes row `i`: mean + own Gaussian part + centres of its groups, with a total variance of 1.
    fn compute(&self, i: u64, out: &mut [f32]) {
        let mut s = RandomStream::new(&[self.seed, stream::FACTOR, self.stream, i]);
        let common: f64 = self.groups.iter().map(|g| g.weight * g.weight).sum();
        let own_weight = (1.0 - common).max(0.0).sqrt();
        let centres = |j: usize| -> f64 {
            let centre = |g: &RowGroups| {
                let at = g.group(i) as usize * self.rank;
                g.weight * g.centres[at + j]
            };
            self.groups.iter().map(centre).sum()
        };
        for (j, x) in out.iter_mut().enumerate() {
            let z = self.mean + own_weight * s.standard_normal() + centres(j);
            *x = self.scale * (if self.nonneg { z.abs() } else { z }) as f32;
        }
    }

    /// Writes row `i`.
    #[inline]
    pub(super) fn row(&self, i: u32, out: &mut [f32]) {
        match &self.table {
            Some(table) => {
                let at = i as usize * self.rank;
                out.copy_from_slice(&table[at..at + self.rank]);
            }
            None => self.compute(u64::from(i), out),
        }
    }

    /// Multiplies all values.
    pub(super) fn rescale(&mut self, factor: f32) {
        self.scale *= factor;
        self.table.iter_mut().flatten().for_each(|x| *x *= factor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tabulated_and_computed_rows_agree_for_any_number_of_threads() {
        let mut options = GenerateOptions::new(&[1000, 10], 1);
        let one = PlantedFactor::new(&options, 0, 1000, 7);
        options.threads = 3;
        let mut three = PlantedFactor::new(&options, 0, 1000, 7);
        let (mut a, mut b) = (vec![0.0; 7], vec![0.0; 7]);
        for i in 0..1000 {
            one.row(i, &mut a);
            three.row(i, &mut b);
            assert_eq!(a, b);
        }
        three.table = None;
        for i in 0..1000 {
            one.row(i, &mut a);
            three.row(i, &mut b);
            assert_eq!(a, b);
        }
    }
}
