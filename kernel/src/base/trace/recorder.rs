//! The recording of spans: a recorder per thread, in a thread-local variable, and guards.

use std::cell::{Cell, RefCell};
use std::io::{self, Write};
use std::marker::PhantomData;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::chrome;
use super::process::{FinishedSpan, PhaseTime, Process, Track};
use super::span_kind::SpanKind;

thread_local! {
    /// The recorder of this thread, if it is part of a recording.
    static RECORDER: RefCell<Option<Recorder>> = const { RefCell::new(None) };

    /// Whether there is a recorder. It has no destructor, so that a check takes a nanosecond instead of ten.
    static IS_RECORDING: Cell<bool> = const { Cell::new(false) };
}

/// Recorded spans.
pub struct Trace {
    origin: Instant,
    processes: Mutex<Vec<Arc<Process>>>,
}

impl Default for Trace {
    fn default() -> Self {
        Trace::new()
    }
}

impl Trace {
    /// Creates a trace without spans. Its times count from now.
    pub fn new() -> Trace {
        Trace {
            origin: Instant::now(),
            processes: Mutex::new(Vec::new()),
        }
    }

    /// Runs `body` and records its spans on this thread, and on the threads of fits that it runs. The file shows every call
    /// as a process of its own, called `name`. Calls on several threads may run at the same time.
    pub fn record<T>(&self, name: &str, body: impl FnOnce() -> T) -> T {
        let process = Arc::new(Process::new(name.into(), self.origin));
        self.processes().push(process.clone());
        let _recording = Recording::begin(Recorder::new(process, 0, Context::default()));
        body()
    }

    /// Returns the times of all phases, over all recordings.
    pub fn phase_times(&self) -> Vec<PhaseTime> {
        let mut times: Vec<PhaseTime> = Vec::new();
        for phase in SpanKind::ALL {
            let mut total: Option<PhaseTime> = None;
            for process in self.processes().iter() {
                let time = process.phase_time(phase);
                match &mut total {
                    Some(total) => total.add(time),
                    None => total = Some(time),
                }
            }
            times.extend(total.filter(|t| t.seconds > 0.0));
        }
        times
    }

    /// Returns the number of spans that were not kept because their thread had too many.
    pub fn dropped_spans(&self) -> u64 {
        let dropped = |process: &Arc<Process>| {
            let tracks = process.tracks();
            tracks.iter().map(|t| t.spans().dropped).sum::<u64>()
        };
        self.processes().iter().map(dropped).sum()
    }

    /// Writes all spans as a JSON object in the Trace Event Format.
    pub fn write_json(&self, file: &mut dyn Write) -> io::Result<()> {
        let processes = self.processes().clone();
        chrome::write_json(&processes, self.dropped_spans(), file)
    }

