//! Single epochs of fits, without initialization and finalization. Items are tensor entries.

use std::fmt;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use divan::Bencher;
use divan::counter::ItemsCount;
use s3cmtf::format::{CooFile, OpenMode};
use s3cmtf::generate::{GenerateOptions, generate};
use s3cmtf::model::EpochMetrics;
use s3cmtf::options::{Algorithm, ModelKind, Options};
use s3cmtf::parallel::available_threads;
use s3cmtf::problem::Problem;
use s3cmtf::solver::{Control, FitInput, Observer, fit};

fn main() {
    divan::main();
}

/// Returns 500,000 planted entries in memory.
fn data() -> &'static CooFile {
    static DATA: OnceLock<CooFile> = OnceLock::new();
    DATA.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let mut options = GenerateOptions::new(&[20_000, 4_000, 100], 500_000);
        options.noise = 0.5;
        options.write_truth = false;
        let generated = generate(folder.path(), &options, &()).unwrap();
        CooFile::open(&generated.train.0, OpenMode::Private).unwrap()
    })
}

/// An algorithm and its number of threads.
struct Case(Algorithm, usize);

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, threads = {}", self.0, self.1)
    }
}

fn cases() -> Vec<Case> {
    let mut threads = vec![1, available_threads()];
    threads.dedup();
    [Algorithm::Blocked, Algorithm::Opt]
        .into_iter()
        .flat_map(|algorithm| {
            threads
                .iter()
                .map(move |&t| Case(algorithm, t))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Runs a fit one epoch at a time.
struct EpochGate {
    /// Signals the end of an epoch.
    finished: Sender<()>,
    /// Receives the request for the next epoch.
    next: Receiver<()>,
}

impl Observer for EpochGate {
    fn epoch(&mut self, _: &EpochMetrics) -> Control {
        // Closed channels mean that the benchmark has ended.
        if self.finished.send(()).is_ok() && self.next.recv().is_ok() {
            Control::Continue
        } else {
            Control::Stop
        }
    }
}

fn bench(bencher: Bencher, case: &Case, model: ModelKind, rank: usize) {
    let mut options = Options::preset("paper").unwrap();
    (options.algorithm, options.threads) = (case.0, case.1 as u64);
    (options.model, options.rank) = (model, vec![rank]);
    (options.epochs, options.eval_every) = (1_000_000, 1_000_000);
    options.orthogonal = false;
    let problem = Problem::builder(data().view()).build(&()).unwrap();
    let (finished, epoch_finished) = channel();
    let (start_epoch, next) = channel();
    thread::scope(|scope| {
        let fitting = scope.spawn(|| {
            let mut gate = EpochGate { finished, next };
            fit(&problem, &options, &FitInput::default(), &mut gate, &()).unwrap();
        });
        // The first epoch is a warm-up.
        epoch_finished.recv().unwrap();
        bencher
            .counter(ItemsCount::new(problem.count()))
            .bench_local(|| {
                start_epoch.send(()).unwrap();
                epoch_finished.recv().unwrap();
            });
        drop(start_epoch);
        fitting.join().unwrap();
    });
}

#[divan::bench(args = cases(), sample_count = 10, sample_size = 1)]
fn tucker_12(bencher: Bencher, case: &Case) {
    bench(bencher, case, ModelKind::Tucker, 12);
}

#[divan::bench(args = cases(), sample_count = 10, sample_size = 1)]
fn cp_16(bencher: Bencher, case: &Case) {
    bench(bencher, case, ModelKind::Cp, 16);
}
