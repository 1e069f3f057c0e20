//! What a model is asked for: what to recommend, what is alike, how good its rankings are, what its columns stand for,
//! which rows belong together; and the names of rows.

mod clusters;
mod compatibility;
mod concepts;
mod enrichment;
mod gap;
mod kmeans;
mod layer;
mod metric;
mod names;
mod pass;
mod points;
mod ranking;
mod recommend;
mod seeds;
mod seen;
mod similar;
mod top_k;

pub use clusters::{Cluster, ClusterOptions, Clusters, Member, Space, clusters, compare};
pub(crate) use compatibility::{check_rows, check_same_data};
pub use concepts::{Association, Concept, ConceptOptions, Concepts, Profile, concepts};
pub use enrichment::Label;
pub use gap::{GapCurve, GapPoint};
pub use names::RowNames;
pub(crate) use names::named;
pub use ranking::{RankingMetrics, RankingOptions, RankingReport, evaluate_ranking};
pub use recommend::{AVERAGE, Measure, Recommend, recommend};
pub use seen::Seen;
pub use similar::{Similar, similar};
pub use top_k::Ranked;

use crate::error::{Error, Result};
use crate::format::RowMap;
use crate::model::Model;

/// The compact row of an index that the model must know.
fn known(model: &Model, mode: usize, index: u32) -> Result<u32> {
    let rows = &model.modes()[mode].rows;
    let number = u64::from(index) + 1;
    rows.compact(index)
        .ok_or_else(|| unknown(rows, mode, &number.to_string(), number))
}

/// Says that a model has no row of this number, counted from 1, which the text says.
fn unknown(rows: &RowMap, mode: usize, text: &str, number: u64) -> Error {
    let distance = |&i: &u32| (u64::from(i) + 1).abs_diff(number);
    let nearest = rows.indices().min_by_key(distance);
    let nearest = nearest.map_or(String::new(), |i| {
        format!("; the nearest that it has is {}", u64::from(i) + 1)
    });
    Error::argument(format!(
        "row {text} of mode {} is not in the model, which has {} of {} rows of that mode{nearest}",
        mode + 1,
        rows.len(),
        rows.dim(),
    ))
}

/// Refuses a mode that the model does not have.
fn check_mode(model: &Model, mode: usize) -> Result<()> {
    if mode < model.order() {
        return Ok(());
    }
    Err(Error::argument(format!(
        "mode {}; the model has {} modes",
        mode + 1,
        model.order()
    )))
}
