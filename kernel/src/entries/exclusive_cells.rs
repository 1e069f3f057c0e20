//! Values of which threads change one each, or read all, checked at run time.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::cache_line::CacheLine;

/// Values that are either changed, each by one thread at a time, or read by any number of threads. A conflicting borrow panics and
/// never blocks: the schedule of the threads excludes it. To borrow all values for reading is one change of shared memory;
/// a lock for each of them would be contended by all threads that merge.
pub struct ExclusiveCells<T> {
    cells: Vec<CacheLine<Cell<T>>>,
    /// Number of shared borrows of all values.
    readers: CacheLine<AtomicUsize>,
}

struct Cell<T> {
    /// Whether the value is mutably borrowed.
    borrowed: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: values are accessed only through borrows. There is at most one mutable borrow of a value. A mutable borrow sets its
// flag before it reads `readers`; a shared borrow increments `readers` before it reads the flags. All four accesses are
// sequentially consistent, so of two concurrent borrows at least one observes the other and panics before it accesses a
// value. A borrow synchronizes with the release of the previous one.
unsafe impl<T: Send + Sync> Sync for ExclusiveCells<T> {}

impl<T> ExclusiveCells<T> {
    /// Makes cells of these values.
    pub fn new(values: impl IntoIterator<Item = T>) -> ExclusiveCells<T> {
        let cell = |value| {
            CacheLine(Cell {
                borrowed: AtomicBool::new(false),
                value: UnsafeCell::new(value),
            })
        };
        ExclusiveCells {
            cells: values.into_iter().map(cell).collect(),
            readers: CacheLine(AtomicUsize::new(0)),
        }
    }

    /// Returns the number of cells.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Borrows a value mutably until the guard is dropped.
    ///
    /// # Panics
    /// If the value or all values are borrowed already.
    pub fn borrow_mut(&self, index: usize) -> CellRefMut<'_, T> {
        let cell = &self.cells[index].0;
        let was_borrowed = cell.borrowed.swap(true, Ordering::SeqCst);
        assert!(!was_borrowed, "value {index} is in use: a wrong schedule");
        let guard = CellRefMut { cell };
        let readers = self.readers.0.load(Ordering::SeqCst);
        assert!(
            readers == 0,
            "value {index} is being read: a wrong schedule"
        );
        guard
    }

    /// Borrows all values for reading until the guard is dropped.
    ///
    /// # Panics
    /// If a value is mutably borrowed.
    pub fn borrow_all(&self) -> CellsRef<'_, T> {
        self.readers.0.fetch_add(1, Ordering::SeqCst);
        let guard = CellsRef { cells: self };
        for (index, cell) in self.cells.iter().enumerate() {
            assert!(
                !cell.0.borrowed.load(Ordering::SeqCst),
                "value {index} is being changed: a wrong schedule"
            );
        }
        guard
    }
}

/// A mutable borrow of one value.
pub struct CellRefMut<'a, T> {
    cell: &'a Cell<T>,
}

impl<T> Deref for CellRefMut<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: no other borrow of the value exists.
        unsafe { &*self.cell.value.get() }
    }
}

impl<T> DerefMut for CellRefMut<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: no other borrow of the value exists.
        unsafe { &mut *self.cell.value.get() }
    }
}

impl<T> Drop for CellRefMut<'_, T> {
    fn drop(&mut self) {
        self.cell.borrowed.store(false, Ordering::SeqCst);
    }
}

/// A shared borrow of all values.
pub struct CellsRef<'a, T> {
    cells: &'a ExclusiveCells<T>,
}

impl<T> CellsRef<'_, T> {
    pub fn iter(&self) -> impl Iterator<Item = &T> + Clone {
        // SAFETY: while this borrow exists, there is no mutable one.
        let value = |cell: &CacheLine<Cell<T>>| unsafe { &*cell.0.value.get() };
        self.cells.cells.iter().map(value)
    }
}

impl<T> Drop for CellsRef<'_, T> {
    fn drop(&mut self) {
        self.cells.readers.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn values_are_changed_one_by_one_and_read_together() {
        let cells = ExclusiveCells::new([1, 2, 3]);
        std::thread::scope(|scope| {
            for k in 0..cells.len() {
                let cells = &cells;
                scope.spawn(move || *cells.borrow_mut(k) += 10);
            }
        });
        let (one, other) = (cells.borrow_all(), cells.borrow_all());
        assert!(one.iter().eq(other.iter()) && one.iter().eq(&[11, 12, 13]));
    }

    #[test]
    fn conflicting_borrows_panic_and_release_what_they_took() {
        let cells = ExclusiveCells::new([1, 2]);
        let panics = |borrow: &dyn Fn()| catch_unwind(AssertUnwindSafe(borrow)).is_err();
        let guard = cells.borrow_mut(0);
        assert!(panics(&|| drop(cells.borrow_mut(0))));
        assert!(panics(&|| drop(cells.borrow_all())));
        drop(cells.borrow_mut(1));
        drop(guard);
        let guard = cells.borrow_all();
        assert!(panics(&|| drop(cells.borrow_mut(1))));
        drop(guard);
        drop(cells.borrow_mut(1));
    }
}
