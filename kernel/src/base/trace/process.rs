//! The spans of one recording. The file shows a recording as a process, with a track for each thread.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use super::span_kind::SpanKind;

/// Largest number of spans of a track, which bounds the memory to a few MiB per thread. Later spans are only counted.
const MAX_SPANS: usize = 100_000;

/// Shortest wait in nanoseconds that gets a span. Many waits end at once, and would fill the track.
const MIN_WAIT: u64 = 1000;

const KINDS: usize = SpanKind::ALL.len();

/// A recording.
pub(super) struct Process {
    pub name: String,
    /// The time that spans count from.
    pub origin: Instant,
    tracks: Mutex<Vec<Arc<Track>>>,
}

/// The spans of one thread. Track 0 is that of the calling thread; worker `i` of every thread pool has track `i + 1`.
pub(super) struct Track {
    pub number: usize,
    spans: Mutex<TrackSpans>,
}

/// What is known of a track so far.
pub(super) struct TrackSpans {
    /// In the order in which they ended.
    pub spans: Vec<FinishedSpan>,
    /// Number of spans beyond [`MAX_SPANS`].
    pub dropped: u64,
    /// Nanoseconds by phase and kind, without those of inner spans.
    own_time: [[u64; KINDS]; KINDS],
    /// End of the last span.
    last_end: u64,
}

/// A span that has ended. Times are in nanoseconds since the origin of the process.
pub(super) struct FinishedSpan {
    pub kind: SpanKind,
    /// Number of the epoch or block.
    pub number: Option<u32>,
    pub start: u64,
    pub end: u64,
}

/// The time of one phase of a recording.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PhaseTime {
    /// The phase.
    pub phase: SpanKind,
    /// Seconds of the calling thread.
    pub seconds: f64,
    /// Seconds of all other threads together, by what they did. The kind of the phase itself is other work for it, and
    /// the last.
    pub thread_seconds: Vec<(SpanKind, f64)>,
}

impl PhaseTime {
    /// Adds the times of the same phase of another recording.
    pub(super) fn add(&mut self, other: PhaseTime) {
        self.seconds += other.seconds;
        for (kind, seconds) in other.thread_seconds {
            match self.thread_seconds.iter_mut().find(|(k, _)| *k == kind) {
                Some((_, sum)) => *sum += seconds,
                None => self.thread_seconds.push((kind, seconds)),
            }
        }
    }
}

impl Process {
    pub fn new(name: String, origin: Instant) -> Process {
        Process {
            name,
            origin,
            tracks: Mutex::new(Vec::new()),
        }
    }

    /// Returns the nanoseconds since the origin.
    pub fn now(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }

    /// Returns the track with this number.
    pub fn track(&self, number: usize) -> Arc<Track> {
        let mut tracks = self.tracks.lock().unwrap_or_else(|e| e.into_inner());
        for number in tracks.len()..=number {
            tracks.push(Arc::new(Track::new(number)));
        }
        tracks[number].clone()
    }

    /// Returns all tracks.
    pub fn tracks(&self) -> Vec<Arc<Track>> {
        let tracks = self.tracks.lock().unwrap_or_else(|e| e.into_inner());
        tracks.clone()
    }

    /// Returns the times of a phase so far.
    pub fn phase_time(&self, phase: SpanKind) -> PhaseTime {
        let mut calling_thread = 0;
        let mut others = [0; KINDS];
        for track in self.tracks() {
            let own_time = track.spans().own_time[phase.index()];
            match track.number {
                0 => calling_thread = own_time.iter().sum(),
                _ => others
                    .iter_mut()
                    .zip(own_time)
                    .for_each(|(sum, x)| *sum += x),
            }
        }
        let seconds = |nanoseconds: u64| nanoseconds as f64 * 1e-9;
        let kinds = SpanKind::ALL.into_iter().filter(|kind| *kind != phase);
        PhaseTime {
            phase,
            seconds: seconds(calling_thread),
            thread_seconds: kinds
                .chain([phase])
                .map(|kind| (kind, seconds(others[kind.index()])))
                .filter(|(_, seconds)| *seconds > 0.0)
                .collect(),
        }
    }
}

impl Track {
    fn new(number: usize) -> Track {
        Track {
            number,
            spans: Mutex::new(TrackSpans {
                spans: Vec::new(),
                dropped: 0,
                own_time: [[0; KINDS]; KINDS],
                last_end: 0,
            }),
        }
    }

    pub fn spans(&self) -> MutexGuard<'_, TrackSpans> {
        self.spans.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Adds a span of `phase`, of which `inner` nanoseconds belong to spans within it.
    pub fn add(&self, phase: SpanKind, span: FinishedSpan, inner: u64) {
        let mut track = self.spans();
        let duration = span.end - span.start;
        let own_time = &mut track.own_time[phase.index()][span.kind.index()];
        *own_time += duration.saturating_sub(inner);
        track.last_end = span.end;
        if span.kind == SpanKind::Wait && duration < MIN_WAIT {
            return;
        }
        // Spans that do not fit into memory are dropped, too.
        if track.spans.len() < MAX_SPANS && track.spans.try_reserve(1).is_ok() {
            track.spans.push(span);
        } else {
            track.dropped += 1;
        }
    }

    /// Adds a wait from the end of the last span, or from `start` if that is later, to `end`.
    pub fn add_final_wait(&self, phase: SpanKind, start: u64, end: u64) {
        let start = start.max(self.spans().last_end);
        if start < end {
            let wait = FinishedSpan {
                kind: SpanKind::Wait,
                number: None,
                start,
                end,
            };
            self.add(phase, wait, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(start: u64, end: u64) -> FinishedSpan {
        FinishedSpan {
            kind: SpanKind::Block,
            number: None,
            start,
            end,
        }
    }

    #[test]
    fn spans_beyond_the_limit_are_counted_and_timed() {
        let track = Track::new(1);
        for k in 0..MAX_SPANS as u64 + 3 {
            track.add(SpanKind::Epoch, block(10 * k, 10 * k + 10), 4);
        }
        let spans = track.spans();
        assert_eq!((spans.spans.len(), spans.dropped), (MAX_SPANS, 3));
        let own_time = spans.own_time[SpanKind::Epoch.index()][SpanKind::Block.index()];
        assert_eq!(own_time, 6 * (MAX_SPANS as u64 + 3));
    }

    #[test]
    fn short_waits_have_no_span_but_count() {
        let process = Process::new("test".into(), Instant::now());
        let track = process.track(2);
        track.add(SpanKind::Epoch, block(0, 5000), 0);
        track.add_final_wait(SpanKind::Epoch, 0, 5500);
        track.add_final_wait(SpanKind::Epoch, 0, 7500);
        let waits = [(5500, 7500)];
        let spans = track.spans();
        assert!(spans.spans[1..].iter().map(|s| (s.start, s.end)).eq(waits));
        drop(spans);
        let time = process.phase_time(SpanKind::Epoch);
        assert_eq!(time.seconds, 0.0);
        let expected = [(SpanKind::Block, 5e-6), (SpanKind::Wait, 2.5e-6)];
        for ((kind, seconds), expected) in time.thread_seconds.iter().zip(expected) {
            assert_eq!(*kind, expected.0);
            assert!((seconds - expected.1).abs() < 1e-12);
        }
    }
}
