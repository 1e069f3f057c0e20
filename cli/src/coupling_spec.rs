//! Coupled matrices and graphs as typed: `MODE:FILE[:WEIGHT[:PENALTY]][:KIND]`.

use std::path::PathBuf;

use s3cmtf::problem::MatrixKind;
use s3cmtf::{Error, Result};

use crate::input::mode_from_one;

/// A coupled matrix or graph as typed.
pub(crate) struct CouplingSpec {
    /// Counted from 0.
    pub mode: usize,
    pub file: PathBuf,
    pub weight: Option<f64>,
    pub penalty: Option<f64>,
    pub kind: MatrixKind,
}

impl CouplingSpec {
    /// Parses `MODE:FILE[:WEIGHT[:PENALTY]]`, followed by `[:KIND]` for `--matrix`. Errors name `option`.
    pub(crate) fn parse(spec: &str, option: &str) -> Result<CouplingSpec> {
        let malformed = || {
            Error::Argument(format!(
                "{option} {spec}: expected MODE:FILE, then :WEIGHT and :PENALTY if they differ, such as 2:genres.coo:10"
            ))
        };
        let (mode, mut file) = spec.split_once(':').ok_or_else(malformed)?;
        let mode = mode_from_one(mode.parse().map_err(|_| malformed())?)?;
        let mut kind = MatrixKind::Graph;
        if option == "--matrix" {
            (file, kind) = split_kind(file);
        }
        // File names may contain colons; only up to two numbers at the end are split off.
        let mut numbers = Vec::new();
        while numbers.len() < 2
            && let Some((rest, number)) = file.rsplit_once(':')
            && let Ok(number) = number.parse::<f64>()
        {
            numbers.insert(0, number);
            file = rest;
        }
        if file.is_empty() {
            return Err(malformed());
        }
        if option == "--matrix" && file.rsplit(':').next().is_some_and(|end| end == "sampled") {
            return Err(Error::Argument(format!(
                "{option} {spec}: sampled comes with the number of zeros for each entry, such as sampled=5"
            )));
        }
        Ok(CouplingSpec {
            mode,
            file: file.into(),
            weight: numbers.first().copied(),
            penalty: numbers.get(1).copied(),
            kind,
        })
    }
}

/// Splits the kind of a matrix off the end: `auto` (the default), `observed`, `full`, `sampled=K` or `sampled:K`.
fn split_kind(spec: &str) -> (&str, MatrixKind) {
    let colons = spec.rmatch_indices(':').take(2);
    let ends = colons.map(|(at, _)| (&spec[..at], &spec[at + 1..]));
    let named = ends.filter_map(|(rest, name)| Some((rest, MatrixKind::from_name(name)?)));
    let mut named = named.filter(|(_, kind)| !kind.is_graph());
    named.next().unwrap_or((spec, MatrixKind::Auto))
}
