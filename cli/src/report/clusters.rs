//! The section on clusters: k-means clusters of each mode, with gap curves and labels.

use std::fmt::Write;

use s3cmtf::Result;
use s3cmtf::discover::{
    Cluster, ClusterOptions, Clusters, GapCurve, cluster_rows, compare_clusterings,
};
use s3cmtf::format::CooView;

use super::bar_chart::inline_bar;
use super::context::PageContext;
use super::html::{count_noun, format_hundredths, format_integer, format_percent, format_value};
use super::line_chart::{Curve, LineChart, Mark};

/// The largest number of clusters shown per mode.
const MAX_CLUSTERS: usize = 12;

/// The largest number of labels per cluster and matrix.
const MAX_LABELS: usize = 4;

/// Settings of the clustering. They are lower than the defaults of [`ClusterOptions`], so that a page takes seconds.
const RESTARTS: usize = 3;
const REFERENCE_SETS: usize = 8;
const CURVE_ROWS: usize = 2_000;

/// The smallest number of rows of a mode that is clustered.
const MIN_ROWS: usize = 8;

impl PageContext<'_> {
    pub(super) fn clusters(&self) -> Result<String> {
        if self.options.max_k == 0 && self.options.clusters.is_empty() {
            return Ok(String::new());
        }
        let mut out = String::from(
            "<p>Rows with similar predictions, for the tensor and for the coupled matrices of their mode, clustered by k-means. For each \
             number of clusters, the gap statistic compares the within-cluster sum of squares with that of uniformly distributed points. \
             Its rule chooses the first number after which one more cluster does not raise the gap by more than its standard error.</p>\n",
        );
        for (n, own) in self.model.modes().iter().enumerate() {
            let is_requested = self.options.clusters.iter().any(|c| c.0 == n);
            if self.options.max_k == 0 && !is_requested {
                continue;
            }
            let trained = own.counts.iter().filter(|&&c| c > 0).count();
            if trained < MIN_ROWS {
                let _ = writeln!(
                    out,
                    "<h3>Clusters of {}</h3>\n<p class=\"note\">{}: too few for clustering.</p>",
                    self.mode_name(n),
                    count_noun(trained as u64, "row", "rows")
                );
                continue;
            }
            out += &self.clusters_of_mode(n)?;
        }
        Ok(out)
    }

    fn clusters_of_mode(&self, n: usize) -> Result<String> {
        let requested = self.options.clusters.iter().find(|c| c.0 == n);
        let requested = requested.map(|c| c.1);
        // The curve extends beyond the requested number, to show whether it bends there.
        let max_k = match self.options.max_k {
            0 => None,
            max_k => Some(max_k.max(requested.map_or(0, |k| k + k / 8))),
        };
        let options = ClusterOptions {
            k: requested,
            max_k,
            restarts: RESTARTS,
            reference_sets: REFERENCE_SETS,
            curve_rows: CURVE_ROWS,
            max_members: self.options.top,
            max_labels: MAX_LABELS,
            seed: self.options.seed,
            threads: self.options.threads,
            ..ClusterOptions::new(n)
        };
        let matrices = self.options.matrices.iter().enumerate();
        let of_mode = matrices.filter(|(_, (mode, _))| *mode == n);
        let (matrix_numbers, views): (Vec<usize>, Vec<CooView<'_>>) =
            of_mode.map(|(m, (_, view))| (m, view.clone())).unzip();
        let (found, other) = match self.options.against {
            Some(other) => {
                let (found, other) =
                    compare_clusterings(self.model, other, &options, &views, self.monitor)?;
                (found, Some(other))
            }
            None => {
                let found = cluster_rows(self.model, &options, &views, self.monitor)?;
                (found, None)
            }
        };
        Ok(self.describe_clusters(&found, other.as_ref(), &matrix_numbers))
    }

    /// Describes the clusters of a mode. `matrix_numbers` are the numbers of the label matrices, counted from 0.
    fn describe_clusters(
        &self,
        found: &Clusters,
        other: Option<&Clusters>,
        matrix_numbers: &[usize],
    ) -> String {
        let mut out = format!("<h3>Clusters of {}</h3>\n", self.mode_name(found.mode));
        let rows = found.rows.len() as u64;
        let _ = write!(
            out,
            "<div class=\"grid2\"><div><p>{} in {}, which explain {} of their variance.",
            count_noun(rows, "row", "rows"),
            count_noun(found.clusters.len() as u64, "cluster", "clusters"),
            format_percent(found.explained_variance)
        );
        for (&m, coefficient) in matrix_numbers.iter().zip(&found.uncertainty_coefficients) {
            let _ = write!(
                out,
                " They explain {} of the entropy of matrix {}.",
                format_percent(*coefficient),
                m + 1
            );
        }
        if let Some(gap) = found.gap.as_ref() {
            out += &gap_verdict(gap, found.clusters.len());
        }
        if let Some(other) = other {
            let _ = write!(
                out,
                " The other model has {}",
                count_noun(other.clusters.len() as u64, "cluster", "clusters")
            );
            let coefficients = matrix_numbers.iter().zip(&other.uncertainty_coefficients);
            for (at, (&m, coefficient)) in coefficients.enumerate() {
                let conjunction = if at == 0 { ", which explain" } else { " and" };
                let _ = write!(
                    out,
                    "{conjunction} {} of the entropy of matrix {}",
                    format_percent(*coefficient),
                    m + 1
                );
            }
            out += ".";
        }
        let _ = writeln!(out, "</p></div>{}</div>", gap_chart(found, other));
        out += "<div class=\"grid3\">\n";
        for (k, cluster) in found.clusters.iter().take(MAX_CLUSTERS).enumerate() {
            out += &self.cluster_card(found, k, cluster, matrix_numbers);
        }
        out += "</div>\n";
        if found.clusters.len() > MAX_CLUSTERS {
            let _ = writeln!(
                out,
                "<p class=\"note\">The {MAX_CLUSTERS} largest of {}.</p>",
                found.clusters.len()
            );
        }
        out
    }

    fn cluster_card(
        &self,
        found: &Clusters,
        k: usize,
        c: &Cluster,
        matrix_numbers: &[usize],
    ) -> String {
        let fraction = c.size as f64 / (found.rows.len() as u64).max(1) as f64;
        let mut out = format!(
            "<div class=\"card\"><h4>Cluster {} <small>{}, {}</small></h4>{}",
            k + 1,
            count_noun(c.size, "row", "rows"),
            format_percent(fraction),
            inline_bar(fraction)
        );
        let significant = c.labels.iter().filter(|l| l.is_significant());
        let chips: String = significant
            .map(|l| {
                format!(
                    "<li title=\"{} of its rows, {} of all\">{} ×{}</li>",
                    format_integer(l.count),
                    format_integer(l.overall),
                    self.column_name(matrix_numbers[l.matrix], l.column),
                    format_value((l.lift * 10.0).round() / 10.0)
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
                    self.row_name(found.mode, m.index),
                    format_hundredths(m.distance)
                )
            })
            .collect();
        let _ = write!(out, "<h5>nearest to its centre</h5><ol>{members}</ol>");
        out + "</div>\n"
    }
}

