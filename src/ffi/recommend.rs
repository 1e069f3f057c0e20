//! What to recommend, what is alike, and how good rankings are.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::mem::MaybeUninit;

use super::arg::{buffer, given, place, slice, threads};
use super::cancel::{CancelHandle, Token};
use super::coo_handle::{CooHandle, of as entries_of};
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

/// For each of `count` queries, the `top` rows of `mode` that the model predicts the most for, the best first.
///
/// The rows of the other modes that a query is about are given as to s3cmtf_coo_new(): a pointer per mode, `index_type`,
/// `stride` and `base`. A mode whose pointer is NULL is averaged over (its mean row stands for it); that of `mode`
/// does not matter. A row that the model does not know is S3CMTF_BAD_ARGUMENT, and only rows that it knows are ranked.
/// A score is the prediction of the cell as s3cmtf_model_predict() gives it without clipping. With `quantile` above 0 and
/// below 1 it is that quantile of the value instead, which only a model with samples knows; 0 ranks by predictions. Of
/// equal scores the smaller row comes first.
///
/// `exclude` may be NULL. If not, rows are left out for whom they have an entry with: entries whose index of mode
/// `exclude_by` is that of the query, which must have one. If `only` is not NULL, only the `only_count` rows it has are ranked; the
/// `without_count` rows of `without` are not. Both count from `base`; rows that the model does not know are ignored.
///
/// `rows` (which counts from `base`) and `scores` have room for `capacity` items each, `top` for each query; `found` has
/// `count` items: how many rows each has. What is behind them is left alone. Either of `rows` and `scores` may be NULL if
/// it is not wanted. It runs on `threads` threads (0: all the process may use); results do not depend on how many.
/// `cancel` may be NULL.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_model_recommend(
    model: Option<&ModelHandle>,
    mode: u64,
    count: u64,
    indices: *const *const c_void,
    index_type: i32,
    stride: u64,
    base: i32,
    top: u64,
    quantile: f64,
    exclude: Option<&CooHandle>,
    exclude_by: u64,
    only_count: u64,
    only: *const u64,
    without_count: u64,
    without: *const u64,
    threads: u64,
    cancel: Option<&CancelHandle>,
    rows: *mut u64,
    scores: *mut f64,
    capacity: u64,
    found: *mut u64,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let model = of(model)?;
        let mode = place(mode, model.order(), "mode")?;
        // SAFETY: arrays of the caller, for this call.
        let (indices, listed, left_out) = unsafe {
            (
                Indices::partial(indices, model.order(), count, index_type, stride, base)?,
                slice(only, only_count, "only")?,
                slice(without, without_count, "without")?,
            )
        };
        let threads = self::threads(threads)?;
        require_usable(&indices, model.order())?;
        let rows_of = |list: &[u64]| -> Vec<u32> {
            let row = |&i: &u64| u32::try_from(i.checked_sub(base as u64)?).ok();
            // What is none of the model's rows is ignored in any case.
            list.iter().filter_map(row).collect()
        };
        let (only, without) = (
            (!only.is_null()).then(|| rows_of(listed)),
            rows_of(left_out),
        );
        let seen = match exclude {
            None => None,
            Some(entries) => {
                let by = place(exclude_by, model.order(), "exclude_by")?;
                let view = entries_of(Some(entries))?;
                model.check_order(&view)?;
                Some(ObservedPairs::new(&[view], by, mode)?)
            }
        };
        // SAFETY: buffers of the caller, for this call.
        let to = unsafe { Outputs::new((rows, scores, found), capacity, (count, top), base) }?;
        let how = RecommendOptions {
            rank_by: rank_by(quantile),
            exclude_observed: seen.as_ref(),
            candidates: only.as_deref(),
            exclude: &without,
            threads,
            ..RecommendOptions::new(mode, to.top)
        };
        let index = |q: usize, cell: &mut [u32]| {
            for (n, slot) in cell.iter_mut().enumerate() {
                *slot = indices.get(n, q).map_or(AVERAGE_ROW, |i| i as u32);
            }
        };
        to.collect(|take| recommend(model, to.count, index, &how, &Token(cancel), take))
    })
}

/// For each of `count` rows of `mode`, the `top` rows of the same mode that are most like it: those whose predictions
/// over all cells, without biases, have the largest cosine with its own, the largest first. However the core or the
/// columns of factors are scaled, that is the same. A row that the model does not know is S3CMTF_BAD_ARGUMENT; rows
/// without tensor entries are not given.
///
/// `queries` are the rows, counted from 0 as all rows here. Outputs, `threads` and `cancel` are as for
/// s3cmtf_model_recommend(), with cosines for scores.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_model_similar(
    model: Option<&ModelHandle>,
    mode: u64,
    count: u64,
    queries: *const u64,
    top: u64,
    threads: u64,
    cancel: Option<&CancelHandle>,
    rows: *mut u64,
    scores: *mut f64,
    capacity: u64,
    found: *mut u64,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let model = of(model)?;
        let mode = place(mode, model.order(), "mode")?;
        // SAFETY: an array of the caller, for this call.
        let queries = unsafe { slice(queries, count, "queries") }?;
        let dim = usize::try_from(model.dims()[mode]).unwrap_or(usize::MAX);
        let mut asked: Vec<u32> = Vec::new();
        for (k, &row) in queries.iter().enumerate() {
            asked.push(place(row, dim, &format!("queries[{k}]"))? as u32);
        }
        let threads = self::threads(threads)?;
        // SAFETY: buffers of the caller, for this call.
        let to = unsafe { Outputs::new((rows, scores, found), capacity, (count, top), 0) }?;
        let how = SimilarOptions {
            mode,
            top: to.top,
            threads,
        };
        to.collect(|take| similar_rows(model, &asked, &how, &Token(cancel), take))
    })
}

