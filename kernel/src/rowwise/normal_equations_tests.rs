//! Normal equations compared with plain sums in `f64`.

use super::normal_equations::{BiasedRow, NormalEquations};
use super::partials::{OtherMode, Partials, PartialsScratch};
use crate::entries::by_row::{CooSlices, ModeCsr};
use crate::progress::StopFlag;
use crate::random::RandomStream;
use crate::simd::Level;
use crate::simd::padded_len;

/// Random factors, biases and entries.
struct TestData {
    row_counts: Vec<usize>,
    ranks: Vec<usize>,
    /// Padded rows of each mode.
    rows: Vec<Vec<f32>>,
    biases: Vec<Vec<f32>>,
    entries: Vec<u32>,
    values: Vec<f32>,
    /// Empty if entries are unweighted.
    weights: Vec<f32>,
}

impl TestData {
    fn new(row_counts: &[usize], ranks: &[usize], count: usize) -> TestData {
        let mut s = RandomStream::new(&[5, count as u64]);
        let rows = row_counts
            .iter()
            .zip(ranks)
            .map(|(&n, &rank)| {
                let width = padded_len(rank);
                (0..n * width)
                    .map(|k| {
                        if k % width < rank {
                            s.standard_normal() as f32
                        } else {
                            0.0
                        }
                    })
                    .collect()
            })
            .collect();
        let biases = row_counts
            .iter()
            .map(|&n| (0..n).map(|_| s.standard_normal() as f32).collect())
            .collect();
        let entries = (0..count * row_counts.len())
            .map(|k| s.below(row_counts[k % row_counts.len()] as u64) as u32)
            .collect();
        TestData {
            row_counts: row_counts.to_vec(),
            ranks: ranks.to_vec(),
            rows,
            biases,
            entries,
            values: (0..count).map(|_| s.standard_normal() as f32).collect(),
            weights: Vec::new(),
        }
    }

    fn weighted(mut self) -> TestData {
        let mut s = RandomStream::new(&[6]);
        self.weights = self
            .values
            .iter()
            .map(|_| 3.0 * s.uniform() as f32)
            .collect();
        self
    }

    fn row(&self, m: usize, i: u32) -> Vec<f64> {
        let rank = self.ranks[m];
        let at = i as usize * padded_len(rank);
        self.rows[m][at..at + rank]
            .iter()
            .map(|&x| f64::from(x))
            .collect()
    }

    /// The partial derivative of an entry's value by its row of `mode`. The core has the other modes in the
    /// order of `others`, then `mode`.
    fn partial(&self, e: usize, mode: usize, others: &[usize], core: Option<&[f32]>) -> Vec<f64> {
        let order = self.row_counts.len();
        let rank = self.ranks[mode];
        let rows: Vec<Vec<f64>> = others
            .iter()
            .map(|&m| self.row(m, self.entries[e * order + m]))
            .collect();
        match core {
            None => (0..rank)
                .map(|j| rows.iter().map(|r| r[j]).product())
                .collect(),
            Some(core) => {
                let mut left: Vec<f64> = core.iter().map(|&g| f64::from(g)).collect();
                for row in &rows {
                    let rest = left.len() / row.len();
                    left = (0..rest)
                        .map(|k| (0..row.len()).map(|j| row[j] * left[j * rest + k]).sum())
                        .collect();
                }
                left.truncate(rank);
                left
            }
        }
    }
}

fn check(row_counts: &[usize], ranks: &[usize], full: bool, count: usize) {
    // Under Miri, few rows, and unweighted entries only where modes have different ranks.
    let few = vec![2; row_counts.len()];
    let (row_counts, count) = if cfg!(miri) {
        (&few[..], 4)
    } else {
        (row_counts, count)
    };
    if !cfg!(miri) || ranks[0] != ranks[1] {
        check_data(&TestData::new(row_counts, ranks, count), full);
    }
    check_data(&TestData::new(row_counts, ranks, count).weighted(), full);
}

