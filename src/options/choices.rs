//! Options that take one of several words.

use super::value::{OptionKind, OptionValue, unknown_word};
use crate::simd::Level;

/// The core of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelKind {
    /// `Cp` if the rank is `auto`, otherwise `Tucker`.
    Auto,
    /// A full core.
    Tucker,
    /// A hyper-diagonal core.
    Cp,
}

/// The norm of the penalty on factors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Penalty {
    /// Half the sum of squares.
    L2,
    /// The sum of absolute values.
    L1,
}

/// The initialization of factors and core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Initialization {
    /// `Gibbs`, or `Paper` with `nonneg`. For the algorithm `gibbs`: as `Identity`, but the smaller modes start with
    /// spectral directions of the data where it has any.
    Auto,
    /// The state after some sweeps of `gibbs`. Penalties shrink rows towards the mean row of that state.
    Gibbs,
    /// An identity (super-diagonal) core. The rows of the two largest modes are normal around 0. Those of the others are normal
    /// around 1, and penalties shrink them towards 1.
    Identity,
    /// As in the paper: all positive and nearly constant, at the scale of the values.
    Paper,
    /// Normal around 0.
    Normal,
}

impl Initialization {
    /// Returns whether it gives rows a prior mean that penalties shrink them to. The others shrink rows to 0.
    pub fn defines_prior_mean(self) -> bool {
        matches!(self, Initialization::Gibbs | Initialization::Identity)
    }
}

/// The learning rate at epoch t, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LearningRateSchedule {
    /// eta / (1 + decay t), as in the paper.
    Inverse,
    /// eta (1 - t / epochs)^2, which reaches 0 at the last epoch.
    Square,
}

/// How the penalty of a row grows with its number n of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PenaltyScaling {
    /// The same for every row, as in the paper.
    Constant,
    /// Proportional to the square root of n.
    SqrtCount,
    /// Proportional to n.
    Count,
}

/// The distribution of the values given the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LikelihoodChoice {
    /// `Probit` if the tensor has exactly two values and held-out entries support it, otherwise `Gaussian`.
    Auto,
    /// Normal around the model's value.
    Gaussian,
    /// One of two values, with a probability that is the normal distribution function of the model's value.
    Probit,
}

/// The instruction set of the kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelChoice {
    /// The one that the environment forces, else the fastest of this machine.
    Auto,
    /// Scalar arithmetic.
    Scalar,
    /// Portable vectors.
    Wide,
    /// AVX2 with fused multiply-add.
    Avx2,
    /// AVX-512.
    Avx512,
}

impl KernelChoice {
    /// Returns the instruction set; `None` for [`KernelChoice::Auto`].
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

/// Defines the list of words of an enum and its [`OptionValue`].
macro_rules! choices {
    ($type:ident, $words:ident: $($variant:ident = $word:literal),+) => {
        pub(super) const $words: &[&str] = &[$($word),+];

        impl $type {
            /// Returns the word for this choice.
            pub fn name(self) -> &'static str {
                match self {
                    $($type::$variant => $word,)+
                }
            }
        }

        impl OptionValue for $type {
            fn parse(text: &str, _: &OptionKind) -> std::result::Result<Self, String> {
                match text {
                    $($word => Ok($type::$variant),)+
                    _ => Err(unknown_word(text, $words)),
                }
            }

            fn print(&self) -> String {
                self.name().into()
            }
        }
    };
}

choices!(ModelKind, MODELS: Auto = "auto", Tucker = "tucker", Cp = "cp");
choices!(Penalty, PENALTIES: L2 = "l2", L1 = "l1");
choices!(Initialization, INITIALIZATIONS: Auto = "auto", Gibbs = "drawn", Identity = "identity", Paper = "paper", Normal = "normal");
choices!(LearningRateSchedule, SCHEDULES: Inverse = "inverse", Square = "square");
choices!(PenaltyScaling, PENALTY_SCALINGS: Constant = "row", SqrtCount = "root", Count = "entry");
choices!(LikelihoodChoice, LIKELIHOODS: Auto = "auto", Gaussian = "gaussian", Probit = "probit");
choices!(KernelChoice, KERNELS: Auto = "auto", Scalar = "scalar", Wide = "wide", Avx2 = "avx2", Avx512 = "avx512");
