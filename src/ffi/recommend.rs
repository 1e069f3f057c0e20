//! Recommendations, similar rows and ranking metrics.
#![allow(unsafe_code)]

use super::arg::{
    SizedStruct, buffer, flag, given, object, optional_buffer, place, require_struct, slice,
    struct_in, struct_out, threads,
};
use super::arrays::IndexArrays;
use super::cancel::{CancelHandle, Token};
use super::coo_handle::{CooHandle, MatchedSource};
use super::error_handle::ErrorHandle;
use super::guard::guard;
use super::indices::Indices;
use super::model::{ModelHandle, of};
use super::predict::require_usable;
use super::status::{Failure, Outcome, S3CMTF_OUT_OF_MEMORY};
use crate::discover::{
    AVERAGE_ROW, ObservedPairs, RankBy, RankedRow, RankingOptions, RecommendOptions,
    SimilarOptions, evaluate_ranking, recommend, similar_rows,
};
use crate::error::Result;
use crate::try_alloc::try_with_capacity;

/// Length of a list if the request has 0.
pub(super) const DEFAULT_LENGTH: u64 = 10;

/// Input of s3cmtf_model_recommend(). `candidates` and `exclude_rows` count from queries.base; rows in them that
/// the model does not have are ignored.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RecommendRequest {
    /// sizeof(s3cmtf_recommend_request).
    pub size: u64,
    /// Mode whose rows are ranked.
    pub mode: u64,
    /// Length of each list; 0: 10.
    pub top: u64,
    /// Rows of the other modes, one per query. A mode with a NULL pointer is averaged over; the pointer of `mode`
    /// is ignored.
    pub queries: IndexArrays,
    /// 0: rank by the prediction. Above 0 and below 1: by this quantile, which needs a model with posterior samples.
    pub quantile: f64,
    /// NULL, or entries: rows that have one with the query's row of mode exclude_mode are left out.
    pub exclude: *const CooHandle,
    /// Mode of the query that `exclude` applies to. Ignored without `exclude`.
    pub exclude_mode: u64,
    /// The only rows to rank; NULL: all rows of the model.
    pub candidates: *const u64,
    /// Number of candidates.
    pub candidate_count: u64,
    /// Rows to leave out; may be NULL.
    pub exclude_rows: *const u64,
    /// Number of rows to leave out.
    pub exclude_row_count: u64,
    /// Number of threads; 0: all available to the process. Results do not depend on it.
    pub threads: u64,
    /// NULL, or a token that cancels the call.
    pub cancel: *const CancelHandle,
}

/// Input of s3cmtf_model_similar().
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SimilarRequest {
    /// sizeof(s3cmtf_similar_request).
    pub size: u64,
    /// Mode of the rows.
    pub mode: u64,
    /// Length of each list; 0: 10.
    pub top: u64,
    /// Rows whose neighbours are wanted.
    pub rows: *const u64,
    /// Number of these rows.
    pub row_count: u64,
    /// Number of threads; 0: all available to the process. Results do not depend on it.
    pub threads: u64,
    /// NULL, or a token that cancels the call.
    pub cancel: *const CancelHandle,
}

/// Input of s3cmtf_model_evaluate_ranking().
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RankingRequest {
    /// sizeof(s3cmtf_ranking_request).
    pub size: u64,
    /// Mode whose rows are ranked.
    pub mode: u64,
    /// Mode of the users: each of its rows gets a list. The remaining modes are averaged over.
    pub user_mode: u64,
    /// Length of each list, the k of "recall at k"; 0: 10.
    pub length: u64,
    /// As in s3cmtf_recommend_request.
    pub quantile: f64,
    /// Smallest value of a relevant test entry, if has_min_relevant_value is 1.
    pub min_relevant_value: f64,
    /// 0: every test entry is relevant.
    pub has_min_relevant_value: i32,
    /// Number of threads; 0: all available to the process. Results do not depend on it.
    pub threads: u64,
    /// NULL, or a token that cancels the call.
    pub cancel: *const CancelHandle,
}

