//! Putting a problem together and refusing what does not fit.

use std::sync::Arc;

use super::zeros::{check_cells, draw};
use super::{CoupledMatrix, EntrySource, MatrixKind, Problem, ProblemMode, Values};
use crate::error::{Error, Result};
use crate::format::{CooView, MAX_DIM, RowMap, RowMapBuilder};

use crate::progress::{Monitor, report_progress};
use crate::try_alloc::{try_collect, try_zeroed};

/// Collects the parts of a [`Problem`].
pub struct ProblemBuilder<'a> {
    tensor: CooView<'a>,
    matrices: Vec<Given<'a>>,
    seed: u64,
}

/// A matrix as it was given.
struct Given<'a> {
    mode: usize,
    view: CooView<'a>,
    weight: Option<f64>,
    penalty: Option<f64>,
    kind: MatrixKind,
}

impl<'a> Problem<'a> {
    /// Starts a problem with its tensor.
    pub fn builder(tensor: CooView<'a>) -> ProblemBuilder<'a> {
        ProblemBuilder {
            tensor,
            matrices: Vec::new(),
            seed: 0,
        }
    }
}

impl<'a> ProblemBuilder<'a> {
    /// Couples a matrix to `mode` (counted from 0): its first mode is that mode of the tensor. `weight` is a
    /// number, or `None` for what the options of a fit say.
    pub fn matrix(
        mut self,
        mode: usize,
        matrix: CooView<'a>,
        weight: impl Into<Option<f64>>,
        kind: MatrixKind,
    ) -> Self {
        self.matrices.push(Given {
            mode,
            view: matrix,
            weight: weight.into(),
            penalty: None,
            kind,
        });
        self
    }

    /// Gives the matrix added last a penalty of its own on its columns.
    pub fn penalty(mut self, penalty: f64) -> Self {
        if let Some(last) = self.matrices.last_mut() {
            last.penalty = Some(penalty);
        }
        self
    }

    /// Names the zeros that are drawn for matrices of that kind; by default 0. A fit is best given its own
    /// seed here.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Checks what can be checked without reading entries: modes, sizes and weights. Returns the
    /// size of each mode.
    pub fn check(&self) -> Result<Vec<u64>> {
        self.check_shapes()?;
        self.agree_on_dims()
    }

    /// Reads and validates everything.
    pub fn build(self, monitor: &dyn Monitor) -> Result<Problem<'a>> {
        let dims = self.check()?;
        let mut builders: Vec<RowMapBuilder> = dims
            .iter()
            .map(|&d| RowMapBuilder::new(d))
            .collect::<Result<_>>()?;
        let values = check_values(&self.tensor, monitor)?;
        for (n, rows) in builders.iter_mut().enumerate() {
            mark(&self.tensor, n, rows, monitor)?;
        }
        let mut parts = Vec::new();
        for (number, given) in self.matrices.iter().enumerate() {
            let matrix = &given.view;
            let rows = &mut builders[given.mode];
            let (low, high) = check_values(matrix, monitor)?.range;
            mark(matrix, 0, rows, monitor)?;
            if given.kind.is_graph() {
                mark(matrix, 1, rows, monitor)?;
            }
            let size = match given.kind {
                MatrixKind::Graph => 0,
                _ => matrix.dims()[1],
            };
            let mut own = RowMapBuilder::new(size)?;
            let mut part = EntrySource::new(matrix.clone());
            match given.kind {
                MatrixKind::Graph => {}
                MatrixKind::Observed => mark(matrix, 1, &mut own, monitor)?,
                MatrixKind::Full => {
                    mark(matrix, 1, &mut own, monitor)?;
                    check_cells(matrix, monitor)?;
                    rows.mark_all()?;
                    own.mark_all()?;
                }
                MatrixKind::Sampled(each) => {
                    mark(matrix, 1, &mut own, monitor)?;
                    part.zeros = draw(matrix, each, &[self.seed, number as u64], monitor)?;
                    for &column in &part.zeros[1] {
                        own.mark(column);
                    }
                }
            }
            parts.push((part, own.finish()?, low == high));
        }
        let mut modes = Vec::with_capacity(builders.len());
        for (n, rows) in builders.into_iter().enumerate() {
            modes.push(ProblemMode::count(
                rows.finish()?,
                &self.tensor,
                n,
                monitor,
            )?);
        }
        let mut matrices = Vec::with_capacity(parts.len());
        for (given, (entries, columns, constant)) in self.matrices.into_iter().zip(parts) {
            let Given {
                mode,
                view: matrix,
                weight,
                penalty,
                kind,
            } = given;
            let mut columns = match kind {
                MatrixKind::Graph => ProblemMode::empty(columns),
                _ => ProblemMode::count(columns, &matrix, 1, monitor)?,
            };
            if kind == MatrixKind::Full {
                columns.counts.fill(modes[mode].rows.len() as u64);
            }
            for &column in &entries.zeros[1] {
                if let Some(row) = columns.rows.compact(column) {
                    columns.counts[row as usize] += 1;
                }
            }
            matrices.push(CoupledMatrix {
                mode,
                weight,
                penalty,
                kind,
                is_constant: constant && entries.zeros[0].is_empty(),
                entries,
                columns,
            });
        }
        Ok(Problem {
            tensor: EntrySource::new(self.tensor),
            modes,
            matrices,
            values,
        })
    }

