//! `s3cmtf clusters`

use std::path::PathBuf;

use clap::Args;
use s3cmtf::Result;
use s3cmtf::discover::{
    Cluster, ClusterOptions, ClusterSpace, Clusters, GapCurve, Label, RowNames, cluster_rows,
    compare_clusterings,
};
use s3cmtf::format::OpenMode;
use s3cmtf::model;
use s3cmtf::options::ExternalAlgorithm;
use serde_json::{Value, json};

use crate::input::mode_from_one;
use crate::input::{InputFormat, MatchedFile, VerifyArguments};
use crate::option_arguments::ADVANCED;
use crate::outcome::Outcome;
use crate::output::{
    Output, format_count, format_integer, format_number, format_p_value, print_warning, printable,
};
use crate::progress::Progress;
use crate::row_lists::{csv_label_columns, csv_labels};
use crate::row_names::{NameArguments, column_names, id_or_number, row_json};

/// Cluster the rows of a mode
///
/// k-means with k-means++ seeding. The distance of two rows is that of their predictions for the tensor and for the coupled
/// matrices of their mode. Without -k the gap statistic chooses the number of clusters. Rows without tensor entries are
/// left out.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    s3cmtf clusters model.s3m --mode 2 --matrix genres.coo --names 2:movies.tsv\n  \
    s3cmtf clusters model.s3m --mode 2 -k 12 --csv > clusters.csv\n  \
    s3cmtf clusters model.s3m --mode 2 --max-k 6 --against uncoupled.s3m")]
pub(crate) struct Arguments {
    /// Model file
    model: PathBuf,

    /// Mode whose rows are clustered
    #[arg(long, value_name = "MODE")]
    mode: usize,

    /// Number of clusters [default: chosen by the gap statistic]
    #[arg(short = 'k', value_name = "K")]
    k: Option<usize>,

    /// Largest number of clusters of the gap curve [default: 20; with -k no curve]
    #[arg(long, value_name = "K")]
    max_k: Option<usize>,

    /// Random restarts of k-means; the best result is kept
    #[arg(long, value_name = "N", default_value_t = 10, help_heading = ADVANCED)]
    restarts: usize,

    /// Uniform reference data sets of the gap statistic
    #[arg(long, value_name = "N", default_value_t = 10, help_heading = ADVANCED)]
    references: usize,

    /// Compute the gap curve on a random sample of at most N rows
    #[arg(long, value_name = "N", default_value_t = 20_000, help_heading = ADVANCED)]
    curve_rows: usize,

    /// Cluster only rows with at least N tensor entries
    #[arg(long, value_name = "N", default_value_t = 1)]
    min_entries: u64,

    /// Distances between predictions, or between factor rows with columns of equal norm
    #[arg(long, value_name = "NAME", default_value = "predictions", value_parser = ["predictions", "columns"], help_heading = ADVANCED)]
    space: String,

    /// Matrix whose columns label the clusters where a row has a positive entry; may be repeated
    #[arg(long, value_name = "FILE")]
    matrix: Vec<PathBuf>,

    /// File of column names of the N-th --matrix [default: files beside the matrix]
    #[arg(long, value_name = "N:FILE")]
    matrix_names: Vec<String>,

    /// Largest number of significant labels per cluster and matrix
    #[arg(long, value_name = "N", default_value_t = 3)]
    labels: usize,

    /// Number of members to list per cluster, nearest to the centre first
    #[arg(short = 'n', long, value_name = "N", default_value_t = 5)]
    top: usize,

    /// Model of the same data to compare with, such as one fitted without matrices
    #[arg(long, value_name = "MODEL", conflicts_with = "csv")]
    against: Option<PathBuf>,

    #[command(flatten)]
    names: NameArguments,

    /// Print CSV: each row, its cluster and its distance to the centre
    #[arg(long)]
    csv: bool,

    /// Random seed
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Number of threads; 0: all available cores
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,

    #[command(flatten)]
    verify: VerifyArguments,
}

