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
