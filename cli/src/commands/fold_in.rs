//! `s3cmtf fold-in`

use std::path::PathBuf;

use clap::Args;
use s3cmtf::format::OpenMode;
use s3cmtf::model::{self, Model};
use s3cmtf::options::ExternalAlgorithm;
use s3cmtf::predict::evaluate;
use s3cmtf::solver::{FoldIn, FoldMatrix, fold_in};
use s3cmtf::{Error, Result};
use serde_json::json;

use crate::coupling_spec::CouplingSpec;
use crate::fit_data::matrix_text_options;
use crate::input::mode_from_one;
use crate::input::{InputFormat, MatchedFile, TextArguments, VerifyArguments, any_text};
use crate::outcome::Outcome;
use crate::output::{Output, format_count, warn_renamed};
use crate::progress::Progress;

/// Add new rows to a model without fitting it again
///
/// Solves for the rows of one mode that occur in the entries, in closed form with everything else in the model fixed, and
/// writes a model with these rows. Predictions for all other rows do not change. Give all entries of the new rows: the
/// model keeps none. The first --matrix belongs to the first matrix coupled to the mode, and so on; 2.3:FILE is the third of
/// mode 2.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    s3cmtf fold-in model.s3m --mode 1 --tensor new-users.tns -o model2.s3m\n  \
    s3cmtf fold-in model.s3m --mode 2 --tensor new-films.tns --matrix 2:new-genres.tns -o model2.s3m\n  \
    s3cmtf fold-in model.s3m --mode 2 --matrix 2:new-genres.tns -o model2.s3m")]
pub(crate) struct Arguments {
    /// Model file
    model: PathBuf,

    /// Mode with new rows
    #[arg(long, value_name = "MODE")]
    mode: usize,

    /// Tensor entries of the new rows: binary COO, or text
    #[arg(long, value_name = "FILE", required_unless_present = "matrix")]
    tensor: Option<PathBuf>,

    /// Entries of the new rows in a coupled matrix [default weight: that of the fit]
    #[arg(long, value_name = "MODE:FILE[:WEIGHT]")]
    matrix: Vec<String>,

    /// Option for reading matrices from text, as for fit
    #[arg(long, value_name = "OPTION")]
    matrix_text: Vec<String>,

    /// Solve again for rows that the model has already
    #[arg(long)]
    replace: bool,

    /// Model file to write
    #[arg(short, long, value_name = "MODEL")]
    output: PathBuf,

    /// Number of threads; 0: all available cores
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,

    #[command(flatten)]
    text: TextArguments,

    #[command(flatten)]
    verify: VerifyArguments,
}

/// Parses `--matrix`. Returns the number of the matrix in the model, and the rest. `position` is the number of the option
/// among those given, which selects the matrix unless the specification does.
fn parse_matrix(
    spec: &str,
    position: usize,
    mode: usize,
    model: &Model,
) -> Result<(usize, CouplingSpec)> {
    let invalid = |reason: &str| Error::Argument(format!("--matrix {spec}: {reason}"));
    let (target, rest) = spec.split_once(':').unwrap_or((spec, ""));
    let (given, position) = match target.split_once('.') {
        None => (CouplingSpec::parse(spec, "--matrix")?, position),
        Some((mode, number)) => {
            let number = number.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
            let number =
                number.ok_or_else(|| invalid("expected MODE.NUMBER:FILE, such as 2.3:tags.coo"))?;
            (
                CouplingSpec::parse(&format!("{mode}:{rest}"), "--matrix")?,
                number,
            )
        }
    };
    if given.mode != mode {
        return Err(invalid(&format!(
            "rows of mode {} are folded in; a matrix must be one of that mode",
            mode + 1
        )));
    }
    if given.penalty.is_some() {
        return Err(invalid(
            "columns are not fitted, so they take no penalty; leave the second number out",
        ));
    }
    let all = model.matrices().iter().enumerate();
    let mut own = all.filter(|(_, m)| m.mode == mode && !m.kind.is_graph());
    match own.nth(position) {
        Some((number, _)) => Ok((number, given)),
        None => Err(invalid(&format!(
            "the model has no matrix {} on mode {}",
            position + 1,
            mode + 1
        ))),
    }
}

