//! Test RMSE against seconds: every method, after a search for its options on held-out training entries.

use std::fs;

use s3cmtf::Result;
use serde_json::json;

use super::budget::Budget;
use super::child::{self, Ending};
use super::data_sets::DataSet;
use super::figure::Figure;
use super::methods::Method;
use super::session::Session;
use super::store::{Key, Measurement};

/// The part of the time of a method that its search for options takes.
const SEARCH_PART: f64 = 0.6;
/// The largest number of trials of a search; most end earlier, by their time limit.
const TRIALS: usize = 100;

/// Penalties that are searched for methods with the paper's settings, which have one penalty for all of them.
const PENALTIES: &str = "0.01..30";

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
    for (done, (key, set, method)) in open.into_iter().enumerate() {
        session.show(&key, done, total);
        let seconds = budget.seconds_for_one_of(total - done);
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
    let mut data = set.arguments(method.uses_matrices);
    let mut options: Vec<String> = Vec::new();
    if method.has_paper_preset {
        options.extend(["--preset".into(), set.paper_preset().into()]);
    }
    options.extend(method.arguments.iter().map(|a| a.to_string()));
    let mut search = vec!["tune".to_string()];
    search.extend(data.clone());
    search.extend(options.clone());
    if method.has_paper_preset {
        search.extend(["--lambda-reg".into(), PENALTIES.into()]);
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
    let run = child::run(&search, 3.0 * seconds + 10.0, session.progress)?;
    let is_tuned = run.ending == Ending::Success && config.exists();
    if is_tuned {
        data.extend(["--config".into(), config.display().to_string()]);
    } else {
        data.extend(options);
    }
    data.extend(set.test_arguments());
    let mut measurement = session.fit(data, (1.0 - SEARCH_PART) * seconds)?;
    let trials = run.objects.iter().filter(|o| o.get("place").is_some());
    let tried = trials.filter(|o| o["rungs"].as_u64() > Some(0)).count();
    let found = if is_tuned {
        fs::read_to_string(&config).unwrap_or_default()
    } else {
        String::new()
    };
    let found: Vec<&str> = found
        .lines()
        .filter(|l| !l.starts_with('#') && !l.is_empty())
        .collect();
    let fields = &mut measurement.fields;
    fields.insert("search".into(), json!(session.command(&search)));
    fields.insert("trials".into(), json!(if is_tuned { tried } else { 0 }));
    fields.insert("options".into(), json!(found.join(" ")));
    if !is_tuned {
        fields.insert("search_message".into(), json!(run.message()));
    }
    Ok(measurement)
}
