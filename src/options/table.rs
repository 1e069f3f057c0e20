//! The table of options and the struct that holds their values.

use super::choices::{
    ALGORITHMS, Algorithm, INITIALIZATIONS, Initialization, KERNELS, KernelChoice,
    LearningRateSchedule, MODELS, ModelKind, PENALTIES, PENALTY_SCALINGS, Penalty, PenaltyScaling,
    SCHEDULES,
};
use super::value::{OptionKind, OptionValue};
use crate::error::{Error, Result};

/// Penalty on biases if neither the options nor the data determine it.
pub(crate) const DEFAULT_LAMBDA_BIAS: f64 = 5.0;

/// One option of the table.
#[derive(Debug, Clone, Copy)]
pub struct OptionInfo {
    /// Name with underscores; the command line has dashes instead.
    pub name: &'static str,
    /// Type and range.
    pub kind: OptionKind,
    /// Default value, in the form that [`Options::set`] takes.
    pub default: &'static str,
    /// Help text.
    pub help: &'static str,
}

/// Defines [`Options`] and [`OPTION_TABLE`] from rows `name: type, kind, default, help;`.
macro_rules! options {
    ($($name:ident: $type:ty, $kind:expr, $default:literal, $help:literal;)+) => {
        /// The values of all options of a fit. Set fields directly, or by name with [`Options::set`].
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub struct Options {
            $(#[doc = $help] pub $name: $type,)+
        }

        /// All options, in the order of the help.
        pub const OPTION_TABLE: &[OptionInfo] = &[
            $(OptionInfo { name: stringify!($name), kind: $kind, default: $default, help: $help },)+
        ];

        impl Default for Options {
            fn default() -> Self {
                Options {
                    $($name: <$type as OptionValue>::parse($default, &$kind).expect("defaults are valid"),)+
                }
            }
        }

        impl Options {
            /// Sets an option by its name, written with underscores or dashes.
            pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
                let key = name.replace('-', "_");
                match key.as_str() {
                    $(stringify!($name) => {
                        self.$name = <$type as OptionValue>::parse(value, &$kind)
                            .map_err(|reason| Error::argument(format!("{key} = {value:?}: {reason}")))?;
                    })+
                    _ => {
                        return Err(Error::argument(format!(
                            "there is no option '{name}'; options are {}",
                            OPTION_TABLE.iter().map(|o| o.name).collect::<Vec<_>>().join(", ")
                        )));
                    }
                }
                Ok(())
            }

            /// Returns the value of an option in the form that [`Options::set`] takes; `None` if there is no such option.
            pub fn get(&self, name: &str) -> Option<String> {
                match name.replace('-', "_").as_str() {
                    $(stringify!($name) => Some(OptionValue::print(&self.$name)),)+
                    _ => None,
                }
            }

            /// Checks the ranges of all fields, as [`Options::set`] does for text.
            pub fn validate(&self) -> Result<()> {
                let mut parsed = Options::default();
                $(parsed.set(stringify!($name), &OptionValue::print(&self.$name))?;)+
                Ok(())
            }
        }
    };
}

