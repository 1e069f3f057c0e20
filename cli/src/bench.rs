//! `s3cmtf bench`

use std::path::PathBuf;
use std::sync::Barrier;

use clap::{Args, value_parser};
use s3cmtf::format::{CooFile, CooView, OpenMode, TextOptions, Values};
use s3cmtf::generate::{PRESETS, generate, preset};
use s3cmtf::kernel::peak_flops;

use s3cmtf::model::EpochMetrics;
use s3cmtf::options::{Algorithm, ModelKind, Options};
use s3cmtf::parallel::available_threads;
use s3cmtf::problem::Problem;
use s3cmtf::simd::Level;
use s3cmtf::solver::{Control, Event, FitInput, Observer, fit};
use s3cmtf::{Error, Monitor, Result};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::Verdict;
use super::input::{Mixed, TextArguments, any_text};
use super::output::{Output, counted, grouped, shape};
use super::progress::Progress;

/// The slow algorithm runs on no more entries than this,
const SAMPLE: usize = 200_000;
/// nor on more than these operations allow,
const SAMPLE_FLOPS: f64 = 2e9;
/// but on this many if there are so many.
const SMALLEST_SAMPLE: usize = 1000;
/// How often the peak of a level and a number of threads is measured each time, and for how long.
const PEAK_TRIES: usize = 5;
const PEAK_SECONDS: f64 = 0.02;

/// Measure how fast fits run on this machine
///
/// Fits the same tensor with every combination of algorithm, instruction set and number of threads,
/// in turn, and takes the fastest epoch of each. Only the time of the updates counts.
#[derive(Args)]
#[command(after_help = "\
Operations counted per entry, with N modes, rank J and T threads (steps of rows only for cp):
  tucker  blocked 6 J^(N-1)   opt (4 + 2/T) J^N        naive (N^2 + N + 1 + 2/T) J^N
  cp      blocked (7N - 8) J  opt (7N - 3 + 3/T) J     naive (N^2 + 3N + 1 + 3/T) J
A multiply-add counts as two. The peak is that of multiply-adds on registers, with the same
instruction set and number of threads, measured in the same run.

Examples:
  s3cmtf bench
  s3cmtf bench --like netflix --threads 1,2,4,8,16 --algorithm blocked
  s3cmtf bench --tensor train.coo --test test.coo --rank 16 --kernel wide,avx2 --json")]
pub(super) struct Arguments {
    /// The tensor to fit: binary COO, or text
    #[arg(long, value_name = "FILE", conflicts_with_all = ["like", "scale"])]
    tensor: Option<PathBuf>,

    /// With --tensor: entries to measure the test error on
    #[arg(long, value_name = "FILE", requires = "tensor")]
    test: Option<PathBuf>,

    /// Instead of a tensor of your own: planted data like one of the paper's; by default movielens
    #[arg(long, value_name = "NAME", value_parser = PRESETS)]
    like: Option<String>,

    /// Multiplies the entries of the planted data, and users and items with them
    #[arg(long, value_name = "FACTOR", default_value_t = 0.1)]
    scale: f64,

    /// The rank of every mode
    #[arg(long, value_name = "J", default_value_t = 12, value_parser = value_parser!(u64).range(1..=1024))]
    rank: u64,

    /// The model
    #[arg(long, value_name = "MODEL", default_value = "tucker", value_parser = ["tucker", "cp"])]
    model: String,

    /// Numbers of threads; by default 1 and all this process may use
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = value_parser!(u64).range(1..=4096))]
    threads: Vec<u64>,

    /// Algorithms: blocked, opt, naive
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "blocked,opt,naive"
    )]
    algorithm: Vec<String>,

    /// Instruction sets: scalar, wide, avx2, avx512; naive has scalar alone
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "auto"
    )]
    kernel: Vec<String>,

    /// Epochs of a fit
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u64).range(1..=1_000_000))]
    epochs: u64,

    /// How often everything is measured
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = value_parser!(u64).range(1..=1000))]
    repeats: u64,

    /// Decides everything that is random
    #[arg(long, default_value_t = 0)]
    seed: u64,

    #[command(flatten)]
    text: TextArguments,
}

