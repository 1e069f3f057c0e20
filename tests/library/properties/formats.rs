//! Round trips: what is written is read back unchanged.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use s3cmtf::format::{
    CooFile, CooWriter, Dims, Input, Names, OpenMode, TextOptions, convert, write, write_tns,
};
use s3cmtf::options::{OPTION_TABLE, OptionInfo, OptionKind, Options};

use super::{Contents, Entries, any_dims, check, entries, finite_values, reading, text_entries};
use crate::common::Scratch;

#[test]
fn binary_files_keep_every_bit() {
    let scratch = Scratch::new("properties-binary");
    let (whole, streamed) = (scratch.join("whole.coo"), scratch.join("streamed.coo"));
    let inputs = (
        entries(any_dims(), 0..60, finite_values()),
        vec(1..20usize, 1..4),
    );
    check(30, inputs, |(entries, pieces)| {
        let view = entries.view();
        write(&view, &whole, None, &()).unwrap();
        for mode in [OpenMode::Mapped, OpenMode::Private] {
            let file = CooFile::open(&whole, mode).unwrap();
            file.verify(&()).unwrap();
            assert_eq!(Contents::new(&file.view()), Contents::new(&view));
        }
        // A writer that does not know the number of entries makes the same file.
        let (values, weights) = (view.values(), view.weights());
        let kinds = (values.kind(), weights.map(|w| w.kind()));
        let mut writer =
            CooWriter::create(&streamed, view.order(), kinds.0, kinds.1, None).unwrap();
        let (mut at, mut lens) = (0, pieces.iter().cycle());
        while at < view.len() {
            let end = (at + lens.next().unwrap()).min(view.len());
            let columns: Vec<&[u32]> = (0..view.order())
                .map(|n| &view.column(n)[at..end])
                .collect();
            let weights = weights.map(|w| w.slice(at..end));
            writer
                .push(&columns, values.slice(at..end), weights)
                .unwrap();
            at = end;
        }
        let dims = if view.dims_inferred() {
            Dims::InferredEarlier(view.dims().to_vec())
        } else {
            Dims::Stated(view.dims().to_vec())
        };
        writer.finish(dims).unwrap();
        assert_eq!(fs::read(&whole).unwrap(), fs::read(&streamed).unwrap());
    });
}

/// Writes entries as FROSTT text. Returns the options that read it, and the entries as they are then.
fn write_text(entries: Entries, coo: &Path, text: &Path) -> (TextOptions, Entries) {
    write(&entries.view(), coo, None, &()).unwrap();
    write_tns(&CooFile::open(coo, OpenMode::Mapped).unwrap(), text, &()).unwrap();
    let is_weighted = entries.weights.is_some();
    let (mut options, expected) = reading(entries);
    options.weighted = is_weighted;
    (options, expected)
}

/// Tensors with entries: an empty file is refused.
#[test]
fn text_keeps_every_bit() {
    let scratch = Scratch::new("properties-text");
    let [coo, text, again] = ["a.coo", "a.tns", "b.coo"].map(|name| scratch.join(name));
    check(30, text_entries(any_dims(), 1..40), |entries| {
        let (options, expected) = write_text(entries, &coo, &text);
        convert(text.as_path().into(), &again, &options, &()).unwrap();
        let file = CooFile::open(&again, OpenMode::Mapped).unwrap();
        file.verify(&()).unwrap();
        assert_eq!(Contents::new(&file.view()), Contents::new(&expected.view()));
    });
}

/// Yields bytes in pieces of given lengths, and an interruption after each.
struct PieceReader {
    bytes: io::Cursor<Vec<u8>>,
    lens: std::iter::Cycle<std::vec::IntoIter<usize>>,
    is_interrupted: bool,
}

impl Read for PieceReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.is_interrupted = !self.is_interrupted;
        if self.is_interrupted {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let len = self.lens.next().unwrap().min(buffer.len());
        self.bytes.read(&mut buffer[..len])
    }
}

/// Compresses a text as one member for each part between two cuts.
fn gzip_members(text: &[u8], cuts: &[Index], level: u32) -> Vec<u8> {
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
    ends.push(text.len());
    ends.sort();
    let (mut all, mut start) = (Vec::new(), 0);
    for end in ends {
        let mut encoder = GzEncoder::new(all, Compression::new(level));
        encoder.write_all(&text[start..end]).unwrap();
        all = encoder.finish().unwrap();
        start = end;
    }
    all
}

