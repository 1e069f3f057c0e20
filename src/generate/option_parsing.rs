//! Parsing of generator options by name.

use std::str::FromStr;

use super::options::{GenerateOptions, MatrixEntries, MatrixSpec};
use super::popularity::ZipfMandelbrot;
use crate::error::{Error, Result};
use crate::format::ValueKind;
use crate::options::ModelKind;
use crate::parallel::available_threads;

impl GenerateOptions {
    /// Sets an option by its name on the command line, with underscores or dashes.
    ///
    /// - `dims`: the sizes, separated by commas.
    /// - `rank`, `skew`: one value, or one per mode separated by commas.
    /// - `model` (`tucker` or `cp`), `values` (`f32` or `f64`).
    /// - `entries`, `seed`, `threads`: whole numbers; 0 threads means all that this process may use.
    /// - `noise`, `deviation`, `mean`, `factor_mean`, `test`: numbers.
    /// - `nonneg`, `truth`: `true` or `false`.
    /// - `matrix`: adds a [`MatrixSpec`] in its text form, with the mode counted from 0; `none` removes all matrices.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let wrong =
            |right: &str| Error::argument(format!("{name} = {value:?}: it must be {right}"));
        let flag = || match value {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(wrong("true or false")),
        };
        let real = || value.parse::<f64>().map_err(|_| wrong("a number"));
        let whole = || value.parse::<u64>().map_err(|_| wrong("a whole number"));
        match name.replace('-', "_").as_str() {
            "dims" => {
                self.dims = list(value).ok_or_else(|| wrong("sizes separated by commas"))?;
            }
            "rank" => {
                self.ranks = list(value)
                    .ok_or_else(|| wrong("a rank, or one per mode separated by commas"))?;
            }
            "skew" => self.skew = value.split(',').map(str::parse).collect::<Result<_>>()?,
            "entries" => self.entries = whole()?,
            "seed" => self.seed = whole()?,
            "threads" => {
                self.threads = match whole()? {
                    0 => available_threads(),
                    n => usize::try_from(n).unwrap_or(usize::MAX),
                };
            }
            "model" => {
                self.model = match value {
                    "tucker" => ModelKind::Tucker,
                    "cp" => ModelKind::Cp,
                    _ => return Err(wrong("tucker or cp")),
                };
            }
            "values" => {
                self.value_kind = match value {
                    "f32" => ValueKind::F32,
                    "f64" => ValueKind::F64,
                    _ => return Err(wrong("f32 or f64")),
                };
            }
            "noise" => self.noise = real()?,
            "deviation" => self.deviation = real()?,
            "mean" => self.mean = Some(real()?),
            "factor_mean" => self.factor_mean = real()?,
            "test" => self.test_fraction = real()?,
            "nonneg" => self.nonneg = flag()?,
            "truth" => self.write_truth = flag()?,
            "matrix" if value == "none" => self.matrices.clear(),
            "matrix" => self.matrices.push(value.parse()?),
            _ => {
                return Err(Error::argument(format!(
                    "there is no option '{name}' for generated data; options are dims, entries, model, rank, skew, \
                     noise, deviation, mean, factor_mean, nonneg, matrix, test, values, truth, seed, threads"
                )));
            }
        }
        Ok(())
    }
}

/// Parses values separated by commas.
fn list<T: FromStr>(text: &str) -> Option<Vec<T>> {
    text.split(',').map(|w| w.trim().parse().ok()).collect()
}

impl FromStr for ZipfMandelbrot {
    type Err = Error;

    /// Parses `EXPONENT` or `EXPONENT:SHIFT`.
    fn from_str(text: &str) -> Result<ZipfMandelbrot> {
        let (exponent, shift) = text.split_once(':').unwrap_or((text, "0"));
        match (exponent.trim().parse(), shift.trim().parse()) {
            (Ok(exponent), Ok(shift)) => Ok(ZipfMandelbrot { exponent, shift }),
            _ => Err(Error::argument(format!(
                "skew {text}: expected EXPONENT or EXPONENT:SHIFT, such as 1:50"
            ))),
        }
    }
}

