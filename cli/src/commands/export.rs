//! `s3cmtf export`

use std::path::PathBuf;

use clap::Args;
use s3cmtf::Result;
use s3cmtf::format::OpenMode;
use s3cmtf::model;
use s3cmtf::options::ExternalAlgorithm;
use s3cmtf::predict::{MAX_EXPORTED_TEXT, export};
use serde_json::json;

use crate::outcome::Outcome;
use crate::output::Output;
use crate::progress::Progress;

/// Write a model as .npy files and as text in the layout of the original program
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    s3cmtf export model.s3m -o factors\n  \
    s3cmtf export model.s3m -o factors --json")]
pub(crate) struct Arguments {
    /// Model file
    model: PathBuf,

    /// Folder to write to; created if it does not exist
    #[arg(short, long, value_name = "FOLDER")]
    output: PathBuf,

    /// Write text tables of any size; without it, more than 16 GiB are an error
    #[arg(long)]
    large: bool,
}

pub(super) fn run(
    a: &Arguments,
    algorithms: &'static [&'static ExternalAlgorithm],
    progress: &Progress,
    out: &mut Output,
) -> Result<Outcome> {
    let limit = if a.large { u64::MAX } else { MAX_EXPORTED_TEXT };
    let model = model::load_with(&a.model, OpenMode::Mapped, algorithms)?;
    let files = export(&model, &a.output, limit, progress)?;
    for file in &files {
        out.line(file.display().to_string());
    }
    out.object(
        &json!({"files": files.iter().map(|f| f.display().to_string()).collect::<Vec<_>>()}),
    );
    Ok(Outcome::Success)
}