/// One way to fit, and what was found about it.
struct Variant {
    options: Options,
    level: Level,
    /// Whether it was asked for; the yardstick may not have been.
    shown: bool,
    /// Tensor entries per second, those of the fastest epoch.
    rate: f64,
    test_rmse: f64,
    /// The ranks of the model, which may be lower than asked for.
    ranks: Vec<usize>,
}

impl Variant {
    fn naive(&self) -> bool {
        self.options.algorithm == Algorithm::Naive
    }

    fn name(&self) -> String {
        self.options.get("algorithm").unwrap_or_default()
    }

    fn threads(&self) -> f64 {
        self.options.threads as f64
    }
}

/// The most operations per second found with a level and a number of threads.
struct Peak {
    level: Level,
    threads: u64,
    flops: f64,
}

pub(super) fn run(a: &Arguments, progress: &Progress, out: &mut Output) -> Result<Verdict> {
    let mut variants = variants(a)?;
    let data = Data::open(a, progress)?;
    let tensor = data.train.view();
    let problem = Problem::builder(tensor.clone()).build(progress)?;
    let ranks = vec![a.rank as usize; tensor.order()];
    let per_entry = flops(&variants[0].options, Algorithm::Naive, &ranks);
    let sampled = ((SAMPLE_FLOPS / per_entry) as usize).clamp(SMALLEST_SAMPLE, SAMPLE);
    let sample = Sample::of(&tensor, sampled);
    let sample_view = sample.view(&tensor)?;
    let sample_problem = Problem::builder(sample_view).build(progress)?;
    let input = FitInput {
        test: data.test.as_ref().map(CooFile::view),
        ..FitInput::default()
    };
    let mut peaks: Vec<Peak> = Vec::new();
    for v in &variants {
        if !peaks
            .iter()
            .any(|p| (p.level, p.threads) == (v.level, v.options.threads))
        {
            peaks.push(Peak {
                level: v.level,
                threads: v.options.threads,
                flops: 0.0,
            });
        }
    }
    let mut notes: Vec<String> = Vec::new();
    let steps = a.repeats * (peaks.len() + variants.len()) as u64;
    let mut step = 0;
    let mut next = || {
        progress.progress("measuring", step, steps);
        step += 1;
        if progress.cancelled() {
            return Err(Error::Cancelled);
        }
        Ok(())
    };
    // In turn, so that a machine that gets slower for a while does so for all.
    for _ in 0..a.repeats {
        for peak in &mut peaks {
            next()?;
            peak.flops = peak.flops.max(peak_of(peak.level, peak.threads));
        }
        for v in &mut variants {
            next()?;
            let problem = if v.naive() { &sample_problem } else { &problem };
            let mut watch = Watch {
                progress,
                fastest: f64::INFINITY,
                notes: &mut notes,
            };
            let (model, summary) = fit(
                problem,
                &v.options,
                &input,
                &mut watch,
                &OnlyCancels(progress),
            )?;
            let rate = problem.count() as f64 / watch.fastest.max(1e-9);
            if progress.cancelled() {
                return Err(Error::Cancelled);
            }
            v.rate = v.rate.max(rate);
            v.test_rmse = summary.test_rmse;
            v.ranks = model.shape().ranks.clone();
        }
    }
    progress.clear();
    let measured = Measured {
        variants,
        peaks,
        entries: problem.count(),
        sampled: sample_problem.count(),
        repeats: a.repeats,
    };
    out.line(format!(
        "{}: {} entries, {}; {}, rank {}; the fastest of {} in {}\n",
        data.name,
        grouped(problem.count()),
        shape(tensor.dims()),
        a.model,
        a.rank,
        counted(a.epochs, "epoch", "epochs"),
        counted(a.repeats, "repeat", "repeats"),
    ));
    measured.report(out);
    for note in notes {
        out.line(note);
    }
    Ok(Verdict::Good)
}

