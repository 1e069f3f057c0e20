//! The claims of the paper beside what was measured.

use super::chart::short_number;
use super::figure::Figure;
use super::iteration_time::OPT_ONE_THREAD;
use super::methods::{
    CMTF_OPT, CMTF_OPT_ZEROS, CP, MethodKind, NAIVE, OPT, SALS, TUCKER, TUCKER_ALS, kind_of,
};
use super::store::{Key, LEFT_OUT, Measurement, OUT_OF_MEMORY, OUT_OF_TIME, Store};

/// Slopes up to this count as constant time, and as linear if they differ from 1 by at most as much.
const SLOPE_TOLERANCE: f64 = 0.1;
/// Speed-up per thread from which on it counts as linear.
const LINEAR_EFFICIENCY: f64 = 0.9;

/// A claim counts as reproduced if the measured ratio is at least the lowest of the paper: of errors, of the time of an
/// iteration of CMTF-OPT, and of that of SALS-single.
const LOWEST_ERROR_RATIO: f64 = 2.1;
const LOWEST_TIME_RATIO: f64 = 11.0;
const SALS_TIME_RATIO: f64 = 2.3;

/// Seconds per iteration after which the paper counts a method as out of time.
const PAPER_TIME_LIMIT: f64 = 1e4;

/// A claim and its measurement.
pub(super) struct Claim {
    pub claim: &'static str,
    pub measured: String,
    /// Whether it holds here; `None` if it was not measured.
    pub holds: Option<bool>,
    pub why: String,
}

/// Returns all claims of the figures that were measured.
pub(super) fn claims(store: &Store, figures: &[Figure]) -> Vec<Claim> {
    let mut list = Vec::new();
    for figure in figures {
        match figure {
            Figure::Accuracy => list.push(lower_error(store)),
            Figure::IterationTime => list.push(faster_iterations(store)),
            Figure::Sals => list.extend([faster_than_sals(store), more_accurate_than_sals(store)]),
            Figure::Dimensionality => {
                list.extend([constant_time(store), memory_of_dimensionality(store)]);
            }
            Figure::Entries => list.extend([linear_time(store), memory_of_entries(store)]),
            Figure::Cores => list.push(linear_speed_up(store)),
            Figure::Gap => list.push(higher_gap(store)),
        }
    }
    list
}

fn find<'a>(store: &'a Store, figure: Figure, data: &str, method: &str) -> Option<&'a Measurement> {
    store.get(&Key {
        figure,
        data: data.into(),
        method: method.into(),
        x: None,
    })
}

/// Returns the lowest test RMSE of the methods of a kind.
fn best_of_kind(store: &Store, data: &str, kind: MethodKind) -> Option<f64> {
    let of_set = store.of_figure(Figure::Accuracy);
    let of_kind = of_set.filter(|(k, _)| k.data == data && kind_of(&k.method) == Some(kind));
    of_kind
        .filter_map(|(_, m)| m.number("test_rmse"))
        .reduce(f64::min)
}

fn lower_error(store: &Store) -> Claim {
    let figure = Figure::Accuracy;
    let (mut texts, mut zero_filled, mut observed) = (Vec::new(), Vec::new(), Vec::new());
    for data in store.data_sets(figure) {
        let best = |kind| best_of_kind(store, &data, kind);
        let Some(paper) = best(MethodKind::Paper) else {
            continue;
        };
        let mut parts = vec![format!("{data}: the best version of S3CMTF {paper:.4}")];
        if let Some(error) = best(MethodKind::ZeroFilled) {
            zero_filled.push(error / paper);
            parts.push(format!(
                "the best zero-filled competitor {:.2} times",
                error / paper
            ));
        }
        let cmtf_opt = find(store, figure, &data, CMTF_OPT);
        if let Some(error) = cmtf_opt.and_then(|m| m.number("test_rmse")) {
            observed.push(error / paper);
            parts.push(format!("{CMTF_OPT} {:.2} times", error / paper));
        }
        texts.push(parts.join(", "));
    }
    let zeros =
        "The paper's competitors take unobserved cells as zeros, so they predict values near zero";
    let same_model = match span(&observed) {
        Some(span) => format!(
            ". {CMTF_OPT}, the same model and optimizer without the zeros, has {span} times the error of S3CMTF"
        ),
        None => String::new(),
    };
    Claim {
        claim: "The test error is 3.6 (MovieLens), 4.1 (Netflix) and 2.1 (Yelp) times lower than that of the best competitor",
        holds: (!zero_filled.is_empty())
            .then(|| zero_filled.iter().all(|r| *r >= LOWEST_ERROR_RATIO)),
        why: format!("{zeros}{same_model}"),
        measured: texts.join("; "),
    }
}