options! {
    algorithm: Algorithm, OptionKind::Choice(ALGORITHMS), "blocked",
        "How the model is fitted: blocked is fast and reproducible with any number of threads; opt and naive are the paper's lock-free algorithms, with results shared between modes and with each mode computed anew; als finds the best row given everything else, one after the other; gibbs draws rows and averages predictions, the most accurate";
    model: ModelKind, OptionKind::Choice(MODELS), "auto",
        "A full core (tucker) or a hyper-diagonal one (cp); auto is cp if the rank is left to the library, else tucker";
    rank: Vec<usize>, OptionKind::IntegerList(1, 1024), "auto",
        "The rank of each mode, or one for all; auto goes by the size of the data";
    epochs: u64, OptionKind::Integer(0, 1_000_000), "30",
        "The most passes over the data";
    eta: Option<f64>, OptionKind::Real(0.0, 1e6), "auto",
        "The step size at the start";
    schedule: LearningRateSchedule, OptionKind::Choice(SCHEDULES), "square",
        "How the step size falls: eta (1 - t / epochs)^2 (square) or eta / (1 + decay t) (inverse)";
    decay: f64, OptionKind::Real(0.0, 1e6), "0.1",
        "How fast the step size falls with the inverse schedule";
    core_step: Option<f64>, OptionKind::Real(0.0, 1e6), "auto",
        "The step size of the core, as a share of that of factors";
    mean: bool, OptionKind::Flag, "true",
        "Take the mean out of the values and scale them inside; predictions are those of the values as they are";
    biases: bool, OptionKind::Flag, "true",
        "One number per row of every mode beside the factors, which is added to predictions; not with nonneg";
    lambda_bias: Vec<f64>, OptionKind::RealList(0.0, f64::MAX), "auto",
        "The penalty on biases of each mode, or one for all: acts like so many more entries of bias 0 in every row; auto is the noise over what rows of a mode differ by, in variances";
    lambda_reg: Option<f64>, OptionKind::Real(0.0, f64::MAX), "auto",
        "The weight of the penalty on factors, core and columns of matrices; auto goes by the noise found in the data";
    penalty_per: PenaltyScaling, OptionKind::Choice(PENALTY_SCALINGS), "root",
        "Whether the penalty of a row is the same for all (row) or grows with the root of its entries (root) or with its entries (entry)";
    lambda_m: f64, OptionKind::Real(0.0, f64::MAX), "1",
        "The weight of coupled matrices and graphs that are given without one of their own";
    penalty: Penalty, OptionKind::Choice(PENALTIES), "l2",
        "Whether squares (l2) or absolute values (l1) are penalised";
    start: Initialization, OptionKind::Choice(INITIALIZATIONS), "auto",
        "Initial factors and core: the last sample of a short Gibbs chain (drawn), the two largest modes around 0 and the others near 1 with a diagonal core (identity), all positive and nearly constant (paper), or all normal around 0 (normal); auto is drawn, or paper with nonneg; gibbs always starts as identity, with its smaller modes along spectral directions";
    nonneg: bool, OptionKind::Flag, "false",
        "Keep factors, core and columns of matrices at 0 or above";
    orthogonal: bool, OptionKind::Flag, "true",
        "Make the columns of each factor orthonormal at the end (tucker without nonneg only)";
    clip: bool, OptionKind::Flag, "true",
        "Limit predictions to the range of the training values when errors are measured";
    burn_in: u64, OptionKind::Integer(0, 1_000_000), "8",
        "Sweeps of gibbs before its first sample";
    samples: u64, OptionKind::Integer(1, 100_000), "50",
        "Posterior samples of gibbs that predictions are averaged over; gibbs runs burn_in + samples sweeps, and up to three times as many to replace samples from before the chain had burned in; epochs does not limit it";
    tolerance: f64, OptionKind::Real(0.0, 1.0), "0",
        "Stop when the training loss changes by less than this share between two evaluations; 0 never does";
    patience: u64, OptionKind::Integer(0, 1_000_000), "0",
        "Stop after this many evaluations without a better validation error, and keep the best model; 0 never does";
    valid_fraction: f64, OptionKind::Real(0.0, 1.0), "0",
        "Fraction of the entries to hold out at random; their error decides which epoch is best and, with patience, when to stop; the model of the best epoch is kept; 0 holds out none";
    time_limit: f64, OptionKind::Real(0.0, f64::MAX), "0",
        "Stop after this many seconds of fitting; 0 never does";
    eval_every: u64, OptionKind::Integer(1, 1_000_000), "1",
        "Measure errors after every so many epochs";
    checkpoint_every: u64, OptionKind::Integer(1, 1_000_000), "1",
        "Write the checkpoint after every so many epochs";
    threads: u64, OptionKind::Integer(0, 4096), "0",
        "The number of threads; 0 takes all this process may use";
    pin: bool, OptionKind::Flag, "true",
        "Keep each thread on a core of its own";
    kernel: KernelChoice, OptionKind::Choice(KERNELS), "auto",
        "The instruction set; auto takes the fastest there is, or what S3CMTF_KERNEL says";
    seed: u64, OptionKind::Integer(0, u64::MAX), "0",
        "Decides everything that is random";
}