/// Every combination that was asked for, and the yardstick.
fn variants(a: &Arguments) -> Result<Vec<Variant>> {
    let mut base = Options::preset("paper")?;
    base.set("model", &a.model)?;
    base.rank = vec![a.rank as usize];
    base.seed = a.seed;
    base.orthogonal = false;
    let mut threads = a.threads.clone();
    if threads.is_empty() {
        threads = vec![1, available_threads() as u64];
    }
    let mut levels = Vec::new();
    for name in &a.kernel {
        base.set("kernel", name)?;
        levels.push(Level::choose(base.kernel.level())?);
    }
    let mut found: Vec<Variant> = Vec::new();
    let mut add = |options: &Options, level: Level, threads: u64, shown: bool| {
        let mut options = options.clone();
        options.set("kernel", level.name())?;
        options.threads = threads;
        // One epoch of the slow algorithm tells enough.
        options.epochs = match options.algorithm {
            Algorithm::Naive => 1,
            _ => a.epochs,
        };
        options.eval_every = options.epochs;
        if !found.iter().any(|v| v.options == options) {
            found.push(Variant {
                options,
                level,
                shown,
                rate: 0.0,
                test_rmse: f64::NAN,
                ranks: Vec::new(),
            });
        }
        Ok::<(), Error>(())
    };
    for name in &a.algorithm {
        base.set("algorithm", name)?;
        let levels = match base.algorithm {
            Algorithm::Naive => &[Level::Scalar][..],
            _ => &levels,
        };
        for &level in levels {
            for &threads in &threads {
                add(&base, level, threads, true)?;
            }
        }
    }
    base.algorithm = Algorithm::Naive;
    add(&base, Level::Scalar, 1, false)?;
    Ok(found)
}

/// What is fitted.
struct Data {
    name: String,
    train: CooFile,
    test: Option<CooFile>,
    /// Where planted data is, until the end.
    _folder: Option<TempDir>,
}

impl Data {
    fn open(a: &Arguments, progress: &Progress) -> Result<Data> {
        let options = a.text.options()?;
        if let Some(path) = &a.tensor {
            let files = Mixed {
                options,
                any_text: any_text(a.tensor.iter().chain(&a.test))?,
            };
            let open = |path: &PathBuf| files.open(path, progress);
            return Ok(Data {
                name: path.display().to_string(),
                train: open(path)?,
                test: a.test.as_ref().map(open).transpose()?,
                _folder: None,
            });
        }
        if options != TextOptions::default() {
            return Err(Error::Argument(
                "options about reading text go with --tensor".into(),
            ));
        }
        let like = a.like.as_deref().unwrap_or("movielens");
        let mut o = preset(like, a.scale)?;
        o.matrices.clear();
        o.truth = false;
        o.seed = a.seed;
        o.threads = available_threads();
        let folder = tempfile::tempdir().map_err(|source| Error::Io {
            action: "cannot make a temporary folder".into(),
            source,
        })?;
        let made = generate(folder.path(), &o, progress)?;
        let open = |path: &PathBuf| CooFile::open(path, OpenMode::Mapped);
        Ok(Data {
            name: format!("planted data like {like} at scale {}", a.scale),
            train: open(&made.train.0)?,
            test: made.test.as_ref().map(|t| open(&t.0)).transpose()?,
            _folder: Some(folder),
        })
    }
}

/// Entries of a tensor, evenly spaced.
struct Sample {
    columns: Vec<Vec<u32>>,
    values: Vec<f64>,
}

