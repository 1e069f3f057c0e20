//! The mean row of every mode, which stands for rows without entries: 0 where cells without an entry are 0.

use std::ops::Range;

use super::factor_model::Model;
use super::factors::ModelMode;
use crate::error::Result;
use crate::kernel::add_weighted_rows;
use crate::parallel::ThreadPool;
use crate::simd::LANES;

/// Number of rows that are summed at a time. Sums of such chunks are independent of the number of threads.
const CHUNK_ROWS: usize = 1 << 14;

/// Number of rows whose weights are computed at a time.
const ROWS_AT_ONCE: usize = 64;

impl Model {
    /// Recomputes the mean row of every mode from its factor rows.
    #[doc(hidden)]
    pub fn update_mean_rows(&mut self) -> Result<()> {
        self.set_mean_rows(|count, sum| Ok((0..count).map(sum).collect()))
    }

    /// Does the same with all threads of a pool.
    #[doc(hidden)]
    pub fn update_mean_rows_with(&mut self, pool: &ThreadPool<'_>) -> Result<()> {
        self.set_mean_rows(|count, sum| pool.map(count, || (), |(), c| sum(c)))
    }

    /// Sets the mean rows. `map` calls a function with the numbers up to `count` and returns the results in order.
    fn set_mean_rows(
        &mut self,
        map: impl Fn(usize, &(dyn Fn(usize) -> Sums + Sync)) -> Result<Vec<Sums>>,
    ) -> Result<()> {
        let is_zero_filled = self.options.is_zero_filled();
        for mode in &mut self.modes {
            let (n, stride, rank) = (mode.rows.len(), mode.factor.stride(), mode.factor.rank());
            let total = mode.total_weight();
            let mut mean = vec![[0.0; LANES]; stride / LANES];
            if total > 0.0 && !is_zero_filled {
                let sum = |c: usize| {
                    let rows = c * CHUNK_ROWS..((c + 1) * CHUNK_ROWS).min(n);
                    weighted_sum(mode, rows, total)
                };
                for part in map(n.div_ceil(CHUNK_ROWS), &sum)? {
                    let (mean, part) = (mean.as_flattened_mut(), part.as_flattened());
                    mean.iter_mut().zip(part).for_each(|(to, x)| *to += x);
                }
            }
            let mean_row = &mut mode.factor.as_mut_slice()?[n * stride..][..rank];
            mean_row
                .iter_mut()
                .zip(mean.as_flattened())
                .for_each(|(x, &m)| *x = m as f32);
        }
        Ok(())
    }
}

/// One sum per column, with padding.
type Sums = Vec<[f64; LANES]>;

/// Returns the weighted sum of some rows of a mode. The weights of the rows are divided by `total`.
fn weighted_sum(mode: &ModelMode, rows: Range<usize>, total: f64) -> Sums {
    let stride = mode.factor.stride();
    let mut sums = vec![[0.0; LANES]; stride / LANES];
    let mut fractions = [0.0; ROWS_AT_ONCE];
    for first in rows.clone().step_by(ROWS_AT_ONCE) {
        let count = ROWS_AT_ONCE.min(rows.end - first);
        let fractions = &mut fractions[..count];
        for (i, fraction) in fractions.iter_mut().enumerate() {
            *fraction = mode.row_weight(first + i) / total;
        }
        let rows = &mode.factor.as_slice()[first * stride..(first + count) * stride];
        add_weighted_rows(rows, fractions, &mut sums);
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{CooView, Values};
    use crate::options::{ModelKind, Options};
    use crate::problem::Problem;

    #[test]
    fn mean_rows_are_independent_of_the_thread_count() {
        let count = 2 * CHUNK_ROWS as u32 + 100;
        let rows: Vec<u32> = (0..count).chain(0..7).collect();
        let columns: Vec<u32> = rows.iter().map(|i| i % 3).collect();
        let values = vec![1.0f32; rows.len()];
        let dims = [u64::from(count), 3];
        let view = CooView::new("t", &dims, &[&rows, &columns], Values::F32(&values)).unwrap();
        let problem = Problem::builder(view).build(&()).unwrap();
        let options = Options {
            model: ModelKind::Cp,
            rank: vec![2],
            ..Options::default()
        };
        let (mut model, _) = Model::zeros(&problem, &options).unwrap();
        let stride = model.modes[0].factor.stride();
        let all = model.modes[0].factor.as_mut_slice().unwrap();
        for (i, row) in all.chunks_exact_mut(stride).enumerate() {
            row[..2].copy_from_slice(&[1.0, (i as f32).sin()]);
        }
        let expected: f64 = rows.iter().map(|&i| f64::from((i as f32).sin())).sum();
        let expected = expected / rows.len() as f64;
        let mut means = Vec::new();
        for threads in [1, 3] {
            let pool = ThreadPool::new(threads, false, 0);
            model.update_mean_rows_with(&pool).unwrap();
            means.push(model.modes[0].factor.row(count as usize).to_vec());
        }
        model.update_mean_rows().unwrap();
        means.push(model.modes[0].factor.row(count as usize).to_vec());
        assert_eq!((&means[0], &means[0]), (&means[1], &means[2]));
        let [one, mean] = [means[0][0], means[0][1]].map(f64::from);
        assert!((one - 1.0).abs() < 1e-6 && (mean - expected).abs() < 1e-7);
    }
}
