//! The normalized Gram matrix of a mode's unfolding, without its diagonal, and its leading eigenvectors.

use super::centered_values::{CenteredValues, row_chunks};
use super::mode_fibers::ModeFibers;
use crate::error::Result;
use crate::kernel::{GRAM_COLUMNS as BLOCK_COLUMNS, ModeCsr};
use crate::linalg::{Eigen, add_scaled, dot, orthonormalize, scale_to_norm, symmetric_eigen};
use crate::parallel::ThreadPool;
use crate::random::RandomStream;

/// About the maximum number of positions on fibers that are used.
const MAX_POSITIONS: usize = 1 << 20;

/// Modes with more rows are not initialized.
const MAX_ROWS: usize = 1 << 17;

/// Least mean number of ordered pairs of positions per row; with fewer, eigenvectors are noise.
const MIN_PAIRS_PER_ROW: f64 = 8.0;

/// Maximum number of eigenvectors, and number of subspace iterations.
const MAX_DIRECTIONS: usize = 32;
const SUBSPACE_ITERATIONS: usize = 6;

/// Exponent p of the weight s^p / (1 + s^p) of an eigenvector with signal-to-noise ratio s.
const WEIGHT_EXPONENT: i32 = 3;

/// The pairs of positions that A is made of, for one mode. Values come later: see [`UnfoldingGram::columns`].
pub(in crate::solver::rowwise) struct UnfoldingGram {
    pub(in crate::solver::rowwise) mode: usize,
    fibers: ModeFibers,
    /// Whether each row has pairs.
    has_pairs: Vec<bool>,
    /// The diagonal of D^-1/2. D is the weighted number of pairs of a row plus their mean over all rows, so that rows
    /// with many pairs do not dominate.
    scale: Vec<f64>,
    /// About the largest eigenvalue of A for independent values of mean square 1: that of a symmetric random matrix.
    noise_eigenvalue: f64,
}

/// Random columns for the rows of a mode, along the leading eigenvectors.
pub(in crate::solver::rowwise) struct SpectralColumns {
    /// Row-major; every column has mean square 1.
    pub values: Vec<f32>,
    /// The largest eigenvalue divided by that of noise.
    pub signal_to_noise: f64,
    /// About the fraction of the values' variance that the first eigenvector explains.
    pub explained_fraction: f64,
}

/// An eigenvector of A, and its eigenvalue divided by that of noise.
struct Direction {
    vector: Vec<f64>,
    signal_to_noise: f64,
}

impl UnfoldingGram {
    /// Finds the pairs of `mode`, one of the other modes of `csr`, which has `rows` rows. Returns `None` if the mode is too
    /// large or has too few pairs.
    pub(in crate::solver::rowwise) fn new(
        csr: &ModeCsr,
        mode: usize,
        rows: usize,
        pool: &ThreadPool<'_>,
    ) -> Result<Option<UnfoldingGram>> {
        let column = csr.other_modes().iter().position(|&m| m == mode);
        let Some(column) = column.filter(|_| rows <= MAX_ROWS) else {
            return Ok(None);
        };
        let chunks = row_chunks(csr);
        let find = |keys: &mut _, c: usize| ModeFibers::new(csr, column, chunks[c].clone(), keys);
        let parts = pool.map(chunks.len(), Vec::new, find)?;
        let mut fibers = ModeFibers::default();
        for part in parts {
            if fibers.rows.len() < MAX_POSITIONS {
                fibers.append(part);
            }
        }
        let (mut degrees, mut pairs) = (vec![0.0; rows], 0);
        for fiber in fibers.each() {
            let position_weight = |entries: &std::ops::Range<u32>| -> f64 {
                let entries = entries.start as usize..entries.end as usize;
                entries.map(|e| f64::from(csr.weight(e))).sum()
            };
            let weights = fibers.entries[fiber.clone()].iter();
            let weights: Vec<f64> = weights.map(position_weight).collect();
            let total: f64 = weights.iter().sum();
            pairs += fiber.len() * (fiber.len() - 1);
            for (&i, w) in fibers.rows[fiber].iter().zip(&weights) {
                degrees[i as usize] += w * (total - w);
            }
        }
        let total: f64 = degrees.iter().sum();
        if (pairs as f64) < MIN_PAIRS_PER_ROW * rows as f64 || total <= 0.0 {
            return Ok(None);
        }
        let mean = total / rows as f64;
        Ok(Some(UnfoldingGram {
            mode,
            fibers,
            has_pairs: degrees.iter().map(|&d| d > 0.0).collect(),
            scale: degrees.iter().map(|d| 1.0 / (d + mean).sqrt()).collect(),
            noise_eigenvalue: (rows as f64 / pairs as f64).sqrt(),
        }))
    }

