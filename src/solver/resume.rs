//! The part of a checkpoint beside the model, and the conditions under which a fit can be resumed from it.

use super::algorithm_factory;
use super::algorithm_state::{AlgorithmState, NamedFields, StateField, lines};
use super::input::FitInput;
use crate::error::{Error, Result};
use crate::model::{Checkpoint, MAX_EPOCH, Model};
use crate::options::{OptionInfo, OptionRole, Options};

/// State of a fit between two epochs that a checkpoint keeps besides the model.
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
    /// Returns the text of a checkpoint: one line `name=value` per field.
    pub(super) fn to_text(&self) -> String {
        let own = AlgorithmState::of(self);
        format!("{}{}", own.as_text(), self.algorithm.as_text())
    }

    /// Reads the state from a checkpoint, which has exactly the options and fields of this version.
    pub(super) fn from_checkpoint(
        saved: &Checkpoint,
        saved_options: &Options,
        input: &FitInput<'_>,
    ) -> Result<Progress> {
        let algorithm = algorithm_factory::definition(saved_options);
        let (of_driver, of_algorithm) = (
            AlgorithmState::of(&Progress::default()),
            algorithm.initial_state(),
        );
        let of_algorithm: Vec<&str> = of_algorithm.names().collect();
        let fields = of_driver.names().chain(of_algorithm.iter().copied());
        let fields: Vec<&str> = fields.collect();
        let options = saved_options.all_options();
        let options: Vec<&str> = options.iter().map(|o| o.name).collect();
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
        let state = AlgorithmState::from_lines(&saved.state);
        let algorithm_state = state.with_names(&of_algorithm);
        let checked = state
            .check::<Progress>()
            .and_then(|()| algorithm.check_state(&algorithm_state));
        if let Err(what) = checked {
            return refuse(&what);
        }
        Ok(Progress {
            algorithm: algorithm_state,
            ..state.read().unwrap_or_default()
        })
    }
}

impl Default for Progress {
    /// Returns the state before the first epoch.
    fn default() -> Self {
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
}

impl NamedFields for Progress {
    fn fields(&mut self) -> Vec<(&'static str, StateField<'_>)> {
        vec![
            ("epoch", StateField::Integer(&mut self.epoch)),
            ("attempts", StateField::Integer(&mut self.attempts)),
            ("eta_scale", StateField::Real(&mut self.eta_scale)),
            ("first_loss", StateField::Real(&mut self.first_loss)),
            ("last_loss", StateField::Real(&mut self.last_loss)),
            ("lowest_loss", StateField::Real(&mut self.lowest_loss)),
            ("best_valid", StateField::Real(&mut self.best_valid)),
            ("best_epoch", StateField::Integer(&mut self.best_epoch)),
            (
                "since_best",
                StateField::Integer(&mut self.epochs_since_best),
            ),
            ("data", StateField::Integer(&mut self.data_fingerprint)),
        ]
    }

    fn invalid_field(&self) -> Option<&'static str> {
        // Losses and errors that were not measured are NaN or infinite.
        let is_error = |x: f64| x.is_nan() || x >= 0.0;
        let scale = self.eta_scale;
        let fields = [
            ("epoch", self.epoch <= MAX_EPOCH),
            ("attempts", self.attempts <= MAX_EPOCH),
            (
                "eta_scale",
                scale.is_finite() && scale > 0.0 && scale <= 1.0,
            ),
            ("first_loss", is_error(self.first_loss)),
            ("last_loss", is_error(self.last_loss)),
            ("lowest_loss", is_error(self.lowest_loss)),
            ("best_valid", is_error(self.best_valid)),
            ("best_epoch", self.best_epoch <= self.epoch),
            ("since_best", self.epochs_since_best <= MAX_EPOCH),
        ];
        let invalid = fields.into_iter().find(|(_, is_valid)| !is_valid);
        invalid.map(|(name, _)| name)
    }
}

/// Returns the options of a resumed fit: those of the checkpoint, except for changeable ones. An option that is given now
/// must be the same as in the checkpoint, if it has an effect; `auto` was resolved when the fit began.
pub(super) fn resumed_options(given: &Options, saved: &Options) -> Result<Options> {
    let mut options = saved.clone();
    let has_effect = |option: &OptionInfo| {
        let is_baseline = ["mean", "biases"].contains(&option.name);
        option.is_used_by(saved.algorithm) && (saved.allows_baseline() || !is_baseline)
    };
    for option in saved.all_options() {
        let (a, b) = (
            given.get(option.name).unwrap_or_default(),
            saved.get(option.name).unwrap_or_default(),
        );
        if option.has_role(OptionRole::Changeable) {
            options.set(option.name, &a)?;
        } else if a != b && a != "auto" && has_effect(&option) {
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
