//! Rows that threads take turns at, part by part: no two ever touch the same part at once.
//!
//! A [`LeasedRows`] takes over memory for a while. Whoever wants to change rows leases their part and
//! is then its only user; whoever only reads shares all of them with other readers. Who may lease what
//! is the schedule's business; here a lease that is already taken is a mistake and panics, so that a
//! wrong schedule cannot become a data race.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::simd::LANES;

/// Rows sorted into parts.
pub(crate) struct Parts {
    of: Vec<u16>,
    members: Vec<u32>,
    starts: Vec<usize>,
}

impl Parts {
    /// From the part of every row.
    ///
    /// # Panics
    /// If a row is in a part beyond `count`.
    pub(crate) fn new(of: Vec<u16>, count: usize) -> Arc<Parts> {
        let mut starts = vec![0usize; count + 1];
        for &p in &of {
            starts[usize::from(p) + 1] += 1;
        }
        for p in 0..count {
            starts[p + 1] += starts[p];
        }
        let mut at = starts.clone();
        let mut members = vec![0; of.len()];
        for (row, &p) in of.iter().enumerate() {
            members[at[usize::from(p)]] = row as u32;
            at[usize::from(p)] += 1;
        }
        Arc::new(Parts {
            of,
            members,
            starts,
        })
    }

    /// `rows` rows in `count` parts of neighbours.
    pub(crate) fn neighbours(rows: usize, count: usize) -> Arc<Parts> {
        let count = count.clamp(1, rows.max(1));
        let of = (0..rows).map(|r| (r * count / rows) as u16).collect();
        Parts::new(of, count)
    }

    /// The number of parts.
    pub(crate) fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// The number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.of.len()
    }

    /// The part of a row.
    #[inline]
    pub(crate) fn of(&self, row: u32) -> u16 {
        self.of[row as usize]
    }

    /// The rows of a part.
    pub(crate) fn members(&self, part: usize) -> &[u32] {
        &self.members[self.starts[part]..self.starts[part + 1]]
    }
}

/// Rows of floats in memory taken over for a while, leased part by part.
pub(crate) struct LeasedRows<'a> {
    start: *mut f32,
    stride: usize,
    parts: Arc<Parts>,
    /// Whether each part is leased.
    leased: Vec<AtomicBool>,
    /// How many read all of them.
    readers: AtomicUsize,
    memory: PhantomData<&'a mut [f32]>,
}

// SAFETY: the memory is reached only through leases and shares. There is at most one lease of a part.
// A lease is marked before it looks for readers and a reader counted before it looks for leases, all in
// one order that everybody agrees on (SeqCst): of two at the same time at least one sees the other, and
// panics before it has touched anything. Taking one synchronizes with giving the last one back.
unsafe impl Sync for LeasedRows<'_> {}
// SAFETY: a pointer to memory borrowed for `'a`, with no tie to a thread.
unsafe impl Send for LeasedRows<'_> {}

impl<'a> LeasedRows<'a> {
    /// Takes over `memory`, rows of `stride` floats of which the first belong to `parts`.
    ///
    /// # Panics
    /// If there are fewer rows than in `parts`, or the stride is not whole lines.
    pub(crate) fn new(memory: &'a mut [f32], stride: usize, parts: &Arc<Parts>) -> Self {
        assert!(stride > 0 && stride.is_multiple_of(LANES));
        assert!(memory.len() / stride >= parts.rows());
        LeasedRows {
            start: memory.as_mut_ptr(),
            stride,
            leased: (0..parts.count()).map(|_| AtomicBool::new(false)).collect(),
            readers: AtomicUsize::new(0),
            parts: parts.clone(),
            memory: PhantomData,
        }
    }

    pub(crate) fn parts(&self) -> &Arc<Parts> {
        &self.parts
    }

    pub(crate) fn stride(&self) -> usize {
        self.stride
    }

    /// The only use of a part until the lease is dropped.
    ///
    /// # Panics
    /// If somebody else has it, or reads.
    pub(crate) fn lease(&self, part: usize) -> Lease<'_> {
        let taken = self.leased[part].swap(true, Ordering::SeqCst);
        assert!(!taken, "part {part} is in use: a wrong schedule");
        let lease = Lease { rows: self, part };
        let readers = self.readers.load(Ordering::SeqCst);
        assert!(readers == 0, "part {part} is being read: a wrong schedule");
        lease
    }

    /// A share in reading all rows until it is dropped.
    ///
    /// # Panics
    /// If somebody is changing any.
    pub(crate) fn share(&self) -> Share<'_> {
        self.readers.fetch_add(1, Ordering::SeqCst);
        let share = Share { rows: self };
        for (part, leased) in self.leased.iter().enumerate() {
            assert!(
                !leased.load(Ordering::SeqCst),
                "part {part} is being changed: a wrong schedule"
            );
        }
        share
    }

    fn row(&self, part: usize, row: u32) -> *mut f32 {
        assert_eq!(
            usize::from(self.parts.of(row)),
            part,
            "the row is not in the part"
        );
        // SAFETY: `of` has the row, so it lies in the memory.
        unsafe { self.start.add(row as usize * self.stride) }
    }
}

/// The only use of a part.
pub(crate) struct Lease<'a> {
    rows: &'a LeasedRows<'a>,
    part: usize,
}

