//! The one table of fit options: names, types, ranges, defaults and help. [`Options`], the command
//! line and whatever binds to this library are made from it.

mod value;

use value::OptionValue;

use crate::error::{Error, Result};
use crate::kernel::MAX_ORDER;
use crate::simd::Level;

/// The type of an option, and what values it takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OptionKind {
    /// `true` or `false`.
    Flag,
    /// A whole number from the first to the second.
    Integer(u64, u64),
    /// A finite number from the first to the second.
    Real(f64, f64),
    /// One of these words.
    Choice(&'static [&'static str]),
    /// One whole number from the first to the second, or one per mode separated by commas.
    IntegerList(usize, usize),
    /// Finite numbers from the first to the second, separated by commas.
    RealList(f64, f64),
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct OptionInfo {
    /// The name, with underscores; the command line has dashes instead.
    pub name: &'static str,
    /// Type and range.
    pub kind: OptionKind,
    /// The default, as [`Options::set`] takes it.
    pub default: &'static str,
    /// What it does.
    pub help: &'static str,
}

/// Which algorithm fits the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// The paper's S3CMTF-naive.
    Naive,
    /// The paper's S3CMTF-opt.
    Opt,
    /// Batches in blocks that have nothing in common: reproducible, and far faster.
    Blocked,
    /// Alternating least squares: each row is the best given everything else.
    Als,
    /// Each row is drawn from its distribution given everything else; predictions are averaged.
    Gibbs,
}

impl Algorithm {
    /// Whether rows are found one by one from all their entries.
    pub fn is_rowwise(self) -> bool {
        matches!(self, Algorithm::Als | Algorithm::Gibbs)
    }
}

/// Which model is fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelKind {
    /// Cp if the rank is left to the library, Tucker if it is given.
    Auto,
    /// A full core.
    Tucker,
    /// A hyper-diagonal core.
    Cp,
}

/// How large factors are penalised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Penalty {
    /// Half the sum of squares.
    L2,
    /// The sum of absolute values.
    L1,
}

/// How factors start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Initialization {
    /// `Drawn`, or with `nonneg` `Paper`; `gibbs`: as with anything but `Sgd`, two modes around 0 and the others along what entries
    /// agree on, or near 1.
    Auto,
    /// Where some sweeps of `gibbs` come to; penalties pull rows to the mean of theirs.
    Gibbs,
    /// A core of ones on its diagonal; two modes normal around 0 and the others near 1, where
    /// penalties keep them.
    Identity,
    /// Where a few epochs of SGD come to that start as `Identity`; only for `gibbs`.
    Sgd,
    /// The paper's: all positive and nearly constant, at the scale of the values.
    Paper,
    /// Normal around 0.
    Normal,
}

/// How the step size falls from epoch to epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LearningRateSchedule {
    /// The paper's: eta / (1 + decay t).
    Inverse,
    /// eta (1 - t / epochs)^2: ends where it was told to end.
    Square,
}

/// How penalties grow with the number n of entries a row has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PenaltyScaling {
    /// The paper's: the same for every row.
    Constant,
    /// With the root of n.
    SqrtCount,
    /// With n.
    Count,
}

/// Which instruction set the kernels use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelChoice {
    /// The one the environment forces, else the fastest of this machine.
    Auto,
    /// One number at a time.
    Scalar,
    /// Portable vectors.
    Wide,
    /// AVX2 with fused multiply-add.
    Avx2,
    /// AVX-512.
    Avx512,
}

impl KernelChoice {
    /// Returns the level it names; `None` for [`KernelChoice::Auto`].
    pub fn level(self) -> Option<Level> {
        match self {
            KernelChoice::Auto => None,
            KernelChoice::Scalar => Some(Level::Scalar),
            KernelChoice::Wide => Some(Level::Wide),
            KernelChoice::Avx2 => Some(Level::Avx2),
            KernelChoice::Avx512 => Some(Level::Avx512),
        }
    }
}

