//! Claims about the size of data and the number of threads.

use super::super::chart::short_number;
use super::super::figure::Figure;
use super::super::methods::{CMTF_OPT_ZEROS, NAIVE, OPT, TUCKER_ALS};
use super::super::store::{Key, Measurement, OUT_OF_MEMORY, OUT_OF_TIME, SKIPPED, Store};
use super::{Claim, Evidence};

/// Slopes up to this count as constant time, and as linear if they differ from 1 by at most as much.
const SLOPE_TOLERANCE: f64 = 0.1;
/// Slopes of near-linear time differ from 1 by at most this.
const NEAR_LINEAR_TOLERANCE: f64 = 0.2;
/// Speed-up per thread from which on it counts as linear.
const LINEAR_EFFICIENCY: f64 = 0.9;
/// A speed-up above this multiple of the number of threads is not credible: other load slowed the fit with one thread.
const MAX_EFFICIENCY: f64 = 1.1;
/// Threads that a measured speed-up needs to have at least.
const MIN_THREADS: u64 = 4;
/// Seconds per iteration after which the paper counts a method as out of time, and the memory of its machine.
const PAPER_TIME_LIMIT: f64 = 1e4;
const PAPER_MEMORY: f64 = 256e9;

/// Returns the slope of a line through the logarithms of points, by least squares.
fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let logs: Vec<(f64, f64)> = points.iter().map(|p| (p.0.ln(), p.1.ln())).collect();
    let mean = |f: &dyn Fn(&(f64, f64)) -> f64| logs.iter().map(f).sum::<f64>() / logs.len() as f64;
    let (x, y) = (mean(&|p| p.0), mean(&|p| p.1));
    let (xx, xy) = (
        mean(&|p| (p.0 - x).powi(2)),
        mean(&|p| (p.0 - x) * (p.1 - y)),
    );
    (logs.len() > 1 && xx > 0.0).then(|| xy / xx)
}

/// Returns evidence from all methods: the slope of those named must agree, over all sizes from the first to the last.
fn slopes(
    store: &Store,
    figure: Figure,
    sizes: [u64; 2],
    methods: &[&str],
    agrees: impl Fn(f64) -> bool,
) -> Vec<Evidence> {
    let mut evidence = Vec::new();
    for method in store.methods(figure) {
        let counts = methods.contains(&method.as_str());
        let mut points = store.curve(figure, &method, "seconds_per_epoch");
        points.retain(|p| p.1 > 0.0);
        let (Some(slope), Some(first), Some(last)) =
            (slope(&points), points.first(), points.last())
        else {
            if counts {
                evidence.push(Evidence::open(&method, "too few sizes have a result"));
            }
            continue;
        };
        let text = format!(
            "{method}: exponent {slope:.2}, {} s at {} to {} s at {}",
            short_number(first.1),
            short_number(first.0),
            short_number(last.1),
            short_number(last.0)
        );
        let is_complete = [first.0, last.0] == sizes.map(|x| x as f64);
        evidence.push(match (counts, is_complete) {
            (false, _) => Evidence {
                text: format!("{text} (for comparison)"),
                agrees: Some(true),
            },
            (true, true) => Evidence::new(text, agrees(slope)),
            (true, false) => Evidence::open(&text, "the largest sizes have no result"),
        });
    }
    evidence
}

