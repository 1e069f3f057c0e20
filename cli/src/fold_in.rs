//! `s3cmtf fold-in`

use std::path::PathBuf;

use clap::Args;
use s3cmtf::format::{CooFile, Names, OpenMode};
use s3cmtf::model::{self, Model};
use s3cmtf::predict::evaluate;
use s3cmtf::solver::{FoldIn, FoldMatrix, fold_in};
use s3cmtf::{Error, Result};
use serde_json::json;

use super::fit::{Coupled, coupled, matrix_text};
use super::input::{Mixed, TextArguments, any_text, same_file};
use super::output::{Output, counted};
use super::progress::Progress;
use super::{Verdict, mode_from_one};

/// Add rows that came after training to a model
///
/// The rows of one mode that the entries are about are found in closed form, given everything else in the
/// model, and a model that has them is written; what it predicts for all other rows stays as it was.
/// Everything that is known of these rows must be given: the model keeps no entries.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    s3cmtf fold-in model.s3m --mode 1 --tensor new-users.tns -o model2.s3m\n  \
    s3cmtf fold-in model.s3m --mode 2 --tensor new-films.tns --matrix 2:genres.tns -o model2.s3m\n  \
    s3cmtf fold-in model.s3m --mode 2 --matrix 2:genres.tns -o model2.s3m")]
pub(super) struct Arguments {
    /// The model
    model: PathBuf,

    /// The mode with new rows
    #[arg(long, value_name = "N")]
    mode: usize,

    /// Tensor entries of the new rows: binary COO, or text
    #[arg(long, value_name = "FILE", required_unless_present = "matrix")]
    tensor: Option<PathBuf>,

    /// Entries that a matrix of this mode has for the new rows, with another weight than in the fit if need
    /// be. The first belongs to the first matrix that was coupled to the mode, and so on; 2.3:FILE is the
    /// third of mode 2
    #[arg(long, value_name = "MODE:FILE[:WEIGHT]")]
    matrix: Vec<String>,

    /// How text of matrices is read, as for fit
    #[arg(long, value_name = "NAME=VALUE")]
    matrix_text: Vec<String>,

    /// Find rows anew that the model has already
    #[arg(long)]
    replace: bool,

    /// Where the new model goes
    #[arg(short, long, value_name = "MODEL")]
    output: PathBuf,

    /// Number of threads; 0 takes all this process may use
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,

    #[command(flatten)]
    text: TextArguments,
}

/// A matrix as typed: its number in the model and the rest.
fn matrix_of(spec: &str, place: usize, mode: usize, model: &Model) -> Result<(usize, Coupled)> {
    let bad = |what: &str| Error::Argument(format!("--matrix {spec}: {what}"));
    let (target, rest) = spec.split_once(':').unwrap_or((spec, ""));
    let (given, place) = match target.split_once('.') {
        None => (coupled(spec, "--matrix")?, place),
        Some((mode, number)) => {
            let number = number.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
            let number =
                number.ok_or_else(|| bad("expected MODE.NUMBER:FILE, such as 2.3:tags.coo"))?;
            (coupled(&format!("{mode}:{rest}"), "--matrix")?, number)
        }
    };
    if given.mode != mode {
        return Err(bad(&format!(
            "rows of mode {} are folded in; a matrix must be one of that mode",
            mode + 1
        )));
    }
    if given.penalty.is_some() {
        return Err(bad(
            "columns are not fitted again; leave the second number out",
        ));
    }
    let all = model.matrices().iter().enumerate();
    let mut own = all.filter(|(_, m)| m.mode == mode && !m.kind.is_graph());
    match own.nth(place) {
        Some((number, _)) => Ok((number, given)),
        None => Err(bad(&format!(
            "the model has no matrix {} on mode {}",
            place + 1,
            mode + 1
        ))),
    }
}

pub(super) fn run(a: &Arguments, progress: &Progress, out: &mut Output) -> Result<Verdict> {
    let model = model::load(&a.model, OpenMode::Mapped)?;
    let mode = mode_from_one(a.mode)?;
    if mode >= model.order() {
        return Err(Error::Argument(format!(
            "--mode {}: the model has {} modes",
            a.mode,
            model.order()
        )));
    }
    model::check_target(&a.output)?;
    let entries = Mixed {
        options: a.text.options()?,
        any_text: any_text(&a.tensor)?,
    };
    let open = |path: &PathBuf| entries.open(path, progress);
    let tensor = a.tensor.as_ref().map(open).transpose()?;
    let mut given: Vec<(usize, Coupled)> = Vec::new();
    for (place, spec) in a.matrix.iter().enumerate() {
        given.push(matrix_of(spec, place, mode, &model)?);
    }
    let any = any_text(given.iter().map(|(_, spec)| &spec.file))?;
    let text = Mixed {
        options: matrix_text(a.matrix_text.iter(), any && entries.options.zero_based)?,
        any_text: any,
    };
    let mut matrices: Vec<(usize, Option<f64>, CooFile)> = Vec::new();
    for (number, spec) in &given {
        matrices.push((*number, spec.weight, text.open(&spec.file, progress)?));
    }
    let inputs = given.iter().map(|(_, spec)| &spec.file);
    let mut inputs = inputs.chain(&a.tensor).chain([&a.model]);
    if inputs.any(|input| same_file(input, &a.output)) {
        return Err(Error::Argument(format!(
            "{} is read by this command and would be overwritten; write to another file",
            a.output.display()
        )));
    }
    let input = FoldIn {
        mode,
        tensor: tensor.as_ref().map(CooFile::view),
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
    model::save(&folded, &a.output)?;
    Names::copy_to_model(&a.model, &a.output, folded.order())?;
    for m in 0..folded.matrices().len() {
        Names::save_columns(Names::load_columns(&a.model, m)?.as_ref(), &a.output, m)?;
    }
    let changed = match summary.replaced {
        0 => String::new(),
        n => format!(", {} found anew", counted(n, "row", "rows")),
    };
    out.line(format!(
        "{}: {} of mode {} added{changed}, from {} and {} of matrices",
        a.output.display(),
        counted(summary.added, "row", "rows"),
        a.mode,
        counted(summary.entries, "entry", "entries"),
        summary.matrix_entries,
    ));
    if summary.without_entries > 0 {
        out.line(format!(
            "  {} known from matrices alone",
            counted(summary.without_entries, "row", "rows")
        ));
    }
    if summary.unknown > 0 {
        out.line(format!(
            "  {} with a row of another mode that the model does not know, taken for its mean",
            counted(summary.unknown, "entry", "entries")
        ));
    }
    if let Some(e) = &errors {
        out.line(format!(
            "  RMSE {:.6} on these entries, clipped",
            e.clipped.rmse
        ));
    }
    out.object(&json!({"summary": {
        "output": a.output.display().to_string(),
        "mode": a.mode,
        "added": summary.added,
        "replaced": summary.replaced,
        "without_entries": summary.without_entries,
        "entries": summary.entries,
        "unknown": summary.unknown,
        "matrix_entries": summary.matrix_entries,
        "clipped_rmse": errors.map(|e| e.clipped.rmse),
    }}));
    Ok(Verdict::Good)
}