#[test]
fn gzipped_text_in_any_pieces_is_read_as_plain_text() {
    let scratch = Scratch::new("properties-gzip");
    let [coo, text, plain, pieces] =
        ["a.coo", "a.tns", "plain.coo", "pieces.coo"].map(|name| scratch.join(name));
    let inputs = (
        text_entries(any_dims(), 1..40),
        vec(any::<Index>(), 0..4),
        0..=9u32,
        vec(1..200usize, 1..4),
    );
    check(30, inputs, |(entries, cuts, level, lens)| {
        let (options, _) = write_text(entries, &coo, &text);
        convert(text.as_path().into(), &plain, &options, &()).unwrap();
        let compressed = gzip_members(&fs::read(&text).unwrap(), &cuts, level);
        let reader = PieceReader {
            bytes: io::Cursor::new(compressed),
            lens: lens.into_iter().cycle(),
            is_interrupted: false,
        };
        let input = Input::Reader {
            name: "a.tns".into(),
            reader: Box::new(reader),
        };
        convert(input, &pieces, &options, &()).unwrap();
        assert_eq!(fs::read(&plain).unwrap(), fs::read(&pieces).unwrap());
    });
}

/// Any text, with many of the characters that separate fields, lines and quotes.
fn names() -> impl Strategy<Value = String> {
    let special = select(
        &[
            '\t', '\n', '\r', '\\', 't', 'n', '"', ',', ' ', '\0', '\u{feff}',
        ][..],
    );
    vec(prop_oneof![any::<char>(), special], 0..8).prop_map(String::from_iter)
}

#[test]
fn names_files_keep_any_text() {
    let scratch = Scratch::new("properties-names");
    let path = scratch.join("data.mode2.tsv");
    check(100, vec(names(), 0..12), |names| {
        Names::from_names(&names).save(&path).unwrap();
        let beside = Names::load_beside(&scratch.join("data.train.coo"), 1).unwrap();
        for read in [Names::load(&path).unwrap(), beside.unwrap()] {
            let all: Vec<&str> = read.iter().map(|(_, name)| name).collect();
            assert_eq!(all, names);
            for name in &names {
                let first = names.iter().position(|other| other == name);
                assert_eq!(read.find(name), first.map(|row| row as u32));
            }
        }
    });
}

/// Values of an option within its range, in the form that the command line takes.
fn option_values(info: &'static OptionInfo) -> BoxedStrategy<(&'static str, String)> {
    let real = |low: f64, high: f64| {
        let any_magnitude = proptest::num::f64::POSITIVE | proptest::num::f64::NORMAL;
        let within = move |x: f64| x.clamp(low, high);
        prop_oneof![0.0..1.0f64, any_magnitude].prop_map(within)
    };
    let list = |texts: Vec<String>| texts.join(",");
    let values: BoxedStrategy<String> = match info.kind {
        OptionKind::Flag => any::<bool>().prop_map(|x| x.to_string()).boxed(),
        OptionKind::Integer(low, high) => (low..=high).prop_map(|x| x.to_string()).boxed(),
        OptionKind::Real(low, high) => real(low, high).prop_map(|x| x.to_string()).boxed(),
        OptionKind::Choice(words) => select(words).prop_map(String::from).boxed(),
        OptionKind::IntegerList(low, high) => vec((low..=high).prop_map(|x| x.to_string()), 1..=8)
            .prop_map(list)
            .boxed(),
        OptionKind::RealList(low, high) => vec(real(low, high).prop_map(|x| x.to_string()), 1..=8)
            .prop_map(list)
            .boxed(),
    };
    prop_oneof![3 => values, 1 => Just(info.default.to_string())]
        .prop_map(|value| (info.name, value))
        .boxed()
}

#[test]
fn options_survive_their_text() {
    let inputs: Vec<_> = OPTION_TABLE.iter().map(option_values).collect();
    check(100, inputs, |values| {
        let mut options = Options::default();
        for (name, value) in &values {
            options.set(name, value).unwrap();
        }
        options.validate().unwrap();
        assert_eq!(Options::from_text(&options.to_text()).unwrap(), options);
        let mut copy = Options::default();
        for (name, _) in &values {
            copy.set(name, &options.get(name).unwrap()).unwrap();
        }
        assert_eq!(copy, options);
    });
}