fn faster_iterations(store: &Store) -> Claim {
    let figure = Figure::IterationTime;
    let (mut texts, mut ratios) = (Vec::new(), Vec::new());
    for data in store.data_sets(figure) {
        let seconds = |method| find(store, figure, &data, method)?.number("seconds_per_epoch");
        let Some(opt) = seconds(OPT) else { continue };
        let mut parts = vec![format!("{data}: {OPT} {} s", short_number(opt))];
        for method in [CMTF_OPT_ZEROS, CMTF_OPT, TUCKER_ALS] {
            match seconds(method) {
                Some(other) => {
                    // The claim is about CMTF-OPT as in the paper.
                    if method == CMTF_OPT_ZEROS {
                        ratios.push(other / opt);
                    }
                    parts.push(format!("{method} {:.2} times", other / opt));
                }
                None => {
                    let status =
                        find(store, figure, &data, method).map_or("not measured", |m| &m.status);
                    parts.push(format!("{method} {status}"));
                }
            }
        }
        if let Some(one) = seconds(OPT_ONE_THREAD) {
            parts.push(format!("{OPT_ONE_THREAD} {:.2} times", one / opt));
        }
        texts.push(parts.join(", "));
    }
    Claim {
        claim: "An iteration of S3CMTF-opt is 23 (MovieLens), 43 (Netflix) and 11 (Yelp) times faster than one of CMTF-OPT",
        measured: texts.join("; "),
        holds: (!ratios.is_empty()).then(|| ratios.iter().all(|r| *r >= LOWEST_TIME_RATIO)),
        why: "The competitors here visit only the entries of the sparse tensor, with vector instructions and all threads; those of the \
              paper were MATLAB programs with dense intermediate results. An iteration of CMTF-OPT has the cost of CP, N J per entry, \
              an update of S3CMTF-opt that of a full core, N J^N"
            .into(),
    }
}

fn faster_than_sals(store: &Store) -> Claim {
    let figure = Figure::Accuracy;
    let (mut texts, mut ratios) = (Vec::new(), Vec::new());
    for data in store.data_sets(Figure::IterationTime) {
        let seconds =
            |method| find(store, Figure::IterationTime, &data, method)?.number("seconds_per_epoch");
        if let (Some(cp), Some(sals)) = (seconds(CP), seconds(SALS)) {
            ratios.push(sals / cp);
            texts.push(format!("{data}: {:.2} times", sals / cp));
        }
    }
    if ratios.is_empty() {
        for data in store.data_sets(figure) {
            let seconds = |method| find(store, figure, &data, method)?.number("seconds_per_epoch");
            if let (Some(cp), Some(sals)) = (seconds(CP), seconds(SALS)) {
                ratios.push(sals / cp);
                texts.push(format!(
                    "{data}: {:.2} times (ranks chosen by each)",
                    sals / cp
                ));
            }
        }
    }
    Claim {
        claim: "An iteration of S3CMTF-CP is 2.3 times faster than one of SALS-single",
        measured: texts.join("; "),
        holds: (!ratios.is_empty()).then(|| ratios.iter().all(|r| *r >= SALS_TIME_RATIO)),
        why: "With J columns in subsets of C and T inner iterations, an iteration of SALS takes T J C operations per entry and mode for its \
              normal equations, one of S3CMTF-CP takes J for a gradient step; SALS divides rows among threads without conflicts"
            .into(),
    }
}

fn more_accurate_than_sals(store: &Store) -> Claim {
    let figure = Figure::Accuracy;
    let (mut texts, mut holds) = (Vec::new(), Vec::new());
    for data in store.data_sets(figure) {
        let rmse = |method| find(store, figure, &data, method)?.number("test_rmse");
        if let (Some(sals), Some(cp), Some(tucker)) = (rmse(SALS), rmse(CP), rmse(TUCKER)) {
            holds.push(cp < sals && tucker < sals);
            texts.push(format!(
                "{data}: SALS-single {sals:.4}, S3CMTF-CP {cp:.4}, S3CMTF-TUCKER {tucker:.4}"
            ));
        }
    }
    Claim {
        claim: "S3CMTF-CP and S3CMTF-TUCKER have a lower test error than SALS-single, which overfits",
        measured: texts.join("; "),
        holds: (!holds.is_empty()).then(|| holds.iter().all(|h| *h)),
        why: "All three have neither mean nor biases, and each searched for rank and penalty, S3CMTF also for the learning rate. How much \
              SALS-single overfits depends on the penalty that its search found"
            .into(),
    }
}

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

