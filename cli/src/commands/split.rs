//! `s3cmtf split`

use std::path::PathBuf;

use crate::file_arguments::split_prefix;
use clap::Args;
use s3cmtf::Result;
use s3cmtf::format::{SplitOptions, SplitRule, ValueKind, split};
use serde_json::json;

use crate::input::mode_from_one;
use crate::input::{TextArguments, VerifyArguments, open_with};
use crate::outcome::Outcome;
use crate::output::{Output, format_integer};
use crate::progress::Progress;

/// Split a tensor into training, validation and test entries
///
/// Writes PREFIX.train.coo, PREFIX.test.coo and, with --valid, PREFIX.valid.coo.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    s3cmtf split ratings.coo --test 0.2\n  \
    s3cmtf split ratings.coo --test 0.1 --valid 0.1 --seed 7 -o data\n  \
    s3cmtf split ratings.coo --last-per 1 --by 3")]
pub(crate) struct Arguments {
    /// Tensor to split: binary COO, or text
    file: PathBuf,

    /// Fraction of the entries for testing
    #[arg(long, value_name = "FRACTION", default_value_t = 0.2)]
    test: f64,

    /// Fraction of the entries for validation
    #[arg(long, value_name = "FRACTION", default_value_t = 0.0)]
    valid: f64,

    /// Random seed
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Hold out the last entries of each row of this mode, instead of random ones
    #[arg(long, value_name = "MODE")]
    last_per: Option<usize>,

    /// With --last-per: mode whose index orders the entries [default: the last]
    #[arg(long, value_name = "MODE", requires = "last_per")]
    by: Option<usize>,

    /// Prefix of the output files [default: the input file without its extension]
    #[arg(short, long, value_name = "PREFIX")]
    output: Option<PathBuf>,

    #[command(flatten)]
    text: TextArguments,
}

pub(super) fn run(a: &Arguments, progress: &Progress, out: &mut Output) -> Result<Outcome> {
    // Stored as `convert` does by default.
    let mut options = a.text.options()?;
    options.value_kind = Some(ValueKind::F32);
    let file = open_with(&a.file, &options, VerifyArguments::LATER, progress)?;
    let given = a.output.clone();
    let prefix = given.unwrap_or_else(|| split_prefix(&a.file));
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
            format_integer(part.count)
        ));
        out.object(&json!({
            "part": part.name,
            "output": part.path.display().to_string(),
            "count": part.count,
        }));
    }
    Ok(Outcome::Success)
}
