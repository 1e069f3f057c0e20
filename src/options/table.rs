//! The table of options and the struct that holds their values.

use super::algorithms::{ALGORITHMS, Algorithm, ExternalAlgorithm, OwnOption, ZeroFilling};
use super::choices::{
    INITIALIZATIONS, Initialization, KERNELS, KernelChoice, LIKELIHOODS, LearningRateSchedule,
    LikelihoodChoice, MODELS, ModelKind, PENALTIES, PENALTY_SCALINGS, Penalty, PenaltyScaling,
    SCHEDULES,
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

    /// Returns whether an algorithm uses the option.
    pub(crate) fn is_used_by(&self, algorithm: Algorithm) -> bool {
        (self.is_used_by)(algorithm)
    }

    /// Describes an option that only one algorithm has.
    fn of_algorithm(own: &OwnOption) -> OptionInfo {
        OptionInfo {
            name: own.name,
            kind: own.kind,
            default: own.default,
            help: own.help,
            example: own.example,
            is_used_by: ALL,
            roles: match own.is_searched {
                true => &[],
                false => &[OptionRole::NotSearched],
            },
        }
    }

    /// Returns whether a search for options can vary it.
    pub fn is_searched(&self) -> bool {
        !self.has_role(OptionRole::NotSearched)
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
            /// The algorithms of other crates that can be named.
            pub(crate) external_algorithms: &'static [&'static ExternalAlgorithm],
            /// The values of their own options that were set.
            pub(crate) own: Vec<(&'static str, String)>,
        }

        impl PartialEq for Options {
            fn eq(&self, other: &Options) -> bool {
                $(self.$name == other.$name)&&+ && self.own == other.own
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
                    external_algorithms: &[],
                    own: Vec::new(),
                }
            }
        }

        impl Options {
            /// Sets an option of the table.
            fn set_field(&mut self, name: &str, value: &str) -> Result<()> {
                let key = &name.replace('-', "_")[..];
                match key {
                    $(stringify!($name) => {
                        self.$name = <$type as OptionValue>::parse(value, &$kind).map_err(|reason| invalid(key, value, &reason))?;
                        self.note_given(stringify!($name));
                        Ok(())
                    })+
                    _ => Err(self.unknown_option(name)),
                }
            }

            /// Returns the value of an option in the form that [`Options::set`] takes; `None` if there is no such option.
            pub fn get(&self, name: &str) -> Option<String> {
                match name.replace('-', "_").as_str() {
                    $(stringify!($name) => Some(OptionValue::print(&self.$name)),)+
                    key => self.own_value(key).map(str::to_string),
                }
            }

            /// Checks the ranges of all fields, as [`Options::set`] does for text.
            pub fn validate(&self) -> Result<()> {
                let mut parsed = Options::default().with_algorithms(self.external_algorithms);
                parsed.algorithm = self.algorithm;
                $(parsed.set(stringify!($name), &OptionValue::print(&self.$name))?;)+
                Ok(())
            }
        }
    };
}

options! {
    algorithm: Algorithm, OptionKind::Choice(ALGORITHMS), "blocked", ALL, [NotSearched], "als",
        "Algorithm: blocked (SGD), gibbs (slower, usually more accurate) or als; of the paper: opt, naive";
    model: ModelKind, OptionKind::Choice(MODELS), "auto", ALL, [], "cp",
        "Core tensor: tucker, cp, or auto (cp if rank is auto)";
    rank: Vec<usize>, OptionKind::IntegerList(1, 1024), "auto", ALL, [], "3",
        "Rank of each mode, or one for all; auto: by data size";
    epochs: u64, OptionKind::Integer(0, 1_000_000), "30", SINGLE_MODEL, [Changeable], "5",
        "Maximum number of passes (not gibbs)";
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
    checkpoint_every: u64, OptionKind::Integer(1, 1_000_000), "1", ALL, [NotSearched, NotSaved, Changeable], "2",
        "Epochs between two checkpoints";
    threads: u64, OptionKind::Integer(0, 4096), "0", ALL, [NotSearched, NotSaved, Changeable], "1",
        "Number of threads; 0: all available cores";
    pin: bool, OptionKind::Flag, "true", ALL, [NotSearched, NotSaved, Changeable], "false",
        "Pin each thread to a core";
    kernel: KernelChoice, OptionKind::Choice(KERNELS), "auto", ALL, [NotSearched, NotSaved, Changeable], "scalar",
        "Instruction set: auto, scalar, wide, avx2 or avx512";
    seed: u64, OptionKind::Integer(0, u64::MAX), "0", ALL, [NotSearched], "1",
        "Random seed";
}

