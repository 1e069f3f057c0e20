//! Where the time of a fit went: shares of its phases and, if it was traced, of what threads did.

use std::fmt::Write;

use s3cmtf::model::FitOutcome;
use s3cmtf::trace::SpanKind;

use super::bar_chart::inline_bar;
use super::html::{escape, format_percent, format_seconds, truncate};
use crate::time_shares::activity_label;

/// Returns the tables of shares; empty if the times are not known.
pub(super) fn time_shares(outcome: &FitOutcome) -> String {
    let total = outcome.read_seconds + outcome.seconds;
    if outcome.init_seconds <= 0.0 || !total.is_finite() {
        return String::new();
    }
    let measured = outcome.init_seconds + outcome.update_seconds + outcome.eval_seconds;
    let phases = [
        ("reading", outcome.read_seconds),
        ("initialization", outcome.init_seconds),
        ("updates", outcome.update_seconds),
        ("evaluation", outcome.eval_seconds),
        ("other", (outcome.seconds - measured).max(0.0)),
    ];
    let rows = phases.iter().filter(|(_, seconds)| *seconds > 0.0);
    let rows = rows.map(|(name, seconds)| {
        (
            *name,
            seconds / total,
            format!(", {}", format_seconds(*seconds)),
        )
    });
    let mut out = String::from("<h3>Where the time went</h3>\n<div class=\"grid2\">");
    out += &shares_table("Phase", rows);
    if !outcome.thread_shares.is_empty() {
        let shares = outcome.thread_shares.iter().take(SpanKind::ALL.len());
        let shares =
            shares.map(|(name, share)| (activity_label(name, "epoch"), *share, String::new()));
        out += &shares_table("Threads during updates", shares);
    }
    out + "</div>\n"
}

/// Returns a table of names and fractions, each with a text that follows it.
fn shares_table<'a>(heading: &str, rows: impl Iterator<Item = (&'a str, f64, String)>) -> String {
    let mut out = format!(
        "<div class=\"scroll\"><table><thead><tr><th>{heading}</th><th>Share</th></tr></thead><tbody>\n"
    );
    for (name, share, text) in rows {
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{}{text}{}</td></tr>",
            escape(&truncate(name, 40)),
            format_percent(share),
            inline_bar(share)
        );
    }
    out + "</tbody></table></div>\n"
}
