//! Every kernel compared with the scalar reference: all orders, unequal ranks, all ranks around the lane boundaries, rows
//! with exact zeros.

use s3cmtf::kernel::{Method, TensorKernel, reference};

use s3cmtf::kernel::{CoreKind, CoreShape};
use s3cmtf::simd::Level;

use s3cmtf::simd::padded_len;

/// Generates values in [-1, 1), one in eight exactly 0.
struct RandomValues(u64);

impl RandomValues {
    fn next(&mut self) -> f32 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        if (self.0 >> 40).is_multiple_of(8) {
            return 0.0;
        }
        (self.0 >> 33) as f32 / (1u64 << 30) as f32 - 1.0
    }

    fn list(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.next()).collect()
    }
}

fn close(a: f32, b: f64, scale: f64) -> bool {
    (f64::from(a) - b).abs() <= 2e-6 * (1.0 + scale)
}

fn compare(kind: CoreKind, ranks: &[usize], random: &mut RandomValues) {
    let shape = CoreShape::new(kind, ranks);
    let dense = {
        let mut dense = random.list(ranks.iter().product());
        if kind == CoreKind::Diagonal {
            // The round trip through the padded layout sets all elements off the diagonal to 0.
            dense = shape
                .dense_core(&shape.padded_core(&dense).unwrap())
                .unwrap();
        }
        dense
    };
    let core = shape.padded_core(&dense).unwrap();
    assert_eq!(shape.dense_core(&core).unwrap(), dense);
    let short: Vec<Vec<f32>> = ranks.iter().map(|&j| random.list(j)).collect();
    let mut rows = vec![0.0; shape.rows_len()];
    for (n, row) in short.iter().enumerate() {
        rows[shape.row(n)][..row.len()].copy_from_slice(row);
    }
    let wide: Vec<Vec<f64>> = short
        .iter()
        .map(|r| r.iter().map(|&x| f64::from(x)).collect())
        .collect();
    let wide: Vec<&[f64]> = wide.iter().map(Vec::as_slice).collect();
    let wide_core: Vec<f64> = dense.iter().map(|&g| f64::from(g)).collect();
    // Rounding errors of sums grow with the root of the number of terms.
    let scale = (dense.len() as f64).sqrt();
    let value = reference::value(&wide_core, &wide);
    let outer = reference::outer(&wide);
    let shared = Level::available().map(Method::Shared);
    for method in shared.chain([Method::Naive]) {
        let mut kernel = TensorKernel::new(&shape, method).unwrap();
        let mut slopes = vec![f32::NAN; shape.rows_len()];
        let context = format!("{kind:?} {method:?} {ranks:?}");
        assert!(
            close(kernel.gradients(&core, &rows, &mut slopes), value, scale),
            "value: {context}"
        );
        assert!(
            close(kernel.value(&core, &rows), value, scale),
            "value alone: {context}"
        );
        for n in 0..ranks.len() {
            let expected = reference::gradient(&wide_core, &wide, n);
            let found = &slopes[shape.row(n)];
            for (j, &d) in expected.iter().enumerate() {
                assert!(
                    close(found[j], d, scale),
                    "slope {n} {j}: {context}: {} {d}",
                    found[j]
                );
            }
            assert!(
                found[ranks[n]..].iter().all(|&x| x == 0.0),
                "padding of slope {n}: {context}"
            );
        }
        let mut stepped = core.clone();
        kernel.update_core(&mut stepped, &rows, 0.75, 0.5);
        let stepped_dense = shape.dense_core(&stepped).unwrap();
        for (k, &g) in stepped_dense.iter().enumerate() {
            let on_core = kind == CoreKind::Full || dense[k] != 0.0 || g != 0.0;
            let expected = 0.75 * wide_core[k] + if on_core { 0.5 * outer[k] } else { 0.0 };
            assert!(close(g, expected, 1.0), "outer {k}: {context}");
        }
        assert_eq!(
            shape.padded_core(&stepped_dense).unwrap(),
            stepped,
            "padding of the core: {context}"
        );
    }
}

#[test]
fn order_3_kernels_match_the_reference_at_all_ranks() {
    let mut random = RandomValues(1);
    for rank in 1..=72 {
        compare(CoreKind::Full, &[rank.min(5), 3, rank], &mut random);
        if rank <= 40 {
            compare(CoreKind::Full, &[rank, rank, rank], &mut random);
        }
    }
}

#[test]
fn kernels_match_the_reference_with_unequal_ranks() {
    let mut random = RandomValues(2);
    for ranks in [
        vec![3, 5],
        vec![1, 1],
        vec![17, 2],
        vec![4, 3, 2],
        vec![1, 1, 1],
        vec![2, 17, 3],
        vec![33, 1, 2],
        vec![2, 3, 4, 5],
        vec![5, 1, 3, 17],
        vec![2, 3, 2, 3, 2],
        vec![2, 1, 2, 3, 2, 2],
        vec![2, 2, 1, 2, 2, 2, 3],
        vec![2, 2, 2, 2, 2, 2, 2, 2],
    ] {
        compare(CoreKind::Full, &ranks, &mut random);
    }
}

#[test]
fn cp_kernels_match_the_reference_at_all_orders_and_ranks() {
    let mut random = RandomValues(3);
    for order in 2..=8 {
        for rank in [1, 2, 3] {
            compare(CoreKind::Diagonal, &vec![rank; order], &mut random);
        }
    }
    for rank in [15, 16, 17, 31, 40] {
        compare(CoreKind::Diagonal, &[rank; 3], &mut random);
    }
}

#[test]
fn collapse_of_s_is_the_row_times_its_gradient() {
    // Lemma 3 of the paper, multiplied by the row instead of divided.
    let mut random = RandomValues(4);
    let ranks = [4, 3, 5];
    let core: Vec<f64> = random.list(60).into_iter().map(f64::from).collect();
    let rows: Vec<Vec<f64>> = ranks
        .iter()
        .map(|&j| random.list(j).into_iter().map(f64::from).collect())
        .collect();
    let rows: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
    let s: Vec<f64> = core
        .iter()
        .zip(reference::outer(&rows))
        .map(|(g, o)| g * o)
        .collect();
    assert!((s.iter().sum::<f64>() - reference::value(&core, &rows)).abs() < 1e-12);
    for n in 0..3 {
        let slope = reference::gradient(&core, &rows, n);
        for j in 0..ranks[n] {
            let collapsed: f64 = (0..60)
                .filter(|&k| [k / 15, k / 5 % 3, k % 5][n] == j)
                .map(|k| s[k])
                .sum();
            assert!(
                (collapsed - rows[n][j] * slope[j]).abs() < 1e-12,
                "mode {n} entry {j}"
            );
        }
    }
    assert_eq!(padded_len(5), 16);
}