/// Measures rankings of `mode` on the test entries `coo`: for each row of mode `by` (a user), the first `at` rows that he
/// has no entry with in `train`, by their predictions or `quantile` as in
/// s3cmtf_model_recommend(), other modes averaged over. Relevant are rows of his test entries
/// with values of at least `relevant` (-INFINITY: all) that he has no entry with in `train`; users without any do not
/// count.
///
/// `of_model` and `of_popularity` have room for three numbers each, means over users: the hit rate (1 if anything in the
/// list is relevant), the recall (the share of what is relevant that is in the list) and the NDCG (a relevant row in
/// place p, counted from 1, gains 1 / log2(p + 1), over the most that could be gained); the second for lists of the rows
/// with the most entries in `train`. `users` is how many counted. All three may be NULL. `threads` and `cancel` are as
/// for s3cmtf_model_recommend().
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_model_evaluate_ranking(
    model: Option<&ModelHandle>,
    coo: Option<&CooHandle>,
    train: Option<&CooHandle>,
    mode: u64,
    by: u64,
    at: u64,
    quantile: f64,
    relevant: f64,
    threads: u64,
    cancel: Option<&CancelHandle>,
    of_model: *mut f64,
    of_popularity: *mut f64,
    users: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let model = of(model)?;
        let (test, train) = (entries_of(coo)?, entries_of(Some(given(train, "train")?))?);
        let how = RankingOptions {
            mode: place(mode, model.order(), "mode")?,
            user_mode: place(by, model.order(), "by")?,
            list_len: usize::try_from(at).unwrap_or(usize::MAX),
            rank_by: rank_by(quantile),
            min_relevant_value: Some(relevant),
            threads: self::threads(threads)?,
        };
        let outputs = [of_model, of_popularity].map(|to| {
            let needed = if to.is_null() { 0 } else { 3 };
            // SAFETY: buffers of the caller, for this call.
            unsafe { buffer(to, 3, needed, "of_model or of_popularity") }
        });
        let [first, second] = outputs;
        let (first, second) = (first?, second?);
        let report = evaluate_ranking(model, &test, &train, &how, &Token(cancel))?;
        for (to, m) in [(first, report.model), (second, report.popularity)] {
            let numbers = [m.hit_rate, m.recall, m.ndcg];
            to.iter_mut().zip(numbers).for_each(|(to, x)| {
                to.write(x);
            });
        }
        users.map(|out| out.write(report.users));
        Ok(())
    })
}

/// What rows are ranked by: 0 means their predictions.
fn rank_by(quantile: f64) -> RankBy {
    match quantile {
        0.0 => RankBy::Mean,
        q => RankBy::Quantile(q),
    }
}

/// The buffers of the caller for lists.
struct Outputs {
    rows: *mut u64,
    scores: *mut f64,
    found: *mut u64,
    count: usize,
    top: usize,
    base: u64,
}

/// Takes lists as they come, in order.
type Take<'a> = &'a mut dyn FnMut(usize, &[RankedRow]) -> Result<()>;

impl Outputs {
    /// Checks the buffers.
    ///
    /// # Safety
    /// Those that are not NULL and aligned have the room that is said, which nobody else uses while this lives.
    unsafe fn new(
        (rows, scores, found): (*mut u64, *mut f64, *mut u64),
        capacity: u64,
        (count, top): (u64, u64),
        base: i32,
    ) -> Outcome<Outputs> {
        let sizes = usize::try_from(count).ok().zip(usize::try_from(top).ok());
        let all = sizes.and_then(|(count, top)| count.checked_mul(top));
        let (Some((count, top)), Some(all)) = (sizes, all) else {
            return Err(Failure::argument(format!(
                "{count} lists of {top} rows; no memory is that large"
            )));
        };
        if top == 0 {
            return Err(Failure::argument("top is 0; it must be at least 1"));
        }
        // SAFETY: the caller's promise.
        unsafe {
            buffer(rows, capacity, if rows.is_null() { 0 } else { all }, "rows")?;
            buffer(
                scores,
                capacity,
                if scores.is_null() { 0 } else { all },
                "scores",
            )?;
            buffer(found, count as u64, count, "found")?;
        }
        Ok(Outputs {
            rows,
            scores,
            found,
            count,
            top,
            base: base as u64,
        })
    }

    /// Writes lists when all are made: a failure leaves the caller's buffers alone.
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
            // SAFETY: there is room for `top` items of each list, which has no more, unless a pointer is NULL;
            // `found` has an item for each.
            unsafe {
                self.found.add(q).write(list.len() as u64);
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