    fn processes(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Process>>> {
        self.processes.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// The open spans that a new span is within.
#[derive(Clone, Copy, Default)]
struct Context {
    /// Kind of the outermost open span of the calling thread.
    phase: Option<SpanKind>,
    /// Kind of the innermost open span.
    kind: Option<SpanKind>,
    /// Nanoseconds of finished spans directly within the innermost open span.
    inner: u64,
}

/// Records the spans of one thread.
struct Recorder {
    process: Arc<Process>,
    track: Arc<Track>,
    context: Context,
}

impl Recorder {
    fn new(process: Arc<Process>, track: usize, context: Context) -> Recorder {
        Recorder {
            track: process.track(track),
            process,
            context,
        }
    }

    fn open(&mut self, kind: SpanKind, number: Option<u32>) -> OpenSpan {
        let outer = self.context;
        self.context = Context {
            phase: outer.phase.or(Some(kind)),
            kind: Some(kind),
            inner: 0,
        };
        OpenSpan {
            kind,
            number,
            start: self.process.now(),
            outer,
        }
    }

    fn close(&mut self, span: &OpenSpan) {
        let end = self.process.now();
        let finished = FinishedSpan {
            kind: span.kind,
            number: span.number,
            start: span.start,
            end,
        };
        let Context { phase, inner, .. } = self.context;
        self.track.add(phase.unwrap_or(span.kind), finished, inner);
        self.context = span.outer;
        self.context.inner += end - span.start;
    }
}

/// A span that has begun.
struct OpenSpan {
    kind: SpanKind,
    number: Option<u32>,
    /// Nanoseconds since the origin of the process.
    start: u64,
    /// The open spans around it.
    outer: Context,
}

/// Makes a recorder that of the current thread until it is dropped.
struct Recording {
    outer: Option<Recorder>,
    /// The recorder belongs to one thread.
    _not_send: PhantomData<*const ()>,
}

impl Recording {
    fn begin(recorder: Recorder) -> Recording {
        IS_RECORDING.set(true);
        Recording {
            outer: RECORDER.replace(Some(recorder)),
            _not_send: PhantomData,
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        IS_RECORDING.set(self.outer.is_some());
        RECORDER.set(self.outer.take());
    }
}

/// Ends its span when it is dropped. Guards of one thread are dropped in the reverse order of their creation.
#[must_use = "the span ends when it is dropped"]
pub struct Span {
    open: Option<OpenSpan>,
    /// The span belongs to one thread.
    _not_send: PhantomData<*const ()>,
}

impl Drop for Span {
    #[inline]
    fn drop(&mut self) {
        if let Some(open) = &self.open {
            close_span(open);
        }
    }
}

/// Begins a span on this thread. It is recorded if the thread is part of a recording.
#[inline]
pub fn span(kind: SpanKind) -> Span {
    open_span(kind, None)
}

/// Begins a span that shows the number of an epoch or a block.
#[inline]
pub fn numbered_span(kind: SpanKind, number: u64) -> Span {
    open_span(kind, Some(number as u32))
}

#[inline]
fn open_span(kind: SpanKind, number: Option<u32>) -> Span {
    Span {
        open: if IS_RECORDING.get() {
            record_span(kind, number)
        } else {
            None
        },
        _not_send: PhantomData,
    }
}

#[cold]
fn record_span(kind: SpanKind, number: Option<u32>) -> Option<OpenSpan> {
    RECORDER.with_borrow_mut(|r| r.as_mut().map(|r| r.open(kind, number)))
}

#[cold]
fn close_span(open: &OpenSpan) {
    RECORDER.with_borrow_mut(|r| r.iter_mut().for_each(|r| r.close(open)));
}

/// Returns the seconds of all threads but the calling one in a phase of the current recording, by what they did. `None`
/// outside of a recording.
pub fn thread_seconds(phase: SpanKind) -> Option<Vec<(SpanKind, f64)>> {
    RECORDER.with_borrow(|recorder| {
        let time = recorder.as_ref()?.process.phase_time(phase);
        Some(time.thread_seconds)
    })
}

/// Work that the calling thread distributes among the threads of a pool, which record spans of the same kind.
pub(crate) struct ParallelRegion(Option<Region>);

struct Region {
    process: Arc<Process>,
    phase: SpanKind,
    kind: SpanKind,
    start: u64,
}

impl ParallelRegion {
    /// Begins a region on the calling thread. Nothing is recorded outside of spans, nor in regions within regions, whose
    /// threads have no tracks of their own.
    pub(crate) fn begin() -> ParallelRegion {
        ParallelRegion(RECORDER.with_borrow(|recorder| {
            let recorder = recorder.as_ref().filter(|r| r.track.number == 0)?;
            Some(Region {
                phase: recorder.context.phase?,
                kind: recorder.context.kind?,
                process: recorder.process.clone(),
                start: recorder.process.now(),
            })
        }))
    }

    /// Records the spans of worker `index`, which is the current thread, while `body` runs.
    pub(crate) fn record(&self, index: usize, body: impl FnOnce()) {
        let Some(region) = &self.0 else {
            return body();
        };
        let context = Context {
            phase: Some(region.phase),
            ..Context::default()
        };
        let recorder = Recorder::new(region.process.clone(), index + 1, context);
        let _recording = Recording::begin(recorder);
        let _span = span(region.kind);
        body();
    }

    /// Ends the region. The first `threads` workers waited since they finished their parts.
    pub(crate) fn end(self, threads: usize) {
        if let Some(region) = &self.0 {
            let end = region.process.now();
            for index in 0..threads {
                let track = region.process.track(index + 1);
                track.add_final_wait(region.phase, region.start, end);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(trace: &Trace, track: usize) -> Vec<(SpanKind, u64, u64)> {
        let process = trace.processes()[0].clone();
        let track = process.track(track);
        let spans = track.spans();
        let ends = spans.spans.iter().map(|s| (s.kind, s.start, s.end));
        ends.collect()
    }

    #[test]
    fn nothing_is_recorded_outside_of_a_recording() {
        let trace = Trace::new();
        let _outside = span(SpanKind::Epoch);
        assert!(thread_seconds(SpanKind::Epoch).is_none());
        let region = ParallelRegion::begin();
        let mut has_run = false;
        region.record(0, || has_run = true);
        region.end(1);
        assert!(has_run && trace.phase_times().is_empty());
    }

    #[test]
    fn spans_nest_and_their_times_add_up() {
        let trace = Trace::new();
        let result = trace.record("test", || {
            let _epoch = numbered_span(SpanKind::Epoch, 1);
            {
                let _block = span(SpanKind::Block);
                let _merge = span(SpanKind::Merge);
            }
            let region = ParallelRegion::begin();
            std::thread::scope(|scope| {
                scope.spawn(|| region.record(0, || drop(span(SpanKind::Block))));
            });
            region.end(1);
            7
        });
        assert_eq!(result, 7);
        let own = spans(&trace, 0);
        let kinds: Vec<SpanKind> = own.iter().map(|s| s.0).collect();
        assert_eq!(kinds, [SpanKind::Merge, SpanKind::Block, SpanKind::Epoch]);
        assert!(own.is_sorted_by(|inner, outer| inner.1 >= outer.1 && inner.2 <= outer.2));
        let worker = spans(&trace, 1);
        assert_eq!(
            (worker[0].0, worker[1].0),
            (SpanKind::Block, SpanKind::Epoch)
        );
        let times = trace.phase_times();
        let [time] = &times[..] else {
            panic!("{times:?}");
        };
        let epoch = own[2];
        assert_eq!(time.phase, SpanKind::Epoch);
        assert!((time.seconds - (epoch.2 - epoch.1) as f64 * 1e-9).abs() < 1e-12);
        let of_worker: f64 = time.thread_seconds.iter().map(|t| t.1).sum();
        assert!(of_worker > 0.0 && of_worker <= time.seconds);
    }

    #[test]
    fn recordings_end_with_a_panic() {
        let trace = Trace::new();
        let failing = || trace.record("test", || panic!("on purpose"));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(failing)).is_err());
        drop(span(SpanKind::Epoch));
        assert!(spans(&trace, 0).is_empty());
    }
}
