//! The table of options and the struct that holds their values.

use super::algorithms::{ALGORITHMS, Algorithm, ZeroFilling};
use super::choices::{
    INITIALIZATIONS, Initialization, KERNELS, KernelChoice, LIKELIHOODS, LearningRateSchedule,
    LikelihoodChoice, MODELS, ModelKind, PENALTIES, PENALTY_SCALINGS, Penalty, PenaltyScaling,
    SCHEDULES, UNOBSERVED, Unobserved,
};
use super::value::{OptionKind, OptionValue};
use crate::error::{Error, Result};
use crate::nearest_name::did_you_mean;

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
    /// A valid value other than the default.
    pub example: &'static str,
    is_used_by: UsedBy,
    roles: &'static [OptionRole],
}

/// How an option is treated apart from a single fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OptionRole {
    /// It is the same for all trials of a search: it defines how a fit runs or is measured.
    NotSearched,
    /// It does not affect the model, so the file of a search does not have it.
    NotSaved,
    /// A resumed fit may change it, because it does not alter the course of the fit. (Another kernel only rounds differently.)
    Changeable,
}

impl OptionInfo {
    /// Returns the algorithms that use the option. The others ignore it, or refuse a value that they do not support.
    pub fn algorithms(&self) -> impl Iterator<Item = Algorithm> {
        let is_used_by = self.is_used_by;
        let all = Algorithm::ALL.iter().copied();
        all.filter(move |algorithm| is_used_by(*algorithm))
    }

    /// Returns whether the option has a role.
    pub(crate) fn has_role(&self, role: OptionRole) -> bool {
        self.roles.contains(&role)
    }
}

/// Which algorithms use an option.
type UsedBy = fn(Algorithm) -> bool;

const ALL: UsedBy = |_| true;
const SINGLE_MODEL: UsedBy = |a| a.properties().has_single_model;
const BIASED: UsedBy = |a| a.properties().has_biases;
const SGD: UsedBy = |a| a.properties().has_learning_rate;
const PENALIZED: UsedBy = |a| a.properties().has_penalties;
const CONSTRAINED: UsedBy = |a| a.properties().has_constraints;
const COUPLED: UsedBy = |a| a.properties().has_matrices;
const ZERO_FILLED_BY_OPTION: UsedBy = |a| a.properties().zero_filling == ZeroFilling::Optional;