pub(super) fn run(
    a: &Arguments,
    algorithms: &'static [&'static ExternalAlgorithm],
    progress: &Progress,
    out: &mut Output,
) -> Result<Outcome> {
    let model = model::load_with(&a.model, OpenMode::Mapped, algorithms)?;
    let mode = mode_from_one(a.mode)?;
    if mode >= model.order() {
        return Err(Error::Argument(format!(
            "--mode {}: the model has {} modes",
            a.mode,
            model.order()
        )));
    }
    let entry_format = InputFormat {
        options: a.text.options()?,
        any_text: any_text(&a.tensor)?,
        verify: a.verify,
    };
    let mut matcher = model.row_matcher(&a.model)?;
    matcher.take_new_rows(mode);
    let tensor = match &a.tensor {
        Some(path) => Some(entry_format.open_entries(path, &mut matcher, progress)?),
        None => None,
    };
    let mut given: Vec<(usize, CouplingSpec)> = Vec::new();
    for (position, spec) in a.matrix.iter().enumerate() {
        given.push(parse_matrix(spec, position, mode, &model)?);
    }
    let any_text_matrix = any_text(given.iter().map(|(_, spec)| &spec.file))?;
    let matrix_format = InputFormat {
        options: matrix_text_options(
            a.matrix_text.iter(),
            any_text_matrix && entry_format.options.zero_based,
        )?,
        any_text: any_text_matrix,
        verify: a.verify,
    };
    let mut matrices: Vec<(usize, Option<f64>, MatchedFile)> = Vec::new();
    for (number, spec) in &given {
        let columns = matcher.columns_of(*number);
        let file =
            matrix_format.open_coupled(&spec.file, &mut matcher, mode, Some(columns), progress)?;
        matrices.push((*number, spec.weight, file));
    }
    let input = FoldIn {
        mode,
        tensor: tensor.as_ref().map(MatchedFile::view),
        matrices: matrices
            .iter()
            .map(|(number, weight, file)| FoldMatrix {
                number: *number,
                entries: file.view(),
                weight: *weight,
            })
            .collect(),
        replace: a.replace,
        threads: a.threads,
    };
    let (folded, summary) = fold_in(&model, &input, progress)?;
    let errors = match &input.tensor {
        Some(view) if !view.is_empty() => Some(evaluate(
            &folded,
            view,
            folded.range(),
            a.threads,
            progress,
        )?),
        _ => None,
    };
    // Unknown rows of other modes and columns are not in the model.
    let mut names = model.row_names(&a.model)?;
    names.modes[mode] = matcher.names().swap_remove(mode);
    let names = names.stage(&a.output)?;
    model::save(&folded, &a.output)?;
    warn_renamed(&names.commit()?);
    let changed = match summary.replaced {
        0 => String::new(),
        n => format!(", {} replaced", format_count(n, "row", "rows")),
    };
    out.line(format!(
        "{}: {} of mode {} added{changed}, from {} and {} of matrices",
        a.output.display(),
        format_count(summary.added, "row", "rows"),
        a.mode,
        format_count(summary.entries, "entry", "entries"),
        summary.matrix_entries,
    ));
    if summary.without_entries > 0 {
        out.line(format!(
            "  {} determined by matrices alone",
            format_count(summary.without_entries, "row", "rows")
        ));
    }
    if summary.unknown > 0 {
        out.line(format!(
            "  {} with an unknown row in another mode; the mean row of that mode is used",
            format_count(summary.unknown, "entry", "entries")
        ));
    }
    if let Some(e) = &errors {
        let (rmse, how) = match folded.clips() {
            true => (e.clipped.rmse, ", clipped"),
            false => (e.unclipped.rmse, ""),
        };
        out.line(format!("  RMSE {rmse:.6} on these entries{how}"));
    }
    out.object(&json!({"summary": {
        "output": a.output.display().to_string(),
        "mode": a.mode,
        "added": summary.added,
        "replaced": summary.replaced,
        "without_entries": summary.without_entries,
        "entries": summary.entries,
        "unknown_row_entries": summary.unknown,
        "matrix_entries": summary.matrix_entries,
        "clipped_rmse": errors.map(|e| e.clipped.rmse),
    }}));
    Ok(Outcome::Success)
}
