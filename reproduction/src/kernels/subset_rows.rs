//! Least squares for the rows of one mode of a CP model, restricted to a narrow block of columns.
//!
//! With d the elementwise product of the other modes' rows, r the residual of an entry without the block, w its weight, lambda
//! the penalty of the row u and t the row that it shrinks to,
//!
//! ```text
//! u = (lambda I + sum w d d^T)^-1 (lambda t + sum w d r)
//! ```
//!
//! A row has 1, 2, 4 or 8 floats, a constant of the compiled code. d is computed for [`CHUNK_ENTRIES`] entries at a time, of any
//! number of rows, from which [`subset_sums`](super::subset_sums) forms and solves the equations of each row.
#![allow(unsafe_code)]

use std::ops::Range;

use super::packed_columns::{PackedColumns, row};
use super::subset_sums::{Sums, one_entry_solution, write};
use s3cmtf_kernel::kernel::ModeCsr;
use s3cmtf_kernel::progress::{StopFlag, count_operations, operations_per_poll, steps_per_poll};
use s3cmtf_kernel::simd::{F32x16, Level, dispatched};

/// Number of entries whose d are computed before they are summed.
const CHUNK_ENTRIES: usize = 256;

/// The least-squares problems of the rows of a mode.
pub struct SubsetRows<'a> {
    csr: &'a ModeCsr,
    columns: PackedColumns<'a>,
    /// Of each entry, without the block.
    residuals: &'a [f32],
    /// Of each row.
    penalties: &'a [f32],
    /// The row that penalties shrink to, padded.
    target: Vec<f64>,
    level: Level,
}

impl<'a> SubsetRows<'a> {
    /// # Panics
    /// If the block is not narrow, a slice is too short, or the machine does not have the level.
    pub fn new(
        csr: &'a ModeCsr,
        columns: PackedColumns<'a>,
        residuals: &'a [f32],
        penalties: &'a [f32],
        target: &[f32],
        level: Level,
    ) -> SubsetRows<'a> {
        columns.check(csr);
        assert!(level.is_available() && columns.is_narrow());
        assert_eq!(residuals.len(), csr.len());
        assert_eq!(penalties.len(), csr.row_count());
        assert_eq!(target.len(), columns.count);
        let mut padded = vec![0.0; columns.width];
        let pairs = padded.iter_mut().zip(target);
        pairs.for_each(|(to, &x)| *to = f64::from(x));
        SubsetRows {
            csr,
            columns,
            residuals,
            penalties,
            target: padded,
            level,
        }
    }

    /// Number of floats per row.
    pub fn width(&self) -> usize {
        self.columns.width
    }

    /// Number of elements of the sums over entries: the lower triangle of sum w d d^T in a square of [`Self::width`], then
    /// sum w d r.
    pub fn sums_len(&self) -> usize {
        self.width() * (self.width() + 1)
    }

    fn operations_per_entry(&self) -> usize {
        self.width() * (self.columns.others.len() + self.width() + 1)
    }

    /// Writes the solutions of `rows` to `to`. Those whose equations are singular, or have too many entries to solve without
    /// a poll for a cancellation, are left unchanged and added to `left`. Solutions are incomplete if `stop` is requested.
    ///
    /// # Panics
    /// If there is not one row in `to` for each of `rows`.
    pub fn solve_rows(
        &self,
        rows: Range<usize>,
        to: &mut [f32],
        left: &mut Vec<usize>,
        stop: &StopFlag,
    ) {
        let width = self.width();
        assert_eq!(to.len(), rows.len() * width);
        let of_row = |row: usize| {
            let entries = self.csr.row_entries(row).len() + width;
            entries * self.operations_per_entry()
        };
        let (mut first, first_row) = (rows.start, rows.start);
        while first < rows.end && !stop.requested() {
            let (mut end, mut operations) = (first, 0);
            while end < rows.end && operations + of_row(end) <= operations_per_poll() {
                operations += of_row(end);
                end += 1;
            }
            if end == first {
                left.push(first);
                first += 1;
                continue;
            }
            count_operations(operations);
            let to = &mut to[(first - first_row) * width..(end - first_row) * width];
            // SAFETY: `new` has checked all lengths and the level; there is a result for each row.
            unsafe { solve(self.level, self, first..end, to, left) };
            first = end;
        }
    }

    /// Adds the sums over `entries`, all of one row, to `sums`. They are incomplete if `stop` is requested.
    ///
    /// # Panics
    /// If `sums` does not have [`Self::sums_len`] elements.
    pub fn add_sums(&self, entries: Range<usize>, sums: &mut [f64], stop: &StopFlag) {
        assert_eq!(sums.len(), self.sums_len());
        assert!(entries.end <= self.csr.len());
        let cost = self.operations_per_entry();
        let step = steps_per_poll(cost).next_multiple_of(CHUNK_ENTRIES);
        let end = entries.end;
        for start in entries.step_by(step) {
            if stop.requested() {
                return;
            }
            let part = start..(start + step).min(end);
            count_operations(part.len() * cost);
            // SAFETY: `new` has checked all lengths and the level.
            unsafe { add_sums(self.level, self, part, sums) };
        }
    }
}