fn check_data(data: &TestData, full: bool) {
    let (row_counts, ranks, count) = (&data.row_counts, &data.ranks, data.values.len());
    let order = row_counts.len();
    for mode in 0..order {
        let entries = CooSlices {
            row_counts,
            rows: &data.entries,
            values: &data.values,
            weights: &data.weights,
        };
        let csr = ModeCsr::new(mode, entries, &()).unwrap();
        assert_eq!((csr.len(), csr.row_count()), (count, row_counts[mode]));
        let rank = ranks[mode];
        let mut s = RandomStream::new(&[9, mode as u64]);
        let outer: usize = csr.other_modes().iter().map(|&m| ranks[m]).product();
        let core: Vec<f32> = (0..outer * padded_len(rank))
            .map(|k| {
                if k % padded_len(rank) < rank {
                    s.standard_normal() as f32
                } else {
                    0.0
                }
            })
            .collect();
        let core = full.then_some(&core[..]);
        for level in Level::available() {
            let partials = Partials {
                others: csr
                    .other_modes()
                    .iter()
                    .map(|&m| OtherMode {
                        rows: &data.rows[m],
                        rank: ranks[m],
                        biases: if m == 0 { &[] } else { &data.biases[m] },
                    })
                    .collect(),
                core,
                rank,
                level,
            };
            let mut scratch = PartialsScratch::default();
            for i in 0..row_counts[mode] {
                let mut got = NormalEquations::new(rank).unwrap();
                let all = csr.row_entries(i);
                let half = all.start + all.len() / 2;
                let stop = StopFlag::new();
                partials
                    .accumulate(&csr, all.start..half, &mut scratch, &mut got, &stop)
                    .unwrap();
                let mut rest = NormalEquations::new(rank).unwrap();
                partials
                    .accumulate(&csr, half..all.end, &mut scratch, &mut rest, &stop)
                    .unwrap();
                got.add(&rest);
                let mine: Vec<usize> = (0..count)
                    .filter(|e| data.entries[e * order + mode] as usize == i)
                    .collect();
                assert_eq!(got.entry_count, mine.len());
                let mut gram = vec![0.0; rank * rank];
                let (mut rhs, mut partial_sum) = (vec![0.0; rank], vec![0.0; rank]);
                let mut residuals = Vec::new();
                let u: Vec<f32> =
                    data.rows[mode][i * padded_len(rank)..][..padded_len(rank)].to_vec();
                let mut size = 1.0f64;
                let (mut weight_sum, mut residual_sum) = (0.0, 0.0);
                for &e in &mine {
                    let d = data.partial(e, mode, csr.other_modes(), core);
                    let biases: f64 = (1..order)
                        .filter(|&m| m != mode)
                        .map(|m| f64::from(data.biases[m][data.entries[e * order + m] as usize]))
                        .sum();
                    let r = f64::from(data.values[e]) - biases;
                    let w = f64::from(data.weights.get(e).copied().unwrap_or(1.0));
                    weight_sum += w;
                    residual_sum += w * r;
                    size += d.iter().map(|x| x * x).sum::<f64>() + r * r;
                    for a in 0..rank {
                        for b in 0..rank {
                            gram[a * rank + b] += w * d[a] * d[b];
                        }
                        rhs[a] += w * d[a] * r;
                        partial_sum[a] += w * d[a];
                    }
                    residuals.push(
                        r - 0.25
                            - d.iter()
                                .zip(&u)
                                .map(|(d, &u)| d * f64::from(u))
                                .sum::<f64>(),
                    );
                }
                let near = |a: f32, b: f64| (f64::from(a) - b).abs() < 1e-5 * size;
                assert!((got.weight_sum - weight_sum).abs() < 1e-9 * size);
                assert!((got.residual_sum - residual_sum).abs() < 1e-5 * size);
                for a in 0..rank {
                    for (b, &x) in got.gram_row(a).iter().enumerate() {
                        assert!(
                            near(x, gram[a * rank + a + b]),
                            "{level:?} {ranks:?} {a} {b}"
                        );
                    }
                    assert!(
                        near(got.rhs()[a], rhs[a]) && near(got.partial_sum()[a], partial_sum[a])
                    );
                }
                let mut out = vec![0.0; all.len()];
                let stop = StopFlag::new();
                partials
                    .residuals(
                        &csr,
                        all,
                        BiasedRow {
                            row: &u,
                            bias: 0.25,
                        },
                        &mut scratch,
                        &mut out,
                        &stop,
                    )
                    .unwrap();
                residuals.sort_by(f64::total_cmp);
                out.sort_by(f32::total_cmp);
                assert!(out.iter().zip(&residuals).all(|(&a, &b)| near(a, b)));
            }
        }
    }
}

#[test]
fn hyper_diagonal_core_at_every_level_rank_and_order() {
    let ranks = [1, 2, 3, 4, 5, 8, 12, 15, 16, 17, 24, 31, 32, 33, 48, 64, 72];
    for rank in ranks.into_iter().step_by(if cfg!(miri) { 9 } else { 1 }) {
        check(&[7, 3, 5], &[rank; 3], false, 400);
    }
    check(&[3, 200], &[20; 2], false, 500);
    check(&[4, 3, 5, 6], &[9; 4], false, 500);
    check(&[4, 3, 2, 3, 2], &[6; 5], false, 200);
}

#[test]
fn full_core_at_every_level_rank_and_order() {
    for rank in [1, 3, 8, 16, 17, 20]
        .into_iter()
        .take(if cfg!(miri) { 1 } else { 6 })
    {
        check(&[7, 3, 5], &[rank; 3], true, 300);
    }
    check(&[7, 3, 5], &[4, 17, 2], true, 300);
    check(&[6, 9], &[5, 3], true, 300);
    check(&[4, 3, 5, 6], &[3, 5, 2, 4], true, 400);
    check(&[3, 2, 3, 2, 4], &[2, 3, 2, 2, 3], true, 200);
}
