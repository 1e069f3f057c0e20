//! The gap statistic of the rows of a coupled mode, for models with and without the matrices.

use s3cmtf::Result;
use serde_json::{Value, json};

use super::budget::Budget;
use super::child;
use super::data_sets::DataSet;
use super::figure::Figure;
use super::session::{Session, with_grace};
use super::store::{Key, Measurement, NOT_SUPPORTED, OK, OUT_OF_TIME};

/// The largest number of clusters.
const MAX_K: &str = "12";
/// The curve may take this long, whatever the budget.
const MIN_SECONDS: f64 = 30.0;

/// Names of the models, whether they have the matrices, and whether they are non-negative.
const MODELS: [(&str, bool, bool); 4] = [
    ("coupled", true, false),
    ("uncoupled", false, false),
    ("coupled, non-negative", true, true),
    ("uncoupled, non-negative", false, true),
];

pub(super) fn measure(session: &mut Session<'_>, sets: &[DataSet], budget: Budget) -> Result<()> {
    let mut open = Vec::new();
    for set in sets {
        for (name, is_coupled, is_nonneg) in MODELS {
            let key = Key {
                figure: Figure::Gap,
                data: set.name.clone(),
                method: name.into(),
                x: None,
            };
            if session.needs(&key) {
                open.push((key, set, is_coupled, is_nonneg));
            }
        }
    }
    let total = open.len();
    for (done, (key, set, is_coupled, is_nonneg)) in open.into_iter().enumerate() {
        session.show(&key, done, total);
        if set.matrices.is_empty() {
            let message = "the data has no matrices, so there is nothing to compare";
            session.keep(
                key,
                Measurement::new(NOT_SUPPORTED, json!({"message": message})),
            )?;
            continue;
        }
        let seconds = budget.seconds_for_one_of(total - done);
        let mut arguments = set.arguments(is_coupled);
        let options = ["--preset", set.paper_preset(), "--algorithm", "opt"];
        arguments.extend(options.map(String::from));
        arguments.extend(["--rank".into(), set.paper_rank().into()]);
        if is_nonneg {
            arguments.push("--nonneg".into());
        }
        let mut fitted = session.fit(arguments, 0.5 * seconds)?;
        let measurement = if !fitted.is_ok() {
            fitted
        } else if session.model_path().exists() {
            gap_curve(session, set, &fitted, seconds)?
        } else {
            fitted.status = OUT_OF_TIME.into();
            fitted
        };
        session.keep(key, measurement)?;
    }
    Ok(())
}

/// Computes the curve of the model that was fitted last.
fn gap_curve(
    session: &Session<'_>,
    set: &DataSet,
    fitted: &Measurement,
    seconds: f64,
) -> Result<Measurement> {
    // As the paper clusters businesses: the mode that most matrices describe.
    let modes = || set.matrices.iter().map(|(mode, _)| *mode);
    let described = modes().max_by_key(|m| (modes().filter(|n| n == m).count(), *m));
    let mode = described.unwrap_or(1).to_string();
    let seed = session.arguments.seed.to_string();
    let model = session.model_path().display().to_string();
    let mut arguments: Vec<String> = vec!["clusters".into(), model];
    for (name, value) in [
        ("--mode", mode.as_str()),
        ("--space", "columns"),
        ("--seed", seed.as_str()),
        ("--max-k", MAX_K),
        ("--curve-rows", "3000"),
        ("--restarts", "3"),
    ] {
        arguments.extend([name.to_string(), value.to_string()]);
    }
    arguments.extend(["--threads".into(), session.threads().to_string()]);
    let limit = with_grace(seconds.max(MIN_SECONDS));
    let run = child::run(&arguments, limit, session.progress)?;
    let command = format!(
        "{} && {}",
        fitted.text("command"),
        session.command(&arguments)
    );
    let Some(points) = run.object("gap").and_then(curve_points) else {
        return Ok(session.without_results(&run, command));
    };
    let gaps = points.iter().filter_map(|p| p[1].as_f64());
    let of_fit = fitted.fields.get("peak_memory_bytes");
    let of_fit = of_fit.and_then(Value::as_u64);
    Ok(Measurement::new(
        OK,
        json!({
            "command": command,
            "mode": mode,
            "largest_gap": gaps.fold(f64::MIN, f64::max),
            "gap": points,
            "peak_memory_bytes": of_fit.max(run.peak_memory_bytes),
        }),
    ))
}

/// Returns the numbers of clusters, gaps and standard errors of the object that `clusters --json` prints.
fn curve_points(gap: &Value) -> Option<Vec<Value>> {
    let points = gap.get("points")?.as_array()?.iter();
    let point = |p: &Value| json!([p["k"], p["gap"], p["standard_error"]]);
    Some(points.map(point).collect())
}
