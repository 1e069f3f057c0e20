//! The state file of a search, from which a killed search resumes.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::{Error, Result};
use crate::format::{CooView, SizeLimit, read_whole, write_atomically};
use crate::problem::Problem;

/// The first line of a state file.
const HEADER: &str = "s3cmtf-tune 1";

/// The outcome of a trial at a rung.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TrialOutcome {
    /// The validation RMSE, or why the trial failed.
    pub rmse: std::result::Result<f64, String>,
    /// Time of the fit from the rung before.
    pub seconds: f64,
}

/// The outcomes so far.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SearchState {
    /// Fingerprint of the entries, their dimensions and weights.
    pub data: u64,
    /// Fingerprint of the settings of the search.
    pub settings: u64,
    /// By rung and number of the trial.
    pub outcomes: BTreeMap<(usize, usize), TrialOutcome>,
}

impl SearchState {
    pub(super) fn save(&self, path: &Path) -> Result<()> {
        let text = self.to_text();
        write_atomically(path, |w| w.write_all(text.as_bytes()))
    }

    /// Loads the outcomes of a file with the same fingerprints.
    pub(super) fn load(&mut self, path: &Path) -> Result<()> {
        let name = path.display().to_string();
        let text = read_whole(path, SizeLimit::Table)?;
        let text = String::from_utf8(text).map_err(|_| not_a_state_file(&name))?;
        if !text.starts_with(HEADER) {
            return Err(not_a_state_file(&name));
        }
        let saved = SearchState::from_text(&text).ok_or_else(|| {
            Error::file(&name, "is damaged; remove it and start the search again")
        })?;
        if saved.data != self.data {
            return Err(Error::file(
                &name,
                "is of a search on other data (entries, dimensions, weights or validation entries differ); resume \
                 with the same files and weights",
            ));
        }
        if saved.settings != self.settings {
            return Err(Error::file(
                &name,
                "is of a search with other settings (options, ranges, trials, rungs, seed, kernel or held-out \
                 fraction); resume with the same",
            ));
        }
        self.outcomes = saved.outcomes;
        Ok(())
    }

    fn to_text(&self) -> String {
        let mut text = format!(
            "{HEADER}\ndata={:016x}\nsettings={:016x}\n",
            self.data, self.settings
        );
        for ((rung, trial), outcome) in &self.outcomes {
            let seconds = outcome.seconds;
            text += &match &outcome.rmse {
                // Bits, not decimals: a resumed search must rank trials the same.
                Ok(rmse) => format!("{rung} {trial} {seconds:.3} {:016x}\n", rmse.to_bits()),
                Err(why) => {
                    let line = why.replace(['\n', '\r'], " ");
                    format!("{rung} {trial} {seconds:.3} failed {line}\n")
                }
            };
        }
        let crc = crc32fast::hash(text.as_bytes());
        text + &format!("crc={crc:08x}\n")
    }

    fn from_text(text: &str) -> Option<SearchState> {
        let end = text.rfind("crc=")?;
        let crc = u32::from_str_radix(text[end..].strip_prefix("crc=")?.trim_end(), 16).ok()?;
        if crc != crc32fast::hash(&text.as_bytes()[..end]) {
            return None;
        }
        let mut lines = text[..end].lines();
        lines.next()?;
        let mut hexadecimal = |name: &str| {
            let value = lines.next()?.strip_prefix(name)?;
            u64::from_str_radix(value, 16).ok()
        };
        let (data, settings) = (hexadecimal("data=")?, hexadecimal("settings=")?);
        let mut outcomes = BTreeMap::new();
        for line in lines {
            let mut words = line.splitn(4, ' ');
            let key = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            let seconds = words.next()?.parse().ok()?;
            let last = words.next()?;
            let rmse = match last.strip_prefix("failed ") {
                Some(why) => Err(why.to_string()),
                None => Ok(f64::from_bits(u64::from_str_radix(last, 16).ok()?)),
            };
            outcomes.insert(key, TrialOutcome { rmse, seconds });
        }
        Some(SearchState {
            data,
            settings,
            outcomes,
        })
    }
}

fn not_a_state_file(name: &str) -> Error {
    Error::file(name, "is not the state file of a search")
}

/// Returns a checksum of all entries, dimensions and weights.
pub(super) fn fingerprint(
    problem: &Problem<'_>,
    weights: &[f64],
    valid: Option<&CooView<'_>>,
) -> u64 {
    let mut tensor = crc32fast::Hasher::new();
    add_entries(problem.tensor().view(), &mut tensor);
    for mode in problem.modes() {
        tensor.update(&mode.dim().to_le_bytes());
    }
    let mut rest = crc32fast::Hasher::new();
    for (matrix, weight) in problem.matrices().iter().zip(weights) {
        add_entries(matrix.entries.view(), &mut rest);
        rest.update(&[matrix.mode as u8]);
        rest.update(matrix.kind.to_string().as_bytes());
        rest.update(&weight.to_le_bytes());
        rest.update(&matrix.penalty.unwrap_or(-1.0).to_le_bytes());
    }
    valid.iter().for_each(|v| add_entries(v, &mut rest));
    (u64::from(tensor.finalize()) << 32) | u64::from(rest.finalize())
}

/// Adds indices, values and weights to a checksum.
fn add_entries(view: &CooView<'_>, crc: &mut crc32fast::Hasher) {
    const CHUNK: usize = 1 << 14;
    let mut bytes = Vec::with_capacity(8 * CHUNK);
    for n in 0..view.order() {
        for piece in view.column(n).chunks(CHUNK) {
            bytes.clear();
            bytes.extend(piece.iter().flat_map(|i| i.to_le_bytes()));
            crc.update(&bytes);
        }
    }
    for values in [view.values()].into_iter().chain(view.weights()) {
        for start in (0..values.len()).step_by(CHUNK) {
            let range = start..(start + CHUNK).min(values.len());
            bytes.clear();
            bytes.extend(range.flat_map(|i| values.get(i).to_le_bytes()));
            crc.update(&bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_restored_and_a_damaged_file_refused() {
        let mut state = SearchState {
            data: 7,
            settings: u64::MAX,
            outcomes: BTreeMap::new(),
        };
        let good = TrialOutcome {
            rmse: Ok(0.1 + 0.2),
            seconds: 1.5,
        };
        let failed = TrialOutcome {
            rmse: Err("no memory: crc=0 rows".into()),
            seconds: 0.0,
        };
        state.outcomes.insert((0, 3), good);
        state.outcomes.insert((1, 12), failed);
        let text = state.to_text();
        assert_eq!(SearchState::from_text(&text), Some(state));
        for cut in [text.len() - 2, text.len() / 2, HEADER.len(), 0] {
            assert_eq!(SearchState::from_text(&text[..cut]), None, "cut at {cut}");
        }
        assert_eq!(
            SearchState::from_text(&text.replace("memory", "memry")),
            None
        );
    }
}