/// Output of s3cmtf_model_evaluate_ranking(). Metrics are means over users; those of `popularity` are for lists
/// ordered by the number of training entries of a row.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RankingInfo {
    /// Bytes written; set it to sizeof(s3cmtf_ranking) before the call.
    pub size: u64,
    /// Number of users with a relevant row.
    pub users: u64,
    /// Fraction of users whose list has a relevant row.
    pub hit_rate: f64,
    /// Fraction of the relevant rows of a user that are in the list.
    pub recall: f64,
    /// Normalized discounted cumulative gain: a relevant row at rank p, from 1, gains 1 / log2(p + 1).
    pub ndcg: f64,
    /// As hit_rate.
    pub popularity_hit_rate: f64,
    /// As recall.
    pub popularity_recall: f64,
    /// As ndcg.
    pub popularity_ndcg: f64,
}

// SAFETY: laid out as in C, the size first; zero bytes are valid.
unsafe impl SizedStruct for RecommendRequest {}
// SAFETY: the same.
unsafe impl SizedStruct for SimilarRequest {}
// SAFETY: the same.
unsafe impl SizedStruct for RankingRequest {}
// SAFETY: the same.
unsafe impl SizedStruct for RankingInfo {}

// The layout is part of the ABI: fields are added at the end, and none moves.
#[cfg(target_pointer_width = "64")]
const _: () = {
    use std::mem::offset_of;
    assert!(offset_of!(RecommendRequest, size) == 0);
    assert!(offset_of!(RecommendRequest, mode) == 8);
    assert!(offset_of!(RecommendRequest, top) == 16);
    assert!(offset_of!(RecommendRequest, queries) == 24);
    assert!(offset_of!(RecommendRequest, quantile) == 56);
    assert!(offset_of!(RecommendRequest, exclude) == 64);
    assert!(offset_of!(RecommendRequest, exclude_mode) == 72);
    assert!(offset_of!(RecommendRequest, candidates) == 80);
    assert!(offset_of!(RecommendRequest, candidate_count) == 88);
    assert!(offset_of!(RecommendRequest, exclude_rows) == 96);
    assert!(offset_of!(RecommendRequest, exclude_row_count) == 104);
    assert!(offset_of!(RecommendRequest, threads) == 112);
    assert!(offset_of!(RecommendRequest, cancel) == 120);
    assert!(size_of::<RecommendRequest>() == 128);

    assert!(offset_of!(SimilarRequest, size) == 0);
    assert!(offset_of!(SimilarRequest, mode) == 8);
    assert!(offset_of!(SimilarRequest, top) == 16);
    assert!(offset_of!(SimilarRequest, rows) == 24);
    assert!(offset_of!(SimilarRequest, row_count) == 32);
    assert!(offset_of!(SimilarRequest, threads) == 40);
    assert!(offset_of!(SimilarRequest, cancel) == 48);
    assert!(size_of::<SimilarRequest>() == 56);

    assert!(offset_of!(RankingRequest, size) == 0);
    assert!(offset_of!(RankingRequest, mode) == 8);
    assert!(offset_of!(RankingRequest, user_mode) == 16);
    assert!(offset_of!(RankingRequest, length) == 24);
    assert!(offset_of!(RankingRequest, quantile) == 32);
    assert!(offset_of!(RankingRequest, min_relevant_value) == 40);
    assert!(offset_of!(RankingRequest, has_min_relevant_value) == 48);
    assert!(offset_of!(RankingRequest, threads) == 56);
    assert!(offset_of!(RankingRequest, cancel) == 64);
    assert!(size_of::<RankingRequest>() == 72);

    assert!(offset_of!(RankingInfo, size) == 0);
    assert!(offset_of!(RankingInfo, users) == 8);
    assert!(offset_of!(RankingInfo, hit_rate) == 16);
    assert!(offset_of!(RankingInfo, recall) == 24);
    assert!(offset_of!(RankingInfo, ndcg) == 32);
    assert!(offset_of!(RankingInfo, popularity_hit_rate) == 40);
    assert!(offset_of!(RankingInfo, popularity_recall) == 48);
    assert!(offset_of!(RankingInfo, popularity_ndcg) == 56);
    assert!(size_of::<RankingInfo>() == 64);
};

