//! Factor rows quantized to 16 bits per value.

use crate::error::Result;
use crate::try_alloc::try_with_capacity;

/// Largest absolute value of the integers.
const MAX_QUANTIZED: f32 = i16::MAX as f32;

/// Rows of 16-bit integers with one scale per row. They take half the memory of floats; the rounding error is at most
/// 1/65534 of the largest absolute value of the row.
#[derive(Clone, Default)]
pub struct QuantizedRows {
    /// Number of values of a row.
    pub(super) row_len: usize,
    /// Factor of each row.
    pub(super) scales: Vec<f32>,
    /// The integers, row by row.
    pub(super) quantized: Vec<i16>,
}

impl QuantizedRows {
    /// Quantizes contiguous rows of `row_len` values each.
    pub(crate) fn quantize(row_len: usize, rows: &[f32]) -> Result<QuantizedRows> {
        let mut all = QuantizedRows::with_capacity(row_len, rows.len() / row_len.max(1))?;
        rows.chunks_exact(row_len).for_each(|row| all.push(row));
        Ok(all)
    }

    /// Returns a list without rows and with memory for `rows` rows of `row_len` values each.
    pub(crate) fn with_capacity(row_len: usize, rows: usize) -> Result<QuantizedRows> {
        Ok(QuantizedRows {
            row_len,
            scales: try_with_capacity(rows, "rows")?,
            quantized: try_with_capacity(rows * row_len, "row elements")?,
        })
    }

    /// Quantizes and appends a row.
    pub(crate) fn push(&mut self, row: &[f32]) {
        let quantizer = Quantizer::new(row);
        self.scales.push(quantizer.scale);
        self.quantized
            .extend(row.iter().map(|&x| quantizer.quantize(x)));
    }

    /// Replaces a row by what [`Self::read_row`] returns after [`Self::push`].
    pub(crate) fn round(row: &mut [f32]) {
        let quantizer = Quantizer::new(row);
        row.iter_mut()
            .for_each(|x| *x = f32::from(quantizer.quantize(*x)) * quantizer.scale);
    }

    /// Copies the given rows, all of the same length, into one list.
    pub(crate) fn gather<'r>(
        rows: impl Iterator<Item = (&'r QuantizedRows, usize)>,
    ) -> QuantizedRows {
        let mut all = QuantizedRows::default();
        for (from, i) in rows {
            all.row_len = from.row_len;
            all.scales.push(from.scales[i]);
            let row = &from.quantized[i * from.row_len..(i + 1) * from.row_len];
            all.quantized.extend_from_slice(row);
        }
        all
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.scales.len()
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.scales.is_empty()
    }

    /// Writes the first `out.len()` values of a row to `out`.
    ///
    /// # Panics
    /// If the row does not exist.
    #[inline]
    pub fn read_row(&self, row: usize, out: &mut [f32]) {
        let (scale, from) = (self.scales[row], &self.quantized[row * self.row_len..]);
        out.iter_mut()
            .zip(&from[..self.row_len])
            .for_each(|(o, &q)| *o = f32::from(q) * scale);
    }

    /// Returns the last value of a row: its bias, if rows have one.
    #[inline]
    pub fn last_value(&self, row: usize) -> f32 {
        f32::from(self.quantized[(row + 1) * self.row_len - 1]) * self.scales[row]
    }

    /// Returns whether every value is finite.
    pub(super) fn is_finite(&self) -> bool {
        // -MAX_QUANTIZED - 1 is never written, but a file may hold it.
        let largest = MAX_QUANTIZED + 1.0;
        self.scales.iter().all(|s| (s * largest).is_finite())
    }
}

/// Quantizes the values of one row.
struct Quantizer {
    scale: f32,
    /// Inverse of `scale`; 0 if that is 0.
    inverse: f32,
}

impl Quantizer {
    fn new(row: &[f32]) -> Quantizer {
        let largest = row.iter().fold(0.0f32, |m, x| m.max(x.abs()));
        let scale = largest / MAX_QUANTIZED;
        // A row whose scale underflows becomes a row of zeros.
        let inverse = if scale.is_normal() { 1.0 / scale } else { 0.0 };
        Quantizer {
            scale: if inverse > 0.0 { scale } else { 0.0 },
            inverse,
        }
    }

    fn quantize(&self, x: f32) -> i16 {
        let rounded = (x * self.inverse).round();
        rounded.clamp(-MAX_QUANTIZED, MAX_QUANTIZED) as i16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantised_rows_equal_the_originals_up_to_rounding() {
        let rows = [
            1.0f32, -2.0, 0.25, 0.0, 0.0, 0.0, 1e-30, -3e-30, 2e-30, 1e30, 5e29, -1e28,
        ];
        let quantized = QuantizedRows::quantize(3, &rows).unwrap();
        assert_eq!(quantized.len(), 4);
        let mut out = [0.0f32; 3];
        for (i, row) in rows.chunks(3).enumerate() {
            quantized.read_row(i, &mut out);
            let largest = row.iter().fold(0.0f32, |m, x| m.max(x.abs()));
            for (a, b) in out.iter().zip(row) {
                assert!((a - b).abs() <= largest / 65_000.0, "{row:?} {out:?}");
            }
            assert_eq!(quantized.last_value(i), out[2]);
            let mut rounded = row.to_vec();
            QuantizedRows::round(&mut rounded);
            assert_eq!(rounded, out);
        }
        assert!(quantized.is_finite());
    }

    #[test]
    fn rows_that_overflow_are_not_finite() {
        let overflowing = QuantizedRows {
            row_len: 1,
            scales: vec![f32::MAX / 1e4],
            quantized: vec![i16::MAX],
        };
        assert!(!overflowing.is_finite());
        let largest = QuantizedRows::quantize(1, &[f32::MAX / 2.0]).unwrap();
        assert!(largest.is_finite());
    }
}
