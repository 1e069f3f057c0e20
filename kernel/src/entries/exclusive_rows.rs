//! Factor rows with exclusive ownership per part, checked at run time.
//!
//! [`ExclusiveRows`] is to the parts of a row partition what `RefCell` is to a value, across threads: a thread
//! borrows one part mutably ([`ExclusiveRows::borrow_part_mut`]), all parts mutably
//! ([`ExclusiveRows::borrow_all_mut`]), or all rows shared ([`ExclusiveRows::borrow_all`]). The schedule of the solver
//! decides which thread borrows which part. A conflicting borrow panics and never blocks, so a wrong schedule cannot
//! become a data race.
//!
//! Kernels receive the rows of each mode as [`RowsMut`]: an exclusive borrow of a part, of the rows of one block, or of
//! a private replica. A safe function writes a row only through a `&mut` borrow of a guard.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::block::EntryBlock;
use super::grid::RowPartition;
use crate::cache_line::CacheLine;
use crate::simd::LANES;

/// Rows of floats in borrowed memory, each part of which has one user at a time.
pub struct ExclusiveRows<'a> {
    start: *mut f32,
    stride: usize,
    partition: Arc<RowPartition>,
    /// Whether each part is mutably borrowed.
    borrowed: Vec<CacheLine<AtomicBool>>,
    /// Number of shared borrows of all rows.
    readers: CacheLine<AtomicUsize>,
    memory: PhantomData<&'a mut [f32]>,
}

// SAFETY: the memory is accessed only through borrows. There is at most one mutable borrow of a part. A mutable
// borrow sets its flag before it reads `readers`; a shared borrow increments `readers` before it reads the flags. All
// four accesses are sequentially consistent, so of two concurrent borrows at least one observes the other and
// panics before it accesses a row. A borrow synchronizes with the release of the previous one.
unsafe impl Sync for ExclusiveRows<'_> {}
// SAFETY: the pointer refers to memory borrowed for `'a` and is not tied to a thread.
unsafe impl Send for ExclusiveRows<'_> {}

impl<'a> ExclusiveRows<'a> {
    /// Borrows `memory`, rows of `stride` floats. The first rows are those of `partition`; further rows are not
    /// accessible.
    ///
    /// # Panics
    /// If `memory` has fewer rows than `partition`, or the stride is not a multiple of [`LANES`].
    pub fn new(memory: &'a mut [f32], stride: usize, partition: &Arc<RowPartition>) -> Self {
        assert!(stride > 0 && stride.is_multiple_of(LANES));
        assert!(memory.len() / stride >= partition.row_count());
        ExclusiveRows {
            start: memory.as_mut_ptr(),
            stride,
            borrowed: (0..partition.part_count())
                .map(|_| CacheLine::default())
                .collect(),
            readers: CacheLine::default(),
            partition: partition.clone(),
            memory: PhantomData,
        }
    }

    /// Returns the partition of the rows.
    #[inline]
    pub fn partition(&self) -> &Arc<RowPartition> {
        &self.partition
    }

    /// Number of floats per row.
    #[inline]
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Borrows a part mutably until the guard is dropped.
    ///
    /// # Panics
    /// If the part or all rows are borrowed already.
    pub fn borrow_part_mut(&self, part: usize) -> PartRefMut<'_> {
        let was_borrowed = self.borrowed[part].0.swap(true, Ordering::SeqCst);
        assert!(!was_borrowed, "part {part} is in use: a wrong schedule");
        let guard = PartRefMut { rows: self, part };
        let readers = self.readers.0.load(Ordering::SeqCst);
        assert!(readers == 0, "part {part} is being read: a wrong schedule");
        guard
    }

    /// Borrows all parts mutably until the guard is dropped.
    ///
    /// # Panics
    /// If a part or all rows are borrowed already.
    pub(super) fn borrow_all_mut(&self) -> AllRowsMut<'_> {
        let parts = 0..self.partition.part_count();
        AllRowsMut {
            rows: self,
            _parts: parts.map(|part| self.borrow_part_mut(part)).collect(),
        }
    }

    /// Borrows all rows for reading until the guard is dropped.
    ///
    /// # Panics
    /// If a part is mutably borrowed.
    pub fn borrow_all(&self) -> AllRowsRef<'_> {
        self.readers.0.fetch_add(1, Ordering::SeqCst);
        let guard = AllRowsRef { rows: self };
        for (part, borrowed) in self.borrowed.iter().enumerate() {
            assert!(
                !borrowed.0.load(Ordering::SeqCst),
                "part {part} is being changed: a wrong schedule"
            );
        }
        guard
    }

    #[inline]
    fn row(&self, part: usize, row: u32) -> *mut f32 {
        assert_eq!(
            usize::from(self.partition.part_of(row)),
            part,
            "the row is not in the part"
        );
        // SAFETY: the partition has the row, so it lies in the memory.
        unsafe { self.start.add(row as usize * self.stride) }
    }
}