/// Returns the slopes of the paper's methods that were measured at the first and at the last size of the paper, with a text about
/// all methods.
fn slopes(store: &Store, figure: Figure, sizes: [u64; 2]) -> (Vec<f64>, String) {
    let (mut found, mut texts) = (Vec::new(), Vec::new());
    for method in store.methods(figure) {
        let points = store.curve(figure, &method, "seconds_per_epoch");
        let (Some(slope), Some(first), Some(last)) =
            (slope(&points), points.first(), points.last())
        else {
            continue;
        };
        let is_complete = [first.0, last.0] == sizes.map(|x| x as f64);
        if [NAIVE, OPT].contains(&method.as_str()) && is_complete {
            found.push(slope);
        }
        texts.push(format!(
            "{method}: exponent {slope:.2}, {} s at {} to {} s at {}",
            short_number(first.1),
            short_number(first.0),
            short_number(last.1),
            short_number(last.0)
        ));
    }
    (found, texts.join("; "))
}

fn constant_time(store: &Store) -> Claim {
    let (slopes, measured) = slopes(store, Figure::Dimensionality, [1_000, 100_000_000]);
    let entries = store.head.get("dimensionality_entries");
    let entries = entries.and_then(|n| n.as_f64()).map(short_number);
    let measured = match entries {
        Some(entries) if !measured.is_empty() => format!("{entries} entries; {measured}"),
        _ => measured,
    };
    Claim {
        claim: "The time of an iteration of S3CMTF does not depend on the size of the modes (1K to 100M, 1M entries)",
        measured,
        holds: (!slopes.is_empty()).then(|| slopes.iter().all(|s| s.abs() <= SLOPE_TOLERANCE)),
        why: "Only rows with entries are stored, so the work depends on the number of entries alone. With more rows than fit into the caches \
              every entry waits for memory, the more so the faster the arithmetic is"
            .into(),
    }
}

/// Describes where a method ran out of memory or time.
fn statuses(store: &Store, figure: Figure, method: &str) -> String {
    let of_method = store.of_figure(figure).filter(|(k, _)| k.method == method);
    let text =
        |(k, m): (&Key, &Measurement)| Some(format!("{} {}", short_number(k.x? as f64), m.status));
    let texts: Vec<String> = of_method.filter_map(text).collect();
    format!("{method}: {}", texts.join(", "))
}

/// Returns whether a method has this status at a size; `None` if that is not known. It is not if the time was shorter than that of
/// the paper.
fn ended_by(store: &Store, figure: Figure, method: &str, x: u64, status: &str) -> Option<bool> {
    let mut of_method = store.of_figure(figure).filter(|(k, _)| k.method == method);
    let (_, m) = of_method.find(|(k, _)| k.x == Some(x))?;
    let is_short = m.status == OUT_OF_TIME && m.number("limit_seconds") < Some(PAPER_TIME_LIMIT);
    (m.status != LEFT_OUT && !is_short).then_some(m.status == status)
}

fn memory_of_dimensionality(store: &Store) -> Claim {
    let figure = Figure::Dimensionality;
    let (tucker, zeros) = (
        statuses(store, figure, TUCKER_ALS),
        statuses(store, figure, CMTF_OPT_ZEROS),
    );
    let parts = [
        ended_by(store, figure, TUCKER_ALS, 10_000_000, OUT_OF_MEMORY),
        ended_by(store, figure, CMTF_OPT_ZEROS, 100_000_000, OUT_OF_TIME),
    ];
    let holds = if parts.contains(&Some(false)) {
        Some(false)
    } else {
        parts.iter().all(Option::is_some).then_some(true)
    };
    Claim {
        claim: "CMTF-Tucker-ALS runs out of memory from 10M rows per mode on, CMTF-OPT out of time at 100M",
        measured: format!("{tucker}; {zeros}"),
        holds,
        why: "CMTF-Tucker-ALS here never stores a large intermediate result as a whole. With zeros for unobserved cells of the matrix every row of \
              its mode occurs, so time and memory grow with the size of the mode. The paper allows 10,000 s per iteration; a shorter limit decides \
              nothing"
            .into(),
    }
}

fn linear_time(store: &Store) -> Claim {
    let (slopes, measured) = slopes(store, Figure::Entries, [10_000, 100_000_000]);
    Claim {
        claim: "The time of an iteration of S3CMTF grows linearly with the number of entries (10K to 100M, 10K rows per mode)",
        measured,
        holds: (!slopes.is_empty()).then(|| slopes.iter().all(|s| (s - 1.0).abs() <= SLOPE_TOLERANCE)),
        why: "The start of threads and epochs dominates below 100K entries, which lowers the exponent; the caches raise it above".into(),
    }
}