    fn check_shapes(&self) -> Result<()> {
        let order = self.tensor.order();
        for Given {
            mode,
            view: matrix,
            weight,
            penalty,
            kind,
        } in &self.matrices
        {
            let bad = |what: String| Err(Error::argument(format!("{}: {what}", matrix.name())));
            if *mode >= order {
                return bad(format!(
                    "coupled to mode {}, but {} has modes 1 to {order}",
                    mode + 1,
                    self.tensor.name()
                ));
            }
            if matrix.order() != 2 {
                return bad(format!(
                    "has {} modes; a coupled matrix has 2 (rows of the tensor's mode, columns of its own)",
                    matrix.order()
                ));
            }
            if let Some(weight) = weight.filter(|w| !(w.is_finite() && *w >= 0.0)) {
                return bad(format!(
                    "weight {weight}; it must be a finite number, 0 or more"
                ));
            }
            if let Some(p) = penalty.filter(|p| !(p.is_finite() && *p >= 0.0)) {
                return bad(format!(
                    "penalty {p}; it must be a finite number, 0 or more"
                ));
            }
            let (rows, columns) = (matrix.dims()[0], matrix.dims()[1]);
            if *kind == MatrixKind::Graph && rows != columns && !matrix.dims_inferred() {
                return bad(format!(
                    "is {rows} x {columns}; a graph between the rows of a mode must be square"
                ));
            }
            if *kind == MatrixKind::Sampled(0) {
                return bad(
                    "sampled with 0 zeros for each entry; give 1 or more, or leave it observed"
                        .into(),
                );
            }
            let zeros = matches!(kind, MatrixKind::Full | MatrixKind::Sampled(_));
            if zeros && matrix.weights().is_some() {
                return bad(format!(
                    "has weights, which zeros that are not listed lack; a matrix that is {kind} has none"
                ));
            }
        }
        Ok(())
    }

