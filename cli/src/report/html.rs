//! Text, numbers and tables as HTML.

use std::fmt::Write;

use s3cmtf::printable::is_deceptive;

pub(super) use crate::number_format::format_integer;

/// Escapes a text for HTML elements and quoted attributes.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if is_deceptive(c) && c != '\n' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Returns the first `max_chars` characters of a text, with an ellipsis if it is longer.
pub(super) fn truncate(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((at, _)) => format!("{}…", text[..at].trim_end()),
        None => text.to_string(),
    }
}

/// Formats a value with about four significant digits; a dash if it is not finite.
pub(super) fn format_value(x: f64) -> String {
    if !x.is_finite() {
        return "–".into();
    }
    let size = x.abs();
    let text = match size {
        0.0 => "0".into(),
        s if !(1e-4..1e6).contains(&s) => {
            let text = format!("{x:.2e}");
            let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
            let digits = digits.trim_end_matches('0').trim_end_matches('.');
            format!("{digits}e{power}")
        }
        s if s >= 1e4 => {
            return format!(
                "{}{}",
                if x < 0.0 { "−" } else { "" },
                format_integer(s as u64)
            );
        }
        s => {
            let digits = (3 - s.log10().floor() as i32).max(0) as usize;
            let text = format!("{x:.digits$}");
            if text.contains('.') {
                text.trim_end_matches('0').trim_end_matches('.').to_string()
            } else {
                text
            }
        }
    };
    text.replace('-', "−")
}

/// Formats a value with two decimals, for columns of numbers.
pub(super) fn format_hundredths(x: f64) -> String {
    // Adding 0 turns -0 into 0.
    let rounded = (x * 100.0).round() / 100.0 + 0.0;
    format!("{rounded:.2}").replace('-', "−")
}

/// Formats a duration in seconds, minutes or hours.
pub(super) fn format_seconds(s: f64) -> String {
    match s {
        s if !s.is_finite() => "–".into(),
        s if s < 120.0 => format!("{} s", format_value((s * 100.0).round() / 100.0)),
        s if s < 7200.0 => format!("{:.1} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// Formats a fraction as a percentage.
pub(super) fn format_percent(fraction: f64) -> String {
    match 100.0 * fraction {
        p if !p.is_finite() => "–".into(),
        p if p > 0.0 && p < 0.1 => "below 0.1%".into(),
        p if p < 10.0 => format!("{p:.1}%"),
        p => format!("{p:.0}%"),
    }
}

/// Formats a count with its noun.
pub(super) fn count_noun(n: u64, singular: &str, plural: &str) -> String {
    let noun = if n == 1 { singular } else { plural };
    format!("{} {noun}", format_integer(n))
}

/// Appends a section of the page.
pub(super) fn section(out: &mut String, id: &str, title: &str, body: &str) {
    let _ = write!(
        out,
        "<section id=\"{id}\">\n<h2>{title}</h2>\n{body}</section>\n"
    );
}

/// Returns a table of names and values, which are HTML already.
pub(super) fn key_value_table(rows: &[(&str, String)]) -> String {
    let mut out = String::from("<table class=\"facts\"><tbody>\n");
    for (name, value) in rows {
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{name}</th><td>{value}</td></tr>"
        );
    }
    out + "</tbody></table>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_and_truncated() {
        assert_eq!(
            escape("<b a=\"1\" c='2'>&amp;\u{0}\u{202e}é</b>"),
            "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;amp;\u{fffd}\u{fffd}é&lt;/b&gt;"
        );
        assert_eq!(truncate("häuser", 3), "häu…");
        assert_eq!(truncate("häu", 3), "häu");
    }

    #[test]
    fn values_are_formatted_with_four_digits() {
        let formatted = [
            (0.0, "0"),
            (0.85123, "0.8512"),
            (-12.0, "−12"),
            (1234.5678, "1235"),
            (45678.9, "45,678"),
            (-45678.9, "−45,678"),
            (3.2e-7, "3.2e−7"),
            (2e9, "2e9"),
            (f64::NAN, "–"),
        ];
        for (x, text) in formatted {
            assert_eq!(format_value(x), text);
        }
        assert_eq!(format_seconds(0.123), "0.12 s");
        assert_eq!(format_seconds(600.0), "10.0 min");
        assert_eq!(format_percent(0.5), "50%");
        assert_eq!(format_percent(0.0001), "below 0.1%");
    }
}
