//! The part of a checkpoint beside the model, and the conditions under which a fit can be resumed from it.

use super::algorithm::{AlgorithmState, BlockedState};
use super::input::FitInput;
use super::rowwise::NoiseModel;
use crate::error::{Error, Result};
use crate::model::{Checkpoint, MAX_EPOCH, Model};
use crate::options::{OPTION_TABLE, OptionInfo, OptionRole, Options};

/// State of a fit between two epochs that a checkpoint keeps besides the model. The names in a checkpoint are those of
/// [`Progress::fields`].
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Progress {
    /// Number of epochs completed.
    pub epoch: u64,
    /// Number of rollbacks.
    pub attempts: u64,
    /// Factor of the learning rate after these rollbacks.
    pub eta_scale: f64,
    /// Loss of the starting values; NaN before it is measured.
    pub first_loss: f64,
    /// Loss of the last epoch that the stopping rules considered.
    pub last_loss: f64,
    /// Lowest loss of these epochs.
    pub lowest_loss: f64,
    /// Lowest validation error, and its epoch.
    pub best_valid: f64,
    pub best_epoch: u64,
    /// Number of evaluations since then.
    pub epochs_since_best: u64,
    pub algorithm: AlgorithmState,
    /// Checksum of the data, which must be the same when the fit is resumed.
    pub data_fingerprint: u64,
}

impl Progress {
    /// Returns the state before the first epoch.
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
            epochs_since_best: 0,
            algorithm: AlgorithmState::default(),
            data_fingerprint: 0,
        }
    }

    /// Returns all fields under their names in a checkpoint.
    fn fields(&mut self) -> [(&'static str, Field<'_>); 17] {
        let AlgorithmState { blocked, noise } = &mut self.algorithm;
        [
            ("epoch", Field::Integer(&mut self.epoch)),
            ("attempts", Field::Integer(&mut self.attempts)),
            ("eta_scale", Field::Real(&mut self.eta_scale)),
            ("first_loss", Field::Real(&mut self.first_loss)),
            ("last_loss", Field::Real(&mut self.last_loss)),
            ("lowest_loss", Field::Real(&mut self.lowest_loss)),
            ("best_valid", Field::Real(&mut self.best_valid)),
            ("best_epoch", Field::Integer(&mut self.best_epoch)),
            ("since_best", Field::Integer(&mut self.epochs_since_best)),
            ("sweeps", Field::Integer(&mut blocked.passes_per_epoch)),
            ("sweep_error", Field::Real(&mut blocked.last_pass_error)),
            (
                "pass_divergence",
                Field::Real(&mut blocked.last_pass_divergence),
            ),
            (
                "curvature_interval",
                Field::Real(&mut blocked.curvature_interval),
            ),
            ("noise_ratio", Field::Real(&mut noise.variance_ratio)),
            ("interval_ratio", Field::Real(&mut noise.interval_ratio)),
            ("biases_only", Field::Flag(&mut noise.has_biases_only)),
            ("data", Field::Integer(&mut self.data_fingerprint)),
        ]
    }

    /// Returns the text of a checkpoint: one line `name=value` per field. Floats are written as the hexadecimal digits of
    /// their bits, so that a resumed fit is exactly where it was.
    pub(super) fn to_text(&self) -> String {
        let mut copy = self.clone();
        copy.fields()
            .into_iter()
            .map(|(name, field)| match field {
                Field::Integer(x) => format!("{name}={x}\n"),
                Field::Flag(x) => format!("{name}={}\n", u8::from(*x)),
                Field::Real(x) => format!("{name}={:016x}\n", x.to_bits()),
            })
            .collect()
    }

    /// Reads the state from a checkpoint, which has exactly the options and fields of this version.
    pub(super) fn from_checkpoint(saved: &Checkpoint, input: &FitInput<'_>) -> Result<Progress> {
        let fields = Progress::new().fields().map(|(name, _)| name);
        let options: Vec<&str> = OPTION_TABLE.iter().map(|o| o.name).collect();
        let (mut lacks, mut unknown) = (Vec::new(), Vec::new());
        for (known, text) in [(&options[..], &saved.options), (&fields[..], &saved.state)] {
            let found: Vec<&str> = lines(text).map(|(name, _)| name).collect();
            lacks.extend(known.iter().filter(|name| !found.contains(name)));
            unknown.extend(found.iter().filter(|name| !known.contains(name)));
        }
        let incompatible = |how: &str, names: Vec<&str>| {
            let by = match &saved.library {
                Some(version) => format!("s3cmtf {version}"),
                None => "an s3cmtf that did not note its version".into(),
            };
            Err(checkpoint_error(
                input,
                format!(
                    "cannot be resumed: it was written by {by} and {how} {}; resume it with the version that \
                     wrote it, or start a new fit from it (init)",
                    names.join(", ")
                ),
            ))
        };
        if !lacks.is_empty() {
            return incompatible("lacks", lacks);
        }
        if !unknown.is_empty() {
            return incompatible("has what this version does not know:", unknown);
        }
        let refuse = |what: &str| {
            Err(checkpoint_error(
                input,
                format!("{what}; it was not written by this library"),
            ))
        };
        let Some(progress) = Progress::from_text(&saved.state) else {
            return refuse("its state cannot be read");
        };
        match progress.invalid_field() {
            Some(name) => refuse(&format!("'{name}' of its state has an invalid value")),
            None => Ok(progress),
        }
    }

    /// Returns the name of a field that no fit reaches; `None` if there is none.
    fn invalid_field(&self) -> Option<&'static str> {
        // A new field has to be considered here.
        let Progress {
            epoch,
            attempts,
            eta_scale,
            first_loss,
            last_loss,
            lowest_loss,
            best_valid,
            best_epoch,
            epochs_since_best,
            algorithm:
                AlgorithmState {
                    blocked:
                        BlockedState {
                            passes_per_epoch,
                            last_pass_error,
                            last_pass_divergence,
                            curvature_interval,
                        },
                    noise:
                        NoiseModel {
                            variance_ratio,
                            interval_ratio,
                            has_biases_only: _,
                        },
                },
            data_fingerprint: _,
        } = *self;
        // Losses and errors that were not measured are NaN or infinite.
        let is_error = |x: f64| x.is_nan() || x >= 0.0;
        let is_positive = |x: f64| x.is_finite() && x > 0.0;
        let is_initial = passes_per_epoch == BlockedState::default().passes_per_epoch;
        let fields = [
            ("epoch", epoch <= MAX_EPOCH),
            ("attempts", attempts <= MAX_EPOCH),
            ("eta_scale", is_positive(eta_scale) && eta_scale <= 1.0),
            ("first_loss", is_error(first_loss)),
            ("last_loss", is_error(last_loss)),
            ("lowest_loss", is_error(lowest_loss)),
            ("best_valid", is_error(best_valid)),
            ("best_epoch", best_epoch <= epoch),
            ("since_best", epochs_since_best <= MAX_EPOCH),
            ("sweeps", passes_per_epoch.is_power_of_two() || is_initial),
            ("sweep_error", is_error(last_pass_error)),
            ("pass_divergence", is_error(last_pass_divergence)),
            (
                "curvature_interval",
                curvature_interval.is_finite() && curvature_interval >= 0.0,
            ),
            ("noise_ratio", is_positive(variance_ratio)),
            ("interval_ratio", is_positive(interval_ratio)),
        ];
        let invalid = fields.into_iter().find(|(_, is_valid)| !is_valid);
        invalid.map(|(name, _)| name)
    }

    /// Reads the fields that are present; `None` if one cannot be parsed.
    fn from_text(text: &str) -> Option<Progress> {
        let mut progress = Progress::new();
        for (name, field) in progress.fields() {
            let Some((_, value)) = lines(text).find(|(n, _)| *n == name) else {
                continue;
            };
            match field {
                Field::Integer(x) => *x = value.parse().ok()?,
                Field::Flag(x) => *x = value.parse::<u8>().ok().filter(|x| *x <= 1)? == 1,
                Field::Real(x) => *x = f64::from_bits(u64::from_str_radix(value, 16).ok()?),
            }
        }
        Some(progress)
    }
}

