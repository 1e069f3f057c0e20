//! What a model found: concepts and clusters.

use std::fmt::Write;

use super::Context;
use super::chart::{Curve, Curves, Mark, inline_bar};
use super::html::{counted, grouped, number, percent};
use crate::discover::{
    Association, Cluster, ClusterOptions, Clusters, Concept, ConceptOptions, GapCurve, RankedRow,
    cluster_rows, compare_clusterings, describe_concepts,
};
use crate::error::Result;
use crate::format::CooView;

/// How many concepts of a mode are shown, the strongest.
const CONCEPTS: usize = 9;

/// How many clusters of a mode are shown, the largest.
const CLUSTERS: usize = 12;

/// What clusters are looked for with: a page is made in seconds, and `clusters` looks harder.
const RESTARTS: usize = 3;
const REFERENCES: usize = 8;
const CURVE_ROWS: usize = 2_000;

/// Modes of fewer rows have no clusters worth a picture.
const FEWEST: usize = 8;

impl Context<'_> {
    pub(super) fn concepts(&self) -> Result<String> {
        let model = self.model;
        let mut out = String::from(
            "<p>A concept is a column of a factor. Its strength is the root mean square of what it adds to predictions; listed are the \
             rows with the largest and the smallest numbers, at a root mean square of 1, and the columns of coupled matrices that go \
             with it. Columns mean most in CP and non-negative models; in others they may be turned at will.</p>\n",
        );
        for n in 0..model.order() {
            let how = ConceptOptions {
                top: self.options.top,
                ..ConceptOptions::new(n)
            };
            let found = describe_concepts(model, &how)?.concepts;
            let most = found.first().map_or(0.0, |c| c.strength);
            let _ = writeln!(
                out,
                "<h3>Concepts of {}</h3>\n<div class=\"grid3\">",
                self.mode(n)
            );
            for concept in found.iter().take(CONCEPTS) {
                out += &self.concept(n, concept, most);
            }
            out += "</div>\n";
            if found.len() > CONCEPTS {
                let _ = writeln!(
                    out,
                    "<p class=\"note\">The {CONCEPTS} strongest of {}.</p>",
                    found.len()
                );
            }
        }
        Ok(out)
    }

    fn concept(&self, n: usize, c: &Concept, most: f64) -> String {
        let share = if most > 0.0 { c.strength / most } else { 0.0 };
        let mut out = format!(
            "<div class=\"card\"><h4>Column {} <small>strength {}</small></h4>{}",
            c.column + 1,
            number(c.strength),
            inline_bar(share)
        );
        let chips = |list: &[Association], class: &str, with: bool| -> String {
            let good = list
                .iter()
                .filter(|a| (a.contribution > 0.05) == with && a.contribution.abs() > 0.05);
            good.take(self.options.top)
                .map(|a| {
                    format!(
                        "<li class=\"{class}\">{} {}</li>",
                        self.column(a.matrix, a.column),
                        number((a.contribution * 100.0).round() / 100.0)
                    )
                })
                .collect()
        };
        let labels = chips(&c.positive, "strong", true) + &chips(&c.negative, "weak", false);
        if !labels.is_empty() {
            let _ = write!(out, "<ul class=\"chips\">{labels}</ul>");
        }
        let list = |title: &str, rows: &[RankedRow]| -> String {
            let items: String = rows
                .iter()
                .map(|r| {
                    format!(
                        "<li><span>{}</span><span>{}</span></li>",
                        self.row(n, r.index),
                        number((r.score * 100.0).round() / 100.0)
                    )
                })
                .collect();
            format!("<h5>{title}</h5><ol>{items}</ol>")
        };
        // Where all rows are listed, one list is enough.
        let all = c.largest.len() < self.options.top.max(1) || c.smallest.is_empty();
        out += &list(if all { "rows" } else { "the largest" }, &c.largest);
        if !all {
            out += &list("the smallest", &c.smallest);
        }
        out + "</div>\n"
    }

    pub(super) fn clusters(&self) -> Result<String> {
        if self.options.max_k == 0 {
            return Ok(String::new());
        }
        let mut out = String::from(
            "<p>Rows that predict alike, for the tensor and for the coupled matrices of their mode, found by k-means. The gap statistic \
             says how much closer rows are than even ones would be, for each number of clusters; its rule stops at the first after which \
             one more gains nothing beyond its standard error.</p>\n",
        );
        for (n, own) in self.model.modes().iter().enumerate() {
            let trained = own.counts.iter().filter(|&&c| c > 0).count();
            if trained < FEWEST {
                let _ = writeln!(
                    out,
                    "<h3>Clusters of {}</h3>\n<p class=\"note\">{}: too few to look for clusters.</p>",
                    self.mode(n),
                    counted(trained as u64, "row", "rows")
                );
                continue;
            }
            let asked = self.options.clusters.iter().find(|c| c.0 == n);
            let asked = asked.map(|c| c.1);
            // The curve goes on behind what is asked for, to show whether it bends there.
            let most = self.options.max_k.max(asked.map_or(0, |k| k + k / 8));
            let how = ClusterOptions {
                k: asked,
                max_k: Some(most),
                restarts: RESTARTS,
                reference_sets: REFERENCES,
                curve_rows: CURVE_ROWS,
                max_members: self.options.top,
                max_labels: 4,
                seed: self.options.seed,
                threads: self.options.threads,
                ..ClusterOptions::new(n)
            };
            let of_mode = self.options.matrices.iter().enumerate();
            let of_mode = of_mode.filter(|(_, (mode, _))| *mode == n);
            let (numbers, views): (Vec<usize>, Vec<CooView<'_>>) =
                of_mode.map(|(m, (_, view))| (m, view.clone())).unzip();
            let (found, other) = match self.options.against {
                Some(other) => {
                    let (found, other) =
                        compare_clusterings(self.model, other, &how, &views, self.monitor)?;
                    (found, Some(other))
                }
                None => (cluster_rows(self.model, &how, &views, self.monitor)?, None),
            };
            out += &self.clusters_of(n, &found, other.as_ref(), &numbers);
        }
        Ok(out)
    }

    fn clusters_of(
        &self,
        n: usize,
        found: &Clusters,
        other: Option<&Clusters>,
        numbers: &[usize],
    ) -> String {
        let mut out = format!("<h3>Clusters of {}</h3>\n", self.mode(n));
        let rows = found.rows.len() as u64;
        let _ = write!(
            out,
            "<div class=\"grid2\"><div><p>{} in {}, with {} of their variance between them.",
            counted(rows, "row", "rows"),
            counted(found.clusters.len() as u64, "cluster", "clusters"),
            percent(found.explained_variance)
        );
        for (&m, share) in numbers.iter().zip(&found.uncertainty_coefficients) {
            let _ = write!(
                out,
                " They tell {} of what matrix {} says of a row.",
                percent(*share),
                m + 1
            );
        }
        if let Some(gap) = found.gap.as_ref() {
            out += &said_of(gap, found.clusters.len());
        }
        if let Some(other) = other {
            let _ = write!(
                out,
                " The other model has {}",
                counted(other.clusters.len() as u64, "cluster", "clusters")
            );
            for (at, (&m, share)) in numbers
                .iter()
                .zip(&other.uncertainty_coefficients)
                .enumerate()
            {
                let join = if at == 0 { ", which tell" } else { " and" };
                let _ = write!(out, "{join} {} of matrix {}", percent(*share), m + 1);
            }
            out += ".";
        }
        let _ = writeln!(out, "</p></div>{}</div>", gap_chart(found, other));
        out += "<div class=\"grid3\">\n";
        for (k, cluster) in found.clusters.iter().take(CLUSTERS).enumerate() {
            out += &self.cluster(n, k, cluster, rows, numbers);
        }
        out += "</div>\n";
        if found.clusters.len() > CLUSTERS {
            let _ = writeln!(
                out,
                "<p class=\"note\">The {CLUSTERS} largest of {}.</p>",
                found.clusters.len()
            );
        }
        out
    }

    fn cluster(&self, n: usize, k: usize, c: &Cluster, rows: u64, numbers: &[usize]) -> String {
        let share = c.size as f64 / rows.max(1) as f64;
        let mut out = format!(
            "<div class=\"card\"><h4>Cluster {} <small>{}, {}</small></h4>{}",
            k + 1,
            counted(c.size, "row", "rows"),
            percent(share),
            inline_bar(share)
        );
        // What is hardly more than usual says nothing.
        let said = c.labels.iter().filter(|l| l.is_significant());
        let chips: String = said
            .map(|l| {
                format!(
                    "<li title=\"{} of its rows, {} of all\">{} ×{}</li>",
                    grouped(l.count),
                    grouped(l.overall),
                    self.column(numbers[l.matrix], l.column),
                    number((l.lift * 10.0).round() / 10.0)
                )
            })
            .collect();
        if !chips.is_empty() {
            let _ = write!(out, "<ul class=\"chips\">{chips}</ul>");
        }
        let members: String = c
            .members
            .iter()
            .map(|m| {
                format!(
                    "<li><span>{}</span><span>{}</span></li>",
                    self.row(n, m.index),
                    number((m.distance * 100.0).round() / 100.0)
                )
            })
            .collect();
        let _ = write!(out, "<h5>nearest to its centre</h5><ol>{members}</ol>");
        out + "</div>\n"
    }
}