impl Options {
    /// Returns the penalty on the biases of mode `n`.
    pub(crate) fn bias_penalty(&self, n: usize) -> f64 {
        let per_mode = &self.lambda_bias;
        let position = if per_mode.len() == 1 { 0 } else { n };
        per_mode
            .get(position)
            .copied()
            .unwrap_or(DEFAULT_LAMBDA_BIAS)
    }

    /// Parses text that [`Options::to_text`] wrote, perhaps in another version. Unknown options are ignored, among them
    /// those that earlier versions had. The removed value `start=sgd` is read as `identity`, which has the same prior means.
    pub(crate) fn from_saved_text(text: &str) -> Result<Options> {
        let is_known = |line: &&str| {
            let name = line.split('=').next().unwrap_or_default();
            OPTION_TABLE.iter().any(|o| o.name == name)
        };
        let current = |line| {
            if line == "start=sgd" {
                "start=identity"
            } else {
                line
            }
        };
        let known: Vec<&str> = text.lines().filter(is_known).map(current).collect();
        Options::from_text(&known.join("\n"))
    }

    /// Sets the options named in lines `name=value`. Empty lines and lines that start with `#` are skipped.
    pub fn apply_text(&mut self, text: &str) -> Result<()> {
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (name, value) = line
                .split_once('=')
                .ok_or_else(|| Error::argument(format!("expected name=value, found {line:?}")))?;
            self.set(name.trim(), value.trim())?;
        }
        Ok(())
    }

    /// Returns all options as lines `name=value`, which [`Options::from_text`] parses.
    pub fn to_text(&self) -> String {
        OPTION_TABLE
            .iter()
            .map(|o| format!("{}={}\n", o.name, self.get(o.name).unwrap_or_default()))
            .collect()
    }

    /// Parses lines `name=value`; options that are not named keep their defaults.
    pub fn from_text(text: &str) -> Result<Options> {
        let mut options = Options::default();
        options.apply_text(text)?;
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_parses_prints_and_rejects_invalid_values() {
        let mut options = Options::default();
        for info in OPTION_TABLE {
            assert_eq!(
                options.get(info.name).unwrap(),
                info.default,
                "{}",
                info.name
            );
            options.set(info.name, info.default).unwrap();
            options
                .set(&info.name.replace('_', "-"), info.default)
                .unwrap();
            let invalid = match info.kind {
                OptionKind::Flag => vec!["maybe", ""],
                OptionKind::Integer(..) => vec!["-1", "1.5", "x", ""],
                OptionKind::Real(..) => vec!["nan", "inf", "-1", "x"],
                OptionKind::Choice(_) => vec!["", "none"],
                OptionKind::IntegerList(..) => {
                    vec!["0", "1,0", "", "1,2,3,4,5,6,7,8,9", "5000", "1,,2"]
                }
                OptionKind::RealList(..) => vec!["", "1,-1", "1,,2", "nan", "x"],
            };
            for value in invalid {
                let error = options.set(info.name, value).unwrap_err().to_string();
                assert!(
                    error.contains(info.name) && error.contains("must be"),
                    "{error}"
                );
            }
        }
        assert_eq!(options, Options::default());
        options.rank = vec![3, 4, 5];
        options.eta = Some(0.1 + 0.2);
        options.nonneg = true;
        options.lambda_bias = vec![0.1 + 0.2, 0.0, 1e300];
        assert_eq!(Options::from_text(&options.to_text()).unwrap(), options);
        options.eta = Some(f64::NAN);
        assert!(options.validate().is_err());
        assert!(
            Options::default()
                .set("lerning_rate", "1")
                .unwrap_err()
                .to_string()
                .contains("lambda_reg")
        );
    }

    #[test]
    fn saved_options_of_earlier_versions_are_read() {
        let mut expected = Options::default();
        (expected.rank, expected.start) = (vec![7], Initialization::Identity);
        let saved = "rank=7\nmode_steps=1,0.5\nmatrix_weights=auto\nstart=sgd\nstart_modes=1,2\nthin=2\n\
                     refit=true\nattempts=10\ncheckpoint_seconds=0\n";
        assert_eq!(Options::from_saved_text(saved).unwrap(), expected);
        // Only saved text may have them.
        for line in saved.lines().skip(1) {
            assert!(Options::from_text(line).is_err(), "{line}");
        }
    }
}