/// Returns the verdict of the gap statistic on the shown number of clusters.
fn gap_verdict(gap: &GapCurve, shown: usize) -> String {
    let last = if gap.largest == gap.points.len() && gap.points.len() > 1 {
        ", the largest number that was tried"
    } else {
        ""
    };
    let mut out = if !gap.is_conclusive {
        " The gap still increases at the largest number that was tried.".to_string()
    } else if gap.rises_again() {
        format!(
            " The rule chooses {}, but the curve rises again after it: the gap is largest at {}{last}.",
            gap.chosen, gap.largest
        )
    } else if gap.chosen == 1 {
        " No number of clusters is significantly better than one.".to_string()
    } else {
        format!(" The rule chooses {}.", gap.chosen)
    };
    if shown != gap.recommended() {
        let _ = write!(out, " {shown} were requested.");
    }
    out
}

/// Returns the chart of the gap curves, with the shown number of clusters marked.
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
    let on_curve = found
        .gap
        .iter()
        .filter(|g| g.points.iter().any(|p| p.k == shown));
    let marks = on_curve.map(|_| Mark {
        x: shown as f64,
        class: "",
        text: format!("shown: {shown}"),
    });
    let drawn = LineChart {
        title: "Gap by number of clusters",
        x_label: "clusters",
        curves,
        marks: marks.collect(),
        from_zero: false,
    }
    .draw();
    if drawn.is_empty() {
        return drawn;
    }
    format!(
        "<figure>{drawn}<figcaption>error bars are standard errors; the dashed line is the shown number</figcaption></figure>"
    )
}