dispatched! {
    unsafe fn solve(problem: &SubsetRows<'_>, rows: Range<usize>, to: &mut [f32], left: &mut Vec<usize>) = any_solve;
}

dispatched! {
    unsafe fn add_sums(problem: &SubsetRows<'_>, entries: Range<usize>, sums: &mut [f64]) = any_add_sums;
}

#[inline(always)]
unsafe fn any_solve<V: F32x16>(
    problem: &SubsetRows<'_>,
    rows: Range<usize>,
    to: &mut [f32],
    left: &mut Vec<usize>,
) {
    // SAFETY: the caller's obligations.
    unsafe {
        match problem.columns.width {
            1 => solve_width::<V, 1, 1>(problem, rows, to, left),
            2 => solve_width::<V, 2, 4>(problem, rows, to, left),
            4 => solve_width::<V, 4, 2>(problem, rows, to, left),
            _ => solve_width::<V, 8, 1>(problem, rows, to, left),
        }
    }
}

#[inline(always)]
unsafe fn any_add_sums<V: F32x16>(
    problem: &SubsetRows<'_>,
    entries: Range<usize>,
    sums: &mut [f64],
) {
    // SAFETY: the caller's obligations.
    unsafe {
        match problem.columns.width {
            1 => add_width::<V, 1, 1>(problem, entries, sums),
            2 => add_width::<V, 2, 4>(problem, entries, sums),
            4 => add_width::<V, 4, 2>(problem, entries, sums),
            _ => add_width::<V, 8, 1>(problem, entries, sums),
        }
    }
}

/// d of some entries.
struct Chunk<const W: usize> {
    entries: Range<usize>,
    d: [[f32; W]; CHUNK_ENTRIES],
}

#[inline(always)]
unsafe fn solve_width<V: F32x16, const W: usize, const U: usize>(
    problem: &SubsetRows<'_>,
    rows: Range<usize>,
    to: &mut [f32],
    left: &mut Vec<usize>,
) {
    let csr = problem.csr;
    let all = csr.row_entries(rows.start).start..csr.row_entries(rows.end - 1).end;
    let mut target = [0.0; W];
    target.copy_from_slice(&problem.target);
    let mut chunk = Chunk {
        entries: all.start..all.start,
        d: [[0.0f32; W]; CHUNK_ENTRIES],
    };
    for (row, to) in rows.zip(to.chunks_exact_mut(W)) {
        let entries = csr.row_entries(row);
        let penalty = f64::from(problem.penalties[row]);
        let (mut at, mut sums) = (entries.start, Sums::<W>::zero());
        if entries.len() == 1 && penalty > 0.0 {
            if at >= chunk.entries.end {
                // SAFETY: the caller's obligations.
                unsafe { chunk.fill::<V>(problem, at, all.end) };
            }
            let d = &chunk.d[at - chunk.entries.start];
            let (r, w) = (problem.residuals[at], csr.weight(at));
            write(&one_entry_solution(penalty, &target, d, r, w), to);
            continue;
        }
        while at < entries.end {
            if at >= chunk.entries.end {
                // SAFETY: the caller's obligations.
                unsafe { chunk.fill::<V>(problem, at, all.end) };
            }
            let part = at..entries.end.min(chunk.entries.end);
            at = part.end;
            // SAFETY: the caller's obligations; the chunk has the entries of the part.
            unsafe { chunk.add_to::<V, U>(problem, part, &mut sums) };
        }
        match sums.solve(problem.columns.count, penalty, &target) {
            Some(solution) => write(&solution, to),
            None => left.push(row),
        }
    }
}

#[inline(always)]
unsafe fn add_width<V: F32x16, const W: usize, const U: usize>(
    problem: &SubsetRows<'_>,
    entries: Range<usize>,
    to: &mut [f64],
) {
    let mut chunk = Chunk {
        entries: 0..0,
        d: [[0.0f32; W]; CHUNK_ENTRIES],
    };
    let mut sums = Sums::<W>::zero();
    let mut at = entries.start;
    while at < entries.end {
        // SAFETY: the caller's obligations; the chunk has the entries.
        unsafe {
            chunk.fill::<V>(problem, at, entries.end);
            let part = chunk.entries.clone();
            at = part.end;
            chunk.add_to::<V, U>(problem, part, &mut sums);
        }
    }
    let elements = sums.gram.as_flattened().iter().chain(&sums.rhs);
    to.iter_mut().zip(elements).for_each(|(to, x)| *to += x);
}

impl<const W: usize> Chunk<W> {
    /// Adds the entries `part`, all of one row, to its sums.
    #[inline(always)]
    unsafe fn add_to<V: F32x16, const U: usize>(
        &self,
        problem: &SubsetRows<'_>,
        part: Range<usize>,
        sums: &mut Sums<W>,
    ) {
        let d = &self.d[part.start - self.entries.start..][..part.len()];
        let (r, w) = (&problem.residuals[part.clone()], problem.csr.weights(part));
        // SAFETY: the caller's obligations; there are as many weights as entries, or none.
        unsafe { sums.add::<V, U>(d, r, w) };
    }

    /// Computes d of the entries from `start` on, up to `end` at most.
    #[inline(always)]
    unsafe fn fill<V: F32x16>(&mut self, problem: &SubsetRows<'_>, start: usize, end: usize) {
        self.entries = start..end.min(start + CHUNK_ENTRIES);
        let records = problem.csr.records(self.entries.clone());
        // SAFETY: the caller's obligations.
        unsafe {
            match problem.columns.others[..] {
                [a] => fill_order(&mut self.d, &[a], records),
                [a, b] => fill_order(&mut self.d, &[a, b], records),
                [a, b, c] => fill_order(&mut self.d, &[a, b, c], records),
                ref others => fill_any(&mut self.d, others, records),
            }
        }
    }
}

/// Computes d as the product of `N` rows.
#[inline(always)]
unsafe fn fill_order<const W: usize, const N: usize>(
    to: &mut [[f32; W]; CHUNK_ENTRIES],
    others: &[&[f32]; N],
    records: &[u32],
) {
    for (k, d) in to.iter_mut().take(records.len() / (N + 1)).enumerate() {
        // SAFETY: the caller's obligations.
        unsafe {
            let record = records.as_ptr().add(k * (N + 1));
            let mut product = row::<W>(others[0], *record as usize);
            for n in 1..N {
                let factor = row::<W>(others[n], *record.add(n) as usize);
                for j in 0..W {
                    product[j] *= factor[j];
                }
            }
            *d = product;
        }
    }
}

/// Computes d as the product of any number of rows.
#[inline(always)]
unsafe fn fill_any<const W: usize>(
    to: &mut [[f32; W]; CHUNK_ENTRIES],
    others: &[&[f32]],
    records: &[u32],
) {
    for (d, record) in to.iter_mut().zip(records.chunks_exact(others.len() + 1)) {
        let mut product = [1.0; W];
        for (&rows, &index) in others.iter().zip(record) {
            // SAFETY: the caller's obligations.
            let factor = unsafe { row::<W>(rows, index as usize) };
            for j in 0..W {
                product[j] *= factor[j];
            }
        }
        *d = product;
    }
}