/// Lists, for each query, the `top` rows of a mode with the largest predictions (not clipped), the best first. Of
/// equal scores the smaller row comes first. List q begins at `rows[q * top]` and `scores[q * top]` and has `counts[q]`
/// rows, which count from queries.base; the rest of its room is not written. `rows` and `scores` have room for
/// `capacity` items, at least top x queries.count, and may be NULL; `counts` has room for queries.count. Only rows of
/// the model are ranked. A query with a row that the model does not have is S3CMTF_BAD_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_model_recommend(
    model: Option<&ModelHandle>,
    request: *const RecommendRequest,
    rows: *mut u64,
    scores: *mut f64,
    capacity: u64,
    counts: *mut u64,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let handle = given(model, "model")?;
        let model = &*handle.model;
        let order = model.order();
        // SAFETY: a struct of the caller with its arrays and objects, for this call.
        let (request, queries, candidates, exclude_rows, exclude, cancel) = unsafe {
            let r = struct_in(request, "request")?;
            (
                r,
                Indices::partial(&r.queries, order, "request->queries")?,
                slice(r.candidates, r.candidate_count, "request->candidates")?,
                slice(r.exclude_rows, r.exclude_row_count, "request->exclude_rows")?,
                object(r.exclude),
                object(r.cancel),
            )
        };
        let mode = place(request.mode, order, "request->mode")?;
        let threads = threads(request.threads, "request->threads")?;
        let rank_by = rank_by(request.quantile)?;
        let base = request.queries.base as u64;
        let lists = Lists {
            count: (request.queries.count, "request->queries.count"),
            top: request.top,
            base,
        };
        // Before any index is read.
        // SAFETY: buffers of the caller, for this call.
        let to = unsafe { Outputs::new(&lists, rows, scores, capacity, counts) }?;
        require_usable(&queries, order)?;
        let rows_of = |list: &[u64]| -> Vec<u32> {
            let row = |&i: &u64| u32::try_from(i.checked_sub(base)?).ok();
            // Numbers that cannot be rows are ignored, like other rows that the model does not have.
            list.iter().filter_map(row).collect()
        };
        let candidates = (!request.candidates.is_null()).then(|| rows_of(candidates));
        let exclude_rows = rows_of(exclude_rows);
        let observed = match exclude {
            None => None,
            Some(entries) => {
                let by = place(request.exclude_mode, order, "request->exclude_mode")?;
                if by == mode {
                    return Err(Failure::argument(format!(
                        "request->exclude_mode is {by}, the same as request->mode; it must be another mode"
                    )));
                }
                if request.queries.count > 0 && queries.get(by, 0).is_none() {
                    return Err(Failure::argument(format!(
                        "request->queries.modes[{by}] is NULL; with request->exclude and request->exclude_mode {by} \
                         every query must have a row of that mode"
                    )));
                }
                let entries = MatchedSource::entries(&entries.source, &mut handle.matcher()?)?;
                model.check_order(&entries.view())?;
                Some(ObservedPairs::new(&[entries.view()], by, mode)?)
            }
        };
        let options = RecommendOptions {
            rank_by,
            exclude_observed: observed.as_ref(),
            candidates: candidates.as_deref(),
            exclude: &exclude_rows,
            threads,
            ..RecommendOptions::new(mode, to.top)
        };
        let index = |q: usize, cell: &mut [u32]| {
            for (n, slot) in cell.iter_mut().enumerate() {
                *slot = queries.get(n, q).map_or(AVERAGE_ROW, |i| i as u32);
            }
        };
        to.collect(|take| recommend(model, to.count, index, &options, &Token(cancel), take))
    })
}