/// Returns the error of a value that an option does not have.
fn invalid(key: &str, value: &str, reason: &str) -> Error {
    Error::argument(format!("{key} = {value:?}: {reason}"))
}

impl Options {
    /// Makes algorithms of other crates known, so that the option `algorithm` can name them.
    #[doc(hidden)]
    #[must_use]
    pub fn with_algorithms(mut self, algorithms: &'static [&'static ExternalAlgorithm]) -> Options {
        self.external_algorithms = algorithms;
        self
    }

    /// Returns the options of the table and those that only the algorithm has, in the order of the help.
    #[doc(hidden)]
    pub fn all_options(&self) -> Vec<OptionInfo> {
        let own = self.algorithm.own_options().iter();
        let table = OPTION_TABLE.iter().copied();
        table.chain(own.map(OptionInfo::of_algorithm)).collect()
    }

    /// Returns the same with the own options of all these algorithms, which a program lists before one is chosen.
    #[doc(hidden)]
    pub fn options_with(algorithms: &[&'static ExternalAlgorithm]) -> Vec<OptionInfo> {
        let own = algorithms.iter().flat_map(|a| a.options);
        let table = OPTION_TABLE.iter().copied();
        table.chain(own.map(OptionInfo::of_algorithm)).collect()
    }

    /// Sets an option by its name, written with underscores or dashes. Another algorithm changes the number of epochs to its
    /// default, unless that was set.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let key = name.replace('-', "_");
        let has_default_epochs = self.has_default_epochs();
        let known = self.known_external();
        let mut own_options = known.iter().flat_map(|a| a.options);
        if let Some(own) = own_options.find(|o| o.name == key) {
            return self.set_own(own, value);
        }
        match known.iter().find(|a| key == "algorithm" && a.name == value) {
            Some(algorithm) => {
                self.algorithm = Algorithm::External(algorithm);
                self.note_given("algorithm");
            }
            None => self.set_field(name, value)?,
        }
        if key == "algorithm" && has_default_epochs {
            self.epochs = self.algorithm.properties().default_epochs;
        }
        Ok(())
    }

    /// Sets an option that only one algorithm has.
    fn set_own(&mut self, option: &'static OwnOption, value: &str) -> Result<()> {
        let printed = option.kind.normalized(value);
        let printed = printed.map_err(|reason| invalid(option.name, value, &reason))?;
        self.note_given(option.name);
        self.own.retain(|(name, _)| *name != option.name);
        if printed != option.default {
            self.own.push((option.name, printed));
            self.own.sort_unstable();
        }
        Ok(())
    }

    /// Returns the value of an option that only the algorithm has, or another algorithm that is known; `None` if there is no such
    /// option.
    #[doc(hidden)]
    pub fn own_value(&self, name: &str) -> Option<&str> {
        let known = self.known_external();
        let mut options = known.iter().flat_map(|a| a.options);
        let option = options.find(|o| o.name == name)?;
        let set = self.own.iter().find(|(set, _)| *set == name);
        Some(set.map_or(option.default, |(_, value)| value))
    }

    /// Returns the algorithms of other crates that can be named: that of these options among them.
    fn known_external(&self) -> Vec<&'static ExternalAlgorithm> {
        let mut known = self.external_algorithms.to_vec();
        if let Algorithm::External(own) = self.algorithm {
            known.push(own);
        }
        known
    }

    fn note_given(&mut self, name: &'static str) {
        if !self.given.contains(&name) {
            self.given.push(name);
        }
    }

    fn unknown_option(&self, name: &str) -> Error {
        let names = || self.all_options().into_iter().map(|o| o.name);
        let hint = match did_you_mean(&name.replace('-', "_"), names()) {
            none if none.is_empty() => {
                format!("; options are {}", names().collect::<Vec<_>>().join(", "))
            }
            suggestion => suggestion,
        };
        Error::argument(format!("there is no option '{name}'{hint}"))
    }

    /// Returns whether cells of the tensor and of observed matrices without an entry are 0, instead of unknown. There are then
    /// neither mean nor biases, and predictions for rows without entries are 0.
    pub fn is_zero_filled(&self) -> bool {
        match self.algorithm.properties().zero_filling {
            ZeroFilling::Never => false,
            ZeroFilling::Optional { option, zeros, .. } => self.own_value(option) == Some(zeros),
            ZeroFilling::Always => true,
        }
    }

    /// Returns whether a mean and biases can be subtracted from the values: not if they must stay non-negative, nor where cells
    /// without an entry are 0.
    #[doc(hidden)]
    pub fn allows_baseline(&self) -> bool {
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

    /// Parses text that [`Options::to_text`] wrote, in which these algorithms of other crates may be named. Options of a later version
    /// are ignored; none counts as given.
    pub(crate) fn from_saved_text(
        text: &str,
        algorithms: &'static [&'static ExternalAlgorithm],
    ) -> Result<Options> {
        let known = Options::options_with(algorithms);
        let is_known = |line: &&str| {
            let name = line.split('=').next().unwrap_or_default();
            known.iter().any(|o| o.name == name)
        };
        let known: Vec<&str> = text.lines().filter(is_known).collect();
        let mut options = Options::default().with_algorithms(algorithms);
        options.apply_text(&known.join("\n"))?;
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
        let line = |o: OptionInfo| format!("{}={}\n", o.name, self.get(o.name).unwrap_or_default());
        self.all_options().into_iter().map(line).collect()
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
    use super::super::algorithms::AlgorithmProperties;
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
        assert_eq!(epochs("epochs=7\nalgorithm=als"), 7);
    }

    static KNOWN: &[&ExternalAlgorithm] = &[&EXTERNAL];

    static EXTERNAL: ExternalAlgorithm = ExternalAlgorithm {
        name: "external",
        properties: AlgorithmProperties {
            has_penalties: true,
            zero_filling: ZeroFilling::Optional {
                option: "unlisted",
                zeros: "zeros",
                unknown: "unknown",
            },
            default_epochs: 500,
            ..AlgorithmProperties::PLAIN
        },
        options: &[
            OwnOption {
                name: "unlisted",
                kind: OptionKind::Choice(&["unknown", "zeros"]),
                default: "unknown",
                example: "zeros",
                help: "Cells without an entry",
                is_searched: false,
            },
            OwnOption {
                name: "block_size",
                kind: OptionKind::Integer(1, 9),
                default: "4",
                example: "2",
                help: "Columns of a block",
                is_searched: true,
            },
        ],
        definition: &(),
    };

    #[test]
    fn an_algorithm_of_another_crate_is_known_where_it_is_registered() {
        let mut options = Options::default();
        let error = options.set("algorithm", "external").unwrap_err();
        assert!(error.to_string().contains("blocked, opt"), "{error}");
        assert!(options.set("block_size", "2").is_err());
        let mut options = options.with_algorithms(KNOWN);
        options.set("algorithm", "external").unwrap();
        assert_eq!(options.epochs, 500);
        assert!(!options.is_zero_filled());
        options.set("unlisted", "zeros").unwrap();
        options.set("block-size", "3").unwrap();
        assert!(options.is_zero_filled() && options.validate().is_ok());
        assert!(options.set("block_size", "10").is_err());
        let saved = options.to_text();
        assert!(saved.ends_with("unlisted=zeros\nblock_size=3\n"), "{saved}");
        let known = Options::from_saved_text(&saved, KNOWN).unwrap();
        assert_eq!(known, options);
        assert!(Options::from_saved_text(&saved, &[]).is_err());
        options.set("lambda_m", "2").unwrap();
        assert_eq!(options.unused(), ["lambda_m"]);
        options.set("lambda_m", "auto").unwrap();
        options.set("algorithm", "als").unwrap();
        assert_eq!(options.unused(), ["unlisted", "block_size"]);
        assert!(!options.to_text().contains("block_size"));
    }

    #[test]
    fn a_number_of_epochs_that_was_set_is_kept() {
        let options = |text: &str| {
            let mut options = Options::default().with_algorithms(KNOWN);
            options.apply_text(text).unwrap();
            options
        };
        assert_eq!(options("algorithm=external\nalgorithm=als").epochs, 30);
        assert_eq!(options("epochs=30\nalgorithm=external").epochs, 30);
        assert_eq!(options("algorithm=external\nepochs=30").epochs, 30);
        let paper = Options::preset("paper").unwrap();
        let mut paper = paper.with_algorithms(KNOWN);
        paper.set("algorithm", "external").unwrap();
        assert_eq!(paper.epochs, 50);
        let mut options = Options {
            epochs: 40,
            ..options("")
        };
        options.set("algorithm", "external").unwrap();
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
