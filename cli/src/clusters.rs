//! `s3cmtf clusters`

use std::path::{Path, PathBuf};

use clap::Args;
use s3cmtf::Result;
use s3cmtf::discover::{
    Cluster, ClusterOptions, ClusterSpace, Clusters, GapCurve, Label, RowNames, cluster_rows,
    compare_clusterings,
};
use s3cmtf::format::{CooFile, Names, OpenMode, TextOptions};
use s3cmtf::model;
use serde_json::{Value, json};

use super::input::open_with;
use super::lists::{NameArguments, column_names, quoted, row_json};
use super::output::{Output, chance, counted, grouped, number, plain};
use super::progress::Progress;
use super::{Verdict, mode_from_one};

/// Find the rows of a mode that belong together
///
/// k-means, with seeds far from each other. Distances are those of what rows predict for the tensor and for the coupled
/// matrices of their mode. Without -k the gap statistic chooses the number of clusters. Rows without tensor entries are
/// left out.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    s3cmtf clusters model.s3m 2 --matrix genres.coo --names 2:movies.tsv --matrix-names 1:genres.tsv\n  \
    s3cmtf clusters model.s3m 2 -k 12 --matrix genres.coo --csv > clusters.csv\n  \
    s3cmtf clusters coupled.s3m 2 --max-k 20 --against uncoupled.s3m")]
pub(super) struct Arguments {
    /// The model
    model: PathBuf,

    /// The mode whose rows are clustered
    mode: usize,

    /// How many clusters; without it the gap statistic chooses
    #[arg(short = 'k', value_name = "K")]
    k: Option<usize>,

    /// The most clusters of the gap curve; with -k there is a curve only if this is given [default: 20]
    #[arg(long, value_name = "K")]
    max_k: Option<usize>,

    /// How often k-means starts anew; the best result counts
    #[arg(long, value_name = "N", default_value_t = 10)]
    restarts: usize,

    /// How many sets of even points the gap is measured against
    #[arg(long, value_name = "B", default_value_t = 10)]
    references: usize,

    /// Measure the gap curve on so many rows if there are more
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    curve_rows: usize,

    /// Cluster only rows with at least so many tensor entries
    #[arg(long, value_name = "N", default_value_t = 1)]
    least: u64,

    /// What distances are: of what rows predict, or of the numbers of the factor with columns of the same norm
    #[arg(long, value_name = "SPACE", default_value = "predictions", value_parser = ["predictions", "columns"])]
    space: String,

    /// A matrix to label clusters by: its first mode has the rows of the mode, all in the same order, and a row has a column if its entry is above 0. As
    /// the model was fitted with, or another. Binary COO or text
    #[arg(long, value_name = "FILE")]
    matrix: Vec<PathBuf>,

    /// Names of the columns of such a matrix, numbered from 1 as given: an index and a name in each line
    #[arg(long, value_name = "N:FILE")]
    matrix_names: Vec<String>,

    /// Labels of each cluster for each matrix, at most; printed are those that chance does not give
    #[arg(long, value_name = "N", default_value_t = 3)]
    labels: usize,

    /// Members of each cluster to list, the nearest to its centre first
    #[arg(long, value_name = "N", default_value_t = 5)]
    top: usize,

    /// Another model of the same data, fitted without matrices perhaps, to compare with
    #[arg(long, value_name = "MODEL", conflicts_with = "csv")]
    against: Option<PathBuf>,

    #[command(flatten)]
    names: NameArguments,

    /// Print CSV, with the cluster of each row and its distance to the centre
    #[arg(long)]
    csv: bool,

    /// For all random choices
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,

    /// Number of threads; 0 takes all this process may use
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
}

pub(super) fn run(a: &Arguments, progress: &Progress, out: &mut Output) -> Result<Verdict> {
    let mode = mode_from_one(a.mode)?;
    let model = model::load(&a.model, OpenMode::Mapped)?;
    let other = a.against.as_ref();
    let other = other.map(|file| model::load(file, OpenMode::Mapped));
    let other = other.transpose()?;
    let beside = [&a.model].into_iter().chain(&a.against);
    let beside: Vec<&Path> = beside.map(PathBuf::as_path).collect();
    let names = a.names.row_names(&model, &beside)?;
    let files = a
        .matrix
        .iter()
        .map(|file| open_with(file, &TextOptions::default(), progress))
        .collect::<Result<Vec<CooFile>>>()?;
    let widths = files.iter().map(|f| f.header().dims.get(1).copied());
    let mut columns = column_names(&a.matrix_names, &widths.collect::<Vec<_>>())?;
    for (m, file) in a.matrix.iter().enumerate() {
        names.check_matrix(mode, file)?;
        if columns.of_mode(m).is_none()
            && let Some(beside) = Names::load_beside(file, 1)?
        {
            columns.set(m, beside)?;
        }
    }
    let how = ClusterOptions {
        k: a.k,
        max_k: a.max_k,
        restarts: a.restarts,
        reference_sets: a.references,
        curve_rows: a.curve_rows,
        min_entries: a.least,
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
    let views: Vec<_> = files.iter().map(CooFile::view).collect();
    let (found, other) = match (&other, &a.against) {
        (Some(other), Some(file)) => {
            let (found, other) = compare_clusterings(&model, other, &how, &views, progress)?;
            (found, Some((file, other)))
        }
        _ => (cluster_rows(&model, &how, &views, progress)?, None),
    };
    let shown = Shown {
        arguments: a,
        names: &names,
        columns: &columns,
    };
    if out.json {
        let mut object = shown.to_json(&found);
        if let Some((file, other)) = &other {
            object["against"] = shown.to_json(other);
            object["against"]["model"] = file.display().to_string().into();
        }
        out.object(&object);
    } else if a.csv {
        shown.print_csv(&found, out);
    } else {
        shown.print(&found, out);
        let other = other.as_ref().map(|(file, other)| (*file, other));
        shown.print_curves(&found, other, out);
    }
    Ok(Verdict::Good)
}

struct Shown<'a> {
    arguments: &'a Arguments,
    names: &'a RowNames,
    columns: &'a RowNames,
}