impl FromStr for MatrixSpec {
    type Err = Error;

    /// Parses `MODE:COLUMNS`, then `:full` or `:ENTRIES`, then `:ones=FRACTION` or `:groups=FRACTION`.
    fn from_str(text: &str) -> Result<MatrixSpec> {
        let malformed = || {
            Error::argument(format!(
                "matrix {text}: expected MODE:COLUMNS, then :full or :ENTRIES, then :ones=FRACTION or \
                 :groups=FRACTION, such as 2:20:full:ones=0.1"
            ))
        };
        let mut fields = text.split(':');
        let mut whole = || {
            fields
                .next()
                .and_then(|f| f.parse::<u64>().ok())
                .ok_or_else(malformed)
        };
        let mut spec = MatrixSpec {
            mode: whole()? as usize,
            columns: whole()?,
            entries: MatrixEntries::All,
            ones_fraction: None,
            group_fraction: None,
        };
        let mut entries_given = false;
        for field in fields {
            if let Some(fraction) = field.strip_prefix("ones=") {
                if spec.ones_fraction.is_some() {
                    return Err(malformed());
                }
                spec.ones_fraction = Some(fraction.parse().map_err(|_| malformed())?);
            } else if let Some(fraction) = field.strip_prefix("groups=") {
                if spec.group_fraction.is_some() {
                    return Err(malformed());
                }
                spec.group_fraction = Some(fraction.parse().map_err(|_| malformed())?);
            } else if std::mem::replace(&mut entries_given, true) {
                return Err(malformed());
            } else if field != "full" {
                spec.entries = MatrixEntries::Sampled(field.parse().map_err(|_| malformed())?);
            }
        }
        Ok(spec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_set_by_name() {
        let mut o = GenerateOptions::new(&[], 0);
        for (name, value) in [
            ("dims", "30, 20,5"),
            ("entries", "100"),
            ("model", "cp"),
            ("rank", "4"),
            ("skew", "1:50,0,0.5"),
            ("factor-mean", "1"),
            ("mean", "-3.5"),
            ("nonneg", "true"),
            ("truth", "false"),
            ("values", "f64"),
            ("matrix", "1:7:12:ones=0.5"),
            ("matrix", "0:3"),
            ("matrix", "1:4:groups=0.25"),
            ("threads", "0"),
        ] {
            o.set(name, value).unwrap();
        }
        assert_eq!((&o.dims[..], o.entries), (&[30, 20, 5][..], 100));
        assert_eq!((o.model, &o.ranks[..]), (ModelKind::Cp, &[4][..]));
        assert_eq!((o.skew[0].shift, o.skew[2].exponent), (50.0, 0.5));
        assert_eq!((o.factor_mean, o.mean), (1.0, Some(-3.5)));
        assert!(o.nonneg && !o.write_truth && o.threads > 0);
        assert_eq!(o.value_kind, ValueKind::F64);
        assert_eq!((o.matrices.len(), o.matrices[0].mode), (3, 1));
        assert_eq!(o.matrices[2].group_fraction, Some(0.25));
        assert_eq!(o.matrices[0].entries, MatrixEntries::Sampled(12));
        assert_eq!(o.matrices[0].ones_fraction, Some(0.5));
        o.set("matrix", "none").unwrap();
        assert!(o.matrices.is_empty());
        for (name, value) in [
            ("dims", "3,x"),
            ("entries", "-1"),
            ("model", "svd"),
            ("rank", ""),
            ("skew", "1:2:3"),
            ("noise", "much"),
            ("nonneg", "1"),
            ("values", "f16"),
            ("matrix", "1"),
            ("matrix", "1:7:full:12"),
            ("matrix", "1:7:groups=1:groups=1"),
        ] {
            let error = o.set(name, value).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
        let error = o.set("nosie", "1").unwrap_err().to_string();
        assert!(error.contains("noise"), "{error}");
    }
}
