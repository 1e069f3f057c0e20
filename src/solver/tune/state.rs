//! What a tune keeps on disk, so that one that was killed goes on where it was.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::{Error, Result};
use crate::format::{CooView, atomic};
use crate::problem::Problem;

/// The first line of a state file.
const HEAD: &str = "s3cmtf-tune 1";

/// What a trial gave at a rung.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Given {
    /// The validation error, or why there is none.
    pub error: std::result::Result<f64, String>,
    pub seconds: f64,
}

/// All that is known, by rung and trial; and what it is about.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct State {
    /// A fingerprint of the entries, and one of the settings.
    pub data: u64,
    pub settings: u64,
    pub given: BTreeMap<(usize, usize), Given>,
}

impl State {
    pub(super) fn save(&self, path: &Path) -> Result<()> {
        let text = self.to_text();
        atomic::write(path, |w| w.write_all(text.as_bytes()))
    }

    /// Takes over what a file has, if it is about the same.
    pub(super) fn load(&mut self, path: &Path) -> Result<()> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|e| match e.kind() {
            std::io::ErrorKind::InvalidData => not_a_state(&name),
            _ => Error::cannot_open(path, e),
        })?;
        if !text.starts_with(HEAD) {
            return Err(not_a_state(&name));
        }
        let saved = State::from_text(&text)
            .ok_or_else(|| Error::file(&name, "is damaged; remove it and start the tune anew"))?;
        if saved.data != self.data {
            return Err(Error::file(
                &name,
                "was made on other data (entries, sizes, weights or validation entries differ); resume with \
                 the same files and weights",
            ));
        }
        if saved.settings != self.settings {
            return Err(Error::file(
                &name,
                "was made with other settings (options, ranges, trials, rungs, seed, kernel or the part held \
                 out); resume with the same",
            ));
        }
        self.given = saved.given;
        Ok(())
    }

    fn to_text(&self) -> String {
        let mut text = format!(
            "{HEAD}\ndata={:016x}\nsettings={:016x}\n",
            self.data, self.settings
        );
        for ((rung, trial), given) in &self.given {
            let seconds = given.seconds;
            text += &match &given.error {
                // Bits, not digits: survivors must be the same.
                Ok(error) => format!("{rung} {trial} {seconds:.3} {:016x}\n", error.to_bits()),
                Err(why) => {
                    let line = why.replace(['\n', '\r'], " ");
                    format!("{rung} {trial} {seconds:.3} failed {line}\n")
                }
            };
        }
        let crc = crc32fast::hash(text.as_bytes());
        text + &format!("crc={crc:08x}\n")
    }

    fn from_text(text: &str) -> Option<State> {
        let end = text.rfind("crc=")?;
        let crc = u32::from_str_radix(text[end..].strip_prefix("crc=")?.trim_end(), 16).ok()?;
        if crc != crc32fast::hash(&text.as_bytes()[..end]) {
            return None;
        }
        let mut lines = text[..end].lines();
        lines.next()?;
        let mut number = |name: &str| {
            let value = lines.next()?.strip_prefix(name)?;
            u64::from_str_radix(value, 16).ok()
        };
        let (data, settings) = (number("data=")?, number("settings=")?);
        let mut given = BTreeMap::new();
        for line in lines {
            let mut words = line.splitn(4, ' ');
            let place = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            let seconds = words.next()?.parse().ok()?;
            let last = words.next()?;
            let error = match last.strip_prefix("failed ") {
                Some(why) => Err(why.to_string()),
                None => Ok(f64::from_bits(u64::from_str_radix(last, 16).ok()?)),
            };
            given.insert(place, Given { error, seconds });
        }
        Some(State {
            data,
            settings,
            given,
        })
    }
}

fn not_a_state(name: &str) -> Error {
    Error::file(name, "is not the state of a tune")
}

/// A number that other entries, sizes or weights would hardly have.
pub(super) fn fingerprint(
    problem: &Problem<'_>,
    weights: &[f64],
    valid: Option<&CooView<'_>>,
) -> u64 {
    let mut tensor = crc32fast::Hasher::new();
    mark(problem.tensor().view(), &mut tensor);
    for mode in problem.modes() {
        tensor.update(&mode.dim().to_le_bytes());
    }
    let mut rest = crc32fast::Hasher::new();
    for (matrix, weight) in problem.matrices().iter().zip(weights) {
        mark(matrix.entries.view(), &mut rest);
        rest.update(&[matrix.mode as u8]);
        rest.update(matrix.kind.to_string().as_bytes());
        rest.update(&weight.to_le_bytes());
        rest.update(&matrix.penalty.unwrap_or(-1.0).to_le_bytes());
    }
    valid.iter().for_each(|v| mark(v, &mut rest));
    (u64::from(tensor.finalize()) << 32) | u64::from(rest.finalize())
}

fn mark(view: &CooView<'_>, crc: &mut crc32fast::Hasher) {
    const CHUNK: usize = 1 << 14;
    let mut bytes = Vec::with_capacity(8 * CHUNK);
    for n in 0..view.order() {
        for piece in view.column(n).chunks(CHUNK) {
            bytes.clear();
            bytes.extend(piece.iter().flat_map(|i| i.to_le_bytes()));
            crc.update(&bytes);
        }
    }
    for numbers in [view.values()].into_iter().chain(view.weights()) {
        for start in (0..numbers.len()).step_by(CHUNK) {
            let range = start..(start + CHUNK).min(numbers.len());
            bytes.clear();
            bytes.extend(range.flat_map(|i| numbers.get(i).to_le_bytes()));
            crc.update(&bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_comes_back_and_a_damaged_one_does_not() {
        let mut state = State {
            data: 7,
            settings: u64::MAX,
            given: BTreeMap::new(),
        };
        let good = Given {
            error: Ok(0.1 + 0.2),
            seconds: 1.5,
        };
        let bad = Given {
            error: Err("no memory: crc=0 rows".into()),
            seconds: 0.0,
        };
        state.given.insert((0, 3), good);
        state.given.insert((1, 12), bad);
        let text = state.to_text();
        assert_eq!(State::from_text(&text), Some(state));
        for cut in [text.len() - 2, text.len() / 2, HEAD.len(), 0] {
            assert_eq!(State::from_text(&text[..cut]), None, "cut at {cut}");
        }
        assert_eq!(State::from_text(&text.replace("memory", "memry")), None);
    }
}