/// What a gap curve says of the number of clusters that is shown.
fn said_of(gap: &GapCurve, shown: usize) -> String {
    let last = match gap.largest == gap.points.len() && gap.points.len() > 1 {
        true => ", the most that were looked at",
        false => "",
    };
    let mut out = match (gap.is_conclusive, gap.chosen) {
        (false, _) => " The gap still grows at the last number that was looked at.".to_string(),
        (true, 1) if !gap.rises_again() => {
            " No number of clusters is clearly better than one.".to_string()
        }
        (true, k) if gap.rises_again() => format!(
            " The rule stops at {k}, but the curve rises again behind it: the gap is largest at {}{last}.",
            gap.largest
        ),
        (true, k) => format!(" The rule stops at {k}."),
    };
    if shown != gap.recommended() {
        let _ = write!(out, " {shown} were asked for.");
    }
    out
}

fn gap_chart(found: &Clusters, other: Option<&Clusters>) -> String {
    let curve = |name: &'static str, class: &'static str, c: &Clusters| {
        let points = c.gap.iter().flat_map(|g| &g.points);
        Curve {
            name,
            class,
            points: points.clone().map(|p| (p.k as f64, p.gap)).collect(),
            errors: points.map(|p| p.error).collect(),
        }
    };
    let mut curves = vec![curve("this model", "train", found)];
    curves.extend(other.map(|o| curve("the other", "other", o)));
    let shown = found.clusters.len();
    let looked_at = found
        .gap
        .iter()
        .filter(|g| g.points.iter().any(|p| p.k == shown));
    let chosen = looked_at.map(|_| Mark {
        at: shown as f64,
        class: "",
        text: format!("shown: {shown}"),
    });
    let drawn = Curves {
        title: "Gap by number of clusters",
        x: "clusters",
        curves,
        marks: chosen.collect(),
        from_zero: false,
    }
    .draw();
    match drawn.is_empty() {
        true => drawn,
        false => format!(
            "<figure>{drawn}<figcaption>bars are standard errors; the dashed line is what is shown</figcaption></figure>"
        ),
    }
}
