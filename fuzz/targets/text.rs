//! Text in all formats, plain and gzipped in pieces.
//!
//! The first byte has flags and the second the lengths of pieces. Options of the conversion follow as lines `name=value` up
//! to an empty line, then the text.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use s3cmtf::format::{
    CooFile, Dims, Input, OpenMode, TextFormat, TextOptions, Values, convert, open, summarize,
    write_tns,
};

use super::Seeds;
use super::coo::{coo_bytes, same_entries};
use super::mutation::Random;

const SMALL_READS: u8 = 1;
const MEMBERS: u8 = 2;
const DAMAGED: u8 = 4;

pub fn run(input: &[u8], folder: &Path) -> bool {
    let [flags, pieces, rest @ ..] = input else {
        return false;
    };
    let end = rest.windows(2).position(|w| w == b"\n\n").unwrap_or(0);
    let Ok(lines) = std::str::from_utf8(&rest[..end]) else {
        return false;
    };
    let text = rest[end..].strip_prefix(b"\n\n").unwrap_or(&rest[end..]);
    let mut options = TextOptions::default();
    for (name, value) in lines.lines().filter_map(|line| line.split_once('=')) {
        let _ = options.set(name, value);
    }
    let of_folder = |path: &PathBuf| path.components().count() == 1 && !path.starts_with("..");
    let delimited = &options.delimited;
    let mut files = delimited
        .names
        .iter()
        .chain(&delimited.rows_of)
        .map(|(_, path)| path);
    if !files.all(of_folder) {
        return false;
    }
    write_helpers(folder);
    // In a folder of their own, so that options cannot name an output of this run as an input.
    let outputs = folder.join("outputs");
    fs::create_dir_all(&outputs).unwrap();
    let mut random = Random(u64::from(*pieces));
    let plain = converted(
        reader(text.to_vec(), 0, 0),
        &options,
        &outputs.join("plain.coo"),
    );
    let gzipped = gzip(text, flags & MEMBERS != 0, &mut random);
    let small = usize::from(flags & SMALL_READS) * (1 + random.below(40));
    if flags & DAMAGED != 0 {
        let mut gzipped = gzipped;
        let at = random.below(gzipped.len());
        gzipped[at] ^= 1 << random.below(8);
        let _ = converted(
            reader(gzipped, small, 0),
            &options,
            &outputs.join("damaged.coo"),
        );
        return false;
    }
    // How a text is compressed and read does not matter.
    let pieces = converted(
        reader(gzipped, small, 7),
        &options,
        &outputs.join("pieces.coo"),
    );
    // An input that begins like a gzip file is read as one, so its compressed form would be compressed twice.
    if !text.starts_with(&[0x1f, 0x8b]) {
        assert_eq!(plain.is_some(), pieces.is_some(), "gzipped or plain");
        if let (Some(plain), Some(pieces)) = (&plain, &pieces) {
            assert!(same_entries(&plain.view(), &pieces.view()));
            check_round_trip(plain, folder);
        }
    }
    let _ = open(
        reader(text.to_vec(), small, 3),
        OpenMode::Mapped,
        &options,
        &(),
    );
    plain.is_some()
}

/// Converts an input and returns the file if it was accepted.
fn converted(input: Input, options: &TextOptions, output: &Path) -> Option<CooFile> {
    let report = convert(input, output, options, &()).ok()?;
    let file = CooFile::open(output, OpenMode::Private).unwrap();
    file.verify(&()).unwrap();
    assert_eq!(file.header(), &report.header);
    // What is accepted has finite values and indices within the sizes.
    let summary = summarize(&file.view(), &()).unwrap();
    assert_eq!(summary.count, report.header.count);
    for (mode, path, _) in &report.names {
        assert!(s3cmtf::format::Names::load(path).is_ok(), "mode {mode}");
        fs::remove_file(path).unwrap();
    }
    Some(file)
}

/// Writes a file as text and converts it again: nothing changes.
fn check_round_trip(file: &CooFile, folder: &Path) {
    let header = file.header();
    let text = folder.join("exported.tns");
    write_tns(file, &text, &()).unwrap();
    if header.count == 0 {
        return;
    }
    let options = TextOptions {
        format: Some(TextFormat::Tns),
        dims: Some(header.dims.clone()),
        weighted: header.weight_kind.is_some(),
        value_kind: Some(header.value_kind),
        ..TextOptions::default()
    };
    let path = folder.join("again.coo");
    convert(text.as_path().into(), &path, &options, &()).unwrap();
    let again = CooFile::open(path, OpenMode::Mapped).unwrap();
    assert!(same_entries(&file.view(), &again.view()));
}