/// Returns evidence of whether a method runs out of memory or time at a size, on a machine and with a limit like the paper's.
fn ended_by(store: &Store, figure: Figure, method: &str, x: u64, status: &str) -> Evidence {
    let of_method = store.of_figure(figure).filter(|(k, _)| k.method == method);
    let text =
        |(k, m): (&Key, &Measurement)| Some(format!("{} {}", short_number(k.x? as f64), m.status));
    let statuses: Vec<String> = of_method.filter_map(text).collect();
    let text = format!("{method}: {}", statuses.join(", "));
    let mut of_method = store.of_figure(figure).filter(|(k, _)| k.method == method);
    let Some((_, m)) = of_method.find(|(k, _)| k.x == Some(x)) else {
        return Evidence::open(&text, "not measured");
    };
    if m.status == SKIPPED {
        return Evidence::open(&text, "skipped, the time budget was too small");
    }
    if m.status == OUT_OF_TIME && m.number("limit_seconds") < Some(PAPER_TIME_LIMIT) {
        return Evidence::open(&text, "the limit was shorter than the paper's 10,000 s");
    }
    if m.status == OUT_OF_MEMORY {
        let conditions = store.head.get("conditions");
        let machine = conditions.and_then(|c| c["machine"]["memory_bytes"].as_f64());
        let message = m.text("message");
        let text = format!("{text} ({message})");
        return match needed_bytes(message) {
            Some(needed) => Evidence::new(text, status == OUT_OF_MEMORY && needed > PAPER_MEMORY),
            None if machine >= Some(PAPER_MEMORY) => Evidence::new(text, status == OUT_OF_MEMORY),
            None => Evidence::open(
                &text,
                "this machine has less memory than the paper's 256 GB",
            ),
        };
    }
    Evidence::new(text, m.status == status)
}

/// Returns the bytes that a refusal for want of memory names: "needs about 103.5 GB".
fn needed_bytes(message: &str) -> Option<f64> {
    let (_, after) = message.split_once("needs about ")?;
    let mut words = after.split_whitespace();
    let number: f64 = words.next()?.parse().ok()?;
    let units = [
        ("MB", 1e6),
        ("GB", 1e9),
        ("TB", 1e12),
        ("PB", 1e15),
        ("EB", 1e18),
    ];
    let word = words.next()?;
    let unit = units.iter().find(|(name, _)| *name == word)?;
    Some(number * unit.1)
}

pub(super) fn of_dimensionality(store: &Store) -> Vec<Claim> {
    let figure = Figure::Dimensionality;
    let sizes = [1_000, 100_000_000];
    let is_constant = |slope: f64| slope.abs() <= SLOPE_TOLERANCE;
    let entries = store.head.get("dimensionality_entries");
    let entries = entries
        .and_then(|n| n.as_f64())
        .map_or("1M".into(), short_number);
    vec![
        Claim::new(
            "The time of an iteration of S3CMTF does not depend on the size of the modes (1K to 100M, 1M entries)",
            format!(
                "the exponents of S3CMTF-naive and S3CMTF-opt are at most {SLOPE_TOLERANCE} (here {entries} entries)"
            ),
            slopes(store, figure, sizes, &[NAIVE, OPT], is_constant),
            "Only rows with entries are stored, so the work depends on the number of entries alone. In small modes threads write the same rows; in \
             large ones rows are not in the caches",
        ),
        Claim::new(
            "CMTF-Tucker-ALS runs out of memory from 10M rows per mode on",
            "out of memory with 10M rows, where 256 GB are not enough",
            vec![ended_by(
                store,
                figure,
                TUCKER_ALS,
                10_000_000,
                OUT_OF_MEMORY,
            )],
            "CMTF-Tucker-ALS here never stores a large intermediate result as a whole",
        ),
        Claim::new(
            "CMTF-OPT runs out of time with 100M rows per mode",
            "CMTF-OPT (zeros) takes more than 10,000 s for an iteration",
            vec![ended_by(
                store,
                figure,
                CMTF_OPT_ZEROS,
                100_000_000,
                OUT_OF_TIME,
            )],
            "With zeros for unobserved cells of the matrix every row of its mode occurs, so time and memory grow with the size of the mode",
        ),
    ]
}

