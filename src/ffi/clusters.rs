//! Rows that belong together.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;

use super::arg::{choice, given, hand_over, place, slice, threads};
use super::cancel::{CancelHandle, Token};
use super::coo_handle::{CooHandle, of as entries_of};
use super::error_handle::ErrorHandle;
use super::guard::{guard, release};
use super::model::{ModelHandle, of as model_of};
use super::status::Outcome;
use super::tables::{Column, Table, one_of};
use crate::discover::{Cluster, ClusterOptions, ClusterSpace, Clusters, cluster_rows};

/// Distances are those of what rows predict, for the tensor and for the coupled matrices of their mode.
pub const S3CMTF_SPACE_PREDICTIONS: i32 = 0;
/// Distances are those of the numbers of the factor, its columns brought to the same norm.
pub const S3CMTF_SPACE_COLUMNS: i32 = 1;

/// The rows of a mode in clusters. It never changes, so that every function that takes it as const may run concurrently,
/// and it does not need the model any more.
pub struct ClustersHandle {
    found: Clusters,
}

/// Clusters the rows of `mode` that have at least `least` tensor entries by k-means.
///
/// There are `k` clusters; if `k` is 0 the gap statistic chooses of up to `max_k` (0: 20). With both above 0 there are `k`
/// clusters and a gap curve besides. There are never more clusters than different rows. k-means starts `restarts` times
/// (0: 10); the gap is measured against `references` sets (0: 10), on no more than `curve_rows` rows (0: 20,000). `space`
/// is S3CMTF_SPACE_PREDICTIONS or S3CMTF_SPACE_COLUMNS. `members` of each cluster are kept, those nearest to its centre, and
/// `labels` columns of each of the `matrix_count` matrices that it has more of than all rows. A matrix has the rows of the
/// mode in its first mode, and a row has a column if it has an entry above 0 there.
///
/// Results depend on `seed` and not on `threads` (0: all the process may use). `cancel` may be NULL. Free with
/// s3cmtf_clusters_free().
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_clusters_new(
    model: Option<&ModelHandle>,
    mode: u64,
    k: u64,
    max_k: u64,
    restarts: u64,
    references: u64,
    curve_rows: u64,
    least: u64,
    space: i32,
    members: u64,
    labels: u64,
    matrix_count: u64,
    matrices: *const Option<&CooHandle>,
    seed: u64,
    threads: u64,
    cancel: Option<&CancelHandle>,
    clusters: Option<&mut MaybeUninit<*mut ClustersHandle>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (model, out) = (model_of(model)?, given(clusters, "clusters")?);
        let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let some = |n: u64| (n > 0).then(|| size(n));
        let usual = ClusterOptions::new(place(mode, model.order(), "mode")?);
        let spaces = [
            (S3CMTF_SPACE_PREDICTIONS, ClusterSpace::Predictions),
            (S3CMTF_SPACE_COLUMNS, ClusterSpace::Columns),
        ];
        let how = ClusterOptions {
            k: some(k),
            max_k: some(max_k),
            restarts: some(restarts).unwrap_or(usual.restarts),
            reference_sets: some(references).unwrap_or(usual.reference_sets),
            curve_rows: some(curve_rows).unwrap_or(usual.curve_rows),
            min_entries: least,
            space: choice(space, &spaces, "space")?,
            max_members: size(members),
            max_labels: size(labels),
            seed,
            threads: self::threads(threads)?,
            ..usual
        };
        // SAFETY: an array of the caller, for this call.
        let matrices = unsafe { slice(matrices, matrix_count, "matrices") }?;
        let mut views = Vec::new();
        for (m, matrix) in matrices.iter().enumerate() {
            let matrix = given(*matrix, &format!("matrices[{m}]"))?;
            views.push(entries_of(Some(matrix))?);
        }
        let found = cluster_rows(model, &how, &views, &Token(cancel))?;
        hand_over(out, ClustersHandle { found });
        Ok(())
    })
}

/// How many clusters there are, and how much of the variance of the rows is between them. `explained` may be NULL.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_clusters_get_count(
    clusters: Option<&ClustersHandle>,
    count: Option<&mut MaybeUninit<u64>>,
    explained: Option<&mut MaybeUninit<f64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (clusters, out) = (given(clusters, "clusters")?, given(count, "count")?);
        out.write(clusters.found.clusters.len() as u64);
        explained.map(|out| out.write(clusters.found.explained_variance));
        Ok(())
    })
}