    /// The size of each mode. Stated sizes must be equal; sizes that are only the largest index
    /// seen may be smaller.
    fn agree_on_dims(&self) -> Result<Vec<u64>> {
        let mut dims = Vec::with_capacity(self.tensor.order());
        for n in 0..self.tensor.order() {
            // Who speaks of this mode: name, size, whether it was stated.
            let mut says = vec![(
                self.tensor.name(),
                self.tensor.dims()[n],
                !self.tensor.dims_inferred(),
            )];
            for Given {
                mode,
                view: matrix,
                kind,
                ..
            } in &self.matrices
            {
                if *mode == n {
                    let size = match kind {
                        MatrixKind::Graph => matrix.dims()[0].max(matrix.dims()[1]),
                        _ => matrix.dims()[0],
                    };
                    says.push((matrix.name(), size, !matrix.dims_inferred()));
                }
            }
            let stated = says.iter().find(|s| s.2);
            let size = stated.map_or_else(
                || says.iter().map(|s| s.1).max().unwrap_or(MAX_DIM),
                |s| s.1,
            );
            for (name, other, is_stated) in &says {
                if (*is_stated && *other != size) || *other > size {
                    let (by, _, _) = stated.expect("without a stated size the largest is taken");
                    let relation = if *is_stated { "rows" } else { "rows at least" };
                    return Err(Error::argument(format!(
                        "mode {} has size {size} in {by}, but {name} has {other} {relation}; \
                         both must state the same size (convert with the option dims)",
                        n + 1
                    )));
                }
            }
            dims.push(size);
        }
        Ok(dims)
    }
}

impl ProblemMode {
    fn count(
        rows: RowMap,
        view: &CooView<'_>,
        n: usize,
        monitor: &dyn Monitor,
    ) -> Result<ProblemMode> {
        let mut counts: Vec<u64> = try_zeroed(rows.len(), "rows")?;
        let mut weights: Vec<f64> = match view.weights() {
            Some(_) => try_zeroed(rows.len(), "rows")?,
            None => Vec::new(),
        };
        for (piece, indices) in view.column(n).chunks(1 << 20).enumerate() {
            report_progress(
                monitor,
                "counting rows",
                (piece << 20) as u64,
                view.len() as u64,
            )?;
            for (k, &index) in indices.iter().enumerate() {
                let weight = weight(view, (piece << 20) + k);
                // Rows that appeared since are caught when the entries are copied.
                if let Some(row) = rows.compact(index).filter(|_| weight > 0.0) {
                    counts[row as usize] += 1;
                    if let Some(sum) = weights.get_mut(row as usize) {
                        *sum += f64::from(weight);
                    }
                }
            }
        }
        Ok(ProblemMode {
            indices: try_collect(rows.len(), rows.indices(), "rows")?,
            rows: Arc::new(rows),
            counts,
            weights,
        })
    }

    fn empty(rows: RowMap) -> ProblemMode {
        ProblemMode {
            rows: Arc::new(rows),
            indices: Vec::new(),
            counts: Vec::new(),
            weights: Vec::new(),
        }
    }
}

/// The weight of an entry as solvers have it; 1 without weights.
fn weight(view: &CooView<'_>, i: usize) -> f32 {
    view.weights().map_or(1.0, |w| w.get(i) as f32)
}

/// Notes the rows that occur in column `n`; an index beyond the mode is an error.
fn mark(
    view: &CooView<'_>,
    n: usize,
    rows: &mut RowMapBuilder,
    monitor: &dyn Monitor,
) -> Result<()> {
    for (piece, indices) in view.column(n).chunks(1 << 20).enumerate() {
        report_progress(
            monitor,
            "finding rows",
            (piece << 20) as u64,
            view.len() as u64,
        )?;
        for (k, &index) in indices.iter().enumerate() {
            // Against the file's own size too: a mode may be wider than one of its matrices.
            let i = (piece << 20) + k;
            let inside = u64::from(index) < view.dims()[n];
            if !inside || (weight(view, i) > 0.0 && !rows.mark(index)) {
                return Err(view.out_of_range(n, i, index));
            }
        }
    }
    Ok(())
}

