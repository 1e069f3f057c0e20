//! Characters of names that deceive whoever reads them: control characters, and characters that are invisible or change the
//! direction of text. Names come from files of others. Every place that shows a name or writes it to a file of text treats these
//! characters alike: displays replace them, names files and JSON escape them.

use std::borrow::Cow;
use std::fmt::Write;

/// Replaces a deceptive character.
const REPLACEMENT: &str = "\u{fffd}";

/// Returns whether a character of a name is a control character, invisible, or changes the direction or the lines of text.
pub fn is_deceptive(c: char) -> bool {
    match c {
        ' '..='~' => false,
        // Soft hyphen, Arabic letter mark, Hangul fillers, Mongolian vowel separator.
        '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{3164}' | '\u{ffa0}' => {
            true
        }
        // Characters without width, marks of direction, separators of lines and paragraphs, embeddings and overrides.
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' => true,
        // Word joiner, invisible operators, isolates and shapes.
        '\u{2060}'..='\u{206f}' => true,
        // Byte order mark, annotations, musical formats, tags.
        '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' => true,
        '\u{e0000}'..='\u{e007f}' => true,
        c => c.is_control(),
    }
}

/// Returns whether a text has no character that [`is_deceptive`], as most texts.
fn is_printable(text: &str) -> bool {
    // A loop over bytes is faster than one over characters.
    text.bytes().all(|b| (b' '..=b'~').contains(&b)) || !text.contains(is_deceptive)
}

/// Returns a name in which deceptive characters are replaced.
pub fn printable(name: &str) -> Cow<'_, str> {
    match is_printable(name) {
        true => name.into(),
        false => name.replace(is_deceptive, REPLACEMENT).into(),
    }
}

/// Returns a text of several lines in which deceptive characters are replaced, except for line ends and tabs.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    match is_printable(text) {
        true => text.into(),
        false => text
            .replace(|c| is_deceptive(c) && c != '\n' && c != '\t', REPLACEMENT)
            .into(),
    }
}

/// Returns JSON in which deceptive characters, which can only be in strings, are escaped. Line ends between values stay.
pub fn escape_json(json: &str) -> Cow<'_, str> {
    let is_escaped = |c: char| is_deceptive(c) && !matches!(c, '\n' | '\r' | '\t');
    if !json.contains(is_escaped) {
        return json.into();
    }
    let mut escaped = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if is_escaped(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(c);
        }
    }
    escaped.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_of_all_scripts_and_symbols_stay() {
        let text = "Amélie, Ελλάδα, Москва, 東京, 서울, ไทย, हिन्दी, العربية, עברית, naïve – “quoted” … 100 € ❤️ 🎬";
        assert!(matches!(printable(text), Cow::Borrowed(same) if same == text));
        assert!(matches!(escape_json(text), Cow::Borrowed(_)));
        let lines = "one\n\ttwo\n";
        assert_eq!(printable_lines(lines), lines);
        assert_eq!(printable(lines), "one\u{fffd}\u{fffd}two\u{fffd}");
    }

    #[test]
    fn characters_that_deceive_are_replaced_or_escaped() {
        let ranges = [
            '\0'..='\u{1f}',
            '\u{7f}'..='\u{9f}',
            '\u{202a}'..='\u{202e}',
            '\u{2066}'..='\u{2069}',
            '\u{200b}'..='\u{200f}',
            '\u{2028}'..='\u{2029}',
        ];
        let others = ['\u{61c}', '\u{2060}', '\u{feff}', '\u{ad}', '\u{e0041}'];
        for c in ranges.into_iter().flatten().chain(others) {
            assert_eq!(printable(&format!("a{c}b")), "a\u{fffd}b", "{c:?}");
            let json = escape_json(&format!("\"a{c}b\"")).into_owned();
            assert!(
                !json.contains(is_deceptive) || "\n\r\t".contains(c),
                "{c:?}"
            );
        }
        assert_eq!(escape_json("{\"\u{202e}\"}\n"), "{\"\\u202e\"}\n");
        assert_eq!(escape_json("\u{e0041}"), "\\udb40\\udc41");
    }
}
