//! Shares of time by activity, for the page and for the terminal.

/// Returns what a span marks, as a word for readers. `name` is that of a span in a trace, `phase` that of the phase around it.
pub fn activity_label<'a>(name: &'a str, phase: &str) -> &'a str {
    match name {
        "block" => "blocks",
        "epoch" if phase != name => "epochs",
        "merge" => "merging",
        "wait" => "waiting",
        name if name == phase => "other work",
        name => name,
    }
}

/// Formats a fraction as a percentage with one decimal.
pub fn format_share(fraction: f64) -> String {
    format!("{:.1}%", 100.0 * fraction)
}