macro_rules! choices {
    ($type:ident, $words:ident: $($variant:ident = $word:literal),+) => {
        const $words: &[&str] = &[$($word),+];

        impl OptionValue for $type {
            fn parse(text: &str, _: &OptionKind) -> std::result::Result<Self, String> {
                match text {
                    $($word => Ok($type::$variant),)+
                    _ => Err(format!("it must be one of {}", $words.join(", "))),
                }
            }

            fn print(&self) -> String {
                match self {
                    $($type::$variant => $word.into(),)+
                }
            }
        }
    };
}

choices!(Algorithm, ALGORITHMS: Blocked = "blocked", Opt = "opt", Naive = "naive", Als = "als", Gibbs = "gibbs");
choices!(ModelKind, MODELS: Auto = "auto", Tucker = "tucker", Cp = "cp");
choices!(Penalty, PENALTIES: L2 = "l2", L1 = "l1");
choices!(Initialization, STARTS: Auto = "auto", Gibbs = "drawn", Identity = "identity", Sgd = "sgd", Paper = "paper", Normal = "normal");
choices!(LearningRateSchedule, SCHEDULES: Inverse = "inverse", Square = "square");
choices!(PenaltyScaling, PENALTIES_PER: Constant = "row", SqrtCount = "root", Count = "entry");
choices!(KernelChoice, KERNELS: Auto = "auto", Scalar = "scalar", Wide = "wide", Avx2 = "avx2", Avx512 = "avx512");

/// The penalty on biases where nothing tells how much rows differ.
pub(crate) const DEFAULT_LAMBDA_BIAS: f64 = 5.0;

impl Options {
    /// The penalty on the biases of mode `n`.
    pub(crate) fn bias_penalty(&self, n: usize) -> f64 {
        let listed = &self.lambda_bias;
        let own = if listed.len() == 1 { 0 } else { n };
        listed.get(own).copied().unwrap_or(DEFAULT_LAMBDA_BIAS)
    }
}

impl Initialization {
    /// Whether rows start near a prior: around 0 or 1, or drawn.
    pub(crate) fn defines_prior_mean(self) -> bool {
        matches!(
            self,
            Initialization::Gibbs | Initialization::Identity | Initialization::Sgd
        )
    }
}

