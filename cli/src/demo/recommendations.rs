//! Recommendations for one person, beside the person's highest training entries.

use std::collections::HashSet;

use s3cmtf::Result;
use s3cmtf::discover::{AVERAGE_ROW, ObservedPairs, RankedRow, RecommendOptions, recommend};
use s3cmtf::format::CooView;
use s3cmtf::model::Model;
use serde_json::{Value, json};

use super::context::Context;
use super::truncate::{truncate, truncate_list};
use crate::output::{Output, format_integer, printable};
use crate::row_names::row_json;

/// Number of recommendations listed.
const RECOMMENDATIONS: usize = 8;
/// Number of the highest training entries listed.
const HIGHEST_ENTRIES: usize = 5;
/// Preferred number of training entries of the chosen person.
const TYPICAL_ENTRIES: u64 = 80;
/// Smallest number of test entries of the chosen person, if anybody has as many.
const MIN_TEST_ENTRIES: u32 = 10;

/// Returns a row of mode 0 with a typical number of training entries and some test entries.
fn choose_person(context: &Context<'_>, model: &Model) -> u32 {
    let users = &model.modes()[0];
    let mut test_entries = vec![0u32; users.rows.len()];
    for &i in context.data.test.view().column(0) {
        if let Some(row) = users.rows.compact(i) {
            test_entries[row as usize] += 1;
        }
    }
    let rows = users
        .rows
        .indices()
        .zip(users.counts.iter().zip(&test_entries));
    let typical = rows.min_by_key(|(_, (count, tested))| {
        (**tested < MIN_TEST_ENTRIES, count.abs_diff(TYPICAL_ENTRIES))
    });
    typical.map_or(0, |(index, _)| index)
}

/// Returns the entries of a person, as rows of the item mode with their values, highest first.
fn entries_of_person(view: &CooView<'_>, person: u32, item_mode: usize) -> Vec<RankedRow> {
    let mut entries: Vec<RankedRow> = (0..view.len())
        .filter(|&i| view.column(0)[i] == person)
        .map(|i| RankedRow {
            index: view.column(item_mode)[i],
            score: view.values().get(i),
        })
        .collect();
    entries.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.index.cmp(&b.index)));
    entries
}

/// Prints the highest entries of one person and the recommendations for that person. Returns both as JSON.
pub(super) fn print_recommendations(
    context: &Context<'_>,
    model: &Model,
    item_mode: usize,
    out: &mut Output,
) -> Result<Value> {
    let data = context.data;
    let (train, test) = (data.train.view(), data.test.view());
    let person = choose_person(context, model);
    let attributes = data.attributes(item_mode)?;
    let known = entries_of_person(&train, person, item_mode);
    let held_out = entries_of_person(&test, person, item_mode);
    // A person may have several entries for the same item, in different months.
    let mut listed = HashSet::new();
    let highest = known.iter().filter(|r| listed.insert(r.index));
    let highest: Vec<&RankedRow> = highest.take(HIGHEST_ENTRIES).collect();
    let seen = ObservedPairs::new(&[train], 0, item_mode)?;
    let options = RecommendOptions {
        exclude_observed: Some(&seen),
        threads: context.arguments.threads,
        ..RecommendOptions::new(item_mode, RECOMMENDATIONS)
    };
    let mut recommended = Vec::new();
    let index = |_: usize, position: &mut [u32]| {
        position.fill(AVERAGE_ROW);
        position[0] = person;
    };
    recommend(model, 1, index, &options, context.progress, |_, list| {
        recommended = list.to_vec();
        Ok(())
    })?;
    let test_value = |row: u32| held_out.iter().find(|r| r.index == row).map(|r| r.score);
    let line = |score: f64, row: u32, note: String| {
        let attributes = attributes.get(row as usize);
        format!(
            "    {:>5}  {:<38}  {:<24}  {note}",
            format!("{score:.1}"),
            truncate(&context.names.display_name(item_mode, row), 38),
            attributes.map_or(String::new(), |list| truncate_list(list, 24))
        )
        .trim_end()
        .to_string()
    };
    let person_name = match context.names.name(0, person) {
        // A name that is a number is not clear without the mode.
        Some(name) if name.parse::<u64>().is_err() => printable(name).into_owned(),
        _ => format!("{} {}", data.mode_names[0], u64::from(person) + 1),
    };
    out.line("");
    out.heading(&format!(
        "{person_name} has {} training entries. The highest:",
        format_integer(known.len() as u64)
    ));
    for r in &highest {
        out.line(line(r.score, r.index, String::new()));
    }
    let is_rated = recommended.iter().any(|r| test_value(r.index).is_some());
    out.heading(if is_rated {
        "Recommended, without training entries; `rated` is the value in the test entries:"
    } else {
        "Recommended, without training entries:"
    });
    for r in &recommended {
        let note = test_value(r.index).map_or(String::new(), |value| format!("rated {value:.1}"));
        out.line(line(r.score, r.index, note));
    }
    let item_json = |r: &RankedRow, key: &str| {
        let mut item = row_json(&context.names, item_mode, r.index);
        item[key] = r.score.into();
        item["labels"] = json!(attributes.get(r.index as usize));
        item
    };
    let recommended = recommended.iter().map(|r| {
        let mut item = item_json(r, "score");
        item["test_value"] = test_value(r.index).into();
        item
    });
    Ok(json!({
        "index": u64::from(person) + 1,
        "name": context.names.name(0, person),
        "training_entries": known.len(),
        "highest": highest.iter().map(|r| item_json(r, "value")).collect::<Vec<_>>(),
        "recommended": recommended.collect::<Vec<_>>(),
    }))
}
