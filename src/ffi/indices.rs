//! Indices in memory of the caller: one array per mode, of either width, at any stride, zero- or one-based.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ops::Range;

use super::arg::{array, choice, null, slice};
use super::arrays::{IndexArrays, S3CMTF_F32, S3CMTF_F64, S3CMTF_U32, S3CMTF_U64};
use super::status::{Failure, Outcome};
use crate::format::{MAX_DIM, ValueKind, Values};

/// Indices checked together.
const PIECE: usize = 1 << 10;

/// The first index of a mode. The others are some distance apart, and what is between them is not ours to
/// look at.
enum Column {
    /// There is none.
    Nothing,
    U32(*const u32),
    U64(*const u64),
}

/// The indices of some cells.
pub(super) struct Indices<'a> {
    columns: Vec<Column>,
    count: usize,
    stride: usize,
    base: u64,
    lifetime: PhantomData<&'a u64>,
}

// SAFETY: it only reads what stays as it is.
unsafe impl Sync for Indices<'_> {}

impl Indices<'_> {
    /// The indices of cells of `order` modes; `what` names the descriptor in messages.
    ///
    /// # Safety
    /// As of [`partial`](Self::partial).
    pub unsafe fn new<'a>(arrays: &IndexArrays, order: usize, what: &str) -> Outcome<Indices<'a>> {
        // SAFETY: the caller's promise.
        let indices = unsafe { Self::partial(arrays, order, what) }?;
        let missing = |column: &Column| matches!(column, Column::Nothing);
        match indices.columns.iter().position(missing) {
            None => Ok(indices),
            Some(n) => Err(null(&format!("{what}.modes[{n}]"))),
        }
    }

    /// The same where modes without a pointer have no indices.
    ///
    /// # Safety
    /// Pointers that are not NULL and aligned point to what they should: `modes` to `order` pointers, each of them to the
    /// indices of its mode, `stride` apart, which stay unchanged for `'a`.
    pub unsafe fn partial<'a>(
        arrays: &IndexArrays,
        order: usize,
        what: &str,
    ) -> Outcome<Indices<'a>> {
        let IndexArrays {
            modes,
            count,
            stride,
            r#type: kind,
            base,
        } = *arrays;
        let stride = stride.max(1);
        let wide = choice(
            kind,
            &[(S3CMTF_U32, false), (S3CMTF_U64, true)],
            &format!("{what}.type"),
        )?;
        let base = choice(base, &[(0, 0), (1, 1)], &format!("{what}.base"))?;
        // SAFETY: the caller's promise.
        let pointers = unsafe { slice(modes, order as u64, &format!("{what}.modes")) }?;
        let span = match count.checked_sub(1) {
            None => 0,
            Some(last) => last
                .checked_mul(stride)
                .and_then(|x| x.checked_add(1))
                .ok_or_else(|| {
                    Failure::argument(format!(
                        "{count} indices {stride} apart; no memory is that large"
                    ))
                })?,
        };
        let mut columns = Vec::with_capacity(order);
        for (n, &pointer) in pointers.iter().enumerate().filter(|_| count > 0) {
            let column = |what: &str| -> Outcome<Column> {
                Ok(if pointer.is_null() {
                    Column::Nothing
                } else if wide {
                    Column::U64(array(pointer.cast(), span, what)?)
                } else {
                    Column::U32(array(pointer.cast(), span, what)?)
                })
            };
            // Formatting the name takes longer than the check.
            columns.push(column("indices").or_else(|_| column(&format!("{what}.modes[{n}]")))?);
        }
        Ok(Indices {
            columns,
            // A span that fits memory has a count and a stride that do, and with one cell the stride does
            // not matter.
            count: usize::try_from(count).unwrap_or(0),
            stride: usize::try_from(stride).unwrap_or(0),
            base,
            lifetime: PhantomData,
        })
    }

    /// The index of mode `n` of cell `i`, counted from 0; `None` if it is before the first, or the mode has none.
    ///
    /// # Panics
    /// If there is no such cell.
    #[inline]
    pub fn get(&self, n: usize, i: usize) -> Option<u64> {
        assert!(i < self.count);
        let at = i * self.stride;
        // SAFETY: the cell is one of those promised to `new`.
        let index = unsafe {
            match self.columns[n] {
                Column::Nothing => return None,
                Column::U32(c) => u64::from(c.add(at).read()),
                Column::U64(c) => c.add(at).read(),
            }
        };
        index.checked_sub(self.base)
    }

    /// Writes the indices of some cells, one cell after the other, which were checked before; memory of the host that
    /// changes meanwhile gives some other cell.
    ///
    /// # Panics
    /// If there are no such cells.
    pub fn read(&self, cells: Range<usize>, to: &mut [u32]) {
        assert!(cells.end <= self.count);
        // What is known here is not looked up for every index.
        match (self.stride, self.columns.len()) {
            (1, 3) => self.read_as(cells, to, 1, 3),
            (1, order) => self.read_as(cells, to, 1, order),
            (stride, order) => self.read_as(cells, to, stride, order),
        }
    }

    /// Reads with this `stride` and `order`, which are those of the columns, written where they are known.
    #[inline(always)]
    fn read_as(&self, cells: Range<usize>, to: &mut [u32], stride: usize, order: usize) {
        let (first, count, base) = (cells.start, cells.len(), self.base);
        debug_assert!(stride == self.stride && order == self.columns.len());
        assert!(to.len() == count * order);
        for (n, column) in self.columns.iter().enumerate().take(order) {
            // SAFETY: all of them are cells promised to `new`, and `to` has room for `order` indices of each.
            unsafe {
                let to = to.as_mut_ptr().add(n);
                match *column {
                    Column::Nothing => (0..count).for_each(|i| to.add(i * order).write(0)),
                    Column::U32(c) => (0..count).for_each(|i| {
                        let index = c.add((first + i) * stride).read();
                        to.add(i * order).write(index.wrapping_sub(base as u32));
                    }),
                    Column::U64(c) => (0..count).for_each(|i| {
                        let index = c.add((first + i) * stride).read();
                        to.add(i * order).write(index.wrapping_sub(base) as u32);
                    }),
                }
            }
        }
    }

    /// The first cell whose index of mode `n` cannot be one: it is before the first, or [`MAX_DIM`] or
    /// more.
    pub fn unusable(&self, n: usize) -> Option<usize> {
        // Piece by piece, each looked at without a branch, and several indices at once where they are neighbours.
        (0..self.count).step_by(PIECE).find_map(|start| {
            let mut cells = start..(start + PIECE).min(self.count);
            let any = match self.stride {
                1 => self.any_unusable(n, cells.clone(), 1),
                stride => self.any_unusable(n, cells.clone(), stride),
            };
            let unusable = |&i: &usize| self.get(n, i).is_none_or(|x| x >= MAX_DIM);
            any.then(|| cells.find(unusable))?
        })
    }

    /// Whether one of these cells has such an index; `stride` is that of the columns, written where it is known.
    #[inline(always)]
    fn any_unusable(&self, n: usize, cells: Range<usize>, stride: usize) -> bool {
        let base = self.base;
        debug_assert!(cells.end <= self.count && stride == self.stride);
        // SAFETY: all of them are cells promised to `new`.
        unsafe {
            match self.columns[n] {
                Column::Nothing => false,
                Column::U32(c) => cells.fold(false, |any, i| {
                    let index = c.add(i * stride).read().wrapping_sub(base as u32);
                    any | (u64::from(index) >= MAX_DIM)
                }),
                Column::U64(c) => cells.fold(false, |any, i| {
                    let index = c.add(i * stride).read().wrapping_sub(base);
                    any | (index >= MAX_DIM)
                }),
            }
        }
    }
}

/// The kind of values a number stands for.
pub(super) fn value_kind(number: i32, what: &str) -> Outcome<ValueKind> {
    choice(
        number,
        &[(S3CMTF_F32, ValueKind::F32), (S3CMTF_F64, ValueKind::F64)],
        what,
    )
}

/// Values or weights of the caller; the names are those of the array and of its type.
///
/// # Safety
/// If `pointer` is not NULL and aligned, it points to `count` numbers that stay unchanged for `'a`.
pub(super) unsafe fn numbers<'a>(
    pointer: *const c_void,
    count: u64,
    kind: i32,
    (what, kind_of): (&str, &str),
) -> Outcome<Values<'a>> {
    // SAFETY: the caller's promise.
    unsafe {
        Ok(match value_kind(kind, kind_of)? {
            ValueKind::F32 => Values::F32(slice(pointer.cast(), count, what)?),
            ValueKind::F64 => Values::F64(slice(pointer.cast(), count, what)?),
        })
    }
}