pub(super) fn run(
    a: &Arguments,
    algorithms: &'static [&'static ExternalAlgorithm],
    progress: &Progress,
    out: &mut Output,
) -> Result<Outcome> {
    let mode = mode_from_one(a.mode)?;
    let model = model::load_with(&a.model, OpenMode::Mapped, algorithms)?;
    let other = a.against.as_ref();
    let other = other.map(|file| model::load_with(file, OpenMode::Mapped, algorithms));
    let other = other.transpose()?;
    let mut names = a.names.row_names(&model, &a.model, &[])?;
    if let Some(other) = &a.against {
        names.load_of_model(other)?;
    }
    let mut matcher = model.row_matcher(&a.model)?;
    if let (Some(other), Some(path)) = (&other, &a.against) {
        let warnings = other.row_matcher(path)?.require_same_rows(&matcher)?;
        warnings.iter().for_each(|text| print_warning(text));
    }
    let format = InputFormat::of(&a.matrix, a.verify)?;
    let files = a
        .matrix
        .iter()
        .map(|file| format.open_coupled(file, &mut matcher, mode, None, progress))
        .collect::<Result<Vec<MatchedFile>>>()?;
    let widths = files.iter().map(|f| f.file.header().dims.get(1).copied());
    let mut columns = column_names(&a.matrix_names, &widths.collect::<Vec<_>>())?;
    for (m, matched) in files.iter().enumerate() {
        matched.set_column_names(&mut columns, m)?;
    }
    let options = ClusterOptions {
        k: a.k,
        max_k: a.max_k,
        restarts: a.restarts,
        reference_sets: a.references,
        curve_rows: a.curve_rows,
        min_entries: a.min_entries,
        space: match a.space.as_str() {
            "columns" => ClusterSpace::Columns,
            _ => ClusterSpace::Predictions,
        },
        max_members: if a.csv { usize::MAX } else { a.top },
        max_labels: a.labels,
        seed: a.seed,
        threads: a.threads,
        ..ClusterOptions::new(mode)
    };
    let views: Vec<_> = files.iter().map(MatchedFile::view).collect();
    let (found, other) = match (&other, &a.against) {
        (Some(other), Some(file)) => {
            let (found, other) = compare_clusterings(&model, other, &options, &views, progress)?;
            (found, Some((file, other)))
        }
        _ => (cluster_rows(&model, &options, &views, progress)?, None),
    };
    let printer = ClusterPrinter {
        arguments: a,
        names: &names,
        columns: &columns,
    };
    if out.json {
        let mut object = printer.to_json(&found);
        if let Some((file, other)) = &other {
            object["against"] = printer.to_json(other);
            object["against"]["model"] = file.display().to_string().into();
        }
        out.object(&object);
    } else if a.csv {
        printer.print_csv(&found, out);
    } else {
        printer.print(&found, out);
        let other = other.as_ref().map(|(file, other)| (*file, other));
        printer.print_curves(&found, other, out);
    }
    Ok(Outcome::Success)
}

/// Prints the clusters of one or two models.
struct ClusterPrinter<'a> {
    arguments: &'a Arguments,
    names: &'a RowNames,
    columns: &'a RowNames,
}

