//! Checks that a label matrix, or a second model, describes the same rows as a model.

use crate::error::{Error, Result};
use crate::format::CooView;
use crate::model::Model;

/// Returns an error unless `matrix` is a matrix whose first mode has the rows of `mode` (counted from 0) of the model.
pub fn check_label_matrix(model: &Model, mode: usize, matrix: &CooView<'_>) -> Result<()> {
    if matrix.order() != 2 {
        return Err(Error::argument(format!(
            "{}: has {} modes; cluster labels are a matrix whose first mode has the rows that are clustered",
            matrix.name(),
            matrix.order()
        )));
    }
    let (rows, expected) = (matrix.dims()[0], model.dims()[mode]);
    // A size inferred from the largest index leaves out trailing rows without entries.
    if rows == expected || rows < expected && matrix.dims_inferred() {
        return Ok(());
    }
    let or_fewer = if matrix.dims_inferred() {
        " or fewer"
    } else {
        ""
    };
    Err(Error::argument(format!(
        "{}: has {rows} rows, but mode {} of the model has {expected}; cluster labels are a matrix with the rows of that \
         mode, {expected} of them{or_fewer}, in the same order. If it is of that mode, state the sizes of both (--dims) when \
         converting",
        matrix.name(),
        mode + 1,
    )))
}

/// Returns an error unless both models can be of the same tensor: each mode has the same size in both, or the same rows
/// have tensor entries.
pub fn check_same_data(model: &Model, other: &Model) -> Result<()> {
    if other.order() != model.order() {
        return Err(Error::argument(format!(
            "the model to compare with has {} modes, this one {}; only models of the same data are compared",
            other.order(),
            model.order()
        )));
    }
    for (n, (own, of_other)) in model.modes().iter().zip(other.modes()).enumerate() {
        let (size, other_size) = (model.dims()[n], other.dims()[n]);
        if size == other_size {
            continue;
        }
        let trained = |m: &crate::model::ModelMode| -> Vec<u32> {
            let rows = m.rows.indices().zip(m.counts.iter());
            rows.filter(|(_, count)| **count > 0)
                .map(|(row, _)| row)
                .collect()
        };
        let (a, b) = (trained(own), trained(of_other));
        if a != b {
            let (shorter, longer) = if a.len() < b.len() {
                (&a, &b)
            } else {
                (&b, &a)
            };
            let first = longer
                .iter()
                .enumerate()
                .find(|(i, row)| shorter.get(*i) != Some(row));
            let row = first.map_or(0, |(i, &row)| shorter.get(i).map_or(row, |&s| s.min(row)));
            return Err(Error::argument(format!(
                "mode {} has {other_size} rows in the model to compare with and {size} in this one, and row {} has tensor \
                 entries in only one of them; only models of the same rows are compared: fit both to the same tensor, or \
                 state the same sizes (--dims) when converting",
                n + 1,
                u64::from(row) + 1
            )));
        }
    }
    Ok(())
}
