//! The beginning of a text file, from which the size of the whole is estimated.

use std::io::Read;
use std::path::Path;

use super::source::TextSource;
use crate::error::Result;

/// The beginning of a text file.
#[derive(Debug)]
pub struct TextPrefix {
    /// The first bytes of the text, decompressed if the file is gzipped.
    pub text: Vec<u8>,
    /// The length of the file divided by the length of its part that was read; 1 or less if that is all of it. For a
    /// gzipped file both are compressed lengths.
    pub length_ratio: f64,
}

/// Reads the first `limit` bytes of a text file, plain or gzipped.
///
/// Returns an error if the file cannot be opened. An error later in the file ends the prefix: a reader of the whole file
/// reports it with its line.
pub fn read_text_prefix(path: &Path, limit: u64) -> Result<TextPrefix> {
    let mut source = TextSource::open(path.into())?;
    let mut text = Vec::new();
    let mut prefix = source.take_reader().take(limit);
    // The bytes before an error remain in `text`.
    let _ = prefix.read_to_end(&mut text);
    drop(prefix);
    let (done, total) = source.progress();
    Ok(TextPrefix {
        text,
        length_ratio: total as f64 / done.max(1) as f64,
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn prefix_of_plain_and_gzipped_text() {
        let dir = tempfile::tempdir().unwrap();
        let lines: String = (1..=20_000).map(|i| format!("{i} {i} 1.5\n")).collect();
        let plain = dir.path().join("a.tns");
        std::fs::write(&plain, &lines).unwrap();
        let part = read_text_prefix(&plain, 10_000).unwrap();
        assert_eq!(part.text, &lines.as_bytes()[..10_000]);
        let ratio = lines.len() as f64 / 10_000.0;
        assert!((part.length_ratio - ratio).abs() < 0.01 * ratio, "{part:?}");
        let whole = read_text_prefix(&plain, 1 << 20).unwrap();
        assert_eq!(
            (whole.text.len(), whole.length_ratio),
            (lines.len(), 1.0),
            "all of it"
        );
        let gzipped = dir.path().join("a.tns.gz");
        let file = std::fs::File::create(&gzipped).unwrap();
        let mut encoder = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
        encoder.write_all(lines.as_bytes()).unwrap();
        encoder.finish().unwrap();
        let part = read_text_prefix(&gzipped, 10_000).unwrap();
        assert_eq!(part.text, &lines.as_bytes()[..10_000]);
        // Decompression reads ahead.
        assert!(part.length_ratio >= 1.0, "{}", part.length_ratio);
        let missing = read_text_prefix(&dir.path().join("none"), 10).unwrap_err();
        assert!(missing.to_string().contains("no such file"), "{missing}");
    }
}