impl Lease<'_> {
    pub(crate) fn part(&self) -> usize {
        self.part
    }

    pub(crate) fn parts(&self) -> &Arc<Parts> {
        &self.rows.parts
    }

    pub(super) fn stride(&self) -> usize {
        self.rows.stride
    }

    /// Where row 0 is or would be; only rows of the part may be touched.
    pub(super) fn start(&self) -> *mut f32 {
        self.rows.start
    }

    /// A row of the part, to read.
    ///
    /// # Panics
    /// If the row is in another part.
    pub(crate) fn get(&self, row: u32) -> &[f32] {
        let start = self.rows.row(self.part, row);
        // SAFETY: in the memory, and nobody else has the part; what this lease changes it changes
        // through `&mut self`.
        unsafe { std::slice::from_raw_parts(start, self.rows.stride) }
    }

    /// A row of the part.
    ///
    /// # Panics
    /// If the row is in another part.
    pub(crate) fn row(&mut self, row: u32) -> &mut [f32] {
        let start = self.rows.row(self.part, row);
        // SAFETY: in the memory, and nobody else has the part.
        unsafe { std::slice::from_raw_parts_mut(start, self.rows.stride) }
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        self.rows.leased[self.part].store(false, Ordering::SeqCst);
    }
}

/// A share in reading all rows.
pub(crate) struct Share<'a> {
    rows: &'a LeasedRows<'a>,
}

impl Share<'_> {
    /// The rows, one after the other.
    pub(crate) fn rows(&self) -> &[f32] {
        let len = self.rows.parts.rows() * self.rows.stride;
        // SAFETY: that many floats lie in the memory, and nobody changes them.
        unsafe { std::slice::from_raw_parts(self.rows.start, len) }
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.rows.readers.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(memory: &mut [f32]) -> LeasedRows<'_> {
        let parts = Parts::new(vec![0, 1, 0, 1], 2);
        LeasedRows::new(memory, 16, &parts)
    }

    #[test]
    fn parts_know_their_rows() {
        let parts = Parts::new(vec![0, 2, 0, 1], 3);
        assert_eq!(
            (parts.members(0), parts.members(1), parts.members(2)),
            (&[0, 2][..], &[3][..], &[1][..])
        );
        let parts = Parts::neighbours(10, 3);
        assert_eq!((parts.count(), parts.rows()), (3, 10));
        assert_eq!(parts.members(0), [0, 1, 2, 3]);
        assert_eq!(Parts::neighbours(2, 5).count(), 2);
        assert_eq!(Parts::neighbours(0, 5).rows(), 0);
    }

    #[test]
    fn leases_and_shares_take_turns() {
        let mut memory = vec![0.0; 64];
        let rows = rows(&mut memory);
        {
            let (mut a, mut b) = (rows.lease(0), rows.lease(1));
            a.row(2)[0] = 1.0;
            b.row(1)[0] = 2.0;
        }
        {
            let (a, b) = (rows.share(), rows.share());
            assert_eq!((a.rows()[32], b.rows()[16]), (1.0, 2.0));
            assert_eq!(a.rows().len(), 64);
        }
        assert_eq!(rows.lease(1).row(1)[0], 2.0);
    }

    #[test]
    #[should_panic(expected = "in use")]
    fn a_part_is_leased_once() {
        let mut memory = vec![0.0; 64];
        let rows = rows(&mut memory);
        let _one = rows.lease(1);
        let _other = rows.lease(1);
    }

    #[test]
    #[should_panic(expected = "being read")]
    fn what_is_read_is_not_leased() {
        let mut memory = vec![0.0; 64];
        let rows = rows(&mut memory);
        let _share = rows.share();
        let _lease = rows.lease(1);
    }

    #[test]
    #[should_panic(expected = "being changed")]
    fn a_leased_part_is_not_read() {
        let mut memory = vec![0.0; 64];
        let rows = rows(&mut memory);
        let _lease = rows.lease(1);
        let _share = rows.share();
    }

    #[test]
    #[should_panic(expected = "not in the part")]
    fn a_lease_reaches_only_its_part() {
        let mut memory = vec![0.0; 64];
        rows(&mut memory).lease(0).row(1);
    }

    #[test]
    fn threads_see_what_the_one_before_wrote() {
        let mut memory = vec![0.0; 64];
        let rows = rows(&mut memory);
        let turn = std::sync::atomic::AtomicUsize::new(0);
        let rounds = if cfg!(miri) { 20 } else { 2000 };
        std::thread::scope(|scope| {
            for t in 0..2 {
                let (rows, turn) = (&rows, &turn);
                scope.spawn(move || {
                    for r in 0..rounds {
                        // Relaxed on purpose: the lease alone must carry the writes over.
                        while turn.load(Ordering::Relaxed) != 2 * r + t {
                            std::thread::yield_now();
                        }
                        let mut lease = rows.lease(0);
                        let x = lease.row(0)[0];
                        assert_eq!(x, (2 * r + t) as f32);
                        lease.row(0)[0] = x + 1.0;
                        drop(lease);
                        turn.store(2 * r + t + 1, Ordering::Relaxed);
                    }
                });
            }
        });
    }
}
