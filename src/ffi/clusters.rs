//! Clusters of the rows of a mode.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;

use super::arg::{
    self, SizedStruct, choice, copy_out, given, hand_over, object, optional_buffer,
    optional_struct_in, slice, struct_out, threads,
};
use super::cancel::{CancelHandle, Token};
use super::coo_handle::{CooHandle, MatchedSource};
use super::error_handle::ErrorHandle;
use super::guard::{guard, release};
use super::model::ModelHandle;
use super::recommend::length_of;
use super::status::Outcome;
use crate::discover::{Cluster, ClusterOptions, ClusterSpace, Clusters, cluster_rows};

/// Distances between rows are those of their predictions, for the tensor and for the coupled matrices of the mode.
pub const S3CMTF_SPACE_PREDICTIONS: i32 = 0;
/// Distances between rows are those of their factor rows, with columns scaled to the same norm.
pub const S3CMTF_SPACE_COLUMNS: i32 = 1;

/// Clusters of the rows of a mode. Immutable and independent of the model.
pub struct ClustersHandle {
    found: Clusters,
}

/// Input of s3cmtf_clusters_new().
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ClustersRequest {
    /// sizeof(s3cmtf_clusters_request).
    pub size: u64,
    /// Number of clusters, at most 10,000; 0: chosen by the gap statistic.
    pub k: u64,
    /// Largest number of clusters of the gap curve, at most 1,000; 0: 20, or no curve if `k` is above 0.
    pub max_k: u64,
    /// Number of k-means runs, of which the best is kept, at most 1,000; 0: 10.
    pub restarts: u64,
    /// Number of reference sets of the gap statistic, at most 1,000; 0: 10.
    pub references: u64,
    /// Largest number of rows for the gap curve, at most 1,000,000; more are subsampled. 0: 20,000.
    pub curve_rows: u64,
    /// Smallest number of tensor entries of a clustered row; 0: 1.
    pub min_entries: u64,
    /// S3CMTF_SPACE_PREDICTIONS or S3CMTF_SPACE_COLUMNS.
    pub space: i32,
    /// Largest number of members listed per cluster; 0: 10.
    pub members: u64,
    /// Largest number of labels listed per cluster and matrix; 0: 10.
    pub labels: u64,
    /// Matrices whose columns label clusters. Their rows are the rows of the mode; a row has a label if its entry in that
    /// column is above 0. May be NULL if there are none.
    pub matrices: *const *const CooHandle,
    /// Number of matrices.
    pub matrix_count: u64,
    /// Seed of all random choices.
    pub seed: u64,
    /// Number of threads; 0: all available to the process. The result does not depend on it.
    pub threads: u64,
    /// NULL, or a token that cancels the call.
    pub cancel: *const CancelHandle,
}

/// Output of s3cmtf_clusters_get_info(). Without a gap curve its four fields are 0.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ClustersInfo {
    /// Bytes written; set it to sizeof(s3cmtf_clusters_info) before the call.
    pub size: u64,
    /// Number of clusters; below `k` if there are fewer distinct rows.
    pub clusters: u64,
    /// Number of clustered rows.
    pub rows: u64,
    /// Between-cluster fraction of the total variance of the rows.
    pub explained_variance: f64,
    /// Number of label matrices.
    pub matrices: u64,
    /// Number of points of the gap curve.
    pub curve_length: u64,
    /// Smallest k with gap(k) >= gap(k + 1) - standard error(k + 1); the last k if there is none. If it is 1 and the
    /// curve rises again, the same rule among k with a gap clearly above gap(1) chooses the number of clusters.
    pub curve_choice: u64,
    /// Number of rows the curve was computed on.
    pub curve_rows: u64,
    /// 1 if a k satisfies the rule; 0 if none does, and a larger max_k may give a larger gap.
    pub curve_settled: i32,
}

/// Output of s3cmtf_clusters_get().
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ClusterInfo {
    /// Bytes written; set it to sizeof(s3cmtf_cluster) before the call.
    pub size: u64,
    /// Number of rows.
    pub rows: u64,
    /// Root mean square distance of the rows to the centre. The unit of distances is that of all rows to their mean.
    pub radius: f64,
    /// Number of listed members.
    pub members: u64,
    /// Number of listed labels.
    pub labels: u64,
}

