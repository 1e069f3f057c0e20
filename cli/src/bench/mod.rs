//! `s3cmtf bench` measures the speed of fits. Arguments come in; a table or JSON objects go out.
//!
//! This file runs the measurements in turn. `variant` lists the combinations that are measured, `data` opens or generates
//! the tensor, `measure` times fits, `peak` measures the peak of the machine, `results` derives and prints the figures.

mod arguments;
mod data;
mod measure;
mod peak;
mod results;
mod variant;

use s3cmtf::format::CooFile;
use s3cmtf::options::Algorithm;
use s3cmtf::problem::Problem;
use s3cmtf::solver::{FitInput, flops_per_entry};
use s3cmtf::{Error, Monitor, Result};

pub(crate) use arguments::Arguments;
use data::{BenchData, EntrySample};
use measure::{measure_fit, measure_independent_fits, total_entries_per_second};
use peak::{Peak, measure_peak};
use results::Results;
use variant::variants;

use crate::outcome::Outcome;
use crate::output::{Output, format_count, format_dims, format_integer};
use crate::progress::Progress;
use crate::trace_file::TraceFile;

/// Largest number of entries that `naive` is measured on.
const MAX_SAMPLE: usize = 200_000;
/// Smallest number of entries that `naive` is measured on, if the tensor has as many.
const MIN_SAMPLE: usize = 1000;
/// Floating-point operations of `naive` that the sample is sized for, between these limits.
const SAMPLE_FLOPS: f64 = 2e9;

/// Measures all variants and prints the results.
pub(crate) fn run(a: &Arguments, progress: &Progress, out: &mut Output) -> Result<Outcome> {
    let mut variants = variants(a)?;
    let trace_file = a.trace.as_deref().map(TraceFile::new);
    let data = BenchData::open(a, progress)?;
    let tensor = data.train.view();
    let problem = Problem::builder(tensor.clone()).build(progress)?;
    let ranks = vec![a.rank as usize; tensor.order()];
    let mut naive = variants[0].options.clone();
    naive.algorithm = Algorithm::Naive;
    let naive_flops = flops_per_entry(&naive, &ranks);
    let sample_size = ((SAMPLE_FLOPS / naive_flops) as usize).clamp(MIN_SAMPLE, MAX_SAMPLE);
    let sample = EntrySample::new(&tensor, sample_size);
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
    let fits: usize = variants.iter().map(|v| 1 + v.independent.len()).sum();
    let steps = a.repeats * (peaks.len() + fits) as u64;
    let interrupted = progress.interrupted();
    let mut step = 0;
    let mut begin_step = || {
        progress.progress("measuring", step, steps);
        step += 1;
        if progress.cancelled() {
            return Err(Error::Cancelled);
        }
        Ok(())
    };
    // Interleaved, so that a temporary slowdown of the machine affects all variants alike.
    for _ in 0..a.repeats {
        for peak in &mut peaks {
            begin_step()?;
            peak.flops = peak.flops.max(measure_peak(peak.level, peak.threads));
        }
        for v in &mut variants {
            begin_step()?;
            let problem = if v.is_naive() {
                &sample_problem
            } else {
                &problem
            };
            let measure = || measure_fit(problem, &v.options, &input, &interrupted);
            let fit = match &trace_file {
                Some(file) => file.trace.record(&v.name(), measure)?,
                None => measure()?,
            };
            v.test_rmse = fit.test_rmse;
            v.ranks.clone_from(&fit.ranks);
            let new_notes = fit.notes.iter().filter(|n| !notes.contains(n));
            notes.extend(new_notes.cloned().collect::<Vec<String>>());
            let speed = total_entries_per_second(&[fit], problem.count());
            v.entries_per_second = v.entries_per_second.max(speed);
            for split in &mut v.independent {
                begin_step()?;
                let mut options = v.options.clone();
                options.threads = split.threads_per_fit;
                let fits = split.fits as usize;
                let fits = measure_independent_fits(problem, &options, &input, &interrupted, fits)?;
                let speed = total_entries_per_second(&fits, problem.count());
                split.entries_per_second = split.entries_per_second.max(speed);
            }
        }
    }
    progress.clear();
    let results = Results {
        variants,
        peaks,
        entries: problem.count(),
        sampled_entries: sample_problem.count(),
        repeats: a.repeats,
    };
    out.line(format!(
        "{}: {} entries, {}; {}, rank {}; the fastest of {} in {}\n",
        data.name,
        format_integer(problem.count()),
        format_dims(tensor.dims()),
        a.model,
        a.rank,
        format_count(a.epochs, "epoch", "epochs"),
        format_count(a.repeats, "repeat", "repeats"),
    ));
    results.print(out);
    for note in notes {
        out.line(note);
    }
    if let Some(file) = &trace_file {
        file.write(out)?;
    }
    Ok(Outcome::Success)
}
