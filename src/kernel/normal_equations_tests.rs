//! Normal equations against plain sums in `f64`.

use super::{Lists, Normal, Other, Room, Slopes};
use crate::random::RandomStream;
use crate::simd::Level;
use crate::simd::padded_len;

struct Scene {
    limits: Vec<usize>,
    ranks: Vec<usize>,
    /// Padded rows of each mode.
    rows: Vec<Vec<f32>>,
    biases: Vec<Vec<f32>>,
    entries: Vec<u32>,
    values: Vec<f32>,
    /// Empty if entries have none.
    weights: Vec<f32>,
}

impl Scene {
    fn new(limits: &[usize], ranks: &[usize], count: usize) -> Scene {
        let mut s = RandomStream::new(&[5, count as u64]);
        let rows = limits
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
        let biases = limits
            .iter()
            .map(|&n| (0..n).map(|_| s.standard_normal() as f32).collect())
            .collect();
        let entries = (0..count * limits.len())
            .map(|k| s.below(limits[k % limits.len()] as u64) as u32)
            .collect();
        Scene {
            limits: limits.to_vec(),
            ranks: ranks.to_vec(),
            rows,
            biases,
            entries,
            values: (0..count).map(|_| s.standard_normal() as f32).collect(),
            weights: Vec::new(),
        }
    }

    fn weighted(mut self) -> Scene {
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

    /// The slope of an entry by its row of `mode`; the core has the other modes in the order of
    /// `others` and then this one.
    fn slope(&self, e: usize, mode: usize, others: &[usize], core: Option<&[f32]>) -> Vec<f64> {
        let order = self.limits.len();
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

fn check(limits: &[usize], ranks: &[usize], full: bool, count: usize) {
    check_scene(&Scene::new(limits, ranks, count), full);
    check_scene(&Scene::new(limits, ranks, count).weighted(), full);
}

fn check_scene(scene: &Scene, full: bool) {
    let (limits, ranks, count) = (&scene.limits, &scene.ranks, scene.values.len());
    let order = limits.len();
    for mode in 0..order {
        let numbers = (&scene.values[..], &scene.weights[..]);
        let lists = Lists::new(mode, limits, &scene.entries, numbers).unwrap();
        assert_eq!((lists.len(), lists.rows()), (count, limits[mode]));
        let rank = ranks[mode];
        let mut s = RandomStream::new(&[9, mode as u64]);
        let outer: usize = lists.others().iter().map(|&m| ranks[m]).product();
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
            let slopes = Slopes {
                others: lists
                    .others()
                    .iter()
                    .map(|&m| Other {
                        rows: &scene.rows[m],
                        rank: ranks[m],
                        biases: if m == 0 { &[] } else { &scene.biases[m] },
                    })
                    .collect(),
                core,
                rank,
                mean: 0.5,
                level,
            };
            let mut room = Room::default();
            for i in 0..limits[mode] {
                let mut got = Normal::new(rank);
                let all = lists.of(i);
                let half = all.start + all.len() / 2;
                slopes.add(&lists, all.start..half, &mut room, &mut got);
                let mut rest = Normal::new(rank);
                slopes.add(&lists, half..all.end, &mut room, &mut rest);
                got.add(&rest);
                let mine: Vec<usize> = (0..count)
                    .filter(|e| scene.entries[e * order + mode] as usize == i)
                    .collect();
                assert_eq!(got.count, mine.len());
                let mut square = vec![0.0; rank * rank];
                let (mut right, mut total) = (vec![0.0; rank], vec![0.0; rank]);
                let mut errors = Vec::new();
                let u: Vec<f32> =
                    scene.rows[mode][i * padded_len(rank)..][..padded_len(rank)].to_vec();
                let mut size = 1.0f64;
                let (mut weights, mut residuals) = (0.0, 0.0);
                for &e in &mine {
                    let d = scene.slope(e, mode, lists.others(), core);
                    let biases: f64 = (1..order)
                        .filter(|&m| m != mode)
                        .map(|m| f64::from(scene.biases[m][scene.entries[e * order + m] as usize]))
                        .sum();
                    let r = f64::from(scene.values[e]) - 0.5 - biases;
                    let w = f64::from(scene.weights.get(e).copied().unwrap_or(1.0));
                    weights += w;
                    residuals += w * r;
                    size += d.iter().map(|x| x * x).sum::<f64>() + r * r;
                    for a in 0..rank {
                        for b in 0..rank {
                            square[a * rank + b] += w * d[a] * d[b];
                        }
                        right[a] += w * d[a] * r;
                        total[a] += w * d[a];
                    }
                    errors.push(
                        r - 0.25
                            - d.iter()
                                .zip(&u)
                                .map(|(d, &u)| d * f64::from(u))
                                .sum::<f64>(),
                    );
                }
                let near = |a: f32, b: f64| (f64::from(a) - b).abs() < 1e-5 * size;
                assert!((got.weight - weights).abs() < 1e-9 * size);
                assert!((got.residuals - residuals).abs() < 1e-5 * size);
                for a in 0..rank {
                    for (b, &x) in got.square(a).iter().enumerate() {
                        assert!(
                            near(x, square[a * rank + a + b]),
                            "{level:?} {ranks:?} {a} {b}"
                        );
                    }
                    assert!(near(got.right()[a], right[a]) && near(got.slopes()[a], total[a]));
                }
                let mut out = vec![0.0; all.len()];
                slopes.errors(&lists, all, (&u, 0.25), &mut room, &mut out);
                errors.sort_by(f64::total_cmp);
                out.sort_by(f32::total_cmp);
                assert!(out.iter().zip(&errors).all(|(&a, &b)| near(a, b)));
            }
        }
    }
}

#[test]
fn products_of_rows_at_every_level_rank_and_order() {
    for rank in [1, 2, 3, 4, 5, 8, 12, 15, 16, 17, 24, 31, 32, 33, 48, 64, 72] {
        check(&[7, 3, 5], &[rank; 3], false, 400);
    }
    check(&[3, 200], &[20; 2], false, 500);
    check(&[4, 3, 5, 6], &[9; 4], false, 500);
    check(&[4, 3, 2, 3, 2], &[6; 5], false, 200);
}

#[test]
fn full_cores_at_every_level_rank_and_order() {
    for rank in [1, 3, 8, 16, 17, 20] {
        check(&[7, 3, 5], &[rank; 3], true, 300);
    }
    check(&[7, 3, 5], &[4, 17, 2], true, 300);
    check(&[6, 9], &[5, 3], true, 300);
    check(&[4, 3, 5, 6], &[3, 5, 2, 4], true, 400);
    check(&[3, 2, 3, 2, 4], &[2, 3, 2, 2, 3], true, 200);
}
