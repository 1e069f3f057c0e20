//! What a fit makes of options that its algorithm does not use, or that others decide.

use super::choices::Initialization;
use super::table::{OPTION_TABLE, Options};

/// Unused options whose meaning still describes a fit: [`Options::make_effective`] sets them to what the algorithm does.
const DECIDED_BY_ALGORITHM: [&str; 4] = ["mean", "biases", "start", "lambda_reg"];

impl Options {
    /// Returns the names of options that were set by name although the algorithm does not use them, unless they ask for what
    /// it does anyway. Values of a preset do not count. Nor does a set of options that has all of the table that the algorithm
    /// does not use, such as all options of another model: such a set is no wish of a user.
    pub(crate) fn unused(&self) -> Vec<&'static str> {
        let algorithm = self.algorithm;
        let of_table = OPTION_TABLE.iter();
        let unused = of_table.filter(|option| !option.is_used_by(algorithm));
        let mut unused: Vec<&str> = unused.map(|option| option.name).collect();
        if !unused.is_empty() && unused.iter().all(|name| self.given.contains(name)) {
            return Vec::new();
        }
        let others = self.external_algorithms.iter().flat_map(|a| a.options);
        let is_own = |name: &str| algorithm.own_options().iter().any(|o| o.name == name);
        unused.extend(others.map(|o| o.name).filter(|name| !is_own(name)));
        let mut effective = self.clone();
        effective.make_effective();
        let is_ignored = |name: &&str| {
            let is_met =
                DECIDED_BY_ALGORITHM.contains(name) && self.get(name) == effective.get(name);
            self.given.contains(name) && !is_met
        };
        unused.into_iter().filter(is_ignored).collect()
    }

    /// Sets options that have no effect, or that other options decide, to what the fit does. The model records the result.
    pub(crate) fn make_effective(&mut self) {
        let properties = self.algorithm.properties();
        if !self.allows_baseline() {
            (self.mean, self.biases) = (false, false);
        } else if !properties.has_penalties {
            // The sampler has a mean always.
            self.mean = true;
        }
        if !properties.has_learning_rate {
            self.eta = Some(0.0);
        }
        if !properties.has_penalties {
            self.lambda_reg = Some(0.0);
            self.start = match properties.has_orthonormal_factors {
                // Orthonormal bases of normal samples.
                true => Initialization::Normal,
                false => Initialization::Identity,
            };
        }
        self.given.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;

    fn parsed(text: &str) -> Options {
        Options::from_text(&text.replace(' ', "\n")).unwrap()
    }

    #[test]
    fn options_that_contradict_the_algorithm_are_named() {
        let none: &[&str] = &[];
        for (text, expected) in [
            (
                "algorithm=als burn_in=3 samples=8 eta=0.1",
                &["eta", "burn_in", "samples"][..],
            ),
            ("algorithm=gibbs epochs=3 mean=false", &["epochs", "mean"]),
            ("algorithm=als eval-every=3 lambda-reg=1", none),
        ] {
            let options = parsed(text);
            assert_eq!(options.unused(), expected, "{text}");
        }
    }

    #[test]
    fn presets_and_complete_sets_of_options_are_not_named() {
        let mut paper = Options::preset("paper").unwrap();
        paper.set("algorithm", "gibbs").unwrap();
        assert_eq!(paper.unused(), [""; 0]);
        let complete = Options::from_text(&paper.to_text()).unwrap();
        assert_eq!(complete.unused(), [""; 0]);
        let saved = Options::from_saved_text("algorithm=als\nsamples=2", &[]).unwrap();
        assert_eq!(saved.unused(), [""; 0]);
    }

    #[test]
    fn effective_options_describe_the_fit() {
        let mut gibbs = parsed("algorithm=gibbs lambda_reg=3 start=paper eta=1 mean=false");
        gibbs.make_effective();
        assert!(gibbs.mean && !gibbs.is_zero_filled());
        assert_eq!((gibbs.eta, gibbs.lambda_reg), (Some(0.0), Some(0.0)));
        assert_eq!(gibbs.start, Initialization::Identity);
        let mut sgd = parsed("lambda_reg=3 start=paper eta=1");
        let before = sgd.clone();
        sgd.make_effective();
        assert_eq!(sgd, before);
        let mut nonneg = parsed("nonneg=true");
        nonneg.make_effective();
        assert_eq!((nonneg.mean, nonneg.biases), (false, false));
    }
}
