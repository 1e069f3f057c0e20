//! Test RMSE against seconds: every method, after a search for its options on held-out training entries.

use std::fs;

use s3cmtf::Result;
use s3cmtf::options::{OptionKind, Options};
use serde_json::json;

use super::ALGORITHMS;
use super::budget::Budget;
use super::child::{self, Ending};
use super::data_sets::DataSet;
use super::figure::Figure;
use super::methods::Method;
use super::session::{Session, with_grace};
use super::store::{Key, Measurement};

/// The part of the time of a method that its search for options takes.
const SEARCH_PART: f64 = 0.6;
/// The largest number of trials of a search; most end earlier, by their time limit.
const TRIALS: usize = 100;

/// Range of lambda_reg for methods with the paper's preset, which has 0.1 for all of them.
const PENALTIES: &str = "0.01..30";
/// Ranges of the rank for methods with the paper's preset, by the kind of model.
const CP_RANKS: &str = "3..64";
const TUCKER_RANKS: &str = "3..24";
/// The largest core of a range has as many entries at any order.
const MAX_CORE_LEN: f64 = 24.0 * 24.0 * 24.0;

/// The paper's errors are those of predictions that are not clipped to the range of the training values.
const NO_CLIPPING: [&str; 1] = ["--no-clip"];

/// Measures some methods on some data sets. `sals` measures with the same keys, so that nothing is measured twice.
pub(super) fn measure(
    session: &mut Session<'_>,
    sets: &[DataSet],
    methods: &[&Method],
    budget: Budget,
) -> Result<()> {
    let mut open = Vec::new();
    for set in sets {
        for method in methods {
            let key = Key {
                figure: Figure::Accuracy,
                data: set.name.clone(),
                method: method.name.into(),
                x: None,
            };
            if session.needs(&key) {
                open.push((key, set, *method));
            }
        }
    }
    let total = open.len();
    // The same for all, although some end early.
    let seconds = budget.seconds_for_one_of(total);
    for (done, (key, set, method)) in open.into_iter().enumerate() {
        session.show(&key, done, total);
        let measurement = tune_and_fit(session, set, method, seconds)?;
        session.keep(key, measurement)?;
    }
    Ok(())
}

fn tune_and_fit(
    session: &Session<'_>,
    set: &DataSet,
    method: &Method,
    seconds: f64,
) -> Result<Measurement> {
    let config = session.work.path().join("options.conf");
    let _ = fs::remove_file(&config);
    let data = set.arguments(method.uses_matrices);
    let preset = method.has_paper_preset.then(|| set.paper_preset());
    let mut options: Vec<String> = Vec::new();
    if let Some(preset) = preset {
        options.extend(["--preset".into(), preset.into()]);
    }
    options.extend(method.arguments.iter().map(|a| a.to_string()));
    if let Some(epochs) = method.epochs {
        options.extend(["--epochs".into(), epochs.into()]);
    }
    let mut search = vec!["tune".to_string()];
    search.extend(data.clone());
    search.extend(options.clone());
    if method.has_paper_preset {
        if let Some(start) = &set.start {
            search.extend(["--config".into(), start.display().to_string()]);
        }
        let ranks = rank_range(method.arguments.contains(&"cp"), set.order);
        let ranges = ["--lambda-reg", PENALTIES, "--rank", &ranks];
        search.extend(ranges.map(String::from));
        search.extend(NO_CLIPPING.map(String::from));
    }
    let threads = session.threads();
    for (name, value) in [
        ("--trials", TRIALS.to_string()),
        ("--time-limit", format!("{:.3}", SEARCH_PART * seconds)),
        ("--threads", threads.to_string()),
        // One fit at a time: the time of a trial is that of a fit.
        ("--fit-threads", threads.to_string()),
        ("--seed", session.arguments.seed.to_string()),
        ("-o", config.display().to_string()),
    ] {
        search.extend([name.to_string(), value]);
    }
    let run = child::run(&search, with_grace(3.0 * seconds), session.progress)?;
    let found = fs::read_to_string(&config).ok();
    let trials = run.objects.iter().filter(|o| o.get("place").is_some());
    let tried = trials.filter(|o| o["rungs"].as_u64() > Some(0)).count();
    // A search without a measured trial writes the default options.
    let found = found.filter(|_| run.ending == Ending::Success && tried > 0);
    let chosen = match &found {
        Some(text) => found_arguments(text, preset, &options)?,
        None => Vec::new(),
    };
    let mut fit = data;
    // No argument may be given twice.
    let kept = options.chunks(2).filter(|pair| !chosen.contains(&pair[0]));
    fit.extend(kept.flatten().cloned());
    fit.extend(chosen.clone());
    if method.has_paper_preset {
        if found.is_none() && set.start.is_some() {
            fit.extend(["--rank", set.paper_rank()].map(String::from));
        }
        fit.extend(NO_CLIPPING.map(String::from));
    }
    // Short iterations would otherwise take less time than their evaluation.
    if let Some(every) = method.eval_every {
        fit.extend(["--eval-every".into(), every.into()]);
    }
    fit.extend(set.test_arguments());
    let mut measurement = session.fit(fit, (1.0 - SEARCH_PART) * seconds)?;
    let fields = &mut measurement.fields;
    fields.insert("search".into(), json!(session.command(&search)));
    fields.insert("given_seconds".into(), json!(seconds));
    fields.insert("trials".into(), json!(found.as_ref().map_or(0, |_| tried)));
    fields.insert("options".into(), json!(chosen.join(" ")));
    if found.is_none() {
        let message = match run.ending {
            Ending::Success => "no trial was measured within its time".into(),
            _ => run.message(),
        };
        fields.insert("search_message".into(), json!(message));
    }
    Ok(measurement)
}

