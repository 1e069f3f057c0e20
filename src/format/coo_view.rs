//! Sparse tensors and matrices as one slice per column.

use std::ops::Range;

use super::header::{ValueKind, check_dims};
use crate::error::{Error, Result};

/// A column of values or weights, in the precision it is stored in.
#[derive(Debug, Clone, Copy)]
pub enum Values<'a> {
    /// 32-bit values.
    F32(&'a [f32]),
    /// 64-bit values.
    F64(&'a [f64]),
}

impl<'a> Values<'a> {
    /// Returns the number of values.
    pub fn len(&self) -> usize {
        match self {
            Values::F32(v) => v.len(),
            Values::F64(v) => v.len(),
        }
    }

    /// Returns whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the precision of the values.
    pub fn kind(&self) -> ValueKind {
        match self {
            Values::F32(_) => ValueKind::F32,
            Values::F64(_) => ValueKind::F64,
        }
    }

    /// Returns value `i`.
    ///
    /// # Panics
    /// If `i` is not below the length.
    #[inline]
    pub fn get(&self, i: usize) -> f64 {
        match self {
            Values::F32(v) => f64::from(v[i]),
            Values::F64(v) => v[i],
        }
    }

    /// Returns a range of the column.
    ///
    /// # Panics
    /// If the range is out of bounds.
    pub fn slice(&self, range: Range<usize>) -> Values<'a> {
        match self {
            Values::F32(v) => Values::F32(&v[range]),
            Values::F64(v) => Values::F64(&v[range]),
        }
    }
}

/// A sparse tensor or matrix as one borrowed slice per column. Cloning is cheap.
///
/// Making a view checks that the columns have one length and the sizes are allowed. Entries may still be invalid, so every
/// reader of entries calls [`validate`](Self::validate); [`check`](crate::format::check) lists invalid entries.
#[derive(Debug, Clone)]
pub struct CooView<'a> {
    pub(super) name: String,
    pub(super) dims: Vec<u64>,
    pub(super) dims_inferred: bool,
    pub(super) columns: Vec<&'a [u32]>,
    pub(super) values: Values<'a>,
    pub(super) weights: Option<Values<'a>>,
}

impl<'a> CooView<'a> {
    /// Makes a view of columns in memory. Errors call it `name`; `dims` are the sizes of the modes; indices count from 0.
    pub fn new(
        name: impl Into<String>,
        dims: &[u64],
        columns: &[&'a [u32]],
        values: Values<'a>,
    ) -> Result<Self> {
        let name = name.into();
        check_dims(dims).map_err(|e| Error::argument(format!("{name}: {e}")))?;
        if columns.len() != dims.len() {
            return Err(Error::argument(format!(
                "{name}: {} index columns for {} modes",
                columns.len(),
                dims.len()
            )));
        }
        for (n, c) in columns.iter().enumerate() {
            if c.len() != values.len() {
                return Err(Error::argument(format!(
                    "{name}: mode {} has {} indices, but there are {} values",
                    n + 1,
                    c.len(),
                    values.len()
                )));
            }
        }
        Ok(CooView {
            name,
            dims: dims.to_vec(),
            dims_inferred: false,
            columns: columns.to_vec(),
            values,
            weights: None,
        })
    }

    /// Returns the view with a weight for each entry.
    pub fn with_weights(mut self, weights: Values<'a>) -> Result<Self> {
        if weights.len() != self.len() {
            return Err(Error::argument(format!(
                "{}: {} weights for {} entries",
                self.name,
                weights.len(),
                self.len()
            )));
        }
        self.weights = Some(weights);
        Ok(self)
    }

    /// Returns the view with the values of `weights`, which lists the same entries in the same order, as weights.
    pub fn with_weights_of(self, weights: &CooView<'a>) -> Result<Self> {
        if weights.order() != self.order() {
            return Err(Error::argument(format!(
                "{}: has {} modes, {} has {}; weights are listed for the same entries, in the same order",
                weights.name(),
                weights.order(),
                self.name(),
                self.order()
            )));
        }
        weights.validate_indices(0..weights.len())?;
        let count = self.len().min(weights.len());
        let same = |n: usize| weights.column(n)[..count] == self.column(n)[..count];
        if !(0..self.order()).all(same) {
            let differs =
                |i: &usize| (0..self.order()).any(|n| weights.column(n)[*i] != self.column(n)[*i]);
            let i = (0..count).find(differs).unwrap_or(0);
            let position = |view: &CooView<'_>| {
                let index = |n: usize| (u64::from(view.column(n)[i]) + 1).to_string();
                (0..view.order()).map(index).collect::<Vec<_>>().join(" ")
            };
            return Err(Error::entry(
                weights.name(),
                i as u64,
                format!(
                    "is {} and in {} it is {}; weights are listed for the same entries, in the same order",
                    position(weights),
                    self.name(),
                    position(&self)
                ),
            ));
        }
        self.with_weights(weights.values())
    }