    /// Whether a row has pairs, so that the eigenvectors say something about it.
    pub(in crate::solver::rowwise) fn covers_row(&self, row: usize) -> bool {
        self.has_pairs.get(row).is_some_and(|&has_pairs| has_pairs)
    }

    /// Returns `count` random columns, each a normal combination of the leading eigenvectors weighted by how far they
    /// exceed noise; `None` if no eigenvalue is positive. `stream_key` identifies the random stream.
    pub(in crate::solver::rowwise) fn columns(
        &self,
        values: &CenteredValues,
        count: usize,
        stream_key: &[u64],
        pool: &ThreadPool<'_>,
    ) -> Result<Option<SpectralColumns>> {
        if values.mean_square <= 0.0 {
            return Ok(None);
        }
        let (rows, mut s) = (self.scale.len(), RandomStream::new(stream_key));
        let gram = ScaledGram {
            unfolding: self,
            position_values: self.fibers.position_values(values),
            noise_eigenvalue: self.noise_eigenvalue * values.mean_square,
        };
        // More than needed: eigenvectors far below noise take up some.
        let direction_count = (2 * count + 2).min(rows).min(MAX_DIRECTIONS);
        let directions = gram.leading_directions(direction_count, &mut s, pool)?;
        let signal_to_noise = directions.first().map_or(0.0, |d| d.signal_to_noise);
        let weight = |signal_to_noise: f64| {
            let power = signal_to_noise.max(0.0).powi(WEIGHT_EXPONENT);
            power / (1.0 + power)
        };
        let mut columns = vec![0.0; rows * count];
        for c in 0..count {
            let mut column = vec![0.0; rows];
            for direction in &directions {
                let coefficient = weight(direction.signal_to_noise) * s.standard_normal();
                add_scaled(&mut column, coefficient, &direction.vector);
            }
            let scaled = column.iter_mut().zip(&self.scale);
            scaled.for_each(|(x, s)| *x *= s);
            scale_to_norm(&mut column, (rows as f64).sqrt());
            let elements = columns.iter_mut().skip(c).step_by(count);
            elements.zip(&column).for_each(|(to, &x)| *to = x as f32);
        }
        let is_valid = signal_to_noise > 0.0 && columns.iter().all(|x| x.is_finite());
        Ok(is_valid.then_some(SpectralColumns {
            values: columns,
            signal_to_noise,
            // D counts the mean number of pairs once more, which halves eigenvalues where all rows have as many.
            explained_fraction: 2.0 * signal_to_noise * self.noise_eigenvalue,
        }))
    }
}

/// The matrix A for given values.
struct ScaledGram<'a> {
    unfolding: &'a UnfoldingGram,
    position_values: Vec<f64>,
    /// About the largest eigenvalue that independent values of the same mean square would have.
    noise_eigenvalue: f64,
}

