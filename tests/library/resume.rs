//! Checkpoints of other versions: resumed if missing fields have no effect, otherwise rejected with the names of the fields.

use std::path::Path;

use crate::common::Scratch;
use crate::common::planted::{paper_options, small_data};
use s3cmtf::format::OpenMode;
use s3cmtf::model;
use s3cmtf::options::Algorithm;
use s3cmtf::problem::Problem;
use s3cmtf::solver::{FitInput, fit};

/// Rewrites a model file with each text section changed by `edit`, and updates sizes and checksums.
fn rewrite(path: &Path, edit: &dyn Fn(&str, &str) -> String) {
    let old = std::fs::read(path).unwrap();
    let read_u64 = |at: usize| u64::from_le_bytes(old[at..at + 8].try_into().unwrap()) as usize;
    let count = u32::from_le_bytes(old[12..16].try_into().unwrap()) as usize;
    let mut table = old[64..64 + 64 * count].to_vec();
    let mut body: Vec<u8> = Vec::new();
    let start = 64 + table.len();
    for k in 0..count {
        let row = 64 + 64 * k;
        let name = String::from_utf8(old[row..row + 40].to_vec()).unwrap();
        let name = name.trim_end_matches('\0');
        let mut bytes = old[read_u64(row + 40)..][..read_u64(row + 48)].to_vec();
        if ["meta", "options", "state"].contains(&name) {
            bytes = edit(name, std::str::from_utf8(&bytes).unwrap()).into_bytes();
        }
        let row = 64 * k;
        body.resize(body.len().next_multiple_of(64), 0);
        let at = (start + body.len()) as u64;
        table[row + 40..row + 48].copy_from_slice(&at.to_le_bytes());
        table[row + 48..row + 56].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        table[row + 56..row + 60].copy_from_slice(&crc32fast::hash(&bytes).to_le_bytes());
        body.extend(bytes);
    }
    let mut head = old[..64].to_vec();
    head[16..24].copy_from_slice(&((start + body.len()) as u64).to_le_bytes());
    let mut crc = crc32fast::Hasher::new();
    crc.update(&head[..56]);
    crc.update(&table);
    head[56..60].copy_from_slice(&crc.finalize().to_le_bytes());
    std::fs::write(path, [head, table, body].concat()).unwrap();
}

/// Returns the lines `name=value` without those of these names.
fn without(text: &str, names: &[&str]) -> String {
    let is_kept = |l: &&str| !names.contains(&l.split('=').next().unwrap());
    text.lines()
        .filter(is_kept)
        .map(|l| format!("{l}\n"))
        .collect()
}

#[test]
fn checkpoints_of_other_versions_are_rejected() {
    let data = small_data();
    let dir = Scratch::new("resume-versions");
    let path = dir.join("c.s3m");
    let problem = Problem::builder(data.train.view()).build(&()).unwrap();
    for algorithm in [Algorithm::Blocked, Algorithm::Opt, Algorithm::Als] {
        let mut o = paper_options(&[3]);
        (o.algorithm, o.epochs, o.eval_every) = (algorithm, 4, 1);
        let part = |epochs: u64, input: &FitInput<'_>| {
            let mut o = o.clone();
            o.epochs = epochs;
            fit(&problem, &o, input, &mut (), &())
        };
        let checkpoint = || {
            let first = FitInput {
                checkpoint: Some(path.clone()),
                ..FitInput::default()
            };
            part(2, &first).unwrap();
        };
        let rest = FitInput {
            resume: Some(path.clone()),
            ..FitInput::default()
        };
        let assert_rejected = |words: &[&str]| {
            let error = part(4, &rest).err().unwrap().to_string();
            for word in words.iter().chain(&["c.s3m: cannot be resumed", "init"]) {
                assert!(error.contains(word), "{error:?} lacks {word:?}");
            }
        };
        // Fields and options that this version does not have.
        checkpoint();
        rewrite(&path, &|name, text| match name {
            "options" => format!("{text}mode_steps=1,0.5,1\n"),
            "state" => format!("{text}refit=3\n"),
            _ => text.to_string(),
        });
        assert_rejected(&["does not know: mode_steps, refit;"]);
        // Missing fields that affect the fit.
        checkpoint();
        rewrite(&path, &|name, text| match name {
            "meta" => without(text, &["library"]),
            "options" => without(text, &["schedule", "eta"]),
            "state" => without(text, &["attempts"]),
            _ => text.to_string(),
        });
        assert_rejected(&[
            "an s3cmtf that did not note its version",
            "lacks eta, schedule, attempts;",
        ]);
        // The file is still a valid model for a warm start.
        let start = model::load(&path, OpenMode::Private).unwrap();
        let from = FitInput {
            init: Some(&start),
            ..FitInput::default()
        };
        part(1, &from).unwrap();
        // A newer version with an unknown option.
        checkpoint();
        rewrite(&path, &|name, text| match name {
            "meta" => format!("library=7.1.0\n{}", without(text, &["library"])),
            "options" => format!("{text}shuffle=2\n"),
            _ => text.to_string(),
        });
        assert_rejected(&["by s3cmtf 7.1.0 ", "does not know: shuffle;"]);
        // The message names the version of the checkpoint.
        checkpoint();
        rewrite(&path, &|name, text| match name {
            "state" => without(text, &["data"]),
            _ => text.to_string(),
        });
        assert_rejected(&[
            concat!("by s3cmtf ", env!("CARGO_PKG_VERSION")),
            "lacks data;",
        ]);
        // A value that cannot be parsed.
        checkpoint();
        rewrite(&path, &|name, text| match name {
            "state" => text.replace("epoch=2\n", "epoch=two\n"),
            _ => text.to_string(),
        });
        let error = part(4, &rest).err().unwrap().to_string();
        assert!(error.contains("state cannot be read"), "{error}");
    }
}