impl Sample {
    fn of(tensor: &CooView<'_>, most: usize) -> Sample {
        let count = tensor.len().min(most);
        let entry = |k: usize| (k as u64 * tensor.len() as u64 / count as u64) as usize;
        Sample {
            columns: (0..tensor.order())
                .map(|n| (0..count).map(|k| tensor.column(n)[entry(k)]).collect())
                .collect(),
            values: (0..count).map(|k| tensor.values().get(entry(k))).collect(),
        }
    }

    fn view(&self, tensor: &CooView<'_>) -> Result<CooView<'_>> {
        let columns: Vec<&[u32]> = self.columns.iter().map(Vec::as_slice).collect();
        let values = Values::F64(&self.values);
        CooView::new(tensor.name(), tensor.dims(), &columns, values)
    }
}

/// Hears of Ctrl-C, and leaves the screen alone.
struct OnlyCancels<'a>(&'a Progress);

impl Monitor for OnlyCancels<'_> {
    fn cancelled(&self) -> bool {
        self.0.cancelled()
    }
}

/// Looks for the fastest epoch.
struct Watch<'a> {
    progress: &'a Progress,
    fastest: f64,
    notes: &'a mut Vec<String>,
}

impl Observer for Watch<'_> {
    fn epoch(&mut self, figures: &EpochMetrics) -> Control {
        self.fastest = self.fastest.min(figures.update_seconds);
        if self.progress.cancelled() {
            Control::Stop
        } else {
            Control::Continue
        }
    }

    fn event(&mut self, event: &Event) {
        if let Event::RankLowered(text) = event
            && !self.notes.contains(text)
        {
            self.notes.push(text.clone());
        }
    }
}

/// The peak of all threads at the same time, the best of a few tries: others run on this machine too.
fn peak_of(level: Level, threads: u64) -> f64 {
    let start = Barrier::new(threads as usize);
    let one = || {
        (0..PEAK_TRIES)
            .map(|_| {
                start.wait();
                peak_flops(level, PEAK_SECONDS)
            })
            .collect::<Vec<f64>>()
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = (1..threads).map(|_| scope.spawn(one)).collect();
        let mut all = one();
        // A thread that panicked adds nothing.
        for other in running.into_iter().filter_map(|t| t.join().ok()) {
            all.iter_mut().zip(other).for_each(|(sum, x)| *sum += x);
        }
        all.into_iter().fold(0.0, f64::max)
    })
}

/// Operations per entry that an algorithm needs; the help has the formulas.
fn flops(options: &Options, algorithm: Algorithm, ranks: &[usize]) -> f64 {
    let n = ranks.len() as f64;
    let threads = options.threads as f64;
    let core: f64 = ranks.iter().map(|&j| j as f64).product();
    let largest = ranks.iter().copied().max().unwrap_or(1) as f64;
    match (options.model, algorithm) {
        (ModelKind::Auto | ModelKind::Tucker, Algorithm::Blocked) => 6.0 * core / largest,
        (ModelKind::Auto | ModelKind::Tucker, Algorithm::Opt) => (4.0 + 2.0 / threads) * core,
        (ModelKind::Auto | ModelKind::Tucker, Algorithm::Naive) => {
            (n * n + n + 1.0 + 2.0 / threads) * core
        }
        (ModelKind::Cp, Algorithm::Blocked) => (7.0 * n - 8.0) * largest,
        (ModelKind::Cp, Algorithm::Opt) => (7.0 * n - 3.0 + 3.0 / threads) * largest,
        (ModelKind::Cp, Algorithm::Naive) => (n * n + 3.0 * n + 1.0 + 3.0 / threads) * largest,
        (ModelKind::Tucker | ModelKind::Auto, Algorithm::Als | Algorithm::Gibbs) => {
            n * (largest * largest + 2.0 * core / largest)
        }
        (ModelKind::Cp, Algorithm::Als | Algorithm::Gibbs) => n * (largest + n + 2.0) * largest,
    }
}

/// Everything that was measured.
struct Measured {
    variants: Vec<Variant>,
    peaks: Vec<Peak>,
    entries: u64,
    sampled: u64,
    repeats: u64,
}