/// The size of a cluster, and the root mean square distance of its rows to its centre, where 1 is that of all rows to
/// their mean. The largest cluster comes first. Outputs may be NULL.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_clusters_get(
    clusters: Option<&ClustersHandle>,
    index: u64,
    size: Option<&mut MaybeUninit<u64>>,
    radius: Option<&mut MaybeUninit<f64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let cluster = of(clusters, index)?;
        size.map(|out| out.write(cluster.size));
        radius.map(|out| out.write(cluster.radius));
        Ok(())
    })
}

/// The rows of a cluster nearest to its centre, the nearest first, and their distances. `rows` (counted from 0) and
/// `distances` have room for `capacity` items each; `found` is how many there are. Either may be NULL if it is not wanted;
/// with both NULL it only says how many.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_clusters_copy_members(
    clusters: Option<&ClustersHandle>,
    index: u64,
    rows: *mut u64,
    distances: *mut f64,
    capacity: u64,
    found: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let cluster = of(clusters, index)?;
        let list = &cluster.members;
        let integers: &[Column<'_, u64>] = &[(rows, &|k| u64::from(list[k].index), "rows")];
        let reals: &[Column<'_, f64>] = &[(distances, &|k| list[k].distance, "distances")];
        let table = Table {
            count: list.len(),
            integers,
            reals,
        };
        // SAFETY: buffers of the caller, for this call.
        unsafe { table.copy(capacity, found) }
    })
}

/// What a cluster has more of than all rows: the number of a matrix and one of its columns (both counted from 0), how many
/// rows of the cluster have it and how many of all, the share of the cluster over that of all (`lifts`), and how likely at
/// least so many are if rows are drawn (`p_values`, hypergeometric; the smallest come first for each matrix). All have room
/// for `capacity` items and may be NULL if they are not wanted; `found` is how many there are.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_clusters_copy_labels(
    clusters: Option<&ClustersHandle>,
    index: u64,
    matrices: *mut u64,
    columns: *mut u64,
    counts: *mut u64,
    overall: *mut u64,
    lifts: *mut f64,
    p_values: *mut f64,
    capacity: u64,
    found: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let cluster = of(clusters, index)?;
        let list = &cluster.labels;
        let integers: &[Column<'_, u64>] = &[
            (matrices, &|k| list[k].matrix as u64, "matrices"),
            (columns, &|k| u64::from(list[k].column), "columns"),
            (counts, &|k| list[k].count, "counts"),
            (overall, &|k| list[k].overall, "overall"),
        ];
        let reals: &[Column<'_, f64>] = &[
            (lifts, &|k| list[k].lift, "lifts"),
            (p_values, &|k| list[k].p_value, "p_values"),
        ];
        let table = Table {
            count: list.len(),
            integers,
            reals,
        };
        // SAFETY: buffers of the caller, for this call.
        unsafe { table.copy(capacity, found) }
    })
}

/// More of what s3cmtf_clusters_copy_labels() gives, in the same order: the logarithm of the odds in the cluster over the odds
/// outside, half a row added to each of the four counts (`log_odds`), and the decimal logarithm of the p-value
/// (`log10_p_values`), which is right where the p-value itself is too small for a number and 0. Both have room for
/// `capacity` items and may be NULL if they are not wanted; `found` is how many there are.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_clusters_copy_label_logs(
    clusters: Option<&ClustersHandle>,
    index: u64,
    log_odds: *mut f64,
    log10_p_values: *mut f64,
    capacity: u64,
    found: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let list = &of(clusters, index)?.labels;
        let table = Table {
            count: list.len(),
            integers: &[],
            reals: &[
                (log_odds, &|k| list[k].log_odds, "log_odds"),
                (log10_p_values, &|k| list[k].log10_p, "log10_p_values"),
            ],
        };
        // SAFETY: buffers of the caller, for this call.
        unsafe { table.copy(capacity, found) }
    })
}

/// The centre of a cluster: the mean of its rows in the factor. `numbers` has room for `capacity` items and may be NULL;
/// `found` is how many there are, the rank of the mode.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_clusters_copy_centre(
    clusters: Option<&ClustersHandle>,
    index: u64,
    numbers: *mut f64,
    capacity: u64,
    found: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let list = &of(clusters, index)?.centre;
        let table = Table {
            count: list.len(),
            integers: &[],
            reals: &[(numbers, &|k| list[k], "numbers")],
        };
        // SAFETY: a buffer of the caller, for this call.
        unsafe { table.copy(capacity, found) }
    })
}

