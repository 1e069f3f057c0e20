//! Clusters of the rows of a mode, compared with the columns of its matrices and with the clusters of the uncoupled model.

use s3cmtf::Result;
use s3cmtf::discover::{
    Cluster, ClusterOptions, Clusters, RowNames, cluster_rows, compare_clusterings,
};
use s3cmtf::format::{CooFile, CooView};
use serde_json::{Value, json};

use super::context::Context;
use super::fits::Fits;
use super::truncate::{truncate, truncate_list};
use crate::output::{Output, format_count, format_integer};
use crate::row_names::row_json;

/// Largest number of clusters.
const MAX_CLUSTERS: usize = 30;
/// Number of clusters printed.
const SHOWN_CLUSTERS: usize = 12;
/// Number of members listed of each cluster.
const SHOWN_MEMBERS: usize = 3;

/// The clusters that were printed.
pub(super) struct ClusterSummary {
    pub count: usize,
    pub json: Value,
}

/// Clusters the rows of a mode, prints the clusters, and compares them with the matrices.
pub(super) fn print_clusters(
    context: &Context<'_>,
    fits: &Fits,
    mode: usize,
    out: &mut Output,
) -> Result<ClusterSummary> {
    let data = context.data;
    let (found, other) = compute_clusters(context, fits, mode)?;
    context.progress.clear();
    let columns = data.column_names()?;
    // Labels number the matrices of the mode; the data set numbers all matrices.
    let matrix_numbers: Vec<usize> = data.matrices_of(mode).map(|(m, _)| m).collect();
    let mode_number = format!("mode {}", mode + 1);
    out.line("");
    out.heading(&format!(
        "The {} rows of {} in {} ({}), largest first:",
        format_integer(found.rows.len() as u64),
        if mode_number == data.mode_names[mode] {
            mode_number
        } else {
            format!("{mode_number} ({})", data.mode_names[mode])
        },
        format_count(found.clusters.len() as u64, "cluster", "clusters"),
        match found.gap {
            Some(_) => "chosen by the gap statistic",
            None => "one per group of the matrices",
        }
    ));
    for (k, c) in found.clusters.iter().take(SHOWN_CLUSTERS).enumerate() {
        let members = c
            .members
            .iter()
            .map(|m| truncate(&context.names.display_name(mode, m.index), 30));
        out.line(format!(
            "  {:>3}  {:>5} rows  {:<34}  {}",
            k + 1,
            format_integer(c.size),
            format_labels(c, &columns, &matrix_numbers),
            members.collect::<Vec<_>>().join("; ")
        ));
    }
    if found.clusters.len() > SHOWN_CLUSTERS {
        out.line(format!(
            "       and {} more",
            found.clusters.len() - SHOWN_CLUSTERS
        ));
    }
    let agreement = other.as_ref().map_or(Vec::new(), |other| {
        print_agreement(context, mode, &found, other, out)
    });
    out.flush()?;
    let list = found.clusters.iter().map(|c| {
        let labels = c.labels.iter().map(|l| {
            let matrix = matrix_numbers[l.matrix];
            let mut label = row_json(&columns, matrix, l.column);
            label["attribute"] = data.matrices[matrix].attribute.clone().into();
            label["count"] = l.count.into();
            label
        });
        let members = c.members.iter();
        let members = members.map(|m| row_json(&context.names, mode, m.index));
        json!({
            "size": c.size,
            "labels": labels.collect::<Vec<_>>(),
            "members": members.collect::<Vec<_>>(),
        })
    });
    Ok(ClusterSummary {
        count: found.clusters.len(),
        json: json!({
            "mode": mode + 1,
            "rows": found.rows.len(),
            "uses_gap_statistic": found.gap.is_some(),
            "clusters": list.collect::<Vec<_>>(),
            "clusters_uncoupled": other.map(|o| o.clusters.len()),
            "agreement": agreement,
        }),
    })
}

/// Clusters the rows of a mode by the main model and, if there is one, by the model it is compared with.
fn compute_clusters(
    context: &Context<'_>,
    fits: &Fits,
    mode: usize,
) -> Result<(Clusters, Option<Clusters>)> {
    let matrices = context.data.matrices_of(mode);
    let views: Vec<CooView<'_>> = matrices.map(|(_, m)| m.file.view()).collect();
    let options = ClusterOptions {
        k: group_count(context, mode),
        restarts: 20,
        max_members: SHOWN_MEMBERS,
        max_labels: 1,
        seed: context.arguments.seed,
        threads: context.arguments.threads,
        ..ClusterOptions::new(mode)
    };
    let model = &fits.main().model;
    match fits.comparison() {
        Some(other) => compare_clusterings(model, &other.model, &options, &views, context.progress)
            .map(|(found, other)| (found, Some(other))),
        None => Ok((
            cluster_rows(model, &options, &views, context.progress)?,
            None,
        )),
    }
}

