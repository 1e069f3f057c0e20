//! Named sets of options.

use super::table::Options;
use crate::error::{Error, Result};

/// Names of the presets.
pub const PRESETS: &[&str] = &[
    "default",
    "paper",
    "paper-movielens",
    "paper-netflix",
    "paper-yelp",
];

impl Options {
    /// Returns the options of a preset. `paper` has the paper's model (Tucker without mean and biases, rank 10),
    /// initialization, penalty, schedule and matrix weight, and the learning rate 0.001. The others add the rank and the
    /// learning rate that the paper gives for a data set.
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
        // A preset serves all algorithms.
        options.given.clear();
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_have_the_settings_of_the_paper() {
        for name in PRESETS {
            Options::preset(name).unwrap().validate().unwrap();
        }
        assert_eq!(Options::preset("default").unwrap(), Options::default());
        let yelp = Options::preset("paper-yelp").unwrap();
        assert_eq!(
            (yelp.eta, yelp.lambda_m, yelp.rank),
            (Some(0.0005), vec![10.0], vec![10])
        );
        assert!(
            Options::preset("papr")
                .unwrap_err()
                .to_string()
                .contains("paper-movielens")
        );
    }
}