impl ScaledGram<'_> {
    /// Computes the leading eigenvectors by subspace iteration with a final Rayleigh-Ritz step.
    fn leading_directions(
        &self,
        count: usize,
        s: &mut RandomStream,
        pool: &ThreadPool<'_>,
    ) -> Result<Vec<Direction>> {
        let rows = self.unfolding.scale.len();
        let mut v: Vec<Vec<f64>> = (0..count)
            .map(|_| (0..rows).map(|_| s.standard_normal()).collect())
            .collect();
        orthonormalize(&mut v, pool.monitor())?;
        for _ in 0..SUBSPACE_ITERATIONS {
            let mut next = self.times(&v, pool)?;
            // Noise has negative eigenvalues as large as positive ones. The shift keeps the iteration from converging
            // to them.
            for (to, from) in next.iter_mut().zip(&v) {
                add_scaled(to, self.noise_eigenvalue, from);
            }
            v = next;
            orthonormalize(&mut v, pool.monitor())?;
        }
        let next = self.times(&v, pool)?;
        let projected = |k: usize| {
            let (i, j) = (k / count, k % count);
            0.5 * (dot(&v[i], &next[j]) + dot(&v[j], &next[i]))
        };
        let projected: Vec<f64> = (0..count * count).map(projected).collect();
        let Eigen { values, vectors } = symmetric_eigen(count, &projected, pool.monitor())?;
        let ritz_vectors = vectors.chunks_exact(count).map(|coefficients| {
            let mut out = vec![0.0; rows];
            for (&coefficient, v) in coefficients.iter().zip(&v) {
                add_scaled(&mut out, coefficient, v);
            }
            out
        });
        let directions = ritz_vectors.zip(values).map(|(vector, value)| Direction {
            vector,
            signal_to_noise: value / self.noise_eigenvalue,
        });
        Ok(directions.collect())
    }

    /// Multiplies A by some columns, a block of them per task.
    fn times(&self, v: &[Vec<f64>], pool: &ThreadPool<'_>) -> Result<Vec<Vec<f64>>> {
        let scale = &self.unfolding.scale;
        let times_block = |b: usize| {
            let columns = &v[b * BLOCK_COLUMNS..v.len().min((b + 1) * BLOCK_COLUMNS)];
            let mut from = vec![[0.0; BLOCK_COLUMNS]; scale.len()];
            for (k, column) in columns.iter().enumerate() {
                let elements = from.iter_mut().zip(column).zip(scale);
                elements.for_each(|((row, x), s)| row[k] = x * s);
            }
            let fibers = &self.unfolding.fibers;
            let to = fibers.times_hollow_gram(&self.position_values, &from);
            let column = |k: usize| -> Vec<f64> {
                let rows = to.iter().zip(scale);
                rows.map(|(row, s)| row[k] * s).collect()
            };
            (0..columns.len()).map(column).collect::<Vec<_>>()
        };
        let blocks = v.len().div_ceil(BLOCK_COLUMNS);
        let done = pool.map(blocks, || (), |(), b| times_block(b))?;
        Ok(done.into_iter().flatten().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::centered_values::used_entry_count;
    use super::*;
    use crate::kernel::CooSlices;

    /// More than one chunk of rows and more than one block of columns.
    const SIZES: [usize; 3] = [150, 100, 12];
    const COUNT: usize = 20;

    fn factor(n: usize) -> Vec<f64> {
        let mut s = RandomStream::new(&[7, n as u64]);
        (0..SIZES[n]).map(|_| s.standard_normal()).collect()
    }

    /// Entries of a rank-1 tensor with noise of the same variance, at 30% of the positions that `is_candidate` accepts.
    fn planted(is_candidate: impl Fn(usize, usize, usize) -> bool) -> (Vec<u32>, Vec<f32>) {
        let [a, b, c] = [0, 1, 2].map(factor);
        let mut s = RandomStream::new(&[8]);
        let (mut rows, mut values) = (Vec::new(), Vec::new());
        for (i, x) in a.iter().enumerate() {
            for (j, y) in b.iter().enumerate() {
                for (k, z) in c.iter().enumerate() {
                    let (chance, noise) = (s.uniform(), s.standard_normal());
                    if is_candidate(i, j, k) && chance < 0.3 {
                        rows.extend([i as u32, j as u32, k as u32]);
                        values.push((x * y * z + noise) as f32);
                    }
                }
            }
        }
        (rows, values)
    }

    fn csr(rows: &[u32], values: &[f32], weights: &[f32]) -> ModeCsr {
        let entries = CooSlices {
            row_counts: &SIZES,
            rows,
            values,
            weights,
        };
        ModeCsr::new(0, entries, &()).unwrap()
    }

    fn columns(rows: &[u32], values: &[f32], weights: &[f32], threads: usize) -> Option<Vec<f32>> {
        let csr = csr(rows, values, weights);
        let pool = ThreadPool::new(threads, false, 0);
        let gram = UnfoldingGram::new(&csr, 2, SIZES[2], &pool).unwrap()?;
        let values = (0..used_entry_count(&csr)).map(|e| f64::from(csr.value(e)));
        let values = CenteredValues::new(&csr, values.collect(), &pool).unwrap();
        let columns = gram.columns(&values, COUNT, &[1, 2], &pool);
        columns.unwrap().map(|c| c.values)
    }

    #[test]
    fn columns_are_parallel_to_the_planted_factor() {
        let (rows, values) = planted(|_, _, _| true);
        let found = columns(&rows, &values, &[], 1).unwrap();
        let c = factor(2);
        for column in 0..COUNT {
            let own: Vec<f64> = (0..SIZES[2])
                .map(|k| f64::from(found[COUNT * k + column]))
                .collect();
            let cosine = dot(&own, &c) / (dot(&own, &own) * dot(&c, &c)).sqrt();
            assert!(cosine.abs() > 0.95, "{column}: {cosine}");
            assert!((dot(&own, &own) / SIZES[2] as f64 - 1.0).abs() < 1e-3);
        }
        assert!(row_chunks(&csr(&rows, &values, &[])).len() > 1);
        for threads in [2, 5] {
            assert!(columns(&rows, &values, &[], threads).unwrap() == found);
        }
    }

    #[test]
    fn without_pairs_or_structure_there_are_no_columns() {
        let (rows, values) = planted(|i, j, k| (i + 3 * j) % SIZES[2] == k);
        assert!(values.len() > 500);
        assert!(columns(&rows, &values, &[], 1).is_none());
        assert!(columns(&[], &[], &[], 1).is_none());
        // Repeated entries at one position are no pairs.
        let (rows, values) = (rows.repeat(20), values.repeat(20));
        assert!(columns(&rows, &values, &[], 1).is_none());
        // Equal values have no structure.
        let (rows, values) = planted(|_, _, _| true);
        assert!(columns(&rows, &vec![0.0; values.len()], &[], 1).is_none());
        // Weights of any size give finite columns or none.
        for size in [1e-40f32, 1e-20, 1e20, 3e38] {
            let weights: Vec<f32> = (0..values.len())
                .map(|e| size / (1 + e % 2) as f32)
                .collect();
            let found = columns(&rows, &values, &weights, 1);
            assert!(found.is_none_or(|c| c.iter().all(|x| x.is_finite())));
        }
    }

    #[test]
    fn weight_2_equals_a_repeated_entry_and_weight_0_none() {
        let (rows, values) = planted(|_, _, _| true);
        let weight = |e: usize| (e % 3) as f32;
        let weights: Vec<f32> = (0..values.len()).map(weight).collect();
        let weighted = columns(&rows, &values, &weights, 1).unwrap();
        let repeated = (0..values.len()).flat_map(|e| vec![e; e % 3]);
        let (mut repeated_rows, mut repeated_values) = (Vec::new(), Vec::new());
        for e in repeated {
            repeated_rows.extend_from_slice(&rows[3 * e..3 * e + 3]);
            repeated_values.push(values[e]);
        }
        let repeated = columns(&repeated_rows, &repeated_values, &[], 1).unwrap();
        for (x, y) in weighted.iter().zip(&repeated) {
            assert!((x - y).abs() < 1e-3, "{x} {y}");
        }
    }
}
