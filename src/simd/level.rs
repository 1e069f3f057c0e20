//! Instruction sets: which there are, which this machine has, which one to use.

use std::borrow::Cow;
use std::sync::OnceLock;

use crate::error::{Error, Result};

/// The variable that forces a level where the options do not.
pub const LEVEL_VARIABLE: &str = "S3CMTF_KERNEL";

/// An instruction set the kernels are compiled for. Results of different levels differ in rounding:
/// they add in different orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// One number at a time, as far as the compiler is concerned. Everywhere.
    Scalar,
    /// The portable vectors of `wide`: SSE2 on x86-64, NEON on AArch64. Everywhere.
    Wide,
    /// AVX2 with fused multiply-add.
    Avx2,
    /// AVX-512.
    Avx512,
}

impl Level {
    /// All levels, slowest first.
    pub const ALL: [Level; 4] = [Level::Scalar, Level::Wide, Level::Avx2, Level::Avx512];

    /// Its name, as the options and [`LEVEL_VARIABLE`] have it.
    pub fn name(self) -> &'static str {
        match self {
            Level::Scalar => "scalar",
            Level::Wide => "wide",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
        }
    }

    /// Whether this machine can run it.
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

    /// The levels this machine has, slowest first.
    pub fn available() -> impl Iterator<Item = Level> {
        Level::ALL.into_iter().filter(|l| l.is_available())
    }

    /// The fastest level of this machine.
    pub fn best() -> Level {
        Level::available().last().unwrap_or(Level::Scalar)
    }

    /// Returns the level to use: `choice` if given, else the one the environment forces, else the fastest. A
    /// level that this machine lacks is an error.
    pub fn choose(choice: Option<Level>) -> Result<Level> {
        Level::resolve(choice, Level::forced())
    }

    /// Returns the value of [`LEVEL_VARIABLE`]. It is read once, by the first call: reading the environment while another
    /// thread of the program changes it is not safe, so nothing that runs on threads of its own may be
    /// the first to ask.
    pub(crate) fn forced() -> &'static str {
        // Names that are known need no memory, which a library that is unloaded would leave behind.
        static FORCED: OnceLock<Cow<'static, str>> = OnceLock::new();
        FORCED.get_or_init(|| {
            let said = std::env::var(LEVEL_VARIABLE).unwrap_or_default();
            match Level::ALL.iter().find(|l| l.name() == said) {
                Some(level) => Cow::Borrowed(level.name()),
                None => Cow::Owned(said),
            }
        })
    }

    fn resolve(choice: Option<Level>, forced: &str) -> Result<Level> {
        let (level, by) = match choice {
            None => match forced {
                "" | "auto" => return Ok(Level::best()),
                name => match Level::ALL.into_iter().find(|l| l.name() == name) {
                    Some(level) => (level, LEVEL_VARIABLE),
                    None => {
                        return Err(Error::argument(format!(
                            "{LEVEL_VARIABLE}={name}: no kernel level is called that; there are auto, {}",
                            Level::ALL.map(Level::name).join(", ")
                        )));
                    }
                },
            },
            Some(level) => (level, "kernel"),
        };
        if !level.is_available() {
            return Err(Error::argument(format!(
                "{by}={}: this machine does not have it; it has {}",
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
    fn the_choice_wins_over_the_variable_over_the_machine() {
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
