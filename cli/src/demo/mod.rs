//! `s3cmtf demo` runs the whole workflow. Planted data or a folder of the user comes in; models, logs, names, a report and
//! a text or JSON summary go out.
//!
//! This file runs the steps in order: data (`planted` or `user_data`, both returning a `DataSet`), `fits`,
//! `recommendations`, `clusters`, `report`.

mod arguments;
mod clusters;
mod context;
mod data_set;
mod fits;
mod planted;
mod planted_names;
mod recommendations;
mod report;
mod truncate;
mod user_data;

use std::time::Instant;

use s3cmtf::format::OutputFolder;
use s3cmtf::{Error, Result};
use serde_json::json;

pub(crate) use arguments::Arguments;
use clusters::print_clusters;
use context::Context;
use data_set::DataSet;
use fits::{Fit, fit_models};
use recommendations::print_recommendations;
use report::write_demo_report;

use crate::fit_observer::json_number;
use crate::input::same_file;
use crate::outcome::Outcome;
use crate::output::{Output, format_count, format_dims, format_integer};
use crate::progress::Progress;

/// Runs the demo.
pub(crate) fn run(a: &Arguments, progress: &Progress, out: &mut Output) -> Result<Outcome> {
    let started = Instant::now();
    if a.data
        .as_deref()
        .is_some_and(|data| same_file(data, &a.output))
    {
        return Err(Error::File {
            file: a.output.display().to_string(),
            reason: "is the folder of --data, and results would be written among the data; give another folder with -o"
                .into(),
        });
    }
    let data = match &a.data {
        None => planted::generate_data(&a.output, a.seed, progress, out)?,
        Some(folder) => user_data::open(folder, progress, out)?,
    };
    out.flush()?;
    // After the data, and removed again without results, so that a failed demo leaves no folder behind.
    let _folder = OutputFolder::create(&a.output)?;
    let context = Context {
        arguments: a,
        data: &data,
        names: data.row_names()?,
        progress,
    };
    run_steps(&context, started, out)?;
    Ok(Outcome::Success)
}

/// Fits, recommends, clusters, writes the report and prints the summary.
fn run_steps(context: &Context<'_>, started: Instant, out: &mut Output) -> Result<()> {
    let data = context.data;
    print_sizes(data, out);
    out.flush()?;
    let fits = fit_models(context, out)?;
    // Mode 0 has the users. Recommended and clustered are rows of the first other mode with a matrix. If only users have
    // a matrix, they are clustered.
    let modes_with_matrix = || data.matrices.iter().map(|m| m.mode);
    let item_mode = modes_with_matrix().find(|&mode| mode > 0);
    let clustered_mode = item_mode
        .or_else(|| modes_with_matrix().next())
        .unwrap_or(1);
    let main = fits.main();
    let person = print_recommendations(context, &main.model, item_mode.unwrap_or(1), out)?;
    let clusters = print_clusters(context, &fits, clustered_mode, out)?;
    let report = write_demo_report(context, &fits, clustered_mode, clusters.count, out)?;
    let seconds = started.elapsed().as_secs_f64();
    out.line(format!("\nTotal time: {seconds:.1} s"));
    out.object(&json!({
        "summary": {
            "test_rmse_mean": fits.mean_rmse,
            "test_rmse_biases": fits.bias_rmse,
            "test_rmse_uncoupled": json_number(fits.uncoupled.summary.test_rmse),
            "test_rmse_coupled": fits.coupled.as_ref().map(|c| json_number(c.summary.test_rmse)),
            "test_rmse_planted": data.planted_rmse,
            "clipped": main.summary.clipped,
            "training_entries": data.train.header().count,
            "test_entries": data.test.header().count,
            "dims": data.train.header().dims,
            "modes": data.mode_names,
            "matrices": data.matrices.len(),
            "fits": fits.all().map(Fit::to_json).collect::<Vec<_>>(),
            "entries_per_second": fits.entries_per_second,
            "threads": main.summary.threads,
            "kernel": main.summary.kernel.name(),
            "person": person,
            "clusters": clusters.json,
            "output": context.arguments.output.display().to_string(),
            "report": report.display().to_string(),
            "seconds": seconds,
        }
    }));
    Ok(())
}

/// Prints the numbers of entries, sizes and matrices.
fn print_sizes(data: &DataSet, out: &mut Output) {
    out.line(format!(
        "{} training entries and {} test entries, {}{}.",
        format_integer(data.train.header().count),
        format_integer(data.test.header().count),
        format_dims(&data.train.header().dims),
        match data.matrices.len() {
            0 => ", and no matrices".into(),
            n => format!(
                ", with {}",
                format_count(n as u64, "coupled matrix", "coupled matrices")
            ),
        }
    ));
}
