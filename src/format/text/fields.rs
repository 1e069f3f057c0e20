//! Fields of a line, and excerpts of the input for messages.

#[inline]
pub(super) fn is_blank(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\r' | 0x0B | 0x0C)
}

/// Iterates over the fields of a line, separated by blanks.
pub(super) fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&b| is_blank(b)).filter(|f| !f.is_empty())
}

#[inline]
pub(super) fn skip_blanks(mut text: &[u8]) -> &[u8] {
    while let [b, rest @ ..] = text {
        if !is_blank(*b) {
            break;
        }
        text = rest;
    }
    text
}

pub(super) fn starts_with_ignore_case(text: &[u8], prefix: &[u8]) -> bool {
    text.len() >= prefix.len() && text[..prefix.len()].eq_ignore_ascii_case(prefix)
}

/// Quotes an excerpt of the input for a message, at most 60 bytes of it.
pub(super) fn quote(text: &[u8]) -> String {
    const MAX_LEN: usize = 60;
    let cut = &text[..text.len().min(MAX_LEN)];
    let dots = if text.len() > MAX_LEN { "..." } else { "" };
    format!("'{}{dots}'", String::from_utf8_lossy(cut).escape_debug())
}

/// Returns whether a field has a text that often marks a missing one.
pub(crate) fn looks_missing(text: &str) -> bool {
    let marks = ["NA", "N/A", "NaN", "NULL", "None", "\\N", "?", "-"];
    marks.iter().any(|mark| mark.eq_ignore_ascii_case(text))
}

/// Returns the text of an id or a category. The message of an error begins with the field.
#[inline]
pub(super) fn id_text(field: &[u8]) -> Result<&str, String> {
    match std::str::from_utf8(field) {
        Ok("\\N") => Err(
            "'\\N' marks a missing field; to skip lines that have it, set --missing '\\N' (option missing)".into(),
        ),
        Ok(text) => Ok(text),
        Err(_) => Err(format!(
            "{} is not UTF-8 text; convert the file to UTF-8 (if it is from Windows: iconv -f WINDOWS-1252 -t UTF-8)",
            quote(field)
        )),
    }
}
