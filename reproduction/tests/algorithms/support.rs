//! Names of the baselines and their own options.

use s3cmtf::options::{Algorithm, Options};

pub const SALS: Algorithm = Algorithm::External(&s3cmtf_reproduction::algorithms::SALS);
pub const CMTF_OPT: Algorithm = Algorithm::External(&s3cmtf_reproduction::algorithms::CMTF_OPT);
pub const TUCKER_ALS: Algorithm = Algorithm::External(&s3cmtf_reproduction::algorithms::TUCKER_ALS);

/// Cells without an entry, for `cmtf-opt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unobserved {
    Unknown,
    Zeros,
}

impl Unobserved {
    /// Returns the value of the option.
    pub fn name(self) -> &'static str {
        match self {
            Unobserved::Unknown => "unknown",
            Unobserved::Zeros => "zeros",
        }
    }
}

/// Sets an option of a baseline.
pub fn set(options: &mut Options, name: &str, value: impl ToString) {
    options.set(name, &value.to_string()).unwrap();
}
