//! The instruction sets that kernels are compiled for, their detection, and the choice of one.

use std::borrow::Cow;
use std::sync::OnceLock;

use crate::error::{Error, Result};

/// Environment variable that selects the level if the options do not.
pub const LEVEL_VARIABLE: &str = "S3CMTF_KERNEL";

/// An instruction set the kernels are compiled for. Results of different levels differ in rounding, because they
/// add in different orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// One float per instruction, unless the compiler vectorizes. Available on every machine.
    Scalar,
    /// The portable vectors of the crate `wide`: SSE2 on x86-64, NEON on AArch64. Available on every machine.
    Wide,
    /// AVX2 with fused multiply-add (FMA).
    Avx2,
    /// AVX-512 (F, DQ and VL).
    Avx512,
}

impl Level {
    /// All levels, slowest first.
    pub const ALL: [Level; 4] = [Level::Scalar, Level::Wide, Level::Avx2, Level::Avx512];

    /// Returns the name that the options and [`LEVEL_VARIABLE`] use.
    pub fn name(self) -> &'static str {
        match self {
            Level::Scalar => "scalar",
            Level::Wide => "wide",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
        }
    }

    /// Returns whether this machine has the instruction set.
    pub fn is_available(self) -> bool {
        match self {
            Level::Scalar | Level::Wide => true,
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Level::Avx2 => {
                std::arch::is_x86_feature_detected!("avx2")
                    && std::arch::is_x86_feature_detected!("fma")
            }
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Level::Avx512 => {
                Level::Avx2.is_available()
                    && std::arch::is_x86_feature_detected!("avx512f")
                    && std::arch::is_x86_feature_detected!("avx512dq")
                    && std::arch::is_x86_feature_detected!("avx512vl")
            }
            #[cfg(not(all(target_arch = "x86_64", not(miri))))]
            Level::Avx2 | Level::Avx512 => false,
        }
    }

    /// Returns the levels that this machine has, slowest first.
    pub fn available() -> impl Iterator<Item = Level> {
        Level::ALL.into_iter().filter(|l| l.is_available())
    }

    /// Returns the fastest level of this machine.
    pub fn best() -> Level {
        Level::available().last().unwrap_or(Level::Scalar)
    }

    /// Returns the level to use: `choice` if given, else the one the environment selects, else the fastest.
    ///
    /// # Errors
    /// If this machine does not have the level, or the environment names none.
    pub fn choose(choice: Option<Level>) -> Result<Level> {
        Level::resolve(choice, Level::forced())
    }

    /// Returns the value of [`LEVEL_VARIABLE`]. The first call reads it, later calls return the same value.
    /// Reading the environment is not safe while another thread changes it. So the first call must come from the
    /// thread of the caller, before any worker thread starts.
    pub fn forced() -> &'static str {
        // The names of levels are static, so that an unloaded library leaves no allocation behind.
        static FORCED: OnceLock<Cow<'static, str>> = OnceLock::new();
        FORCED.get_or_init(|| {
            let value = std::env::var(LEVEL_VARIABLE).unwrap_or_default();
            match Level::ALL.iter().find(|l| l.name() == value) {
                Some(level) => Cow::Borrowed(level.name()),
                None => Cow::Owned(value),
            }
        })
    }

    fn resolve(choice: Option<Level>, forced: &str) -> Result<Level> {
        let (level, source) = match choice {
            None => match forced {
                "" | "auto" => return Ok(Level::best()),
                name => match Level::ALL.into_iter().find(|l| l.name() == name) {
                    Some(level) => (level, LEVEL_VARIABLE),
                    None => {
                        return Err(Error::argument(format!(
                            "{LEVEL_VARIABLE}={name}: unknown kernel level; expected auto, {}",
                            Level::ALL.map(Level::name).join(", ")
                        )));
                    }
                },
            },
            Some(level) => (level, "kernel"),
        };
        if !level.is_available() {
            return Err(Error::argument(format!(
                "{source}={}: this machine does not have it; it has {}",
                level.name(),
                Level::available()
                    .map(Level::name)
                    .collect::<Vec<_>>()
                    .join(", ")
            )));
        }
        Ok(level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn option_precedes_environment_precedes_detection() {
        let resolve = Level::resolve;
        assert_eq!(resolve(None, "").unwrap(), Level::best());
        assert_eq!(resolve(None, "auto").unwrap(), Level::best());
        assert_eq!(resolve(None, "wide").unwrap(), Level::Wide);
        assert_eq!(resolve(Some(Level::Scalar), "wide").unwrap(), Level::Scalar);
        let unknown = resolve(None, "sse9").unwrap_err().to_string();
        assert!(
            unknown.contains("sse9") && unknown.contains("avx512"),
            "{unknown}"
        );
        for level in Level::ALL {
            let result = resolve(None, level.name());
            assert_eq!(result.is_ok(), level.is_available());
            if let Err(e) = result {
                assert!(e.to_string().contains("does not have"), "{e}");
            }
        }
    }
}