pub(super) fn of_entries(store: &Store) -> Vec<Claim> {
    let figure = Figure::Entries;
    let sizes = [10_000, 100_000_000];
    let near = |tolerance: f64| move |slope: f64| (slope - 1.0).abs() <= tolerance;
    vec![
        Claim::new(
            "The time of an iteration of S3CMTF grows linearly with the number of entries (10K to 100M, 10K rows per mode)",
            format!(
                "the exponents of S3CMTF-naive and S3CMTF-opt differ from 1 by at most {SLOPE_TOLERANCE}"
            ),
            slopes(store, figure, sizes, &[NAIVE, OPT], near(SLOPE_TOLERANCE)),
            "With few entries the start of threads and epochs is a large part of the time, which lowers the exponent",
        ),
        Claim::new(
            "The time of an iteration of CMTF-OPT is near-linear in the number of entries",
            format!(
                "the exponent of CMTF-OPT (zeros) differs from 1 by at most {NEAR_LINEAR_TOLERANCE}"
            ),
            slopes(
                store,
                figure,
                sizes,
                &[CMTF_OPT_ZEROS],
                near(NEAR_LINEAR_TOLERANCE),
            ),
            "Besides the entries, an iteration visits all parameters, whose number stays the same",
        ),
        Claim::new(
            "CMTF-Tucker-ALS runs out of memory with 100M entries",
            "out of memory there, where 256 GB are not enough",
            vec![ended_by(
                store,
                figure,
                TUCKER_ALS,
                100_000_000,
                OUT_OF_MEMORY,
            )],
            "Its dense intermediate result has the rows of one mode and the squared rank of the others as columns, whatever the number of entries",
        ),
    ]
}

/// A speed-up with the largest number of threads.
struct SpeedUp {
    threads: u64,
    factor: f64,
    text: String,
}

fn speed_up(store: &Store, method: &str) -> Option<SpeedUp> {
    let of_method = store.of_figure(Figure::Cores);
    let of_method = of_method.filter(|(k, _)| k.method == method);
    let (key, m) = of_method.max_by_key(|(k, _)| k.x)?;
    let (threads, factor) = (key.x?, m.number("speed_up")?);
    let independent = m.number("independent_speed_up");
    let independent = independent.map_or(String::new(), |x| format!(", independent fits {x:.2}"));
    Some(SpeedUp {
        threads,
        factor,
        text: format!("{method}: {factor:.2} times with {threads} threads{independent}"),
    })
}

