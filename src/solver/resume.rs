//! What a checkpoint keeps besides the model, and what must be the same to go on from one.

use super::input::FitInput;
use super::sgd::blocked::Pace;
use crate::error::{Error, Result};
use crate::model::{Checkpoint, Model};
use crate::options::{OPTION_TABLE, Options};

/// Where a fit stands between two epochs: what a checkpoint keeps besides the model.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Progress {
    pub epoch: u64,
    pub attempts: u64,
    pub eta_scale: f64,
    pub first_loss: f64,
    pub last_loss: f64,
    pub lowest_loss: f64,
    pub best_valid: f64,
    pub best_epoch: u64,
    pub since_best: u64,
    /// How many sweeps `blocked` begins its next epoch with, and the squared error of the last.
    pub sweeps: u64,
    pub sweep_error: f64,
    /// While all entries are fitted to after some were held out: for how many epochs; else 0.
    pub refit: u64,
    /// Epochs run before that.
    pub before: u64,
    /// Why the fit ended with this epoch: [`TOLERANCE`], [`PATIENCE`] or 0.
    pub ended: u64,
    /// A fingerprint of the data, which a resumed fit must share.
    pub data: u64,
}

/// Why a fit ended.
pub(super) const TOLERANCE: u64 = 1;
pub(super) const PATIENCE: u64 = 2;

impl Progress {
    pub(super) fn new() -> Self {
        Progress {
            epoch: 0,
            attempts: 0,
            eta_scale: 1.0,
            first_loss: f64::NAN,
            last_loss: f64::NAN,
            lowest_loss: f64::INFINITY,
            best_valid: f64::INFINITY,
            best_epoch: 0,
            since_best: 0,
            sweeps: Pace::first().sweeps as u64,
            sweep_error: Pace::first().error,
            refit: 0,
            before: 0,
            ended: 0,
            data: 0,
        }
    }

    /// Where all entries begin to be fitted to, after a fit with some held out got here.
    pub(super) fn to_refit(&self, best_epoch: u64, best_valid: f64) -> Progress {
        Progress {
            eta_scale: self.eta_scale,
            refit: best_epoch,
            before: self.epoch,
            best_epoch,
            best_valid,
            ..Progress::new()
        }
    }

    fn numbers(&mut self) -> [(&'static str, Number<'_>); 15] {
        [
            ("epoch", Number::Whole(&mut self.epoch)),
            ("attempts", Number::Whole(&mut self.attempts)),
            ("eta_scale", Number::Real(&mut self.eta_scale)),
            ("first_loss", Number::Real(&mut self.first_loss)),
            ("last_loss", Number::Real(&mut self.last_loss)),
            ("lowest_loss", Number::Real(&mut self.lowest_loss)),
            ("best_valid", Number::Real(&mut self.best_valid)),
            ("best_epoch", Number::Whole(&mut self.best_epoch)),
            ("since_best", Number::Whole(&mut self.since_best)),
            ("sweeps", Number::Whole(&mut self.sweeps)),
            ("sweep_error", Number::Real(&mut self.sweep_error)),
            ("refit", Number::Whole(&mut self.refit)),
            ("before", Number::Whole(&mut self.before)),
            ("ended", Number::Whole(&mut self.ended)),
            ("data", Number::Whole(&mut self.data)),
        ]
    }

    pub(super) fn to_text(&self) -> String {
        let mut copy = self.clone();
        // Bits, not digits: a resumed fit must be exactly where it was.
        copy.numbers()
            .into_iter()
            .map(|(name, number)| match number {
                Number::Whole(x) => format!("{name}={x}\n"),
                Number::Real(x) => format!("{name}={:016x}\n", x.to_bits()),
            })
            .collect()
    }