/// Lists, for each row of the request, the `top` other rows of its mode with the most similar predictions: the
/// largest cosine over all cells, without mean and biases. Outputs are as for s3cmtf_model_recommend(), with cosines
/// as scores and row_count lists; rows count from 0. Rows without tensor entries are not listed. A row that the model
/// does not have is S3CMTF_BAD_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_model_similar(
    model: Option<&ModelHandle>,
    request: *const SimilarRequest,
    rows: *mut u64,
    scores: *mut f64,
    capacity: u64,
    counts: *mut u64,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let model = of(model)?;
        // SAFETY: a struct of the caller with its array and object, for this call.
        let (request, queries, cancel) = unsafe {
            let r = struct_in(request, "request")?;
            let queries = slice(r.rows, r.row_count, "request->rows")?;
            (r, queries, object(r.cancel))
        };
        let mode = place(request.mode, model.order(), "request->mode")?;
        let threads = threads(request.threads, "request->threads")?;
        let lists = Lists {
            count: (request.row_count, "request->row_count"),
            top: request.top,
            base: 0,
        };
        // Before any row is read.
        // SAFETY: buffers of the caller, for this call.
        let to = unsafe { Outputs::new(&lists, rows, scores, capacity, counts) }?;
        let dim = usize::try_from(model.dims()[mode]).unwrap_or(usize::MAX);
        let mut asked: Vec<u32> = try_with_capacity(queries.len(), "rows")?;
        for (k, &row) in queries.iter().enumerate() {
            asked.push(place(row, dim, &format!("request->rows[{k}]"))? as u32);
        }
        let options = SimilarOptions {
            mode,
            top: to.top,
            threads,
        };
        to.collect(|take| similar_rows(model, &asked, &options, &Token(cancel), take))
    })
}

/// Computes ranking metrics on test entries. The list of a user has the best rows of `mode` that the user has no
/// entry with in `train`. Relevant are the rows of the user's test entries, unless the user has an entry with them in
/// `train`; users without relevant rows are left out. Entries of weight 0 are ignored.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_model_evaluate_ranking(
    model: Option<&ModelHandle>,
    test: Option<&CooHandle>,
    train: Option<&CooHandle>,
    request: *const RankingRequest,
    ranking: *mut RankingInfo,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let handle = given(model, "model")?;
        let (model, mut matcher) = (&*handle.model, handle.matcher()?);
        let (test, train) = (given(test, "test")?, given(train, "train")?);
        let test = MatchedSource::entries(&test.source, &mut matcher)?;
        let train = MatchedSource::entries(&train.source, &mut matcher)?;
        // SAFETY: structs of the caller with their object, for this call.
        let (request, cancel) = unsafe {
            let r = struct_in(request, "request")?;
            require_struct(ranking, "ranking")?;
            (r, object(r.cancel))
        };
        let has_min = flag(
            request.has_min_relevant_value,
            "request->has_min_relevant_value",
        )?;
        if has_min && request.min_relevant_value.is_nan() {
            return Err(Failure::argument(
                "request->min_relevant_value is NaN; it must be a number",
            ));
        }
        let options = RankingOptions {
            mode: place(request.mode, model.order(), "request->mode")?,
            user_mode: place(request.user_mode, model.order(), "request->user_mode")?,
            list_len: length_of(request.length),
            rank_by: rank_by(request.quantile)?,
            min_relevant_value: has_min.then_some(request.min_relevant_value),
            threads: threads(request.threads, "request->threads")?,
        };
        let report =
            evaluate_ranking(model, &test.view(), &train.view(), &options, &Token(cancel))?;
        let own = RankingInfo {
            size: 0,
            users: report.users,
            hit_rate: report.model.hit_rate,
            recall: report.model.recall,
            ndcg: report.model.ndcg,
            popularity_hit_rate: report.popularity.hit_rate,
            popularity_recall: report.popularity.recall,
            popularity_ndcg: report.popularity.ndcg,
        };
        // SAFETY: a struct of the caller, for this call.
        unsafe { struct_out(&own, ranking, "ranking") }
    })
}