/// Output of s3cmtf_clusters_get_label(): a matrix column that is over-represented in a cluster.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ClusterLabelInfo {
    /// Bytes written; set it to sizeof(s3cmtf_cluster_label) before the call.
    pub size: u64,
    /// Matrix of the request.
    pub matrix: u64,
    /// Column of the matrix.
    pub column: u64,
    /// Number of rows of the cluster with the label.
    pub rows_in_cluster: u64,
    /// Number of clustered rows with the label.
    pub rows_overall: u64,
    /// Fraction of the cluster's rows with the label, divided by that of all rows.
    pub lift: f64,
    /// Hypergeometric probability of at least so many rows with the label in a random cluster of this size.
    pub p_value: f64,
    /// Decimal logarithm of the p-value; finite where the p-value underflows to 0.
    pub log10_p_value: f64,
    /// Natural logarithm of the odds ratio inside and outside the cluster, with 1/2 added to each of the four counts.
    pub log_odds: f64,
}

/// Output of s3cmtf_clusters_get_gap(): a point of the gap curve.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct GapInfo {
    /// Bytes written; set it to sizeof(s3cmtf_gap) before the call.
    pub size: u64,
    /// Number of clusters.
    pub clusters: u64,
    /// Gap: log_reference - log_within.
    pub gap: f64,
    /// Standard error of the gap.
    pub standard_error: f64,
    /// Natural logarithm of the within-cluster sum of squares.
    pub log_within: f64,
    /// Mean of the same over the reference sets.
    pub log_reference: f64,
}

// SAFETY: laid out as in C, the size first; zero bytes are valid.
unsafe impl SizedStruct for ClustersRequest {}
// SAFETY: the same.
unsafe impl SizedStruct for ClustersInfo {}
// SAFETY: the same.
unsafe impl SizedStruct for ClusterInfo {}
// SAFETY: the same.
unsafe impl SizedStruct for ClusterLabelInfo {}
// SAFETY: the same.
unsafe impl SizedStruct for GapInfo {}

// The layout is part of the ABI: fields are added at the end, and none moves.
#[cfg(target_pointer_width = "64")]
const _: () = {
    use std::mem::offset_of;
    assert!(offset_of!(ClustersRequest, size) == 0);
    assert!(offset_of!(ClustersRequest, k) == 8);
    assert!(offset_of!(ClustersRequest, max_k) == 16);
    assert!(offset_of!(ClustersRequest, restarts) == 24);
    assert!(offset_of!(ClustersRequest, references) == 32);
    assert!(offset_of!(ClustersRequest, curve_rows) == 40);
    assert!(offset_of!(ClustersRequest, min_entries) == 48);
    assert!(offset_of!(ClustersRequest, space) == 56);
    assert!(offset_of!(ClustersRequest, members) == 64);
    assert!(offset_of!(ClustersRequest, labels) == 72);
    assert!(offset_of!(ClustersRequest, matrices) == 80);
    assert!(offset_of!(ClustersRequest, matrix_count) == 88);
    assert!(offset_of!(ClustersRequest, seed) == 96);
    assert!(offset_of!(ClustersRequest, threads) == 104);
    assert!(offset_of!(ClustersRequest, cancel) == 112);
    assert!(size_of::<ClustersRequest>() == 120);

    assert!(offset_of!(ClustersInfo, size) == 0);
    assert!(offset_of!(ClustersInfo, clusters) == 8);
    assert!(offset_of!(ClustersInfo, rows) == 16);
    assert!(offset_of!(ClustersInfo, explained_variance) == 24);
    assert!(offset_of!(ClustersInfo, matrices) == 32);
    assert!(offset_of!(ClustersInfo, curve_length) == 40);
    assert!(offset_of!(ClustersInfo, curve_choice) == 48);
    assert!(offset_of!(ClustersInfo, curve_rows) == 56);
    assert!(offset_of!(ClustersInfo, curve_settled) == 64);
    assert!(size_of::<ClustersInfo>() == 72);

    assert!(offset_of!(ClusterInfo, size) == 0);
    assert!(offset_of!(ClusterInfo, rows) == 8);
    assert!(offset_of!(ClusterInfo, radius) == 16);
    assert!(offset_of!(ClusterInfo, members) == 24);
    assert!(offset_of!(ClusterInfo, labels) == 32);
    assert!(size_of::<ClusterInfo>() == 40);

    assert!(offset_of!(ClusterLabelInfo, size) == 0);
    assert!(offset_of!(ClusterLabelInfo, matrix) == 8);
    assert!(offset_of!(ClusterLabelInfo, column) == 16);
    assert!(offset_of!(ClusterLabelInfo, rows_in_cluster) == 24);
    assert!(offset_of!(ClusterLabelInfo, rows_overall) == 32);
    assert!(offset_of!(ClusterLabelInfo, lift) == 40);
    assert!(offset_of!(ClusterLabelInfo, p_value) == 48);
    assert!(offset_of!(ClusterLabelInfo, log10_p_value) == 56);
    assert!(offset_of!(ClusterLabelInfo, log_odds) == 64);
    assert!(size_of::<ClusterLabelInfo>() == 72);

    assert!(offset_of!(GapInfo, size) == 0);
    assert!(offset_of!(GapInfo, clusters) == 8);
    assert!(offset_of!(GapInfo, gap) == 16);
    assert!(offset_of!(GapInfo, standard_error) == 24);
    assert!(offset_of!(GapInfo, log_within) == 32);
    assert!(offset_of!(GapInfo, log_reference) == 40);
    assert!(size_of::<GapInfo>() == 48);
};