/// All rows that were clustered, counted from 0 and ascending, and the cluster of each (`which`). Both have room for
/// `capacity` items and may be NULL if they are not wanted; `found` is how many rows there are.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_clusters_copy_rows(
    clusters: Option<&ClustersHandle>,
    rows: *mut u64,
    which: *mut u64,
    capacity: u64,
    found: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let clusters = given(clusters, "clusters")?;
        let own = &clusters.found;
        let integers: &[Column<'_, u64>] = &[
            (rows, &|k| u64::from(own.rows[k]), "rows"),
            (which, &|k| u64::from(own.assignments[k]), "which"),
        ];
        let table = Table {
            count: own.rows.len(),
            integers,
            reals: &[],
        };
        // SAFETY: buffers of the caller, for this call.
        unsafe { table.copy(capacity, found) }
    })
}

/// The gap curve: the gaps for 1, 2, 3 ... clusters and their standard errors; `chosen` is the smallest number of clusters
/// whose gap is at least that of one more less its standard error, or the last if there is none. If that is 1 although a
/// later gap is larger by more than its standard error, and no `k` was given, there are as many clusters as the same rule
/// says of those numbers whose gap less its standard error is above that of one cluster: s3cmtf_clusters_get_count() has how
/// many. Arrays have room for `capacity` items and may be NULL, as may `chosen`; `found` is how many there are: 0 if there is
/// no curve, and then `chosen` is 0.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_clusters_copy_gaps(
    clusters: Option<&ClustersHandle>,
    gaps: *mut f64,
    errors: *mut f64,
    capacity: u64,
    chosen: Option<&mut MaybeUninit<u64>>,
    found: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let clusters = given(clusters, "clusters")?;
        let curve = clusters.found.gap.as_ref();
        let list = curve.map_or(&[][..], |c| &c.points);
        let reals: &[Column<'_, f64>] = &[
            (gaps, &|k| list[k].gap, "gaps"),
            (errors, &|k| list[k].error, "errors"),
        ];
        let table = Table {
            count: list.len(),
            integers: &[],
            reals,
        };
        // SAFETY: buffers of the caller, for this call.
        unsafe { table.copy(capacity, found) }?;
        chosen.map(|to| to.write(curve.map_or(0, |c| c.chosen as u64)));
        Ok(())
    })
}

/// What the gaps are made of: for 1, 2, 3 ... clusters the logarithm of the sum of squared distances to the own centre
/// (`log_within`) and the mean of the same over the reference sets (`references`), whose difference is the gap. `settled` is 1 if
/// the rule chose, and 0 if no number did it and the last was taken: then more clusters than were looked at may be better
/// still. `rows` is how many rows the curve was measured on. All may be NULL; arrays have room for `capacity` items, and
/// `found` is how many there are: 0 if there is no curve, and then `settled` and `rows` are 0.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_clusters_copy_curve(
    clusters: Option<&ClustersHandle>,
    log_within: *mut f64,
    references: *mut f64,
    capacity: u64,
    settled: Option<&mut MaybeUninit<i32>>,
    rows: Option<&mut MaybeUninit<u64>>,
    found: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let curve = given(clusters, "clusters")?.found.gap.as_ref();
        let list = curve.map_or(&[][..], |c| &c.points);
        let table = Table {
            count: list.len(),
            integers: &[],
            reals: &[
                (log_within, &|k| list[k].log_within, "log_within"),
                (references, &|k| list[k].reference, "references"),
            ],
        };
        // SAFETY: buffers of the caller, for this call.
        unsafe { table.copy(capacity, found) }?;
        settled.map(|out| out.write(curve.map_or(0, |c| i32::from(c.is_conclusive))));
        rows.map(|out| out.write(curve.map_or(0, |c| c.rows as u64)));
        Ok(())
    })
}

/// For each matrix that labels clusters, how much of what its columns say of a row the cluster of the row tells: their
/// mutual information over their entropy. `shares` has room for `capacity` items and may be NULL; `found` is how many
/// matrices there are.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_clusters_copy_information(
    clusters: Option<&ClustersHandle>,
    shares: *mut f64,
    capacity: u64,
    found: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let clusters = given(clusters, "clusters")?;
        let list = &clusters.found.uncertainty_coefficients;
        let reals: &[Column<'_, f64>] = &[(shares, &|k| list[k], "shares")];
        let table = Table {
            count: list.len(),
            integers: &[],
            reals,
        };
        // SAFETY: buffers of the caller, for this call.
        unsafe { table.copy(capacity, found) }
    })
}

/// Frees clusters. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_clusters_free(clusters: Option<Box<ClustersHandle>>) {
    release(|| drop(clusters));
}

fn of(clusters: Option<&ClustersHandle>, index: u64) -> Outcome<&Cluster> {
    let list = &given(clusters, "clusters")?.found.clusters;
    one_of(list, index)
}