fn memory_of_entries(store: &Store) -> Claim {
    let figure = Figure::Entries;
    Claim {
        claim: "CMTF-Tucker-ALS runs out of memory at 100M entries",
        measured: statuses(store, figure, TUCKER_ALS),
        holds: ended_by(store, figure, TUCKER_ALS, 100_000_000, OUT_OF_MEMORY),
        why: "Its dense intermediate result has the rows of one mode and the squared rank of the others as columns, whatever the number of entries"
            .into(),
    }
}

fn linear_speed_up(store: &Store) -> Claim {
    let figure = Figure::Cores;
    let (mut texts, mut holds) = (Vec::new(), Vec::new());
    for method in store.methods(figure) {
        let of_method = store.of_figure(figure).filter(|(k, _)| k.method == method);
        let Some((key, m)) = of_method.max_by_key(|(k, _)| k.x) else {
            continue;
        };
        let (Some(threads), Some(speed_up)) = (key.x, m.number("speed_up")) else {
            continue;
        };
        if threads > 1 && [NAIVE, OPT].contains(&method.as_str()) {
            holds.push(speed_up / threads as f64 >= LINEAR_EFFICIENCY);
        }
        let independent = m.number("independent_speed_up");
        let independent =
            independent.map_or(String::new(), |x| format!(" (independent fits {x:.2})"));
        texts.push(format!(
            "{method}: {speed_up:.2} times with {threads} threads{independent}"
        ));
    }
    Claim {
        claim: "The speed of S3CMTF-naive and S3CMTF-opt grows linearly with the number of cores",
        measured: texts.join("; "),
        holds: (!holds.is_empty()).then(|| holds.iter().all(|h| *h)),
        why: "Independent fits of one thread each show what the machine can do. One fit loses against them where its threads write the same \
              rows and the same core, and where its epochs are short"
            .into(),
    }
}

fn higher_gap(store: &Store) -> Claim {
    let figure = Figure::Gap;
    let (mut texts, mut holds) = (Vec::new(), Vec::new());
    for data in store.data_sets(figure) {
        for suffix in ["", ", non-negative"] {
            let points = |name: &str| {
                Some(find(store, figure, &data, &format!("{name}{suffix}"))?.points("gap"))
            };
            let (Some(with), Some(without)) = (points("coupled"), points("uncoupled")) else {
                continue;
            };
            let pairs = with.iter().zip(&without).filter(|(a, _)| a[0] > 1.0);
            // Differences beyond their standard errors.
            let differences: Vec<f64> = pairs
                .map(|(a, b)| (a[1] - b[1]) / (a[2] * a[2] + b[2] * b[2]).sqrt())
                .collect();
            if differences.is_empty() {
                continue;
            }
            let higher = differences.iter().filter(|d| **d > 1.0).count();
            let lower = differences.iter().filter(|d| **d < -1.0).count();
            // The paper's models are non-negative.
            if !suffix.is_empty() {
                holds.push(higher > 0 && lower == 0);
            }
            texts.push(format!(
                "{data}{suffix}: higher for {higher} and lower for {lower} of {} numbers of clusters",
                differences.len()
            ));
        }
    }
    Claim {
        claim: "The gap statistic of the coupled mode is higher with coupling than without (Yelp, businesses)",
        measured: texts.join("; "),
        holds: (!holds.is_empty()).then(|| holds.iter().all(|h| *h)),
        why: "Differences count beyond their standard errors, and the paper's models are non-negative. A matrix can add groups to the rows only \
              where its columns form groups that the tensor does not show already"
            .into(),
    }
}

/// Returns the lowest and the highest ratio; `None` without ratios.
fn span(ratios: &[f64]) -> Option<String> {
    let low = ratios.iter().copied().reduce(f64::min)?;
    let high = ratios.iter().copied().reduce(f64::max)?;
    let (low, high) = (format!("{low:.2}"), format!("{high:.2}"));
    Some(match low == high {
        true => low,
        false => format!("{low} to {high}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_are_exponents() {
        let points: Vec<(f64, f64)> = [10.0, 100.0, 1000.0f64]
            .map(|x| (x, 3.0 * x.powf(1.5)))
            .into();
        assert!((slope(&points).unwrap() - 1.5).abs() < 1e-9);
        assert_eq!(slope(&points[..1]), None);
    }
}