/// Defines [`Options`] and [`OPTION_TABLE`] from rows `name: type, kind, default, used by, [roles], example, help;`.
macro_rules! options {
    ($($name:ident: $type:ty, $kind:expr, $default:literal, $used_by:expr, [$($role:ident),*], $example:literal, $help:literal;)+) => {
        /// The values of all options of a fit. Set fields directly, or by name with [`Options::set`].
        #[derive(Debug, Clone)]
        #[non_exhaustive]
        pub struct Options {
            $(#[doc = $help] pub $name: $type,)+
            /// The names of options that were set by name, other than by a preset. Options are equal if their values are.
            pub(crate) given: Vec<&'static str>,
        }

        impl PartialEq for Options {
            fn eq(&self, other: &Options) -> bool {
                $(self.$name == other.$name)&&+
            }
        }

        /// All options, in the order of the help.
        pub const OPTION_TABLE: &[OptionInfo] = &[
            $(OptionInfo {
                name: stringify!($name),
                kind: $kind,
                default: $default,
                help: $help,
                example: $example,
                is_used_by: $used_by,
                roles: &[$(OptionRole::$role),*],
            },)+
        ];

        impl Default for Options {
            fn default() -> Self {
                Options {
                    $($name: <$type as OptionValue>::parse($default, &$kind).expect("defaults are valid"),)+
                    given: Vec::new(),
                }
            }
        }

        impl Options {
            /// Sets an option by its name, written with underscores or dashes. Another algorithm changes the number of epochs to its
            /// default, unless that was set.
            pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
                let key = name.replace('-', "_");
                let has_default_epochs = self.has_default_epochs();
                match key.as_str() {
                    $(stringify!($name) => {
                        self.$name = <$type as OptionValue>::parse(value, &$kind)
                            .map_err(|reason| Error::argument(format!("{key} = {value:?}: {reason}")))?;
                        if !self.given.contains(&stringify!($name)) {
                            self.given.push(stringify!($name));
                        }
                    })+
                    _ => {
                        let names = || OPTION_TABLE.iter().map(|o| o.name);
                        let hint = match did_you_mean(&key, names()) {
                            none if none.is_empty() => {
                                format!("; options are {}", names().collect::<Vec<_>>().join(", "))
                            }
                            suggestion => suggestion,
                        };
                        return Err(Error::argument(format!("there is no option '{name}'{hint}")));
                    }
                }
                if key == "algorithm" && has_default_epochs {
                    self.epochs = self.algorithm.properties().default_epochs;
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
    algorithm: Algorithm, OptionKind::Choice(ALGORITHMS), "blocked", ALL, [NotSearched], "als",
        "Algorithm: blocked (SGD), gibbs (slower, usually more accurate) or als; of the paper: opt, naive, sals, cmtf-opt, tucker-als";
    model: ModelKind, OptionKind::Choice(MODELS), "auto", ALL, [], "cp",
        "Core tensor: tucker, cp, or auto (cp if rank is auto)";
    rank: Vec<usize>, OptionKind::IntegerList(1, 1024), "auto", ALL, [], "3",
        "Rank of each mode, or one for all; auto: by data size";
    epochs: u64, OptionKind::Integer(0, 1_000_000), "30", SINGLE_MODEL, [Changeable], "5",
        "Maximum number of passes (cmtf-opt: 500; not gibbs)";
    eta: Option<f64>, OptionKind::Real(0.0, f64::MAX), "auto", SGD, [], "0.3",
        "Initial learning rate of SGD";
    schedule: LearningRateSchedule, OptionKind::Choice(SCHEDULES), "square", SGD, [], "inverse",
        "Learning rate schedule: square (to 0) or inverse";
    decay: f64, OptionKind::Real(0.0, 1e6), "0.1", SGD, [], "0.9",
        "Decay of schedule inverse, eta / (1 + decay t)";
    core_step: Option<f64>, OptionKind::Real(0.0, 1e6), "auto", SGD, [], "3",
        "Learning rate of the core relative to the factors";
    mean: bool, OptionKind::Flag, "true", PENALIZED, [], "false",
        "Subtract the mean (standardize the values) while fitting";
    biases: bool, OptionKind::Flag, "true", BIASED, [], "false",
        "Fit a bias for each row of each mode";
    lambda_bias: Vec<f64>, OptionKind::RealList(0.0, f64::MAX), "auto", PENALIZED, [], "40",
        "Penalty on biases, one or per mode; auto: estimated";
    lambda_reg: Option<f64>, OptionKind::Real(0.0, f64::MAX), "auto", PENALIZED, [], "9",
        "Penalty on factors, core and columns; auto: estimated";
    penalty_per: PenaltyScaling, OptionKind::Choice(PENALTY_SCALINGS), "root", PENALIZED, [], "row",
        "Penalty of a row with n entries: 1 (row), root of n, n (entry)";
    lambda_m: Vec<f64>, OptionKind::RealList(0.0, f64::MAX), "auto", COUPLED, [], "3",
        "Weight of matrices without one; auto: 1, or 0 if none is better";
    penalty: Penalty, OptionKind::Choice(PENALTIES), "l2", SGD, [], "l1",
        "Penalty norm: l2 (squares) or l1 (absolute values)";
    start: Initialization, OptionKind::Choice(INITIALIZATIONS), "auto", PENALIZED, [], "normal",
        "Initial factors: drawn (by a short Gibbs chain), identity, paper or normal; auto is drawn, or paper with nonneg";
    nonneg: bool, OptionKind::Flag, "false", CONSTRAINED, [], "true",
        "Keep factors, core and columns non-negative; no mean, no biases";
    orthogonal: bool, OptionKind::Flag, "true", CONSTRAINED, [], "false",
        "Orthonormalize the factor columns after fitting (tucker)";
    clip: Option<bool>, OptionKind::Flag, "auto", ALL, [NotSearched], "true",
        "Clip predictions to the training range; auto: on bounded scales";
    burn_in: u64, OptionKind::Integer(0, 1_000_000), "8", |a| a == Algorithm::Gibbs, [], "2",
        "Gibbs sweeps before the first sample";
    samples: u64, OptionKind::Integer(1, 100_000), "50", |a| a == Algorithm::Gibbs, [Changeable], "2",
        "Number of posterior samples to average over";
    likelihood: LikelihoodChoice, OptionKind::Choice(LIKELIHOODS), "auto", |a| a == Algorithm::Gibbs, [], "probit",
        "Gaussian or probit (two values); auto: held-out error";
    tolerance: f64, OptionKind::Real(0.0, 1.0), "0", ALL, [NotSearched], "0.01",
        "Stop at this relative change of the loss; 0: never";
    patience: u64, OptionKind::Integer(0, 1_000_000), "0", ALL, [NotSearched], "3",
        "Stop after N evaluations without improvement; 0: never";
    valid_fraction: f64, OptionKind::Real(0.0, 1.0), "0", SINGLE_MODEL, [NotSearched], "0.1",
        "Fraction of entries to hold out for validation; 0: none";
    time_limit: f64, OptionKind::Real(0.0, f64::MAX), "0", ALL, [NotSearched, NotSaved, Changeable], "60",
        "Stop after this many seconds in all; 0: never";
    eval_every: u64, OptionKind::Integer(1, 1_000_000), "1", ALL, [NotSearched], "2",
        "Epochs between two evaluations of the errors";
    checkpoint_every: u64, OptionKind::Integer(1, 1_000_000), "1", ALL, [NotSearched, Changeable], "2",
        "Epochs between two checkpoints";
    threads: u64, OptionKind::Integer(0, 4096), "0", ALL, [NotSearched, NotSaved, Changeable], "1",
        "Number of threads; 0: all available cores";
    pin: bool, OptionKind::Flag, "true", ALL, [NotSearched, NotSaved, Changeable], "false",
        "Pin each thread to a core";
    kernel: KernelChoice, OptionKind::Choice(KERNELS), "auto", ALL, [NotSearched, NotSaved, Changeable], "scalar",
        "Instruction set: auto, scalar, wide, avx2 or avx512";
    seed: u64, OptionKind::Integer(0, u64::MAX), "0", ALL, [NotSearched], "1",
        "Random seed";
    subset_size: u64, OptionKind::Integer(1, 1024), "10", |a| a == Algorithm::Sals, [], "1",
        "Columns that sals updates together";
    inner_epochs: u64, OptionKind::Integer(1, 1000), "1", |a| a == Algorithm::Sals, [], "2",
        "Updates of each such subset of columns per epoch (sals)";
    unobserved: Unobserved, OptionKind::Choice(UNOBSERVED), "unknown", ZERO_FILLED_BY_OPTION, [NotSearched], "zeros",
        "Cells without an entry: unknown or zeros (cmtf-opt)";
}

impl Options {
    /// Returns whether cells of the tensor and of observed matrices without an entry are 0, instead of unknown. There are then
    /// neither mean nor biases, and predictions for rows without entries are 0.
    pub fn is_zero_filled(&self) -> bool {
        match self.algorithm.properties().zero_filling {
            ZeroFilling::Never => false,
            ZeroFilling::Optional => self.unobserved == Unobserved::Zeros,
            ZeroFilling::Always => true,
        }
    }

    /// Returns whether a mean and biases can be subtracted from the values: not if they must stay non-negative, nor where cells
    /// without an entry are 0.
    pub(crate) fn allows_baseline(&self) -> bool {
        !self.nonneg && !self.is_zero_filled()
    }

    /// Returns the penalty on the biases of mode `n`.
    pub(crate) fn bias_penalty(&self, n: usize) -> f64 {
        let per_mode = &self.lambda_bias;
        let position = if per_mode.len() == 1 { 0 } else { n };
        per_mode
            .get(position)
            .copied()
            .unwrap_or(DEFAULT_LAMBDA_BIAS)
    }

    /// Parses text that [`Options::to_text`] wrote. Options of a later version are ignored; none counts as given.
    pub(crate) fn from_saved_text(text: &str) -> Result<Options> {
        let is_known = |line: &&str| {
            let name = line.split('=').next().unwrap_or_default();
            OPTION_TABLE.iter().any(|o| o.name == name)
        };
        let known: Vec<&str> = text.lines().filter(is_known).collect();
        let mut options = Options::from_text(&known.join("\n"))?;
        options.given.clear();
        Ok(options)
    }

    /// Returns whether the number of epochs is the default of the algorithm and was not set.
    fn has_default_epochs(&self) -> bool {
        !self.given.contains(&"epochs") && self.epochs == self.algorithm.properties().default_epochs
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
        let error = |name: &str, value: &str| {
            let error = Options::default().set(name, value).unwrap_err();
            error.to_string()
        };
        assert!(error("iterations", "1").contains("epochs, eta"));
        assert!(error("lambda-rge", "1").ends_with("did you mean 'lambda_reg'?"));
        assert!(error("algorithm", "gibs").ends_with("did you mean 'gibbs'?"));
    }

    #[test]
    fn the_number_of_epochs_follows_the_algorithm_until_it_is_set() {
        let epochs = |text: &str| Options::from_text(text).unwrap().epochs;
        for algorithm in Algorithm::ALL {
            let default = algorithm.properties().default_epochs;
            assert_eq!(epochs(&format!("algorithm={}", algorithm.name())), default);
        }
        assert_eq!(Options::default().epochs, epochs("algorithm=blocked"));
        assert_eq!(epochs("algorithm=cmtf-opt"), 500);
        assert_eq!(epochs("algorithm=cmtf-opt\nalgorithm=als"), 30);
        assert_eq!(epochs("epochs=30\nalgorithm=cmtf-opt"), 30);
        assert_eq!(epochs("algorithm=cmtf-opt\nepochs=30"), 30);
        let mut options = Options::preset("paper").unwrap();
        options.set("algorithm", "cmtf-opt").unwrap();
        assert_eq!(options.epochs, 50);
        let mut options = Options {
            epochs: 40,
            ..Options::default()
        };
        options.set("algorithm", "cmtf-opt").unwrap();
        assert_eq!(options.epochs, 40);
    }

    #[test]
    fn examples_are_valid_and_differ_from_the_defaults() {
        for info in OPTION_TABLE {
            let mut options = Options::default();
            options.set(info.name, info.example).unwrap();
            assert_ne!(options, Options::default(), "{}", info.name);
        }
    }

    #[test]
    fn help_texts_are_short_sentences_without_a_full_stop() {
        for info in OPTION_TABLE {
            assert!(info.help.starts_with(char::is_uppercase), "{}", info.help);
            assert!(!info.help.ends_with('.'), "{}", info.help);
            // Choices that need an explanation have two lines of a help page.
            let has_many_choices = ["algorithm", "start"].contains(&info.name);
            let limit = if has_many_choices { 125 } else { 65 };
            assert!(info.help.len() <= limit, "{}: {}", info.name, info.help);
        }
    }
}
