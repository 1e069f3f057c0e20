//! `s3cmtf demo`

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use s3cmtf::analysis::evaluate;
use s3cmtf::format::{CooFile, OpenMode, check};
use s3cmtf::generate::{CellChoice, GenerateOptions, MatrixSpec, Rounding, Skew, generate};
use s3cmtf::model::{self, BiasModel, Epoch};
use s3cmtf::options::Options;
use s3cmtf::problem::{MatrixKind, Problem};
use s3cmtf::schedule::available_threads;
use s3cmtf::solver::{BiasOptions, Control, FitInput, Observer, fit, fit_biases};
use s3cmtf::{Monitor, Result};
use serde_json::json;

use super::output::{Output, grouped};
use super::progress::Progress;
use super::{Verdict, info};

/// Run the whole path on embedded data: generate, look, check, build a problem, fit, compare
#[derive(Args)]
pub(super) struct Arguments {
    /// The folder to write into
    #[arg(short, long, value_name = "FOLDER", default_value = "s3cmtf-demo")]
    output: PathBuf,

    /// Decides everything
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

pub(super) fn run(a: &Arguments, progress: &Progress, out: &mut Output) -> Result<Verdict> {
    let started = Instant::now();
    let options = options(a.seed);
    out.line("Ratings of 800 films by 3,000 users over 24 months, with the genres of the films,");
    out.line("drawn from a planted Tucker model of rank 6 plus noise:\n");
    let made = generate(&a.output, &options, progress)?;
    super::generate::report(&made, started.elapsed().as_secs_f64(), out);
    out.flush()?;

    let train = CooFile::open(&made.train.0, OpenMode::Mapped)?;
    let test_path = &made
        .test
        .as_ref()
        .expect("the demo holds out a test part")
        .0;
    let test = CooFile::open(test_path, OpenMode::Mapped)?;
    let genres = CooFile::open(&made.matrices[0].0, OpenMode::Mapped)?;
    out.line("\nWhat the training tensor holds:\n");
    info::show(&train, &[], progress, out)?;
    let clean = [&train, &test, &genres]
        .into_iter()
        .map(|file| Ok(check(file, progress)?.is_clean()))
        .collect::<Result<Vec<bool>>>()?
        .into_iter()
        .all(|ok| ok);
    let problem = Problem::builder(train.view())
        .matrix(1, genres.view(), 1.0, MatrixKind::Observed)
        .build(progress)?;
    let rows: Vec<String> = problem
        .modes()
        .iter()
        .map(|m| grouped(m.rows().len() as u64))
        .collect();
    out.line(format!(
        "\nChecked ({}) and built into a problem: {} rows in use, {} coupled genres.",
        if clean {
            "all three files are clean"
        } else {
            "faults found"
        },
        rows.join(" + "),
        problem.matrices()[0].columns.rows().len()
    ));

    let clip = problem.range();
    let mean = BiasModel::new(problem.mean(), Vec::new());
    let (biases, _) = fit_biases(&problem, &BiasOptions::default(), progress)?;
    let mean = evaluate(&mean, &test.view(), clip, 0, progress)?
        .clipped
        .rmse;
    let biases = evaluate(&biases, &test.view(), clip, 0, progress)?
        .clipped
        .rmse;
    // The paper's model, as the data was planted.
    let mut o = Options::preset("paper")?;
    o.rank = vec![8];
    o.eta = Some(0.005);
    o.decay = 0.02;
    o.lambda_reg = Some(2.0);
    o.epochs = 40;
    o.eval_every = o.epochs;
    o.seed = a.seed;
    let input = FitInput {
        test: Some(test.view()),
        ..FitInput::default()
    };
    let alone = Problem::builder(train.view()).build(progress)?;
    let (_, uncoupled) = fit(
        &alone,
        &o,
        &input,
        &mut Bar {
            progress,
            what: "fitting",
            epochs: o.epochs,
        },
        progress,
    )?;
    let (model, coupled) = fit(
        &problem,
        &o,
        &input,
        &mut Bar {
            progress,
            what: "fitting coupled",
            epochs: o.epochs,
        },
        progress,
    )?;
    progress.clear();
    let path = a.output.join("model.s3m");
    model::save(&model, &path)?;
    out.line(format!(
        "\nTest error (RMSE of {} held-out ratings; all but the last clipped to the training range):\n",
        grouped(test.header().count)
    ));
    for (what, rmse) in [
        ("the mean", mean),
        ("mean and biases", biases),
        ("Tucker, rank 8", uncoupled.test_rmse),
        ("with the genres", coupled.test_rmse),
        ("the planted model", made.floor_rmse),
    ] {
        let bar = "#".repeat((rmse / mean * 40.0).round() as usize);
        out.line(format!("  {what:>18}  {rmse:.4}  {bar}"));
    }
    let entries = coupled.epochs * (problem.count() + problem.matrices()[0].entries.len() as u64);
    out.line(format!(
        "\nThe fit went over {} entries in {:.1} s on {} ({} entries/s).",
        grouped(entries),
        coupled.update_seconds,
        super::output::counted(coupled.threads as u64, "thread", "threads"),
        grouped((entries as f64 / coupled.update_seconds) as u64)
    ));
    out.line("Biases find each user's and each film's tendency; factors find what goes together beyond it.");
    out.line("What is left to the planted model is noise and what so few ratings cannot tell.");
    out.line(format!(
        "\nTry next:\n  cargo run --release -- eval {0}/model.s3m {0}/tensor.test.coo\n  cargo run --release -- info {0}/tensor.train.coo",
        a.output.display()
    ));
    out.object(&json!({
        "summary": {
            "test_rmse_mean": mean,
            "test_rmse_biases": biases,
            "test_rmse_tucker": uncoupled.test_rmse,
            "test_rmse_coupled": coupled.test_rmse,
            "test_rmse_planted": made.floor_rmse,
            "clipped": true,
            "clean": clean,
            "threads": coupled.threads,
            "output": path.display().to_string(),
            "seconds": started.elapsed().as_secs_f64(),
        }
    }));
    Ok(Verdict::Good)
}

/// Shows a fit as progress.
struct Bar<'a> {
    progress: &'a Progress,
    what: &'static str,
    epochs: u64,
}

impl Observer for Bar<'_> {
    fn epoch(&mut self, figures: &Epoch) -> Control {
        self.progress
            .progress(self.what, figures.epoch, self.epochs);
        if self.progress.cancelled() {
            Control::Stop
        } else {
            Control::Continue
        }
    }
}

fn options(seed: u64) -> GenerateOptions {
    let mut o = GenerateOptions::new(&[3000, 800, 24], 250_000);
    o.ranks = vec![6];
    o.mean = Some(3.5);
    o.deviation = 0.9;
    o.noise = 0.6;
    o.factor_mean = 1.0;
    o.skew = vec![
        Skew {
            exponent: 1.0,
            shift: 60.0,
        },
        Skew {
            exponent: 1.0,
            shift: 20.0,
        },
        Skew {
            exponent: 0.5,
            shift: 2.0,
        },
    ];
    o.rounding = Some(Rounding {
        low: 0.5,
        high: 5.0,
        step: 0.5,
    });
    o.matrices = vec![MatrixSpec {
        mode: 1,
        columns: 18,
        cells: CellChoice::Full,
        ones: Some(0.12),
        groups: None,
    }];
    o.test = 0.2;
    o.seed = seed;
    o.threads = available_threads();
    o
}
