//! Words and numbers as HTML.

use std::fmt::Write;

/// A text that means itself in HTML, in elements and in quoted attributes.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Characters that HTML does not allow, and those that turn the direction of what follows.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => out.push('\u{fffd}'),
            c if c.is_control() && c != '\n' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// The beginning of a long text; names may be whole stories.
pub(super) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", text[..at].trim_end()),
        None => text.to_string(),
    }
}

/// 1234567 as 1,234,567.
pub(super) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, d) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(d);
    }
    out
}

/// A number with about four digits, and a dash for none.
pub(super) fn number(x: f64) -> String {
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
        s if s >= 1e4 => return format!("{}{}", if x < 0.0 { "−" } else { "" }, grouped(s as u64)),
        s => {
            let digits = (3 - s.log10().floor() as i32).max(0) as usize;
            let text = format!("{x:.digits$}");
            match text.contains('.') {
                true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
                false => text,
            }
        }
    };
    text.replace('-', "−")
}

/// A number of seconds.
pub(super) fn seconds(s: f64) -> String {
    match s {
        s if !s.is_finite() => "–".into(),
        s if s < 120.0 => format!("{} s", number((s * 100.0).round() / 100.0)),
        s if s < 7200.0 => format!("{:.1} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// A share of 0 to 1.
pub(super) fn percent(share: f64) -> String {
    match 100.0 * share {
        p if !p.is_finite() => "–".into(),
        p if p > 0.0 && p < 0.1 => "below 0.1%".into(),
        p if p < 10.0 => format!("{p:.1}%"),
        p => format!("{p:.0}%"),
    }
}

/// A number with the noun it counts.
pub(super) fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(n), if n == 1 { one } else { many })
}

/// Adds a section of the page.
pub(super) fn section(out: &mut String, id: &str, title: &str, body: &str) {
    let _ = write!(
        out,
        "<section id=\"{id}\">\n<h2>{title}</h2>\n{body}</section>\n"
    );
}

/// A table of two columns, whose cells are HTML already.
pub(super) fn facts(rows: &[(&str, String)]) -> String {
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
    fn texts_mean_themselves() {
        assert_eq!(
            escape("<b a=\"1\" c='2'>&amp;\u{0}\u{202e}é</b>"),
            "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;amp;\u{fffd}\u{fffd}é&lt;/b&gt;"
        );
        assert_eq!(cut("häuser", 3), "häu…");
        assert_eq!(cut("häu", 3), "häu");
    }

    #[test]
    fn numbers_read_well() {
        let read = [
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
        for (x, text) in read {
            assert_eq!(number(x), text);
        }
        assert_eq!(seconds(0.123), "0.12 s");
        assert_eq!(seconds(600.0), "10.0 min");
        assert_eq!(percent(0.5), "50%");
        assert_eq!(percent(0.0001), "below 0.1%");
    }
}