impl Shown<'_> {
    fn to_json(&self, found: &Clusters) -> Value {
        let label = |l: &Label| {
            let mut label = row_json(self.columns, l.matrix, l.column);
            label["matrix"] = (l.matrix + 1).into();
            label["count"] = l.count.into();
            label["overall"] = l.overall.into();
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
                    "reference": p.reference,
                    "gap": p.gap,
                    "error": p.error,
                })
            });
            json!({
                "chosen": curve.chosen,
                "settled": curve.is_conclusive,
                "largest": curve.largest,
                "taken": curve.recommended(),
                "rows": curve.rows,
                "points": points.collect::<Vec<_>>(),
            })
        };
        json!({
            "mode": found.mode + 1,
            "rows": found.rows.len(),
            "k": found.clusters.len(),
            "explained": found.explained_variance,
            "information": found.uncertainty_coefficients,
            "clusters": found.clusters.iter().map(cluster).collect::<Vec<_>>(),
            "gap": found.gap.as_ref().map(gap),
        })
    }

    fn print_csv(&self, found: &Clusters, out: &mut Output) {
        let named = self.names.of_mode(found.mode).is_some();
        out.line(match named {
            true => "row,row_name,cluster,distance",
            false => "row,cluster,distance",
        });
        for (c, cluster) in found.clusters.iter().enumerate() {
            for m in &cluster.members {
                let name = match named {
                    true => {
                        let name = self.names.name(found.mode, m.index);
                        format!("{},", quoted(name.unwrap_or_default()))
                    }
                    false => String::new(),
                };
                let row = u64::from(m.index) + 1;
                out.line(format!("{row},{name}{},{}", c + 1, m.distance as f32));
            }
        }
    }

    fn print(&self, found: &Clusters, out: &mut Output) {
        out.line(format!(
            "{} of mode {} in {}, {:.1}% of their variance between them",
            counted(found.rows.len() as u64, "row", "rows"),
            found.mode + 1,
            counted(found.clusters.len() as u64, "cluster", "clusters"),
            100.0 * found.explained_variance
        ));
        for (file, share) in self
            .arguments
            .matrix
            .iter()
            .zip(&found.uncertainty_coefficients)
        {
            out.line(format!(
                "clusters tell {:.1}% of what {} says of a row",
                100.0 * share,
                file.display()
            ));
        }
        for (c, cluster) in found.clusters.iter().enumerate() {
            out.line(format!(
                "cluster {}: {}, radius {}",
                c + 1,
                counted(cluster.size, "row", "rows"),
                number(cluster.radius)
            ));
            for l in cluster.labels.iter().filter(|l| l.is_significant()) {
                out.line(format!(
                    "    {:<24} {:>7} of its rows, {} of all: {:.1} times as many, p {}",
                    plain(&self.columns.display_name(l.matrix, l.column)),
                    grouped(l.count),
                    grouped(l.overall),
                    l.lift,
                    chance(l.p_value)
                ));
            }
            for m in &cluster.members {
                let line = format!(
                    "      {:<8}  {:>8}  {}",
                    format!("{:.4}", m.distance),
                    u64::from(m.index) + 1,
                    plain(self.names.name(found.mode, m.index).unwrap_or_default())
                );
                out.line(line.trim_end());
            }
        }
    }

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
                "gap and its standard error by the number of clusters (* where the rule stops):",
            );
        }
        let most = curves.iter().map(|(_, c)| c.points.len()).max();
        for k in 0..most.unwrap_or(0) {
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
            out.line(format!("{}: {}", file.display(), stops(curve)));
        }
        let Some(other) = other else { return };
        for (file, found) in [(own, found), other] {
            let told = self
                .arguments
                .matrix
                .iter()
                .zip(&found.uncertainty_coefficients);
            let told = told.map(|(matrix, share)| {
                format!("; they tell {:.1}% of {}", 100.0 * share, matrix.display())
            });
            out.line(format!(
                "{}: {}, {:.1}% of the variance between them{}",
                file.display(),
                counted(found.clusters.len() as u64, "cluster", "clusters"),
                100.0 * found.explained_variance,
                told.collect::<String>()
            ));
        }
    }
}

/// Where the rule stops, and what the rest of the curve says of that.
fn stops(curve: &GapCurve) -> String {
    let last = match curve.largest == curve.points.len() {
        true => ", the most that were looked at",
        false => "",
    };
    if !curve.is_conclusive {
        return format!(
            "the rule stops nowhere up to {}, the most that were looked at; the gap still grows",
            curve.chosen
        );
    }
    let mut line = format!("the rule stops at {}", curve.chosen);
    if curve.rises_again() {
        line += &format!("; the gap is largest at {}{last}", curve.largest);
        if curve.recommended() > curve.chosen {
            let stop = match curve.recommended() {
                last if last == curve.points.len() => format!("nowhere, and {last} are"),
                k => format!("at {k}, which is"),
            };
            line += &format!(
                "; of numbers whose gaps are above that of one cluster it stops {stop} taken without -k"
            );
        }
    }
    line
}