/// A mutable borrow of one part.
pub struct PartRefMut<'a> {
    rows: &'a ExclusiveRows<'a>,
    part: usize,
}

impl PartRefMut<'_> {
    /// Returns the rows of the part for a kernel.
    pub fn rows_mut(&mut self) -> RowsMut<'_> {
        RowsMut {
            start: self.rows.start,
            scope: RowScope::Part {
                partition: &self.rows.partition,
                part: self.part,
                stride: self.rows.stride,
            },
            memory: PhantomData,
        }
    }

    /// Returns a row of the part.
    ///
    /// # Panics
    /// If the row is in another part.
    #[inline]
    pub fn row(&self, row: u32) -> &[f32] {
        let start = self.rows.row(self.part, row);
        // SAFETY: the row lies in the memory, and no other borrow of the part exists; this one writes only
        // through `&mut self`.
        unsafe { std::slice::from_raw_parts(start, self.rows.stride) }
    }

    /// Returns a row of the part for writing.
    ///
    /// # Panics
    /// If the row is in another part.
    #[inline]
    pub fn row_mut(&mut self, row: u32) -> &mut [f32] {
        let start = self.rows.row(self.part, row);
        // SAFETY: the row lies in the memory, and no other borrow of the part exists.
        unsafe { std::slice::from_raw_parts_mut(start, self.rows.stride) }
    }
}

impl Drop for PartRefMut<'_> {
    fn drop(&mut self) {
        self.rows.borrowed[self.part]
            .0
            .store(false, Ordering::SeqCst);
    }
}

/// A mutable borrow of all parts, whose rows are distributed among blocks.
pub(super) struct AllRowsMut<'a> {
    rows: &'a ExclusiveRows<'a>,
    _parts: Vec<PartRefMut<'a>>,
}

impl AllRowsMut<'_> {
    /// Returns the rows of the entries of `block` for a kernel.
    ///
    /// # Safety
    /// While the result exists, no other `RowsMut` of this borrow may exist for a block that shares a row with `block`.
    pub(super) unsafe fn rows_of_block<'b>(&'b self, block: &'b EntryBlock) -> RowsMut<'b> {
        RowsMut {
            start: self.rows.start,
            scope: RowScope::Block {
                block,
                row_count: self.rows.partition.row_count(),
                stride: self.rows.stride,
            },
            memory: PhantomData,
        }
    }
}

/// Exclusive access to the rows of one mode that a kernel updates. It is neither `Send` nor `Sync`.
pub struct RowsMut<'a> {
    /// Address of row 0, whether the scope contains it or not.
    start: *mut f32,
    scope: RowScope<'a>,
    memory: PhantomData<&'a mut [f32]>,
}

/// The rows that a [`RowsMut`] gives access to.
enum RowScope<'a> {
    /// Those of one part.
    Part {
        partition: &'a Arc<RowPartition>,
        part: usize,
        stride: usize,
    },
    /// Those of the entries of one block.
    Block {
        block: &'a EntryBlock,
        row_count: usize,
        stride: usize,
    },
    /// All rows of a replica of so many floats.
    Replica { len: usize },
}

impl<'a> RowsMut<'a> {
    /// Returns access to all rows of a private replica.
    pub fn of_replica(rows: &'a mut [f32]) -> RowsMut<'a> {
        RowsMut {
            start: rows.as_mut_ptr(),
            scope: RowScope::Replica { len: rows.len() },
            memory: PhantomData,
        }
    }

    /// Returns access to no rows, as a placeholder.
    pub fn none() -> RowsMut<'a> {
        RowsMut::of_replica(&mut [])
    }

    /// Returns whether the scope contains the rows of mode `mode` of all entries of `block`, as rows of `stride` floats.
    pub(crate) fn covers(&self, block: &EntryBlock, mode: usize, stride: usize) -> bool {
        let needed_rows = block.spec().row_counts[mode];
        match &self.scope {
            RowScope::Part {
                partition,
                part,
                stride: own,
            } => {
                let is_part = block.spec().cuts[mode].as_ref().is_some_and(|cut| {
                    Arc::ptr_eq(&cut.partition, partition) && *part == block.coordinates()[cut.axis]
                });
                is_part && *own == stride
            }
            RowScope::Block {
                block: own_block,
                row_count,
                stride: own,
            } => std::ptr::eq(*own_block, block) && *row_count >= needed_rows && *own == stride,
            RowScope::Replica { len } => *len >= needed_rows * stride,
        }
    }

    /// Returns the address of row 0. Only rows of the scope may be accessed.
    pub(crate) fn start(&mut self) -> *mut f32 {
        self.start
    }