    /// Where the fit stood that wrote a checkpoint. One that another version wrote does if what it lacks was not
    /// there to be done, and if it has nothing that this version does not know.
    pub(super) fn of(saved: &Checkpoint, input: &FitInput<'_>) -> Result<Progress> {
        let missing = |later: &[&str], all: &[&'static str], text: &str| -> Vec<&'static str> {
            let said = |name: &str| lines(text).any(|(n, _)| n == name);
            let all = all.iter().copied();
            all.filter(|n| !later.contains(n) && !said(n)).collect()
        };
        let options: Vec<&str> = OPTION_TABLE.iter().map(|o| o.name).collect();
        let state = Progress::new().numbers().map(|(name, _)| name);
        let later = [&LATER_OPTIONS[..], &MAY_CHANGE].concat();
        let mut lacks = missing(&later, &options, &saved.options);
        lacks.extend(missing(&LATER_STATE, &state, &saved.state));
        let known = |name: &str| options.contains(&name) || state.contains(&name);
        let both = lines(&saved.options).chain(lines(&saved.state));
        let unknown: Vec<&str> = both.map(|(n, _)| n).filter(|n| !known(n)).collect();
        let other = |what: &str, names: Vec<&str>| {
            let by = match &saved.library {
                Some(version) => format!("s3cmtf {version}"),
                None => "an s3cmtf that did not note its version".into(),
            };
            Err(named(
                input,
                format!(
                    "cannot be resumed: it was written by {by} and {what} {}; resume it with the version that \
                     wrote it, or start a new fit from it (init)",
                    names.join(", ")
                ),
            ))
        };
        if !lacks.is_empty() {
            return other("lacks", lacks);
        }
        if !unknown.is_empty() {
            return other("has what this version does not know:", unknown);
        }
        Progress::from_text(&saved.state).ok_or_else(|| {
            named(
                input,
                "its state cannot be read; it was not written by this library".into(),
            )
        })
    }

    /// The numbers that are there; `None` if one is no number.
    fn from_text(text: &str) -> Option<Progress> {
        let mut progress = Progress::new();
        for (name, number) in progress.numbers() {
            let Some((_, value)) = lines(text).find(|(n, _)| *n == name) else {
                continue;
            };
            match number {
                Number::Whole(x) => *x = value.parse().ok()?,
                Number::Real(x) => *x = f64::from_bits(u64::from_str_radix(value, 16).ok()?),
            }
        }
        Some(progress)
    }
}

fn lines(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|l| l.split_once('='))
}

/// Whether a checkpoint is from a fit to all entries after some were held out.
pub(super) fn is_refit(state: &str) -> bool {
    Progress::from_text(state).is_some_and(|p| p.refit > 0)
}

enum Number<'a> {
    Whole(&'a mut u64),
    Real(&'a mut f64),
}

/// What a resumed fit may change: nothing that changes where it goes (another kernel rounds otherwise).
const MAY_CHANGE: [&str; 8] = [
    "samples",
    "epochs",
    "threads",
    "pin",
    "kernel",
    "time_limit",
    "checkpoint_every",
    "checkpoint_seconds",
];

/// Options that checkpoints of earlier versions lack. As they are by default nothing else is done than what those
/// versions did: other options that come later change where a fit goes, and do not belong here.
const LATER_OPTIONS: [&str; 6] = [
    "burn_in",
    "thin",
    "matrix_weights",
    "valid_fraction",
    "refit",
    "mode_steps",
];

/// The same of the state.
const LATER_STATE: [&str; 3] = ["refit", "before", "ended"];

/// The options of a resumed fit: those of the checkpoint, but for what may change. What is left to the
/// library was settled when the fit began.
pub(super) fn resumed_options(now: &Options, saved: &Options) -> Result<Options> {
    let mut options = saved.clone();
    for option in OPTION_TABLE {
        let (a, b) = (
            now.get(option.name).unwrap_or_default(),
            saved.get(option.name).unwrap_or_default(),
        );
        if MAY_CHANGE.contains(&option.name) {
            options.set(option.name, &a)?;
        } else if a != b && a != "auto" {
            return Err(Error::argument(format!(
                "{} is {a} here and {b} in the checkpoint; a resumed fit keeps its options \
                 (start a new one from it, with init, to change them)",
                option.name
            )));
        }
    }
    Ok(options)
}

/// A checkpoint only continues on the data it was made on.
pub(super) fn same_shape(model: &Model, saved: &Model, input: &FitInput<'_>) -> Result<()> {
    let rows = |m: &Model| {
        m.modes
            .iter()
            .map(|x| (x.rows.dim(), x.rows.len()))
            .collect::<Vec<_>>()
    };
    let columns = |m: &Model| {
        m.matrices
            .iter()
            .map(|x| (x.mode, x.columns.dim(), x.columns.len()))
            .collect::<Vec<_>>()
    };
    if model.shape != saved.shape || rows(model) != rows(saved) || columns(model) != columns(saved)
    {
        return Err(other_data(input));
    }
    Ok(())
}

pub(super) fn other_data(input: &FitInput<'_>) -> Error {
    named(
        input,
        "was made on other data (entries, sizes, weights or validation entries differ); resume with the \
         same files and weights, or start a new fit from it (init)"
            .into(),
    )
}

/// An error of the checkpoint.
fn named(input: &FitInput<'_>, what: String) -> Error {
    let path = input.resume.as_ref().map(|p| p.display().to_string());
    Error::file(path.unwrap_or_default(), what)
}