macro_rules! options {
    ($($name:ident: $type:ty, $kind:expr, $default:literal, $help:literal;)+) => {
        /// Every option of a fit. Fields are set directly, or by name with [`Options::set`].
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub struct Options {
            $(#[doc = $help] pub $name: $type,)+
        }

        /// All options, in the order they are shown.
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
            /// Sets an option by its name, with underscores or dashes.
            pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
                let key = name.replace('-', "_");
                match key.as_str() {
                    $(stringify!($name) => {
                        self.$name = <$type as OptionValue>::parse(value, &$kind)
                            .map_err(|what| Error::argument(format!("{key} = {value:?}: {what}")))?;
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

            /// The value of an option as [`Options::set`] takes it.
            pub fn get(&self, name: &str) -> Option<String> {
                match name.replace('-', "_").as_str() {
                    $(stringify!($name) => Some(OptionValue::print(&self.$name)),)+
                    _ => None,
                }
            }

            /// Checks fields that were set directly as [`Options::set`] checks text.
            pub fn validate(&self) -> Result<()> {
                let mut again = Options::default();
                $(again.set(stringify!($name), &OptionValue::print(&self.$name))?;)+
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
    mode_steps: Vec<f64>, OptionKind::RealList(0.0, 1e6), "auto",
        "The step size of the rows of each mode, as a share of eta, or one for all modes; auto is 1 for all; als and gibbs have no steps";
    mean: bool, OptionKind::Flag, "true",
        "Take the mean out of the values and scale them inside; predictions are those of the values as they are";
    biases: bool, OptionKind::Flag, "true",
        "One number per row of every mode beside the factors, which is added to predictions; not with nonneg";
    lambda_bias: Vec<f64>, OptionKind::RealList(0.0, f64::MAX), "auto",
        "The penalty on biases of each mode, or one for all: acts like so many more entries of bias 0 in every row; auto is the noise over what rows of a mode differ by, in variances";
    lambda_reg: Option<f64>, OptionKind::Real(0.0, f64::MAX), "auto",
        "The weight of the penalty on factors, core and columns of matrices; auto goes by the noise found in the data";
    penalty_per: PenaltyScaling, OptionKind::Choice(PENALTIES_PER), "root",
        "Whether the penalty of a row is the same for all (row) or grows with the root of its entries (root) or with its entries (entry)";
    lambda_m: f64, OptionKind::Real(0.0, f64::MAX), "1",
        "The weight of coupled matrices and graphs that are given without one of their own";
    matrix_weights: Vec<f64>, OptionKind::RealList(0.0, f64::MAX), "auto",
        "A weight for each coupled matrix, then for each graph, in the order they are given in; it counts where one has no weight of its own; auto is lambda_m for all";
    penalty: Penalty, OptionKind::Choice(PENALTIES), "l2",
        "Whether squares (l2) or absolute values (l1) are penalised";
    start: Initialization, OptionKind::Choice(STARTS), "auto",
        "How factors and core start: where some sweeps of gibbs come to (drawn), two modes around 0 and the others near 1 with a diagonal core (identity), where a few epochs of SGD from there come to (sgd, only for gibbs), all positive and nearly constant (paper), or all normal around 0; auto is drawn, with nonneg paper; gibbs starts as identity with anything but sgd, its smaller modes along what entries agree on";
    start_modes: Vec<usize>, OptionKind::IntegerList(1, MAX_ORDER), "auto",
        "The two modes that start around 0 with start=identity, counted from 1; auto is the two largest";
    nonneg: bool, OptionKind::Flag, "false",
        "Keep factors, core and columns of matrices at 0 or above";
    orthogonal: bool, OptionKind::Flag, "true",
        "Make the columns of each factor orthonormal at the end (tucker without nonneg only)";
    clip: bool, OptionKind::Flag, "true",
        "Limit predictions to the range of the training values when errors are measured";
    burn_in: u64, OptionKind::Integer(0, 1_000_000), "8",
        "Sweeps of gibbs before its first sample";
    samples: u64, OptionKind::Integer(1, 100_000), "50",
        "Samples of gibbs, which predictions are averaged over: it goes on for burn_in + samples * thin sweeps, and up to three times as many to make up for samples from before the draws came to rest, whatever epochs says";
    thin: u64, OptionKind::Integer(1, 1_000_000), "1",
        "Sweeps of gibbs for each sample";
    tolerance: f64, OptionKind::Real(0.0, 1.0), "0",
        "Stop when the training loss changes by less than this share between two evaluations; 0 never does";
    patience: u64, OptionKind::Integer(0, 1_000_000), "0",
        "Stop after this many evaluations without a better validation error, and keep the best model; 0 never does";
    valid_fraction: f64, OptionKind::Real(0.0, 1.0), "0",
        "Hold out this part of the entries, by chance, to decide which epoch is best and, with patience, when to stop; 0 holds out none";
    refit: bool, OptionKind::Flag, "true",
        "With valid_fraction, fit to all entries in the end, for as many epochs as were best; else the model of the best epoch is kept";
    time_limit: f64, OptionKind::Real(0.0, f64::MAX), "0",
        "Stop after this many seconds of fitting; 0 never does";
    eval_every: u64, OptionKind::Integer(1, 1_000_000), "1",
        "Measure errors after every so many epochs";
    attempts: u64, OptionKind::Integer(0, 100), "10",
        "How often a fit that diverges goes back to its last good epoch with half the step size";
    checkpoint_every: u64, OptionKind::Integer(1, 1_000_000), "1",
        "Write the checkpoint after every so many epochs";
    checkpoint_seconds: f64, OptionKind::Real(0.0, f64::MAX), "0",
        "Write the checkpoint after every so many seconds instead; 0 goes by epochs";
    threads: u64, OptionKind::Integer(0, 4096), "0",
        "The number of threads; 0 takes all this process may use";
    pin: bool, OptionKind::Flag, "true",
        "Keep each thread on a core of its own";
    kernel: KernelChoice, OptionKind::Choice(KERNELS), "auto",
        "The instruction set; auto takes the fastest there is, or what S3CMTF_KERNEL says";
    seed: u64, OptionKind::Integer(0, u64::MAX), "0",
        "Decides everything that is random";
}

/// The names [`Options::preset`] knows.
pub const PRESETS: &[&str] = &[
    "default",
    "paper",
    "paper-movielens",
    "paper-netflix",
    "paper-yelp",
];

impl Options {
    /// Options to start from. `paper` has the paper's model (Tucker without mean and biases, rank 10),
    /// start, penalty, schedule and matrix weight, with its smaller step size; the others add the rank
    /// and step size the paper gives for a data set.
    pub fn preset(name: &str) -> Result<Options> {
        let mut options = Options::default();
        let settings: &[(&str, &str)] = match name {
            "default" => return Ok(options),
            "paper" => &[("eta", "0.001"), ("rank", "10")],
            "paper-movielens" => &[("eta", "0.001"), ("rank", "12")],
            "paper-netflix" => &[("eta", "0.001"), ("rank", "11")],
            "paper-yelp" => &[("eta", "0.0005"), ("rank", "10")],
            _ => {
                return Err(Error::argument(format!(
                    "no preset is called '{name}'; there are {}",
                    PRESETS.join(", ")
                )));
            }
        };
        let common = [
            ("model", "tucker"),
            ("epochs", "50"),
            ("schedule", "inverse"),
            ("core_step", "1"),
            ("mean", "false"),
            ("biases", "false"),
            ("penalty_per", "row"),
            ("start", "paper"),
            ("lambda_reg", "0.1"),
            ("lambda_m", "10"),
            ("decay", "0.1"),
            ("penalty", "l2"),
        ];
        for (name, value) in common.iter().chain(settings) {
            options.set(name, value)?;
        }
        Ok(options)
    }

    /// Reads what [`Options::to_text`] wrote, perhaps by a later version: options this one does not
    /// know are passed over.
    pub(crate) fn from_saved_text(text: &str) -> Result<Options> {
        let known = |line: &&str| {
            let name = line.split('=').next().unwrap_or_default();
            OPTION_TABLE.iter().any(|o| o.name == name)
        };
        Options::from_text(&text.lines().filter(known).collect::<Vec<_>>().join("\n"))
    }

    /// Overrides these options with those named in lines `name=value`.
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

    /// All options as lines `name=value`, which [`Options::from_text`] reads back.
    pub fn to_text(&self) -> String {
        OPTION_TABLE
            .iter()
            .map(|o| format!("{}={}\n", o.name, self.get(o.name).unwrap_or_default()))
            .collect()
    }

    /// Reads lines `name=value`; empty lines and lines starting with `#` are skipped.
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
    fn every_option_is_set_by_name_and_printed_back() {
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
            let wrong = match info.kind {
                OptionKind::Flag => vec!["maybe", ""],
                OptionKind::Integer(..) => vec!["-1", "1.5", "x", ""],
                OptionKind::Real(..) => vec!["nan", "inf", "-1", "x"],
                OptionKind::Choice(_) => vec!["", "none"],
                OptionKind::IntegerList(..) => {
                    vec!["0", "1,0", "", "1,2,3,4,5,6,7,8,9", "5000", "1,,2"]
                }
                OptionKind::RealList(..) => vec!["", "1,-1", "1,,2", "nan", "x"],
            };
            for value in wrong {
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
        options.matrix_weights = vec![0.1 + 0.2, 0.0, 1e300];
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
    fn presets_are_the_papers() {
        for name in PRESETS {
            Options::preset(name).unwrap().validate().unwrap();
        }
        assert_eq!(Options::preset("default").unwrap(), Options::default());
        let yelp = Options::preset("paper-yelp").unwrap();
        assert_eq!(
            (yelp.eta, yelp.lambda_m, yelp.rank),
            (Some(0.0005), 10.0, vec![10])
        );
        assert!(
            Options::preset("papr")
                .unwrap_err()
                .to_string()
                .contains("paper-movielens")
        );
    }
}