    /// Returns the view with its sizes marked as inferred from the largest indices. A
    /// [`Problem`](crate::problem::Problem) may enlarge inferred sizes to those of coupled data.
    pub fn with_inferred_dims(mut self) -> Self {
        self.dims_inferred = true;
        self
    }

    /// Returns a view of the same name and sizes that has no entries.
    pub(crate) fn without_entries(&self) -> Result<CooView<'a>> {
        let columns: Vec<&[u32]> = vec![&[]; self.order()];
        let empty = CooView::new(self.name.clone(), &self.dims, &columns, Values::F32(&[]))?;
        Ok(CooView {
            dims_inferred: self.dims_inferred,
            ..empty
        })
    }

    /// Returns the name that error messages use.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the size of each mode.
    pub fn dims(&self) -> &[u64] {
        &self.dims
    }

    /// Returns whether the sizes were inferred from the largest indices rather than stated.
    pub fn dims_inferred(&self) -> bool {
        self.dims_inferred
    }

    /// Returns the number of modes.
    pub fn order(&self) -> usize {
        self.dims.len()
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the indices of mode `n`; both count from 0.
    ///
    /// # Panics
    /// If the mode does not exist.
    pub fn column(&self, n: usize) -> &'a [u32] {
        self.columns[n]
    }

    /// Returns the values.
    pub fn values(&self) -> Values<'a> {
        self.values
    }

    /// Returns the weights, if entries have any.
    pub fn weights(&self) -> Option<Values<'a>> {
        self.weights
    }

    /// Returns the weight of entry `i`, if entries have any. A weight that is negative or not finite as `f32` is an error.
    pub fn weight(&self, i: usize) -> Result<Option<f64>> {
        let weight = self.weights.map(|w| w.get(i));
        match weight.filter(|&w| !is_valid_weight(w)) {
            Some(bad) => Err(Error::entry(
                self.name(),
                i as u64,
                format!("weight {bad}; it must be a finite 32-bit number, 0 or more"),
            )),
            None => Ok(weight),
        }
    }

    /// Returns an error if one of the entries in `range` is invalid: an index that is not below the size of its mode, a value
    /// that is not a finite number, or a weight that is negative or not finite as `f32`.
    ///
    /// # Panics
    /// If the range is out of bounds.
    pub fn validate(&self, range: Range<usize>) -> Result<()> {
        self.validate_indices(range.clone())?;
        for i in range {
            let value = self.values.get(i);
            if !value.is_finite() {
                return Err(self.not_finite(i, "value", value));
            }
            self.weight(i)?;
        }
        Ok(())
    }

    /// Returns an error if an index of the entries in `range` is not below the size of its mode. For readers that ignore values
    /// and weights.
    ///
    /// # Panics
    /// If the range is out of bounds.
    pub fn validate_indices(&self, range: Range<usize>) -> Result<()> {
        for (n, column) in self.columns.iter().enumerate() {
            let is_outside = |&index: &u32| u64::from(index) >= self.dims[n];
            let column = &column[range.clone()];
            if let Some(k) = column.iter().position(is_outside) {
                let reason = index_beyond_size(n, u64::from(column[k]), self.dims[n]);
                return Err(Error::entry(&self.name, (range.start + k) as u64, reason));
            }
        }
        Ok(())
    }

    /// Returns the first mode in which the index of entry `i` is not below the size of the mode.
    pub(super) fn mode_out_of_range(&self, i: usize) -> Option<usize> {
        let modes = self.columns.iter().zip(&self.dims);
        modes
            .into_iter()
            .position(|(c, &dim)| u64::from(c[i]) >= dim)
    }

    /// Returns whether value and weight of entry `i` are valid.
    pub(super) fn has_valid_numbers(&self, i: usize) -> bool {
        self.values.get(i).is_finite() && self.weights.is_none_or(|w| is_valid_weight(w.get(i)))
    }

    /// Returns the indices of entry `i` in all modes.
    pub(crate) fn index(&self, i: usize) -> Vec<u32> {
        self.columns.iter().map(|c| c[i]).collect()
    }

    /// Makes the error of a value (or weight, as `column` says) that is NaN or infinite.
    pub(crate) fn not_finite(&self, i: usize, column: &str, value: f64) -> Error {
        Error::entry(
            &self.name,
            i as u64,
            format!(
                "{column} {value} is not a finite number; remove the entry or give it a number"
            ),
        )
    }
}

/// Returns whether a weight is not negative and a finite number, also as `f32`, so that sums of weights are finite.
fn is_valid_weight(weight: f64) -> bool {
    (weight as f32).is_finite() && weight >= 0.0
}

/// Returns the message of an index of mode `n`, counted from 0, that is not below the size of the mode.
pub(super) fn index_beyond_size(n: usize, index: u64, size: u64) -> String {
    format!(
        "index {index} of mode {}, counted from 0, is beyond its size {size}; the largest allowed is {}",
        n + 1,
        size - 1
    )
}
