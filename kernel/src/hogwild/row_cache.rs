//! A thread's access to the rows of a lock-free fit: the shared rows themselves, or a private replica of them.
//!
//! All threads write the few rows of a small mode all the time; their cache lines would move between CPUs with
//! every entry. A thread therefore updates a private replica of such a mode. It periodically adds the change of the
//! replica to the shared rows and copies the sum back. An update is lost only if two threads exchange a row
//! at the same moment.
#![allow(unsafe_code)]

use super::rows::{HogwildRows, exchange_replica};
use crate::simd::AlignedVec;
use crate::simd::Level;

/// A thread's access to the rows of one factor.
pub struct RowCache<'a> {
    shared: &'a HogwildRows<'a>,
    /// `None` if the thread accesses the shared rows in place.
    replica: Option<Replica>,
    /// Number of entries between two exchanges with the shared rows.
    exchange_period: usize,
    /// Number of entries since the last exchange.
    entries_since_exchange: usize,
    nonneg: bool,
}

/// A thread's private copy of all rows.
struct Replica {
    rows: AlignedVec,
    /// The rows after the last exchange.
    base: AlignedVec,
}

impl<'a> RowCache<'a> {
    /// Creates an access with a private replica if there is an exchange period, and in place otherwise.
    pub fn new(
        shared: &'a HogwildRows<'a>,
        exchange_period: Option<usize>,
        nonneg: bool,
    ) -> RowCache<'a> {
        let len = shared.len() * shared.stride();
        let mut cache = RowCache {
            shared,
            replica: exchange_period.map(|_| Replica {
                rows: AlignedVec::zeroed(len),
                base: AlignedVec::zeroed(len),
            }),
            exchange_period: exchange_period.unwrap_or(usize::MAX).max(1),
            entries_since_exchange: 0,
            nonneg,
        };
        // Rows and base are equal, so this only copies the shared rows.
        cache.exchange();
        cache
    }

    /// Returns the number of entries until the next exchange.
    pub fn entries_until_exchange(&self) -> usize {
        self.exchange_period - self.entries_since_exchange
    }

    /// Counts processed entries and exchanges when the period is over.
    pub fn count_entries(&mut self, entries: usize) {
        if self.replica.is_some() {
            self.entries_since_exchange += entries;
            if self.entries_since_exchange >= self.exchange_period {
                self.exchange();
            }
        }
    }

    /// Adds the change of the replica since the last exchange to the shared rows, and copies them to the replica.
    pub fn exchange(&mut self) {
        self.entries_since_exchange = 0;
        if let Some(replica) = &mut self.replica {
            let len = self.shared.len() * self.shared.stride();
            let shared = self.shared.start();
            let (own, base) = (replica.rows.as_mut_ptr(), replica.base.as_mut_ptr());
            // SAFETY: all are `len` floats long, whole vectors; the constructor of `shared` checked the level.
            unsafe { exchange_replica(self.shared.level(), shared, own, base, len, self.nonneg) }
        }
    }

    /// Returns the address of row 0 of the rows that this thread accesses. Only
    /// [`super::rows::HogwildVector`] may access it.
    pub(crate) fn start(&mut self) -> *mut f32 {
        match &mut self.replica {
            Some(replica) => replica.rows.as_mut_ptr(),
            None => self.shared.start(),
        }
    }

    /// Returns the level of all accesses.
    pub(crate) fn level(&self) -> Level {
        self.shared.level()
    }

    pub(crate) fn rows(&self) -> usize {
        self.shared.len()
    }

    pub(crate) fn stride(&self) -> usize {
        self.shared.stride()
    }

    /// Copies a row to `out`.
    ///
    /// # Panics
    /// If there is no such row or `out` is not one row long.
    pub fn load(&self, row: u32, out: &mut [f32]) {
        match &self.replica {
            Some(replica) => {
                let stride = self.shared.stride();
                out.copy_from_slice(&replica.rows[row as usize * stride..][..stride]);
            }
            None => self.shared.load(row, out),
        }
    }

    /// Overwrites a row with `from`.
    ///
    /// # Panics
    /// If there is no such row or `from` is not one row long.
    pub fn store(&mut self, row: u32, from: &[f32]) {
        match &mut self.replica {
            Some(replica) => {
                let stride = self.shared.stride();
                replica.rows[row as usize * stride..][..stride].copy_from_slice(from);
            }
            None => self.shared.store(row, from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exchanges_of_two_replicas_add_up() {
        for level in Level::available() {
            let mut memory: Vec<f32> = (0..3 * 32).map(|k| k as f32).collect();
            let expected: Vec<f32> = (0..96)
                .map(|k| k as f32 + if (32..64).contains(&k) { 3.0 } else { 0.0 })
                .collect();
            {
                let rows = HogwildRows::new(&mut memory, 32, level);
                let mut caches = [1, 2].map(|_| RowCache::new(&rows, Some(5), false));
                let mut row = [0.0; 32];
                for (cache, delta) in caches.iter_mut().zip([1.0, 2.0]) {
                    cache.load(1, &mut row);
                    row.iter_mut().for_each(|x| *x += delta);
                    cache.store(1, &row);
                }
                let mut before = [0.0; 32];
                rows.load(1, &mut before);
                assert_eq!(before[3], 35.0);
                for cache in &mut caches {
                    cache.count_entries(4);
                    assert_eq!(cache.entries_until_exchange(), 1);
                    cache.count_entries(1);
                    assert_eq!(cache.entries_until_exchange(), 5);
                }
                // The first replica lacks what the second added after its exchange.
                caches[0].load(1, &mut row);
                assert_eq!(row[3], 36.0);
                caches[0].exchange();
                caches[0].load(1, &mut row);
                assert_eq!(row[3], 38.0);
            }
            assert_eq!(memory, expected, "{}", level.name());
        }
    }

    #[test]
    fn rows_that_two_threads_decrease_stay_nonnegative() {
        let mut memory = vec![1.0f32; 16];
        {
            let rows = HogwildRows::new(&mut memory, 16, Level::best());
            let mut caches = [1, 2].map(|_| RowCache::new(&rows, Some(5), true));
            for cache in &mut caches {
                cache.store(0, &[0.25; 16]);
                cache.exchange();
            }
        }
        assert_eq!(memory, [0.0; 16]);
    }

    #[test]
    fn without_a_period_the_shared_rows_are_accessed_in_place() {
        let mut memory = vec![1.0f32; 32];
        {
            let rows = HogwildRows::new(&mut memory, 16, Level::best());
            let mut cache = RowCache::new(&rows, None, false);
            cache.store(1, &[2.0; 16]);
            cache.count_entries(1000);
            assert_eq!(cache.entries_until_exchange(), usize::MAX);
        }
        assert_eq!((memory[15], memory[16]), (1.0, 2.0));
    }
}