impl Measured {
    /// The speed per thread against that of the fewest threads.
    fn efficiency(&self, v: &Variant) -> f64 {
        let same = |o: &&Variant| {
            o.shown && (o.options.algorithm, o.level) == (v.options.algorithm, v.level)
        };
        let fewest = self
            .variants
            .iter()
            .filter(same)
            .min_by_key(|o| o.options.threads)
            .unwrap_or(v);
        (v.rate / v.threads()) / (fewest.rate / fewest.threads())
    }

    /// The speed against `naive` on one thread, which is always measured.
    fn ratio_to_naive(&self, v: &Variant) -> f64 {
        let naive = self
            .variants
            .iter()
            .find(|o| o.naive() && o.options.threads == 1);
        v.rate / naive.map_or(f64::NAN, |o| o.rate)
    }

    fn peak(&self, v: &Variant) -> f64 {
        let same = |p: &&Peak| (p.level, p.threads) == (v.level, v.options.threads);
        self.peaks.iter().find(same).map_or(f64::NAN, |p| p.flops)
    }

    fn report(&self, out: &mut Output) {
        out.line(
            "algorithm  kernel  threads  million/s  per thread  ns/entry  efficiency  GFLOP/s  of peak  test RMSE     x naive",
        );
        for v in self.variants.iter().filter(|v| v.shown) {
            let per_second = v.rate * flops(&v.options, v.options.algorithm, &v.ranks);
            let (efficiency, ratio) = (self.efficiency(v), self.ratio_to_naive(v));
            let (peak, mark) = (self.peak(v), if v.naive() { "*" } else { " " });
            let rmse = match v.test_rmse {
                x if x.is_finite() => format!("{x:.4}{mark}"),
                _ => "- ".into(),
            };
            out.line(format!(
                "{:<9}  {:<6}  {:>7}  {:>9.3}  {:>10.3}  {:>8.1}  {:>9.0}%  {:>7.2}  {:>6.1}%  {rmse:>10}  {ratio:>9.1}",
                v.name(),
                v.level.name(),
                v.options.threads,
                v.rate / 1e6,
                v.rate / 1e6 / v.threads(),
                1e9 / v.rate,
                100.0 * efficiency,
                per_second / 1e9,
                100.0 * per_second / peak,
            ));
            let rmse = match v.test_rmse {
                x if x.is_finite() => json!(x),
                _ => Value::Null,
            };
            out.object(&json!({
                "algorithm": v.name(),
                "kernel": v.level.name(),
                "model": v.options.get("model"),
                "rank": v.options.rank.first(),
                "ranks": v.ranks,
                "threads": v.options.threads,
                "entries": if v.naive() { self.sampled } else { self.entries },
                "epochs": v.options.epochs,
                "repeats": self.repeats,
                "entries_per_second": v.rate,
                "entries_per_second_per_thread": v.rate / v.threads(),
                "ns_per_entry": 1e9 / v.rate,
                "efficiency": efficiency,
                "gflops": per_second / 1e9,
                "peak_gflops": peak / 1e9,
                "peak_share": per_second / peak,
                "test_rmse": rmse,
                "ratio_to_naive": ratio,
                "seed": v.options.seed,
            }));
        }
        out.line(format!(
            "\nnaive ran one epoch on {}{}.",
            if self.sampled < self.entries {
                format!("a sample of {} entries", grouped(self.sampled))
            } else {
                "all entries".into()
            },
            if self.variants.iter().any(|v| v.shown && v.naive()) {
                "; its error (*) is that of so little"
            } else {
                ""
            }
        ));
        for p in &self.peaks {
            out.line(format!(
                "peak of {} with {}: {:.1} GFLOP/s",
                p.level.name(),
                counted(p.threads, "thread", "threads"),
                p.flops / 1e9
            ));
        }
    }
}