pub(super) fn of_threads(store: &Store) -> Vec<Claim> {
    let reason = |s: &SpeedUp| {
        if s.threads < MIN_THREADS {
            Some("fewer than 4 threads")
        } else if s.factor > MAX_EFFICIENCY * s.threads as f64 {
            Some("more than the threads can bring, so one thread was disturbed")
        } else {
            None
        }
    };
    let mut linear = Vec::new();
    for method in store.methods(Figure::Cores) {
        let counts = [NAIVE, OPT].contains(&method.as_str());
        let Some(s) = speed_up(store, &method) else {
            if counts {
                linear.push(Evidence::open(&method, "it has no result"));
            }
            continue;
        };
        linear.push(match (counts, reason(&s)) {
            (false, _) => Evidence {
                text: format!("{} (for comparison)", s.text),
                agrees: Some(true),
            },
            (true, Some(reason)) => Evidence::open(&s.text, reason),
            (true, None) => {
                let efficiency = s.factor / s.threads as f64;
                Evidence::new(s.text, efficiency >= LINEAR_EFFICIENCY)
            }
        });
    }
    let higher = match (speed_up(store, OPT), speed_up(store, NAIVE)) {
        (Some(opt), Some(naive)) => {
            let text = format!("{}; {}", opt.text, naive.text);
            match reason(&opt).or(reason(&naive)) {
                Some(reason) => Evidence::open(&text, reason),
                None => Evidence::new(text, opt.factor > naive.factor),
            }
        }
        _ => Evidence::open(&format!("{OPT} and {NAIVE}"), "one has no result"),
    };
    vec![
        Claim::new(
            "The speed of S3CMTF-naive and S3CMTF-opt grows linearly with the number of cores (up to 20)",
            format!(
                "both have at least {LINEAR_EFFICIENCY} times the number of threads, with 4 threads or more"
            ),
            linear,
            "Independent fits of one thread each show what the machine can do. One fit loses against them where its threads write the same \
             rows and the same core, and where its epochs are short",
        ),
        Claim::new(
            "S3CMTF-opt has a higher speed-up than S3CMTF-naive, because it reads the core less often",
            "its speed-up with the most threads is higher",
            vec![higher],
            "The more arithmetic an update has, the less its threads wait for rows that others write: S3CMTF-naive computes far longer per update",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Verdict;
    use super::super::test_stores::TestStore;
    use super::*;

    #[test]
    fn slopes_are_exponents() {
        let points: Vec<(f64, f64)> = [10.0, 100.0, 1000.0f64]
            .map(|x| (x, 3.0 * x.powf(1.5)))
            .into();
        assert!((slope(&points).unwrap() - 1.5).abs() < 1e-9);
        assert_eq!(slope(&points[..1]), None);
    }

    #[test]
    fn time_per_entry_decides_only_over_all_sizes() {
        let mut s = TestStore::new();
        let mut add = |method: &str, x: u64, exponent: f64| {
            let fields = json!({"seconds_per_epoch": (x as f64).powf(exponent)});
            s.add(Figure::Entries, "planted", method, Some(x), "ok", fields);
        };
        for x in [10_000, 1_000_000, 100_000_000] {
            add(OPT, x, 1.0);
            add(CMTF_OPT_ZEROS, x, 0.5);
        }
        add(NAIVE, 10_000, 1.0);
        add(NAIVE, 1_000_000, 1.0);
        let verdicts = |s: &TestStore| {
            let claims = of_entries(&s.store);
            claims.iter().map(|c| c.verdict).collect::<Vec<_>>()
        };
        use Verdict::{NotReproduced, Reproduced, Undecided};
        assert_eq!(verdicts(&s), [Undecided, NotReproduced, Undecided]);
        let fields = json!({"seconds_per_epoch": 1e8});
        s.add(
            Figure::Entries,
            "planted",
            NAIVE,
            Some(100_000_000),
            "ok",
            fields,
        );
        assert_eq!(verdicts(&s)[0], Reproduced);
    }

    #[test]
    fn memory_is_compared_with_that_of_the_paper() {
        let verdict = |status: &str, fields| {
            let mut s = TestStore::new();
            let x = Some(10_000_000);
            s.add(
                Figure::Dimensionality,
                "planted",
                TUCKER_ALS,
                x,
                status,
                fields,
            );
            of_dimensionality(&s.store)[1].verdict
        };
        let message = |text: &str| json!({"message": text});
        for (needed, expected) in [
            ("103.5 GB", Verdict::NotReproduced),
            ("1.2 TB", Verdict::Reproduced),
            ("much", Verdict::Undecided),
        ] {
            let text = format!("tucker-als needs about {needed} of memory");
            assert_eq!(verdict("O.O.M.", message(&text)), expected, "{needed}");
        }
        assert_eq!(verdict("ok", json!({})), Verdict::NotReproduced);
        assert_eq!(verdict("skipped", json!({})), Verdict::Undecided);
        let short = json!({"limit_seconds": 5.0});
        assert_eq!(verdict("O.O.T.", short), Verdict::Undecided);
    }

    #[test]
    fn speed_up_needs_threads_and_is_not_above_their_number() {
        let verdicts = |threads: u64, opt: f64, naive: f64| {
            let mut s = TestStore::new();
            for (method, factor) in [(OPT, opt), (NAIVE, naive)] {
                let fields = json!({"speed_up": factor});
                s.add(
                    Figure::Cores,
                    "planted",
                    method,
                    Some(threads),
                    "ok",
                    fields,
                );
            }
            [0, 1].map(|k| of_threads(&s.store)[k].verdict)
        };
        use Verdict::{NotReproduced, Reproduced, Undecided};
        assert_eq!(verdicts(16, 15.0, 14.9), [Reproduced, Reproduced]);
        assert_eq!(verdicts(16, 8.0, 15.0), [NotReproduced, NotReproduced]);
        assert_eq!(verdicts(2, 2.0, 1.9), [Undecided, Undecided]);
        assert_eq!(verdicts(4, 7.0, 3.9), [Undecided, Undecided]);
    }
}