impl ClusterPrinter<'_> {
    fn to_json(&self, found: &Clusters) -> Value {
        let label = |l: &Label| {
            let mut label = row_json(self.columns, l.matrix, l.column);
            label["matrix"] = (l.matrix + 1).into();
            label["count"] = l.count.into();
            label["total_count"] = l.overall.into();
            label["lift"] = l.lift.into();
            label["log_odds"] = l.log_odds.into();
            label["p_value"] = l.p_value.into();
            label["log10_p"] = l.log10_p.into();
            label["corrected_p"] = l.corrected_p.into();
            label
        };
        let cluster = |c: &Cluster| {
            let members = c.members.iter().map(|m| {
                let mut row = row_json(self.names, found.mode, m.index);
                row["distance"] = m.distance.into();
                row
            });
            json!({
                "size": c.size,
                "radius": c.radius,
                "centre": c.centre,
                "labels": c.labels.iter().map(label).collect::<Vec<_>>(),
                "members": members.collect::<Vec<_>>(),
            })
        };
        let gap = |curve: &GapCurve| {
            let points = curve.points.iter().map(|p| {
                json!({
                    "k": p.k,
                    "log_within": p.log_within,
                    "reference_log_within": p.reference,
                    "gap": p.gap,
                    "standard_error": p.error,
                })
            });
            json!({
                "first_k": curve.chosen,
                "conclusive": curve.is_conclusive,
                "one_standard_error_k": curve.largest,
                "recommended_k": curve.recommended(),
                "sampled_rows": curve.rows,
                "points": points.collect::<Vec<_>>(),
            })
        };
        json!({
            "mode": found.mode + 1,
            "rows": found.rows.len(),
            "k": found.clusters.len(),
            "explained_variance": found.explained_variance,
            "uncertainty_coefficients": found.uncertainty_coefficients,
            "clusters": found.clusters.iter().map(cluster).collect::<Vec<_>>(),
            "gap": found.gap.as_ref().map(gap),
        })
    }

    fn print_csv(&self, found: &Clusters, out: &mut Output) {
        let columns = csv_label_columns(self.names, found.mode, "row");
        out.line(format!("row,{columns}cluster,distance"));
        for (c, cluster) in found.clusters.iter().enumerate() {
            for m in &cluster.members {
                let labels = csv_labels(self.names, found.mode, m.index);
                let (row, cluster) = (u64::from(m.index) + 1, c + 1);
                let distance = m.distance as f32;
                out.data_lines(&format!("{row},{labels}{cluster},{distance}\n"));
            }
        }
    }

    fn print(&self, found: &Clusters, out: &mut Output) {
        out.line(format!(
            "{} of mode {} in {}, {:.1}% of the variance is between clusters",
            format_count(found.rows.len() as u64, "row", "rows"),
            found.mode + 1,
            format_count(found.clusters.len() as u64, "cluster", "clusters"),
            100.0 * found.explained_variance
        ));
        for (file, fraction) in self
            .arguments
            .matrix
            .iter()
            .zip(&found.uncertainty_coefficients)
        {
            out.line(format!(
                "clusters explain {:.1}% of the entropy of {}",
                100.0 * fraction,
                file.display()
            ));
        }
        for (c, cluster) in found.clusters.iter().enumerate() {
            out.line(format!(
                "cluster {}: {}, radius {}",
                c + 1,
                format_count(cluster.size, "row", "rows"),
                format_number(cluster.radius)
            ));
            for l in cluster.labels.iter().filter(|l| l.is_significant()) {
                out.line(format!(
                    "    {:<24} {:>7} of its rows, {} of all rows: lift {:.1}, p {}",
                    printable(&self.columns.display_name(l.matrix, l.column)),
                    format_integer(l.count),
                    format_integer(l.overall),
                    l.lift,
                    format_p_value(l.p_value)
                ));
            }
            for m in &cluster.members {
                let line = format!(
                    "      {:<8}  {:>8}  {}",
                    format!("{:.4}", m.distance),
                    id_or_number(self.names, found.mode, m.index),
                    printable(self.names.name(found.mode, m.index).unwrap_or_default())
                );
                out.line(line.trim_end());
            }
        }
    }

    /// Prints the gap curves, and a comparison if there is another model.
    fn print_curves(
        &self,
        found: &Clusters,
        other: Option<(&PathBuf, &Clusters)>,
        out: &mut Output,
    ) {
        let own = &self.arguments.model;
        let mut curves = Vec::new();
        for (file, found) in [(own, found)].into_iter().chain(other) {
            if let Some(curve) = &found.gap {
                curves.push((file, curve));
            }
        }
        if !curves.is_empty() {
            out.line(
                "gap statistic and its standard error by the number of clusters (* where the rule stops):",
            );
        }
        let longest = curves.iter().map(|(_, c)| c.points.len()).max();
        for k in 0..longest.unwrap_or(0) {
            let mut line = format!("  {:>3}", k + 1);
            for (_, curve) in &curves {
                line += &match curve.points.get(k) {
                    Some(p) => format!(
                        "  {:>8.4} {:.4} {}",
                        p.gap,
                        p.error,
                        if p.k == curve.chosen { "*" } else { " " }
                    ),
                    None => " ".repeat(19),
                };
            }
            out.line(line.trim_end());
        }
        for (file, curve) in &curves {
            out.line(format!("{}: {}", file.display(), describe_stop(curve)));
        }
        let Some(other) = other else { return };
        for (file, found) in [(own, found), other] {
            let information = self
                .arguments
                .matrix
                .iter()
                .zip(&found.uncertainty_coefficients);
            let information = information.map(|(matrix, fraction)| {
                let percent = 100.0 * fraction;
                format!(
                    "; they explain {percent:.1}% of the entropy of {}",
                    matrix.display()
                )
            });
            out.line(format!(
                "{}: {}, {:.1}% of the variance is between clusters{}",
                file.display(),
                format_count(found.clusters.len() as u64, "cluster", "clusters"),
                100.0 * found.explained_variance,
                information.collect::<String>()
            ));
        }
    }
}

/// Describes where the rule of the gap statistic stops, and whether the curve rises again after that.
fn describe_stop(curve: &GapCurve) -> String {
    let last = if curve.largest == curve.points.len() {
        ", the end of the curve"
    } else {
        ""
    };
    if !curve.is_conclusive {
        return format!(
            "the rule does not stop up to {}, the end of the curve; the gap still grows",
            curve.chosen
        );
    }
    let mut line = format!("the rule stops at {}", curve.chosen);
    if curve.rises_again() {
        line += &format!("; the gap is largest at {}{last}", curve.largest);
        if curve.recommended() > curve.chosen {
            line += &match curve.recommended() {
                last if last == curve.points.len() => format!(
                    "; among the numbers whose gap exceeds that of one cluster it does not stop, so {last} are used without -k"
                ),
                k => format!(
                    "; among the numbers whose gap exceeds that of one cluster it stops at {k}, which is used without -k"
                ),
            };
        }
    }
    line
}
