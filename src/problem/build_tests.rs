//! Tests of building a problem.

use super::build::ProblemBuilder;
use super::entry_source::EntrySource;
use super::{MatrixKind, Problem};
use crate::error::Error;
use crate::format::CooView;
use crate::format::Values;
use crate::problem::EntryChunk;
use crate::progress::Monitor;
use crate::value_range::ValueRange;

const A: &[u32] = &[5, 9, 5];
const B: &[u32] = &[0, 1, 1];
const C: &[u32] = &[3, 3, 2];
const V: Values<'static> = Values::F32(&[1.0, 2.0, 6.0]);

fn tensor() -> CooView<'static> {
    CooView::new("T", &[10, 2, 4], &[A, B, C], V).unwrap()
}

fn matrix(
    name: &str,
    dims: [u64; 2],
    rows: &'static [u32],
    columns: &'static [u32],
) -> CooView<'static> {
    const ONES: &[f32] = &[1.0; 8];
    CooView::new(
        name,
        &dims,
        &[rows, columns],
        Values::F32(&ONES[..rows.len()]),
    )
    .unwrap()
}

fn error(builder: ProblemBuilder<'_>) -> String {
    builder.build(&()).err().expect("an error").to_string()
}

#[test]
fn rows_of_tensor_and_matrices_are_compacted_together() {
    let p = Problem::builder(tensor())
        .matrix(
            0,
            matrix("Y", [10, 100], &[0, 9, 0], &[99, 7, 7]),
            1.0,
            MatrixKind::Observed,
        )
        .matrix(0, matrix("W", [10, 10], &[2], &[5]), 1.0, MatrixKind::Graph)
        .build(&())
        .unwrap();
    assert_eq!(p.modes()[0].indices(), [0, 2, 5, 9]);
    assert_eq!(p.modes()[0].counts(), [0, 0, 2, 1]);
    assert_eq!(p.modes()[2].indices(), [2, 3]);
    assert_eq!(p.matrices()[0].columns.indices(), [7, 99]);
    assert_eq!(p.matrices()[0].columns.counts(), [2, 1]);
    let range = ValueRange { min: 1.0, max: 6.0 };
    assert_eq!((p.mean(), p.range()), (3.0, range));
    let maps = p.row_maps();
    let mut chunk = EntryChunk::default();
    p.tensor().read_chunk(&maps, 1..3, &mut chunk).unwrap();
    assert_eq!(chunk.rows, [vec![3, 2], vec![1, 1], vec![1, 0]]);
    assert_eq!(chunk.values, [2.0, 6.0]);
}

#[test]
fn mismatches_are_rejected_with_their_location() {
    let observed = MatrixKind::Observed;
    let t = || Problem::builder(tensor());
    let y = || matrix("Y", [10, 5], &[1], &[4]);
    assert!(
        error(t().matrix(3, y(), 1.0, observed))
            .contains("Y: coupled to mode 4, but T has modes 1 to 3")
    );
    assert!(error(t().matrix(0, tensor(), 1.0, observed)).contains("T: has 3 modes"));
    assert!(
        error(t().matrix(1, y(), 1.0, observed))
            .contains("mode 2 has size 2 in T, but Y has 10 rows")
    );
    for weight in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(error(t().matrix(0, y(), weight, observed)).contains("weight"));
    }
    assert!(error(t().matrix(0, y(), 1.0, MatrixKind::Graph)).contains("10 x 5; a graph"));
    let beyond = matrix("Y", [10, 5], &[1, 10], &[4, 0]);
    assert!(error(t().matrix(0, beyond, 1.0, observed)).contains("Y: entry 2: index 10 of mode 1"));
    let beyond = matrix("Y", [10, 5], &[1, 2], &[4, 5]);
    assert!(error(t().matrix(0, beyond, 1.0, observed)).contains("Y: entry 2: index 5 of mode 2"));
    let beyond = CooView::new("T", &[9, 2, 4], &[A, B, C], V).unwrap();
    assert!(error(Problem::builder(beyond)).contains("T: entry 2: index 9 of mode 1"));
    for bad in [f64::NAN, f64::INFINITY, 1e300] {
        let values = [1.0, bad, 2.0];
        let view = CooView::new("T", &[10, 2, 4], &[A, B, C], Values::F64(&values)).unwrap();
        assert!(error(Problem::builder(view)).contains("T: entry 2: value"));
    }
    let weighted = tensor()
        .with_weights(Values::F32(&[1.0, -1.0, 1.0]))
        .unwrap();
    assert!(error(Problem::builder(weighted)).contains("T: entry 2: weight -1"));
}