/// Returns the number of groups that the matrices of a mode define: the combinations of columns of the matrices with one
/// column per row, or the columns of the first matrix if there are none. `None` without matrices.
fn group_count(context: &Context<'_>, mode: usize) -> Option<usize> {
    let mut files = context
        .data
        .matrices_of(mode)
        .map(|(_, m)| &m.file)
        .peekable();
    let width = |file: &CooFile| file.header().dims[1] as usize;
    let first = width(files.peek()?);
    let partitions: Vec<usize> = files
        .filter(|f| single_columns(f).is_some())
        .map(width)
        .collect();
    let groups = if partitions.is_empty() {
        first
    } else {
        partitions
            .iter()
            .fold(1usize, |groups, w| groups.saturating_mul(*w))
    };
    Some(groups.clamp(1, MAX_CLUSTERS))
}

/// Formats the significant labels of a cluster with their percentages of its rows.
fn format_labels(cluster: &Cluster, columns: &RowNames, matrix_numbers: &[usize]) -> String {
    let clear = cluster.labels.iter().filter(|l| l.is_significant());
    let labels = clear.map(|l| {
        let percent = 100.0 * l.count as f64 / cluster.size.max(1) as f64;
        format!(
            "{} {percent:.0}%",
            columns.display_name(matrix_numbers[l.matrix], l.column)
        )
    });
    truncate_list(&labels.collect::<Vec<_>>(), 34)
}

/// Prints for each matrix how well clusters agree with it, for the main model and the uncoupled one. Returns JSON objects.
fn print_agreement(
    context: &Context<'_>,
    mode: usize,
    found: &Clusters,
    uncoupled: &Clusters,
    out: &mut Output,
) -> Vec<Value> {
    let mut agreement = Vec::new();
    for (m, (_, matrix)) in context.data.matrices_of(mode).enumerate() {
        let purities = (purity(found, &matrix.file), purity(uncoupled, &matrix.file));
        out.line(format!(
            "  Clusters explain {1:.0}% of the entropy of {0} (uncoupled {2:.0}%){3}",
            matrix.attribute,
            100.0 * found.uncertainty_coefficients[m],
            100.0 * uncoupled.uncertainty_coefficients[m],
            match purities {
                (Some(with), Some(without)) => format!(
                    ";\n    {:.0}% of the rows have the most frequent {} of their cluster (uncoupled {:.0}%)",
                    100.0 * with,
                    matrix.attribute,
                    100.0 * without
                ),
                _ => String::new(),
            }
        ));
        agreement.push(json!({
            "attribute": matrix.attribute,
            "uncertainty_coefficient": found.uncertainty_coefficients[m],
            "uncertainty_coefficient_uncoupled": uncoupled.uncertainty_coefficients[m],
            "purity": purities.0,
            "purity_uncoupled": purities.1,
        }));
    }
    agreement
}

/// Returns the column of the positive entry of each row, or `None` if a row has several.
fn single_columns(file: &CooFile) -> Option<Vec<Option<u32>>> {
    let view = file.view();
    let mut columns = vec![None; view.dims()[0] as usize];
    for (i, (&row, &column)) in view.column(0).iter().zip(view.column(1)).enumerate() {
        let is_positive = view.values().get(i) > 0.0;
        if is_positive && columns.get_mut(row as usize)?.replace(column).is_some() {
            return None;
        }
    }
    Some(columns)
}

/// Returns the purity of clusters: the fraction of rows whose column is the most frequent one of their cluster. `None` if
/// rows of the matrix have several columns or none.
fn purity(found: &Clusters, file: &CooFile) -> Option<f64> {
    let columns = single_columns(file)?;
    let width = file.header().dims[1] as usize;
    let mut counts = vec![0u64; found.clusters.len() * width];
    for (&row, &cluster) in found.rows.iter().zip(&found.assignments) {
        let column = (*columns.get(row as usize)?)?;
        counts[cluster as usize * width + column as usize] += 1;
    }
    let majority: u64 = counts.chunks(width).filter_map(|c| c.iter().max()).sum();
    Some(majority as f64 / found.rows.len().max(1) as f64)
}