/// Returns the range of the ranks of a search.
fn rank_range(is_cp: bool, order: usize) -> String {
    match (is_cp, order) {
        (true, _) => CP_RANKS.into(),
        (false, ..=3) => TUCKER_RANKS.into(),
        (false, order) => {
            let largest = MAX_CORE_LEN.powf(1.0 / order as f64).floor().max(3.0);
            format!("2..{largest}")
        }
    }
}

/// Returns the arguments that, after those of the search, make the options that it found.
fn found_arguments(found: &str, preset: Option<&str>, of_search: &[String]) -> Result<Vec<String>> {
    let mut options = crate::options();
    options.apply_text(found)?;
    let found = options;
    let mut base = Options::preset(preset.unwrap_or("default"))?.with_algorithms(ALGORITHMS);
    for pair in of_search.chunks_exact(2).filter(|p| p[0] != "--preset") {
        let name = pair[0].trim_start_matches('-').replace('-', "_");
        base.set(&name, &pair[1])?;
    }
    let mut list = Vec::new();
    for option in found.all_options() {
        let value = found.get(option.name).unwrap_or_default();
        // Every fit is given these.
        let is_given = ["seed", "threads", "time_limit"].contains(&option.name)
            || (option.name == "clip" && preset.is_some());
        if is_given || base.get(option.name).as_ref() == Some(&value) {
            continue;
        }
        let name = option.name.replace('_', "-");
        match (option.kind, value.as_str()) {
            (OptionKind::Flag, "true") => list.push(format!("--{name}")),
            (OptionKind::Flag, "false") => list.push(format!("--no-{name}")),
            (OptionKind::Flag, _) => {}
            _ => list.extend([format!("--{name}"), value]),
        }
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_of_high_order_have_small_ranks() {
        let ranges = [3, 4, 5, 8].map(|order| rank_range(false, order));
        assert_eq!(ranges, ["3..24", "2..10", "2..6", "2..3"]);
        assert_eq!(rank_range(true, 4), CP_RANKS);
    }

    #[test]
    fn found_options_become_arguments() {
        let search = ["--preset", "paper-yelp", "--algorithm", "opt"].map(String::from);
        let mut found = Options::preset("paper-yelp").unwrap();
        found.set("algorithm", "opt").unwrap();
        let text = |o: &Options| o.to_text();
        let arguments = found_arguments(&text(&found), Some("paper-yelp"), &search).unwrap();
        assert_eq!(arguments, [""; 0]);
        for (name, value) in [("rank", "7"), ("lambda_reg", "0.5"), ("mean", "true")] {
            found.set(name, value).unwrap();
        }
        found.set("seed", "9").unwrap();
        let arguments = found_arguments(&text(&found), Some("paper-yelp"), &search).unwrap();
        assert_eq!(
            arguments,
            ["--rank", "7", "--mean", "--lambda-reg", "0.5"].map(String::from)
        );
    }
}