#[test]
fn stated_sizes_override_inferred_ones() {
    let short = || matrix("Y", [7, 5], &[6], &[4]);
    let widened = Problem::builder(tensor())
        .matrix(0, short().with_inferred_dims(), 1.0, MatrixKind::Observed)
        .build(&())
        .unwrap();
    assert_eq!(widened.modes()[0].dim(), 10);
    assert!(
        error(Problem::builder(tensor()).matrix(0, short(), 1.0, MatrixKind::Observed))
            .contains("7 rows")
    );
    let long = || matrix("Y", [20, 5], &[19], &[4]);
    let p = Problem::builder(tensor().with_inferred_dims())
        .matrix(0, long(), 1.0, MatrixKind::Observed)
        .build(&())
        .unwrap();
    assert_eq!(p.modes()[0].dim(), 20);
    let e = error(Problem::builder(tensor()).matrix(
        0,
        long().with_inferred_dims(),
        1.0,
        MatrixKind::Observed,
    ));
    assert!(e.contains("Y has 20 rows at least"), "{e}");
}

#[test]
fn entries_changed_after_building_are_rejected() {
    let p = Problem::builder(tensor()).build(&()).unwrap();
    let maps = p.row_maps();
    // The contents of a mapped file that was overwritten: a row that did not occur, a NaN.
    for (rows, value) in [
        (&[5u32, 4, 5], 2.0f32),
        (&[5, u32::MAX, 5], 2.0),
        (&[5, 9, 5], f32::NAN),
    ] {
        let values = [1.0, value, 6.0];
        let changed = CooView::new("T", &[10, 2, 4], &[rows, B, C], Values::F32(&values)).unwrap();
        let source = EntrySource::new(changed, &()).unwrap();
        let error = source
            .read_chunk(&maps, 0..3, &mut EntryChunk::default())
            .unwrap_err()
            .to_string();
        assert!(error.contains("entry 2: is not what it was"), "{error}");
    }
}

#[test]
fn empty_tensor_and_matrix_are_allowed() {
    let none: &[u32] = &[];
    let t = CooView::new("T", &[3, 3], &[none, none], Values::F32(&[])).unwrap();
    let p = Problem::builder(t)
        .matrix(0, matrix("Y", [3, 5], &[], &[]), 1.0, MatrixKind::Observed)
        .build(&())
        .unwrap();
    assert_eq!((p.count(), p.modes()[0].rows().len()), (0, 0));
}

#[test]
fn threads_do_not_change_the_problem() {
    let count = 1u32 << 20;
    let rows: Vec<u32> = (0..count).map(|i| i % 1000 * 3).collect();
    let columns: Vec<u32> = (0..count).map(|i| i / 7 % 500).collect();
    let values: Vec<f32> = (0..count).map(|i| (i % 11) as f32 * 0.3).collect();
    let columns_of = [&rows[..], &columns[..]];
    let view = CooView::new("T", &[3000, 500], &columns_of, Values::F32(&values)).unwrap();
    let build = |threads| Problem::builder(view.clone()).threads(threads).build(&());
    let (serial, parallel) = (build(1).unwrap(), build(2).unwrap());
    for (a, b) in serial.modes().iter().zip(parallel.modes()) {
        assert_eq!((a.indices(), a.counts()), (b.indices(), b.counts()));
    }
    assert_eq!(serial.mean().to_bits(), parallel.mean().to_bits());
    let beyond = CooView::new("T", &[2998, 499], &columns_of, Values::F32(&values)).unwrap();
    let error = |threads| {
        let built = Problem::builder(beyond.clone()).threads(threads).build(&());
        built.err().map(|e| e.to_string())
    };
    assert!(error(1).is_some() && error(1) == error(2));
}

/// Counts polls, and cancels at one of them.
struct Polls {
    count: std::cell::Cell<u64>,
    cancelled_at: u64,
}

impl Monitor for Polls {
    fn cancelled(&self) -> bool {
        self.count.set(self.count.get() + 1);
        self.count.get() > self.cancelled_at
    }
}

#[test]
fn rows_and_zeros_that_no_entry_has_are_made_under_a_monitor() {
    let tensor = CooView::new("T", &[3, 2], &[&[0, 1], &[1, 0]], Values::F32(&[1.0, 2.0])).unwrap();
    // Two entries, and millions of cells without one.
    const COLUMNS: u64 = 1 << 22;
    let ones = Values::F32(&[1.0, 1.0]);
    let matrix = CooView::new("Y", &[3, COLUMNS], &[&[0, 1], &[5, 9]], ones).unwrap();
    for (kind, least_polls) in [
        (MatrixKind::Full, COLUMNS >> 20),
        (MatrixKind::Sampled(1 << 21), COLUMNS >> 16),
    ] {
        let build = |cancelled_at: u64| {
            let polls = Polls {
                count: std::cell::Cell::new(0),
                cancelled_at,
            };
            let builder = Problem::builder(tensor.clone()).matrix(0, matrix.clone(), 1.0, kind);
            let result = builder.build(&polls).map(|_| ());
            (result, polls.count.get())
        };
        let (result, polls) = build(u64::MAX);
        result.unwrap();
        assert!(polls >= least_polls, "{kind}: {polls} polls");
        for at in [0, polls / 4, polls / 2, polls - 1] {
            let (result, count) = build(at);
            assert!(matches!(result, Err(Error::Cancelled)), "{kind}: {at}");
            assert_eq!(count, at + 1);
        }
    }
}
