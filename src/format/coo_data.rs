//! Entries in owned memory, copied from arrays of any integer width, stride and index base.

use super::coo_view::{CooView, Values, index_beyond_size};
use super::header::{MAX_DIM, check_dims, check_order};
use crate::error::{Error, Result};
use crate::try_alloc::{try_to_vec, try_with_capacity};

/// Owned values or weights.
pub(crate) enum OwnedValues {
    F32(Vec<f32>),
    F64(Vec<f64>),
}

impl OwnedValues {
    pub(crate) fn copy(values: Values<'_>) -> Result<OwnedValues> {
        Ok(match values {
            Values::F32(v) => OwnedValues::F32(try_to_vec(v, "entries")?),
            Values::F64(v) => OwnedValues::F64(try_to_vec(v, "entries")?),
        })
    }

    pub(crate) fn values(&self) -> Values<'_> {
        match self {
            OwnedValues::F32(v) => Values::F32(v),
            OwnedValues::F64(v) => Values::F64(v),
        }
    }
}

/// A sparse tensor or matrix that owns its columns.
///
/// ```
/// use s3cmtf::format::{CooData, Values};
/// # fn main() -> s3cmtf::Result<()> {
/// // Interleaved and counted from 1.
/// let records: [u64; 6] = [1, 3, 2, 1, 2, 2];
/// let data = CooData::copy("ratings", 2, None, Values::F64(&[4.0, 2.0, 5.0]), |n, i| {
///     records[2 * i + n].checked_sub(1)
/// })?;
/// assert_eq!(data.view().dims(), [2, 3]);
/// assert_eq!(data.view().column(1), [2, 0, 1]);
/// # Ok(())
/// # }
/// ```
pub struct CooData {
    name: String,
    dims: Vec<u64>,
    dims_inferred: bool,
    columns: Vec<Vec<u32>>,
    values: OwnedValues,
}

impl CooData {
    /// Copies entries. `index(n, i)` returns the index of mode `n` of entry `i`, counted from 0, or `None` if it is below
    /// the first index; each must be below the size of its mode. Without `dims` the sizes are inferred from the largest
    /// indices. Errors call the data `name`.
    pub fn copy(
        name: impl Into<String>,
        order: usize,
        dims: Option<&[u64]>,
        values: Values<'_>,
        index: impl Fn(usize, usize) -> Option<u64>,
    ) -> Result<CooData> {
        let name = name.into();
        let named = |e: Error| Error::argument(format!("{name}: {e}"));
        check_order(order).map_err(named)?;
        if let Some(dims) = dims {
            check_dims(dims).map_err(named)?;
            if dims.len() != order {
                return Err(Error::argument(format!(
                    "{name}: {} sizes for {order} modes",
                    dims.len()
                )));
            }
        } else if values.is_empty() {
            return Err(Error::argument(format!(
                "{name}: without entries the sizes of the modes are unknown; state them"
            )));
        }
        let count = values.len();
        let mut columns = Vec::with_capacity(order);
        let mut largest = Vec::with_capacity(order);
        for n in 0..order {
            let size = dims.map_or(MAX_DIM, |d| d[n]);
            let mut column = try_with_capacity(count, "entries")?;
            let mut max_index = 0;
            for i in 0..count {
                let found = index(n, i);
                let Some(index) = found.filter(|&x| x < size) else {
                    return Err(Error::entry(&name, i as u64, outside(n, found, size)));
                };
                max_index = max_index.max(index);
                column.push(index as u32);
            }
            columns.push(column);
            largest.push(max_index + 1);
        }
        let values = OwnedValues::copy(values)?;
        Ok(CooData {
            dims_inferred: dims.is_none(),
            dims: dims.map_or(largest, <[u64]>::to_vec),
            name,
            columns,
            values,
        })
    }

    /// Returns the columns.
    pub fn view(&self) -> CooView<'_> {
        let columns: Vec<&[u32]> = self.columns.iter().map(Vec::as_slice).collect();
        let values = self.values.values();
        let view = CooView::new(self.name.as_str(), &self.dims, &columns, values)
            .expect("columns and sizes were checked when they were copied");
        if self.dims_inferred {
            view.with_inferred_dims()
        } else {
            view
        }
    }
}

/// Returns the message of an index of mode `n` that is out of range.
fn outside(n: usize, index: Option<u64>, size: u64) -> String {
    match index {
        None => format!("an index of mode {} is below the first", n + 1),
        Some(index) => index_beyond_size(n, index, size),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_entries_are_rejected_with_their_location() {
        let copy = |dims: Option<&[u64]>, indices: &[u64]| {
            let values = vec![1.0f32; indices.len() / 2];
            CooData::copy("t", 2, dims, Values::F32(&values), |n, i| {
                indices[2 * i + n].checked_sub(1)
            })
            .map(|d| d.view().dims().to_vec())
            .map_err(|e| e.to_string())
        };
        assert_eq!(copy(None, &[1, 2, 3, 1]).unwrap(), [3, 2]);
        assert_eq!(copy(Some(&[5, 5]), &[1, 2, 3, 1]).unwrap(), [5, 5]);
        assert_eq!(copy(Some(&[5, 5]), &[]).unwrap(), [5, 5]);
        for (dims, indices, words) in [
            (None, &[1, 0][..], "entry 1: an index of mode 2 is below"),
            (
                Some(&[3, 3][..]),
                &[1, 1, 4, 1],
                "entry 2: index 3 of mode 1",
            ),
            (None, &[1, 1 << 33], "entry 1: index 8589934591 of mode 2"),
            (None, &[], "state them"),
            (Some(&[3, 0]), &[1, 1], "t: "),
        ] {
            let error = copy(dims, indices).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
        assert!(CooData::copy("t", 9, None, Values::F32(&[1.0]), |_, _| Some(0)).is_err());
    }

    #[test]
    fn a_written_file_reads_back_equal() {
        use crate::format::{CooFile, OpenMode, ValueKind, check, check_view, write};
        let dir = tempfile::tempdir().unwrap();
        let index = |n, i| Some(((n + 2) * i) as u64);
        let data = CooData::copy("t", 3, None, Values::F32(&[1.0, 0.5, -2.0]), index).unwrap();
        let path = dir.path().join("t.coo");
        write(&data.view(), &path, Some(ValueKind::F64), &()).unwrap();
        let file = CooFile::open(&path, OpenMode::Mapped).unwrap();
        let (a, b) = (data.view(), file.view());
        assert_eq!((a.dims(), a.dims_inferred()), (b.dims(), b.dims_inferred()));
        assert!((0..3).all(|n| a.column(n) == b.column(n)));
        assert!(matches!(b.values(), Values::F64(v) if v == [1.0, 0.5, -2.0]));
        assert!(check(&file, &()).unwrap().is_clean() && check_view(&a, &()).unwrap().is_clean());
        assert!(write(&a, &dir.path().join("t.csv"), None, &()).is_err());
    }
}