/// Returns the names and values of lines `name=value`.
fn lines(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|l| l.split_once('='))
}

/// A field of [`Progress`].
enum Field<'a> {
    Integer(&'a mut u64),
    Real(&'a mut f64),
    Flag(&'a mut bool),
}

/// Returns the options of a resumed fit: those of the checkpoint, except for changeable ones. An option that is given now
/// must be the same as in the checkpoint, if it has an effect; `auto` was resolved when the fit began.
pub(super) fn resumed_options(given: &Options, saved: &Options) -> Result<Options> {
    let mut options = saved.clone();
    let has_effect = |option: &OptionInfo| {
        let is_baseline = ["mean", "biases"].contains(&option.name);
        option.is_used_by(saved.algorithm) && (saved.allows_baseline() || !is_baseline)
    };
    for option in OPTION_TABLE {
        let (a, b) = (
            given.get(option.name).unwrap_or_default(),
            saved.get(option.name).unwrap_or_default(),
        );
        if option.has_role(OptionRole::Changeable) {
            options.set(option.name, &a)?;
        } else if a != b && a != "auto" && has_effect(option) {
            return Err(Error::argument(format!(
                "{} is {a} here and {b} in the checkpoint; a resumed fit keeps its options \
                 (start a new one from it, with init, to change them)",
                option.name
            )));
        }
    }
    options.make_effective();
    options.given.clone_from(&given.given);
    Ok(options)
}

/// Returns an error unless the model of a checkpoint has the same ranks, rows, columns and biases.
pub(super) fn check_shape(model: &Model, saved: &Model, input: &FitInput<'_>) -> Result<()> {
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
        return Err(different_data(input));
    }
    for (n, (mode, saved)) in model.modes.iter().zip(&saved.modes).enumerate() {
        if mode.biases.len() != saved.biases.len() {
            return Err(checkpoint_error(
                input,
                format!(
                    "has {} biases of mode {} instead of {}; it was not written by this library",
                    saved.biases.len(),
                    n + 1,
                    mode.biases.len()
                ),
            ));
        }
    }
    Ok(())
}

/// Returns the error of a checkpoint that was made on other data.
pub(super) fn different_data(input: &FitInput<'_>) -> Error {
    checkpoint_error(
        input,
        "was made on other data (entries, sizes, weights or validation entries differ); resume with the \
         same files and weights, or start a new fit from it (init)"
            .into(),
    )
}

/// Returns an error that names the checkpoint.
fn checkpoint_error(input: &FitInput<'_>, what: String) -> Error {
    let path = input.resume.as_ref().map(|p| p.display().to_string());
    Error::file(path.unwrap_or_default(), what)
}