    /// Returns whether both give access to the same memory.
    pub(crate) fn shares_memory_with(&self, other: &RowsMut<'_>) -> bool {
        self.start == other.start
    }
}

/// A shared borrow of all rows.
pub struct AllRowsRef<'a> {
    rows: &'a ExclusiveRows<'a>,
}

impl AllRowsRef<'_> {
    /// Returns all rows of the partition, row after row.
    #[inline]
    pub fn rows(&self) -> &[f32] {
        let len = self.rows.partition.row_count() * self.rows.stride;
        // SAFETY: the memory has that many floats, and no mutable borrow exists.
        unsafe { std::slice::from_raw_parts(self.rows.start, len) }
    }
}

impl Drop for AllRowsRef<'_> {
    fn drop(&mut self) {
        self.rows.readers.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(memory: &mut [f32]) -> ExclusiveRows<'_> {
        let partition = RowPartition::new(vec![0, 1, 0, 1], 2);
        ExclusiveRows::new(memory, 16, &partition)
    }

    #[test]
    fn a_part_can_be_borrowed_again_after_the_guard_is_dropped() {
        let mut memory = vec![0.0; 64];
        let rows = rows(&mut memory);
        {
            let (mut a, mut b) = (rows.borrow_part_mut(0), rows.borrow_part_mut(1));
            a.row_mut(2)[0] = 1.0;
            b.row_mut(1)[0] = 2.0;
        }
        {
            let (a, b) = (rows.borrow_all(), rows.borrow_all());
            assert_eq!((a.rows()[32], b.rows()[16]), (1.0, 2.0));
            assert_eq!(a.rows().len(), 64);
        }
        assert_eq!(rows.borrow_part_mut(1).row(1)[0], 2.0);
    }

    #[test]
    #[should_panic(expected = "in use")]
    fn a_part_has_one_mutable_borrow() {
        let mut memory = vec![0.0; 64];
        let rows = rows(&mut memory);
        let _one = rows.borrow_part_mut(1);
        let _other = rows.borrow_part_mut(1);
    }

    #[test]
    #[should_panic(expected = "being read")]
    fn a_part_cannot_be_borrowed_mutably_while_all_rows_are_read() {
        let mut memory = vec![0.0; 64];
        let rows = rows(&mut memory);
        let _all = rows.borrow_all();
        let _part = rows.borrow_part_mut(1);
    }

    #[test]
    #[should_panic(expected = "being changed")]
    fn rows_cannot_be_read_while_a_part_is_borrowed_mutably() {
        let mut memory = vec![0.0; 64];
        let rows = rows(&mut memory);
        let _part = rows.borrow_part_mut(1);
        let _all = rows.borrow_all();
    }

    #[test]
    #[should_panic(expected = "not in the part")]
    fn a_borrow_gives_access_to_its_own_part_only() {
        let mut memory = vec![0.0; 64];
        rows(&mut memory).borrow_part_mut(0).row_mut(1);
    }

    #[test]
    #[should_panic(expected = "in use")]
    fn all_parts_cannot_be_borrowed_mutably_while_one_is() {
        let mut memory = vec![0.0; 64];
        let rows = rows(&mut memory);
        let _part = rows.borrow_part_mut(1);
        let _all = rows.borrow_all_mut();
    }

    #[test]
    fn a_failed_borrow_of_all_parts_releases_those_it_has_taken() {
        let mut memory = vec![0.0; 64];
        let rows = rows(&mut memory);
        let part = rows.borrow_part_mut(1);
        let borrow_all = std::panic::AssertUnwindSafe(|| drop(rows.borrow_all_mut()));
        assert!(std::panic::catch_unwind(borrow_all).is_err());
        drop(part);
        drop(rows.borrow_all_mut());
    }

    #[test]
    fn a_borrow_synchronizes_with_the_previous_one() {
        let mut memory = vec![0.0; 64];
        let rows = rows(&mut memory);
        let next = std::sync::atomic::AtomicUsize::new(0);
        let rounds = if cfg!(miri) { 20 } else { 2000 };
        std::thread::scope(|scope| {
            for t in 0..2 {
                let (rows, next) = (&rows, &next);
                scope.spawn(move || {
                    for r in 0..rounds {
                        // Relaxed on purpose: the borrow alone must make the writes visible.
                        while next.load(Ordering::Relaxed) != 2 * r + t {
                            std::thread::yield_now();
                        }
                        let mut part = rows.borrow_part_mut(0);
                        let x = part.row(0)[0];
                        assert_eq!(x, (2 * r + t) as f32);
                        part.row_mut(0)[0] = x + 1.0;
                        drop(part);
                        next.store(2 * r + t + 1, Ordering::Relaxed);
                    }
                });
            }
        });
    }
}
