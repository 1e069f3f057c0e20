//! Speed-up of one fit with the number of threads, and of as many independent fits of one thread each.

use s3cmtf::Result;
use s3cmtf::options::Algorithm;
use serde_json::{Value, json};

use super::budget::Budget;
use super::child;
use super::figure::Figure;
use super::methods::{BLOCKED, NAIVE, OPT};
use super::session::{Session, with_grace};
use super::store::{Key, Measurement, OK};

/// Scales of the planted data, of the shape of MovieLens, and the seconds per method that each needs at least.
const SCALES: [(f64, f64); 3] = [(0.1, 20.0), (0.02, 5.0), (0.004, 0.0)];
/// Seconds that one repeat takes at least, by which the number of repeats is chosen.
const REPEAT_SECONDS: f64 = 30.0;
/// One repeat at the smallest scale may take this long, whatever the budget.
const MIN_SECONDS: f64 = 60.0;

pub(super) fn measure(session: &mut Session<'_>, budget: Budget) -> Result<()> {
    let threads = thread_counts(session.threads());
    let scale = scale(session, budget);
    let methods = [
        (BLOCKED, Algorithm::Blocked),
        (OPT, Algorithm::Opt),
        (NAIVE, Algorithm::Naive),
    ];
    for (done, (name, algorithm)) in methods.into_iter().enumerate() {
        let key = |threads: u64| Key {
            figure: Figure::Cores,
            data: format!("movielens-like, scale {scale}"),
            method: name.into(),
            x: Some(threads),
        };
        if threads.iter().all(|&t| !session.needs(&key(t))) {
            continue;
        }
        session.show(&key(1), done, methods.len());
        let seconds = budget.seconds_for_one_of(methods.len() - done);
        let repeats = (seconds / REPEAT_SECONDS).clamp(1.0, 5.0) as u64;
        let list: Vec<String> = threads.iter().map(u64::to_string).collect();
        let mut arguments: Vec<String> = vec!["bench".into(), "--independent".into()];
        for (option, value) in [
            ("--like", "movielens".to_string()),
            ("--scale", scale.to_string()),
            ("--algorithm", algorithm.name().into()),
            ("--threads", list.join(",")),
            ("--repeats", repeats.to_string()),
            ("--seed", session.arguments.seed.to_string()),
        ] {
            arguments.extend([option.to_string(), value]);
        }
        let limit = with_grace(seconds.max(MIN_SECONDS));
        let run = child::run(&arguments, limit, session.progress)?;
        let speed = |o: &Value| o.get("entries_per_second").and_then(Value::as_f64);
        let of = |t: u64| {
            let objects = run.objects.iter();
            objects.clone().find(|o| o["threads"].as_u64() == Some(t))
        };
        let one = of(1).and_then(speed);
        for &t in &threads {
            if !session.needs(&key(t)) {
                continue;
            }
            let command = session.command(&arguments);
            let measurement = match (of(t), one) {
                (Some(o), Some(one)) => Measurement::new(
                    OK,
                    json!({
                        "command": command,
                        "entries_per_second": speed(o),
                        "speed_up": speed(o).map(|s| s / one),
                        "independent_speed_up": independent(o).map(|s| s / one),
                        // Of all numbers of threads, which are measured in one process.
                        "peak_memory_bytes": run.peak_memory_bytes,
                    }),
                ),
                _ => session.without_results(&run, command),
            };
            session.keep(key(t), measurement)?;
        }
    }
    Ok(())
}

/// Returns the scale of the data. A continued run has that of the first one.
fn scale(session: &mut Session<'_>, budget: Budget) -> f64 {
    let seconds = budget.seconds_for_one_of(3);
    let fitting = SCALES.into_iter().find(|(_, needed)| seconds >= *needed);
    let known = session
        .store
        .head
        .get("cores_scale")
        .and_then(Value::as_f64);
    let scale = known.unwrap_or(fitting.map_or(SCALES[0].0, |(scale, _)| scale));
    session
        .store
        .head
        .insert("cores_scale".into(), json!(scale));
    if scale < SCALES[0].0 {
        session.store.note(format!(
            "cores: planted data at scale {scale} instead of {}, to stay within the budget; epochs this short lose more by the start of threads",
            SCALES[0].0
        ));
    }
    scale
}

/// Returns the entries per second of independent fits of one thread each, together.
fn independent(variant: &Value) -> Option<f64> {
    let splits = variant.get("independent")?.as_array()?;
    let single = |s: &&Value| s.get("threads_per_fit").and_then(Value::as_u64) == Some(1);
    splits
        .iter()
        .find(single)?
        .get("entries_per_second")?
        .as_f64()
}

/// Returns 1, 2, 4, ... and the number itself.
fn thread_counts(available: usize) -> Vec<u64> {
    let available = available as u64;
    let powers = (0..u64::BITS)
        .map(|k| 1 << k)
        .take_while(|&t: &u64| t < available);
    powers.chain([available]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_double_up_to_those_available() {
        assert_eq!(thread_counts(1), [1]);
        assert_eq!(thread_counts(2), [1, 2]);
        assert_eq!(thread_counts(12), [1, 2, 4, 8, 12]);
    }
}
