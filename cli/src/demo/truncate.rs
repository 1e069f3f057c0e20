//! Shortens texts to the width of a column.

use crate::output::printable;

/// Marks the end of a shortened text.
const ELLIPSIS: &str = "...";

/// Returns the text with at most `width` characters. A shortened text ends in an ellipsis.
pub(super) fn truncate(text: &str, width: usize) -> String {
    let text = printable(text);
    if text.chars().count() > width {
        text.chars()
            .take(width - ELLIPSIS.len())
            .collect::<String>()
            + ELLIPSIS
    } else {
        text.into_owned()
    }
}

/// Joins labels by commas with at most `width` characters. Leaves out whole labels at the end if possible.
pub(super) fn truncate_list(labels: &[String], width: usize) -> String {
    let whole = labels.join(", ");
    if whole.chars().count() <= width {
        return printable(&whole).into_owned();
    }
    let mut list = String::new();
    for label in labels {
        let longer = format!("{list}{label}, ");
        if longer.chars().count() + ELLIPSIS.len() > width {
            break;
        }
        list = longer;
    }
    if list.is_empty() {
        truncate(&labels[0], width)
    } else {
        truncate(&(list + ELLIPSIS), width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortened_texts_end_in_an_ellipsis() {
        let list = |labels: &[&str]| {
            truncate_list(
                &labels.iter().map(|l| l.to_string()).collect::<Vec<_>>(),
                24,
            )
        };
        assert_eq!(
            list(&["15", "16", "117", "225", "488", "512"]),
            "15, 16, 117, 225, ..."
        );
        assert_eq!(
            list(&["Drama", "Fantasy", "Western"]),
            "Drama, Fantasy, Western"
        );
        assert_eq!(
            list(&["Action", "Drama", "Fantasy", "War"]),
            "Action, Drama, ..."
        );
        assert_eq!(
            list(&["a label that is long in itself", "b"]),
            "a label that is long ..."
        );
        assert_eq!(list(&[]), "");
        assert_eq!(truncate("Distinguished Gentleman", 10), "Disting...");
        assert_eq!(truncate("\u{1b}[31mé", 10), "\u{fffd}[31mé");
    }
}