/// Writes files that options can name.
fn write_helpers(folder: &Path) {
    let names = folder.join("names.tsv");
    if !names.exists() {
        fs::write(&names, "index\tname\n1\tana\n2\tbo\n").unwrap();
        let columns: [&[u32]; 2] = [&[0, 1, 2], &[0, 1, 0]];
        let values = Values::F32(&[1.0, 2.0, 3.0]);
        let rows = coo_bytes(folder, &columns, values, None, Dims::Inferred);
        fs::write(folder.join("rows.coo"), rows).unwrap();
        fs::write(
            folder.join("rows.mode1.tsv"),
            "index\tname\n1\tana\n2\tbo\n",
        )
        .unwrap();
    }
}

/// Compresses a text, as one member or as several.
fn gzip(text: &[u8], members: bool, random: &mut Random) -> Vec<u8> {
    let mut all = Vec::new();
    let mut rest = text;
    loop {
        let len = if members {
            random.below(rest.len() + 1)
        } else {
            rest.len()
        };
        let mut encoder = GzEncoder::new(all, Compression::new(random.below(4) as u32));
        encoder.write_all(&rest[..len]).unwrap();
        all = encoder.finish().unwrap();
        rest = &rest[len..];
        if rest.is_empty() {
            return all;
        }
    }
}

/// Returns an input that yields at most `len` bytes at a time (0: no limit) and every `interrupts`-th time an interruption.
fn reader(bytes: Vec<u8>, len: usize, interrupts: usize) -> Input {
    let reader = PieceReader {
        bytes: io::Cursor::new(bytes),
        len,
        interrupts,
        calls: 0,
    };
    Input::Reader {
        name: "text".into(),
        reader: Box::new(reader),
    }
}

struct PieceReader {
    bytes: io::Cursor<Vec<u8>>,
    len: usize,
    interrupts: usize,
    calls: usize,
}

impl Read for PieceReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.calls += 1;
        if self.interrupts > 0 && self.calls.is_multiple_of(self.interrupts) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let len = match self.len {
            0 => buffer.len(),
            len => len.min(buffer.len()),
        };
        self.bytes.read(&mut buffer[..len])
    }
}

pub fn seeds(_: &Path) -> Seeds {
    let texts = [
        (
            "tns",
            "\x00\x01from=tns\n\n# comment\n1 1 1 4.5\n1 3 2 2\n2 1 1 5e-1\n",
        ),
        (
            "tns-weighted",
            "\x01\x02from=tns\nweighted=true\nvalues=f64\ndims=4,4\n\n1 2 3.25 2\n4 4 -1 0.5\n",
        ),
        (
            "tns-zero-based",
            "\x02\x03zero_based=true\nno_value=true\n\n0 0 0\n3 2 1\n",
        ),
        (
            "mtx",
            "\x03\x04from=mtx\n\n%%MatrixMarket matrix coordinate real symmetric\n% c\n3 3 2\n2 1 1.5\n3 3 2\n",
        ),
        (
            "mtx-pattern",
            "\x02\x05\n\n%%MatrixMarket matrix coordinate pattern general\n2 3 2\n1 1\n2 3\n",
        ),
        (
            "csv",
            "\x03\x06from=csv\n\nuser,item,stars\n1,2,3\n2,\"1\",4.5\r\n",
        ),
        (
            "csv-columns",
            "\x02\x07columns=item,user\nvalue=stars\nweight=w\nstrings=user\n\nuser,item,stars,w\nana,2,3,1\n\"b,o\",1,4,0.5\n",
        ),
        (
            "tsv",
            "\x01\x08from=tsv\nstrings=all\nnames=0:names.tsv\n\nuser\titem\tv\nana\tx\t1\ncy\ty\t2\n",
        ),
        (
            "time",
            "\x00\x09from=csv\ntime=t:month\nbin=age:width=10\nmissing=NA\n\nt,age,v\n2020-01-31,12,1\n2021-02-03,35,2\nNA,3,1\n",
        ),
        (
            "split",
            "\x02\x0afrom=csv\nsplit=genres:|\nskip_bad_rows=true\nno_value=true\n\nfilm,genres\n1,a|b\n2,b\nx\n",
        ),
        (
            "attributes",
            "\x03\x0bfrom=csv\nrows_of=0:rows.coo\nnumeric=age\n\nid,age,job\nana,30,cook\nbo,41,smith\n",
        ),
        (
            "delimiter",
            "\x00\x0cfrom=csv\ndelimiter=;\nno_header=true\n\n1;2;3\n2;2;1\n",
        ),
        (
            "damaged",
            "\x07\x0dfrom=tns\n\n1 1 1 4.5\n1 3 2 2\n2 1 1 5\n",
        ),
        (
            "carriage-returns",
            "\x01\x0efrom=tns\n\n1 1 1 4.5\r1 3 2 2\r",
        ),
        (
            "quantiles",
            "\x00\x0ffrom=csv\nbin=a:quantiles=2\nbin=b:log=2\ntime=c:week:s\n\na,b,c,v\n1,2,86400,1\n5,9,9e8,2\n",
        ),
    ];
    texts.map(|(name, text)| (name, text.into())).to_vec()
}