/// Every value and weight must be finite, also as `f32`, which solvers compute in.
fn check_values(view: &CooView<'_>, monitor: &dyn Monitor) -> Result<Values> {
    let values = view.values();
    let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
    let (mut count, mut weights, mut total, mut squares) = (0, 0.0, 0.0, 0.0);
    // Around one of them: what values far from 0 differ by is lost in their squares.
    let (mut around, mut apart) = (0.0, 0.0);
    let pivot = if values.is_empty() {
        0.0
    } else {
        values.get(0)
    };
    let mut start = 0;
    while start < values.len() {
        report_progress(
            monitor,
            "checking values",
            start as u64,
            values.len() as u64,
        )?;
        let end = (start + (1 << 16)).min(values.len());
        let (mut weight_sum, mut sum, mut square_sum) = (0.0, 0.0, 0.0);
        let (mut from, mut from_square) = (0.0, 0.0);
        for i in start..end {
            let value = values.get(i);
            if !(value as f32).is_finite() {
                return Err(view.not_finite(i, "value (as a 32-bit number)", value));
            }
            let weight = view.weight(i)?.unwrap_or(1.0) as f32;
            if weight > 0.0 {
                min = min.min(value);
                max = max.max(value);
                count += 1;
            }
            let weight = f64::from(weight);
            weight_sum += weight;
            sum += weight * value;
            square_sum += weight * (value * value);
            let distance = value - pivot;
            from += weight * distance;
            from_square += weight * (distance * distance);
        }
        weights += weight_sum;
        total += sum;
        squares += square_sum;
        around += from;
        apart += from_square;
        start = end;
    }
    if count == 0 {
        (min, max) = (0.0, 0.0);
    }
    let n = if count == 0 { 1.0 } else { weights };
    Ok(Values {
        count,
        weight: weights,
        mean: total / n,
        rms: (squares / n).sqrt(),
        deviation: (apart / n - (around / n).powi(2)).max(0.0).sqrt(),
        range: (min, max),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Values;
    use crate::problem::EntryChunk;

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
        builder.build(&()).err().expect("refused").to_string()
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
        assert_eq!((p.mean(), p.range()), (3.0, (1.0, 6.0)));
        let maps = p.row_maps();
        let mut chunk = EntryChunk::default();
        p.tensor().read_chunk(&maps, 1..3, &mut chunk).unwrap();
        assert_eq!(chunk.rows, [vec![3, 2], vec![1, 1], vec![1, 0]]);
        assert_eq!(chunk.values, [2.0, 6.0]);
    }

    #[test]
    fn what_does_not_fit_is_refused_precisely() {
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
        assert!(
            error(t().matrix(0, beyond, 1.0, observed)).contains("Y: entry 2: index 10 of mode 1")
        );
        let beyond = matrix("Y", [10, 5], &[1, 2], &[4, 5]);
        assert!(
            error(t().matrix(0, beyond, 1.0, observed)).contains("Y: entry 2: index 5 of mode 2")
        );
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
    fn inferred_sizes_give_way_to_stated_ones() {
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
    fn data_that_changes_after_building_never_gives_a_wrong_row() {
        let p = Problem::builder(tensor()).build(&()).unwrap();
        let maps = p.row_maps();
        // What the map would show had the file been overwritten: a row that was not there, a NaN.
        for (rows, value) in [
            (&[5u32, 4, 5], 2.0f32),
            (&[5, u32::MAX, 5], 2.0),
            (&[5, 9, 5], f32::NAN),
        ] {
            let values = [1.0, value, 6.0];
            let changed =
                CooView::new("T", &[10, 2, 4], &[rows, B, C], Values::F32(&values)).unwrap();
            let part = EntrySource::new(changed);
            let error = part
                .read_chunk(&maps, 0..3, &mut EntryChunk::default())
                .unwrap_err()
                .to_string();
            assert!(error.contains("entry 2: is not what it was"), "{error}");
        }
    }

    #[test]
    fn empty_parts_are_allowed() {
        let none: &[u32] = &[];
        let t = CooView::new("T", &[3, 3], &[none, none], Values::F32(&[])).unwrap();
        let p = Problem::builder(t)
            .matrix(0, matrix("Y", [3, 5], &[], &[]), 1.0, MatrixKind::Observed)
            .build(&())
            .unwrap();
        assert_eq!((p.count(), p.modes()[0].rows().len()), (0, 0));
    }
}
