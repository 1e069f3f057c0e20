//! Whether what is put beside each other means the same rows.

use crate::error::{Error, Result};
use crate::format::CooView;
use crate::model::Model;

/// Refuses what is not a matrix with the rows of a mode.
pub(crate) fn check_rows(model: &Model, mode: usize, matrix: &CooView<'_>) -> Result<()> {
    if matrix.order() != 2 {
        return Err(Error::argument(format!(
            "{}: has {} modes; what labels clusters is a matrix, whose first mode has the rows that are clustered",
            matrix.name(),
            matrix.order()
        )));
    }
    let (has, wanted) = (matrix.dims()[0], model.dims()[mode]);
    // Sizes that are only the largest indices miss the last rows if nothing is said of them.
    if has == wanted || has < wanted && matrix.dims_inferred() {
        return Ok(());
    }
    let inferred = match matrix.dims_inferred() {
        true => " or fewer",
        false => "",
    };
    Err(Error::argument(format!(
        "{}: has {has} rows, but mode {} of the model has {wanted}; what labels clusters is a matrix with the rows of that \
         mode, {wanted} of them{inferred}, in the same order. If it is of that mode, state the sizes of both (--dims) when \
         converting",
        matrix.name(),
        mode + 1,
    )))
}

/// Refuses two models that are not of the same rows, as far as can be told: modes have the same sizes, or else the same
/// rows have tensor entries.
pub(crate) fn check_same_data(model: &Model, other: &Model) -> Result<()> {
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
            let rows = m.rows.indices().zip(&m.counts);
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
                 entries in one of them alone; only models of the same rows are compared: fit both to the same tensor, or \
                 state the same sizes (--dims) when converting",
                n + 1,
                u64::from(row) + 1
            )));
        }
    }
    Ok(())
}