/// Clusters the rows of `mode` by k-means; free the result with s3cmtf_clusters_free(). `request` may be NULL. With
/// both `k` and max_k above 0 there are `k` clusters, and a gap curve as well.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_clusters_new(
    model: Option<&ModelHandle>,
    mode: u64,
    request: *const ClustersRequest,
    clusters: Option<&mut MaybeUninit<*mut ClustersHandle>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (handle, out) = (given(model, "model")?, given(clusters, "clusters")?);
        let model = &*handle.model;
        // SAFETY: a struct of the caller with its array and object, for this call.
        let (request, matrices, cancel) = unsafe {
            let r = optional_struct_in(request, "request")?;
            let matrices = slice(r.matrices, r.matrix_count, "request->matrices")?;
            (r, matrices, object(r.cancel))
        };
        let positive = |n: u64| (n > 0).then(|| usize::try_from(n).unwrap_or(usize::MAX));
        let mode = arg::place(mode, model.order(), "mode")?;
        let defaults = ClusterOptions::new(mode);
        let spaces = [
            (S3CMTF_SPACE_PREDICTIONS, ClusterSpace::Predictions),
            (S3CMTF_SPACE_COLUMNS, ClusterSpace::Columns),
        ];
        let options = ClusterOptions {
            k: positive(request.k),
            max_k: positive(request.max_k),
            restarts: positive(request.restarts).unwrap_or(defaults.restarts),
            reference_sets: positive(request.references).unwrap_or(defaults.reference_sets),
            curve_rows: positive(request.curve_rows).unwrap_or(defaults.curve_rows),
            min_entries: request.min_entries.max(1),
            space: choice(request.space, &spaces, "request->space")?,
            max_members: length_of(request.members),
            max_labels: length_of(request.labels),
            seed: request.seed,
            threads: threads(request.threads, "request->threads")?,
            ..defaults
        };
        let (mut matched, mut matcher) = (Vec::new(), handle.matcher()?);
        for (m, &matrix) in matrices.iter().enumerate() {
            // SAFETY: an object of the caller, for this call.
            let matrix = given(
                unsafe { object(matrix) },
                &format!("request->matrices[{m}]"),
            )?;
            matched.push(MatchedSource::coupled(
                &matrix.source,
                &mut matcher,
                mode,
                None,
            )?);
        }
        let views: Vec<_> = matched.iter().map(MatchedSource::view).collect();
        let found = cluster_rows(model, &options, &views, &Token(cancel))?;
        hand_over(out, ClustersHandle { found });
        Ok(())
    })
}

/// Gets the number of clusters and other figures of the whole result.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_clusters_get_info(
    clusters: Option<&ClustersHandle>,
    info: *mut ClustersInfo,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let found = &given(clusters, "clusters")?.found;
        let curve = found.gap.as_ref();
        let own = ClustersInfo {
            size: 0,
            clusters: found.clusters.len() as u64,
            rows: found.rows.len() as u64,
            explained_variance: found.explained_variance,
            matrices: found.uncertainty_coefficients.len() as u64,
            curve_length: curve.map_or(0, |c| c.points.len() as u64),
            curve_choice: curve.map_or(0, |c| c.chosen as u64),
            curve_rows: curve.map_or(0, |c| c.rows as u64),
            curve_settled: curve.map_or(0, |c| i32::from(c.is_conclusive)),
        };
        // SAFETY: a struct of the caller, for this call.
        unsafe { struct_out(&own, info, "info") }
    })
}

/// Gets cluster `index`; the largest is 0.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_clusters_get(
    clusters: Option<&ClustersHandle>,
    index: u64,
    info: *mut ClusterInfo,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let cluster = of(clusters, index)?;
        let own = ClusterInfo {
            size: 0,
            rows: cluster.size,
            radius: cluster.radius,
            members: cluster.members.len() as u64,
            labels: cluster.labels.len() as u64,
        };
        // SAFETY: a struct of the caller, for this call.
        unsafe { struct_out(&own, info, "info") }
    })
}

