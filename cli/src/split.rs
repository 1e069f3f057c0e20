//! `s3cmtf split`

use std::path::PathBuf;

use clap::Args;
use s3cmtf::Result;
use s3cmtf::format::{SplitOptions, SplitRule, ValueKind, split};
use serde_json::json;

use super::input::{TextArguments, open_with};
use super::output::{Output, grouped};
use super::progress::Progress;
use super::{Verdict, mode_from_one};

/// Cut a tensor into training, validation and test parts
///
/// Writes PREFIX.train.coo, PREFIX.test.coo and, with --valid, PREFIX.valid.coo.
#[derive(Args)]
pub(super) struct Arguments {
    /// A binary COO file, or text
    file: PathBuf,

    /// The part of the entries for testing
    #[arg(long, value_name = "PART", default_value_t = 0.2)]
    test: f64,

    /// The part of the entries for validation
    #[arg(long, value_name = "PART", default_value_t = 0.0)]
    valid: f64,

    /// Decides which entries
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Hold out the last entries of each row of this mode instead of random ones; the part is rounded to whole entries in each row
    #[arg(long, value_name = "MODE")]
    last_per: Option<usize>,

    /// With --last-per: the mode whose index says what is last; by default the last mode
    #[arg(long, value_name = "MODE", requires = "last_per")]
    by: Option<usize>,

    /// Where the parts go; by default beside the file, under its name without extension
    #[arg(short, long, value_name = "PREFIX")]
    output: Option<PathBuf>,

    #[command(flatten)]
    text: TextArguments,
}

pub(super) fn run(a: &Arguments, progress: &Progress, out: &mut Output) -> Result<Verdict> {
    // As `convert` would store it.
    let mut options = a.text.options()?;
    options.value_kind = Some(ValueKind::F32);
    let file = open_with(&a.file, &options, progress)?;
    let prefix = a.output.clone().unwrap_or_else(|| {
        let plain = match a.file.extension() {
            Some(e) if e.eq_ignore_ascii_case("gz") => a.file.with_extension(""),
            _ => a.file.clone(),
        };
        plain.with_extension("")
    });
    let rule = match a.last_per {
        None => SplitRule::Random,
        Some(mode) => SplitRule::LastPerRow {
            row_mode: mode_from_one(mode)?,
            order_mode: mode_from_one(a.by.unwrap_or(file.header().dims.len()))?,
        },
    };
    let options = SplitOptions {
        test_fraction: a.test,
        valid_fraction: a.valid,
        seed: a.seed,
        rule,
    };
    for part in split(&file, &prefix, &options, progress)? {
        out.line(format!(
            "{}: {} entries",
            part.path.display(),
            grouped(part.count)
        ));
        out.object(&json!({
            "part": part.name,
            "output": part.path.display().to_string(),
            "count": part.count,
        }));
    }
    Ok(Verdict::Good)
}