/// Returns what rows are ranked by.
fn rank_by(quantile: f64) -> Outcome<RankBy> {
    match quantile {
        0.0 => Ok(RankBy::Mean),
        q if q > 0.0 && q < 1.0 => Ok(RankBy::Quantile(q)),
        q => Err(Failure::argument(format!(
            "request->quantile is {q}; it must be above 0 and below 1, or 0 to rank by predictions"
        ))),
    }
}

/// Returns the length of a list that a request has, or the default.
pub(super) fn length_of(length: u64) -> usize {
    let length = if length == 0 { DEFAULT_LENGTH } else { length };
    usize::try_from(length).unwrap_or(usize::MAX)
}

/// The lists that a request asks for.
struct Lists {
    /// Number of lists, and the field that has it.
    count: (u64, &'static str),
    /// Length of a list; 0 for the default.
    top: u64,
    /// Number of the first row.
    base: u64,
}

/// The buffers of the caller for lists.
struct Outputs {
    rows: *mut u64,
    scores: *mut f64,
    counts: *mut u64,
    count: usize,
    top: usize,
    base: u64,
}

/// Receives lists in order.
type Take<'a> = &'a mut dyn FnMut(usize, &[RankedRow]) -> Result<()>;

impl Outputs {
    /// Checks the buffers.
    ///
    /// # Safety
    /// Those that are not NULL and aligned have room for `capacity` items (`counts`: one per list), which nobody else
    /// uses while this exists.
    unsafe fn new(
        lists: &Lists,
        rows: *mut u64,
        scores: *mut f64,
        capacity: u64,
        counts: *mut u64,
    ) -> Outcome<Outputs> {
        let (count, name) = lists.count;
        let top = length_of(lists.top);
        let sizes = usize::try_from(count).ok().map(|n| (n, n.checked_mul(top)));
        let Some((count, Some(all))) = sizes else {
            return Err(Failure::argument(format!(
                "{name} is {count} and request->top is {}; so many rows do not fit in memory",
                lists.top
            )));
        };
        // SAFETY: the caller's promise.
        unsafe {
            optional_buffer(rows, capacity, all, "rows")?;
            optional_buffer(scores, capacity, all, "scores")?;
            buffer(counts, count as u64, count, "counts")?;
        }
        Ok(Outputs {
            rows,
            scores,
            counts,
            count,
            top,
            base: lists.base,
        })
    }

    /// Writes the lists when all are complete, so that a failure leaves the caller's buffers unchanged.
    fn collect(&self, make: impl FnOnce(Take<'_>) -> Result<()>) -> Outcome {
        let mut lists: Vec<Vec<RankedRow>> = Vec::new();
        lists.try_reserve_exact(self.count).map_err(|_| {
            Failure::new(
                S3CMTF_OUT_OF_MEMORY,
                format!("no memory for {} lists", self.count),
            )
        })?;
        make(&mut |_, list| {
            lists.push(list.to_vec());
            Ok(())
        })?;
        for (q, list) in lists.iter().enumerate() {
            // SAFETY: a list has at most `top` rows; buffers that are not NULL have room for `top` items of each list,
            // `counts` for one.
            unsafe {
                self.counts.add(q).write(list.len() as u64);
                for (k, r) in list.iter().enumerate() {
                    if !self.rows.is_null() {
                        let row = u64::from(r.index) + self.base;
                        self.rows.add(q * self.top + k).write(row);
                    }
                    if !self.scores.is_null() {
                        self.scores.add(q * self.top + k).write(r.score);
                    }
                }
            }
        }
        Ok(())
    }
}
