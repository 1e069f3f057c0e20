//! The results of `bench`: derived figures, the table and the JSON objects.

use s3cmtf::options::Algorithm;
use s3cmtf::solver::flops_per_entry;
use serde_json::{Value, json};

use super::peak::Peak;
use super::variant::Variant;
use crate::output::{Output, format_count, format_integer};

/// All measurements.
pub(super) struct Results {
    pub variants: Vec<Variant>,
    pub peaks: Vec<Peak>,
    /// Entries of the tensor.
    pub entries: u64,
    /// Entries that `naive` is measured on.
    pub sampled_entries: u64,
    pub repeats: u64,
}

impl Results {
    /// Returns the parallel efficiency: the speed per thread relative to that of the smallest number of threads.
    fn efficiency(&self, v: &Variant) -> f64 {
        let same = |o: &&Variant| (o.options.algorithm, o.level) == (v.options.algorithm, v.level);
        let fewest = self
            .variants
            .iter()
            .filter(same)
            .min_by_key(|o| o.options.threads)
            .unwrap_or(v);
        (v.entries_per_second / v.threads()) / (fewest.entries_per_second / fewest.threads())
    }

    /// Returns the speed relative to another algorithm with the same instruction set and number of threads. `None` if that
    /// was not measured.
    fn ratio_to(&self, algorithm: Algorithm, v: &Variant) -> Option<f64> {
        let same = |o: &&Variant| {
            (o.options.algorithm, o.level, o.options.threads)
                == (algorithm, v.level, v.options.threads)
        };
        let other = self.variants.iter().find(same)?;
        Some(v.entries_per_second / other.entries_per_second)
    }

    /// Returns the peak for the instruction set and threads of a variant.
    fn peak_flops(&self, v: &Variant) -> f64 {
        let same = |p: &&Peak| (p.level, p.threads) == (v.level, v.options.threads);
        self.peaks.iter().find(same).map_or(f64::NAN, |p| p.flops)
    }

    /// Prints the table of variants, and the peaks.
    pub fn print(&self, out: &mut Output) {
        // `naive` has scalar code only, so that most tables would have an empty column of ratios to it.
        let baselines: Vec<(Algorithm, &str)> =
            [(Algorithm::Opt, "x opt"), (Algorithm::Naive, "x naive")]
                .into_iter()
                .filter(|&(baseline, _)| {
                    self.variants.iter().any(|v| {
                        v.options.algorithm != baseline && self.ratio_to(baseline, v).is_some()
                    })
                })
                .collect();
        let headings = baselines
            .iter()
            .map(|(_, heading)| format!("  {heading:>8}"));
        out.heading(&format!(
            "algorithm  kernel  threads  million/s  per thread  ns/entry  efficiency  GFLOP/s  of peak  test RMSE {}",
            headings.collect::<String>()
        ));
        for v in &self.variants {
            let flops = v.entries_per_second * flops_per_entry(&v.options, &v.ranks);
            let efficiency = self.efficiency(v);
            let ratios = baselines.iter().map(|&(baseline, _)| {
                let ratio = self.ratio_to(baseline, v);
                format!("  {:>8}", ratio.map_or("-".into(), |x| format!("{x:.2}")))
            });
            let (peak, mark) = (self.peak_flops(v), if v.is_naive() { "*" } else { " " });
            let rmse = match v.test_rmse {
                x if x.is_finite() => format!("{x:.4}{mark}"),
                _ => "- ".into(),
            };
            out.line(format!(
                "{:<9}  {:<6}  {:>7}  {:>9.3}  {:>10.3}  {:>8.1}  {:>9.0}%  {:>7.2}  {:>6.1}%  {rmse:>10}{}",
                v.algorithm_name(),
                v.level.name(),
                v.options.threads,
                v.entries_per_second / 1e6,
                v.entries_per_second / 1e6 / v.threads(),
                1e9 / v.entries_per_second,
                100.0 * efficiency,
                flops / 1e9,
                100.0 * flops / peak,
                ratios.collect::<String>(),
            ));
            let rmse = match v.test_rmse {
                x if x.is_finite() => json!(x),
                _ => Value::Null,
            };
            out.object(&json!({
                "algorithm": v.algorithm_name(),
                "kernel": v.level.name(),
                "model": v.options.get("model"),
                "rank": v.options.rank.first(),
                "ranks": v.ranks,
                "threads": v.options.threads,
                "entries": if v.is_naive() { self.sampled_entries } else { self.entries },
                "epochs": v.options.epochs,
                "repeats": self.repeats,
                "entries_per_second": v.entries_per_second,
                "entries_per_second_per_thread": v.entries_per_second / v.threads(),
                "ns_per_entry": 1e9 / v.entries_per_second,
                "efficiency": efficiency,
                "gflops": flops / 1e9,
                "peak_gflops": peak / 1e9,
                "peak_share": flops / peak,
                "test_rmse": rmse,
                "ratio_to_opt": self.ratio_to(Algorithm::Opt, v),
                "ratio_to_naive": self.ratio_to(Algorithm::Naive, v),
                "independent": v.independent.iter().map(|s| json!({
                    "fits": s.fits,
                    "threads_per_fit": s.threads_per_fit,
                    "entries_per_second": s.entries_per_second,
                    "ratio_of_one_fit": v.entries_per_second / s.entries_per_second,
                })).collect::<Vec<Value>>(),
                "seed": v.options.seed,
            }));
        }
        out.line("");
        self.print_independent(out);
        if !baselines.is_empty() {
            let names: Vec<&str> = baselines.iter().map(|(_, heading)| *heading).collect();
            out.line(format!(
                "{}: speed relative to that algorithm with the same instruction set and threads.",
                names.join(", ")
            ));
        }
        if self.variants.iter().any(Variant::is_naive) {
            let entries = if self.sampled_entries < self.entries {
                format!(
                    "a sample of {} entries",
                    format_integer(self.sampled_entries)
                )
            } else {
                "all entries".into()
            };
            out.line(format!(
                "naive ran one epoch of scalar code on {entries}; its test RMSE (*) is therefore higher."
            ));
        }
        for p in &self.peaks {
            out.line(format!(
                "peak of {} on {}: {:.1} GFLOP/s",
                p.level.name(),
                format_count(p.threads, "thread", "threads"),
                p.flops / 1e9
            ));
        }
    }

    /// Prints the table of independent fits at the same time, if any were measured.
    fn print_independent(&self, out: &mut Output) {
        if self.variants.iter().all(|v| v.independent.is_empty()) {
            return;
        }
        out.heading(
            "algorithm  kernel  threads  independent fits  million/s in total  one fit / total",
        );
        for v in &self.variants {
            for split in &v.independent {
                out.line(format!(
                    "{:<9}  {:<6}  {:>7}  {:>16}  {:>18.3}  {:>15.3}",
                    v.algorithm_name(),
                    v.level.name(),
                    v.options.threads,
                    format!("{} x {}", split.fits, split.threads_per_fit),
                    split.entries_per_second / 1e6,
                    v.entries_per_second / split.entries_per_second,
                ));
            }
        }
        out.line(
            "\nF x T: F fits of T threads at the same time, each with its own copy of the data. The last column is the speed \
             of one fit with all threads relative to their total.",
        );
    }
}
