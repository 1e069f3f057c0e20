//! Files that are kept in memory as a whole, such as options and names. A device or a pipe may never end, so it is read up to a
//! limit.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::error::{Error, Result};
use crate::memory::require_memory;
use crate::try_alloc::try_reserve;

/// The least number of bytes that are read at a time.
const MIN_CHUNK_BYTES: u64 = 1 << 16;

/// How long a file may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeLimit {
    /// Options and other small files: 1 MiB.
    Options,
    /// Tables of names, lists of rows and states of searches: an ordinary file that fits into memory, or 256 MiB of a device or a
    /// pipe.
    Table,
}

impl SizeLimit {
    /// Returns the largest number of bytes of a device or a pipe, and what messages call it.
    fn of_stream(self) -> (u64, &'static str) {
        match self {
            SizeLimit::Options => (1 << 20, "1 MiB"),
            SizeLimit::Table => (256 << 20, "256 MiB"),
        }
    }
}

/// Reads a file. One that is longer than the limit is an error.
pub fn read_whole(path: &Path, limit: SizeLimit) -> Result<Vec<u8>> {
    let file = File::open(path).map_err(|e| Error::cannot_open(path, e))?;
    let metadata = file.metadata().map_err(|e| Error::cannot_open(path, e))?;
    let (mut max, size) = limit.of_stream();
    let mut remedy = "";
    if limit == SizeLimit::Table {
        if metadata.is_file() {
            max = max.max(metadata.len());
            let name = path.display();
            let advice = "read a shorter one";
            require_memory(metadata.len() as f64, &format!("{name} needs"), advice)?;
        } else {
            remedy = " of a device or a pipe; write it to a file, which may be longer";
        }
    }
    let mut bytes = Vec::new();
    let mut rest = file.take(max + 1);
    loop {
        // The rest of a file of known length at once; of another one as much as was read before.
        let read = bytes.len() as u64;
        let expected = metadata.len().saturating_sub(read).max(read);
        let chunk = expected.clamp(MIN_CHUNK_BYTES, max + 1);
        try_reserve(&mut bytes, chunk as usize, "bytes of a file")?;
        let read = rest.by_ref().take(chunk).read_to_end(&mut bytes);
        match read {
            Ok(0) => return Ok(bytes),
            Ok(_) if bytes.len() as u64 > max => {
                return Err(Error::file(
                    path.display().to_string(),
                    format!("is longer than {size}, the limit{remedy}"),
                ));
            }
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::IsADirectory => {
                return Err(Error::cannot_open(path, e));
            }
            Err(e) => return Err(Error::io(format!("cannot read {}", path.display()), e)),
        }
    }
}

/// Reads a file of text in UTF-8, like [`read_whole`].
pub fn read_whole_text(path: &Path, limit: SizeLimit) -> Result<String> {
    String::from_utf8(read_whole(path, limit)?).map_err(|e| {
        let at = e.utf8_error().valid_up_to() + 1;
        Error::file(
            path.display().to_string(),
            format!("is not UTF-8 text, from byte {at} on"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_up_to_the_limit() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let write = |length: usize| std::fs::write(&path, vec![b'x'; length]).unwrap();
        let read = |limit| read_whole(&path, limit).map(|bytes| bytes.len());
        for length in [0, 1, (1 << 20) - 1, 1 << 20] {
            write(length);
            assert_eq!(read(SizeLimit::Options).unwrap(), length);
            assert_eq!(read(SizeLimit::Table).unwrap(), length);
        }
        write((1 << 20) + 1);
        assert_eq!(read(SizeLimit::Table).unwrap(), (1 << 20) + 1);
        let error = read(SizeLimit::Options).unwrap_err().to_string();
        assert!(
            error.ends_with("is longer than 1 MiB, the limit"),
            "{error}"
        );
        std::fs::write(&path, b"ab\xffc").unwrap();
        let error = read_whole_text(&path, SizeLimit::Options).unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("is not UTF-8 text, from byte 3 on")
        );
        assert!(matches!(
            read_whole(dir.path(), SizeLimit::Table),
            Err(Error::File { .. })
        ));
        let missing = dir.path().join("missing");
        assert!(matches!(
            read_whole(&missing, SizeLimit::Table),
            Err(Error::File { .. })
        ));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn devices_that_never_end_are_errors() {
        for (limit, size) in [(SizeLimit::Options, "1 MiB"), (SizeLimit::Table, "256 MiB")] {
            let error = read_whole(Path::new("/dev/zero"), limit).unwrap_err();
            let expected = format!("/dev/zero: is longer than {size}, the limit");
            assert!(error.to_string().starts_with(&expected), "{error}");
        }
        // A file larger than memory, without any blocks on the disk.
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sparse");
        File::create(&path).unwrap().set_len(1 << 43).unwrap();
        let error = read_whole(&path, SizeLimit::Table).unwrap_err().to_string();
        assert!(
            error.contains("sparse needs about 8.8 TB of memory"),
            "{error}"
        );
    }
}
