//! What a thread of a lock-free fit holds: the shared rows, or copies of its own of rows that all
//! threads would write all the time.
//!
//! A mode of few rows is hot: the line of a row would go from core to core with every entry. A thread
//! with copies of such a mode works on those, and now and then adds what they have gained to the
//! shared rows and takes over what others have added. Nothing is lost but what two threads add to a
//! row in the same moment, as without copies.
#![allow(unsafe_code)]

use super::hogwild_rows::{RacingRows, fold};
use crate::simd::AlignedVec;
use crate::simd::Level;

/// A thread's way to the rows of a mode or of a matrix.
pub(crate) struct Hand<'a> {
    shared: &'a RacingRows<'a>,
    level: Level,
    /// Copies, and what they were when they were made; `None` for rows that are used in place.
    copies: Option<(AlignedVec, AlignedVec)>,
    /// Entries from one exchange with the shared rows to the next, and since the last.
    period: usize,
    since: usize,
    nonneg: bool,
}

impl<'a> Hand<'a> {
    /// With a period, a thread's own copies; without, the rows themselves.
    ///
    /// # Panics
    /// If the machine does not have the level.
    pub(crate) fn new(
        shared: &'a RacingRows<'a>,
        level: Level,
        period: Option<usize>,
        nonneg: bool,
    ) -> Hand<'a> {
        assert!(level.is_available());
        let len = shared.len() * shared.stride();
        let mut hand = Hand {
            shared,
            level,
            copies: period.map(|_| (AlignedVec::zeroed(len), AlignedVec::zeroed(len))),
            period: period.unwrap_or(usize::MAX).max(1),
            since: 0,
            nonneg,
        };
        // Both are zero: nothing to add, everything to take over.
        hand.exchange();
        hand
    }

    /// How many entries may come before the next exchange.
    pub(crate) fn room(&self) -> usize {
        self.period - self.since
    }

    /// Counts entries, and exchanges when it is time.
    pub(crate) fn used(&mut self, entries: usize) {
        if self.copies.is_some() {
            self.since += entries;
            if self.since >= self.period {
                self.exchange();
            }
        }
    }

    /// Adds to the shared rows what the copies have gained, and takes over what is there.
    pub(crate) fn exchange(&mut self) {
        self.since = 0;
        if let Some((own, base)) = &mut self.copies {
            let len = self.shared.len() * self.shared.stride();
            let (own, base) = (own.as_mut_ptr(), base.as_mut_ptr());
            // SAFETY: all are `len` floats long, whole lines; the level was checked.
            unsafe { fold(self.level, self.shared.start(), own, base, len, self.nonneg) }
        }
    }

    /// Where the rows are that this thread works on, for [`super::hogwild_rows::Racer`] alone.
    pub(super) fn start(&mut self) -> *mut f32 {
        match &mut self.copies {
            Some((own, _)) => own.as_mut_ptr(),
            None => self.shared.start(),
        }
    }

    pub(super) fn rows(&self) -> usize {
        self.shared.len()
    }

    pub(super) fn stride(&self) -> usize {
        self.shared.stride()
    }

    /// Copies a row out.
    ///
    /// # Panics
    /// If there is no such row or `out` is not one row long.
    pub(crate) fn load(&self, row: u32, out: &mut [f32]) {
        match &self.copies {
            Some((own, _)) => {
                let stride = self.shared.stride();
                out.copy_from_slice(&own[row as usize * stride..][..stride]);
            }
            None => self.shared.load(self.level, row, out),
        }
    }

    /// Copies a row in.
    ///
    /// # Panics
    /// If there is no such row or `from` is not one row long.
    pub(crate) fn store(&mut self, row: u32, from: &[f32]) {
        match &mut self.copies {
            Some((own, _)) => {
                let stride = self.shared.stride();
                own[row as usize * stride..][..stride].copy_from_slice(from);
            }
            None => self.shared.store(self.level, row, from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_hands_add_is_all_there() {
        for level in Level::available() {
            let mut memory: Vec<f32> = (0..3 * 32).map(|k| k as f32).collect();
            let expected: Vec<f32> = (0..96)
                .map(|k| k as f32 + if (32..64).contains(&k) { 3.0 } else { 0.0 })
                .collect();
            {
                let rows = RacingRows::new(&mut memory, 32);
                let mut hands = [1, 2].map(|_| Hand::new(&rows, level, Some(5), false));
                let mut row = [0.0; 32];
                for (hand, gain) in hands.iter_mut().zip([1.0, 2.0]) {
                    hand.load(1, &mut row);
                    row.iter_mut().for_each(|x| *x += gain);
                    hand.store(1, &row);
                }
                let mut before = [0.0; 32];
                rows.load(level, 1, &mut before);
                assert_eq!(before[3], 35.0);
                for hand in &mut hands {
                    hand.used(4);
                    assert_eq!(hand.room(), 1);
                    hand.used(1);
                    assert_eq!(hand.room(), 5);
                }
                // The first has not seen what the second added after it.
                hands[0].load(1, &mut row);
                assert_eq!(row[3], 36.0);
                hands[0].exchange();
                hands[0].load(1, &mut row);
                assert_eq!(row[3], 38.0);
            }
            assert_eq!(memory, expected, "{}", level.name());
        }
    }

    #[test]
    fn rows_that_both_take_down_stay_at_zero() {
        let mut memory = vec![1.0f32; 16];
        {
            let rows = RacingRows::new(&mut memory, 16);
            let mut hands = [1, 2].map(|_| Hand::new(&rows, Level::best(), Some(5), true));
            for hand in &mut hands {
                hand.store(0, &[0.25; 16]);
                hand.exchange();
            }
        }
        assert_eq!(memory, [0.0; 16]);
    }

    #[test]
    fn without_a_period_rows_are_used_in_place() {
        let mut memory = vec![1.0f32; 32];
        {
            let rows = RacingRows::new(&mut memory, 16);
            let mut hand = Hand::new(&rows, Level::best(), None, false);
            hand.store(1, &[2.0; 16]);
            hand.used(1000);
            assert_eq!(hand.room(), usize::MAX);
        }
        assert_eq!((memory[15], memory[16]), (1.0, 2.0));
    }
}