/// Copies the listed members of a cluster, the nearest to its centre first, and their distances to it. `rows` and
/// `distances` have room for `capacity` items, at least the field `members` of s3cmtf_cluster. Either may be NULL.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_clusters_copy_members(
    clusters: Option<&ClustersHandle>,
    index: u64,
    rows: *mut u64,
    distances: *mut f64,
    capacity: u64,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let list = &of(clusters, index)?.members;
        // SAFETY: buffers of the caller, for this call.
        let (rows, distances) = unsafe {
            (
                optional_buffer(rows, capacity, list.len(), "rows")?,
                optional_buffer(distances, capacity, list.len(), "distances")?,
            )
        };
        for (to, member) in rows.iter_mut().zip(list) {
            to.write(u64::from(member.index));
        }
        for (to, member) in distances.iter_mut().zip(list) {
            to.write(member.distance);
        }
        Ok(())
    })
}

/// Gets a label of a cluster. `place` is below `labels` of s3cmtf_cluster; labels are ordered by matrix, then by
/// ascending p-value.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_clusters_get_label(
    clusters: Option<&ClustersHandle>,
    index: u64,
    place: u64,
    label: *mut ClusterLabelInfo,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let list = &of(clusters, index)?.labels;
        let found = &list[arg::place(place, list.len(), "place")?];
        let own = ClusterLabelInfo {
            size: 0,
            matrix: found.matrix as u64,
            column: u64::from(found.column),
            rows_in_cluster: found.count,
            rows_overall: found.overall,
            lift: found.lift,
            p_value: found.p_value,
            log10_p_value: found.log10_p,
            log_odds: found.log_odds,
        };
        // SAFETY: a struct of the caller, for this call.
        unsafe { struct_out(&own, label, "label") }
    })
}

/// Copies the centre of a cluster: the mean of its factor rows, as many numbers as the rank of the mode. `numbers` has
/// room for `capacity` items.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_clusters_copy_centre(
    clusters: Option<&ClustersHandle>,
    index: u64,
    numbers: *mut f64,
    capacity: u64,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let list = &of(clusters, index)?.centre;
        // SAFETY: a buffer of the caller, for this call.
        unsafe { copy_out(list, numbers, capacity, "numbers") }
    })
}

/// Copies all clustered rows, ascending, and the cluster of each into `which`. Both have room for `capacity` items, at
/// least `rows` of s3cmtf_clusters_info; either may be NULL.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_clusters_copy_rows(
    clusters: Option<&ClustersHandle>,
    rows: *mut u64,
    which: *mut u64,
    capacity: u64,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let own = &given(clusters, "clusters")?.found;
        let count = own.rows.len();
        // SAFETY: buffers of the caller, for this call.
        let (rows, which) = unsafe {
            (
                optional_buffer(rows, capacity, count, "rows")?,
                optional_buffer(which, capacity, count, "which")?,
            )
        };
        for (to, &row) in rows.iter_mut().zip(&own.rows) {
            to.write(u64::from(row));
        }
        for (to, &cluster) in which.iter_mut().zip(&own.assignments) {
            to.write(u64::from(cluster));
        }
        Ok(())
    })
}

/// Gets a point of the gap curve. `place` is below curve_length of s3cmtf_clusters_info; place 0 is one cluster.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_clusters_get_gap(
    clusters: Option<&ClustersHandle>,
    place: u64,
    gap: *mut GapInfo,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let curve = given(clusters, "clusters")?.found.gap.as_ref();
        let list = curve.map_or(&[][..], |c| &c.points);
        let point = &list[arg::place(place, list.len(), "place")?];
        let own = GapInfo {
            size: 0,
            clusters: point.k as u64,
            gap: point.gap,
            standard_error: point.error,
            log_within: point.log_within,
            log_reference: point.reference,
        };
        // SAFETY: a struct of the caller, for this call.
        unsafe { struct_out(&own, gap, "gap") }
    })
}

/// Copies, for each label matrix, the uncertainty coefficient of its labels given the clusters (Theil's U): their mutual
/// information divided by the entropy of the labels, 0 to 1. `shares` has room for `capacity` items, at least `matrices`
/// of s3cmtf_clusters_info.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_clusters_copy_information(
    clusters: Option<&ClustersHandle>,
    shares: *mut f64,
    capacity: u64,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let list = &given(clusters, "clusters")?.found.uncertainty_coefficients;
        // SAFETY: a buffer of the caller, for this call.
        unsafe { copy_out(list, shares, capacity, "shares") }
    })
}

/// Frees clusters. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_clusters_free(clusters: Option<Box<ClustersHandle>>) {
    release(|| drop(clusters));
}

fn of(clusters: Option<&ClustersHandle>, index: u64) -> Outcome<&Cluster> {
    let list = &given(clusters, "clusters")?.found.clusters;
    Ok(&list[arg::place(index, list.len(), "index")?])
}
