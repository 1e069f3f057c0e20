//! Memory: text of any length in little of it, and problems by the rows that occur. One test, in a
//! process of its own, since the peak of a process never falls.
#![cfg(target_os = "linux")]

mod common;

use std::fs;
use std::io::{self, Read};

use common::Scratch;
use s3cmtf::format::{CooFile, Input, OpenMode, TextOptions, convert};
use s3cmtf::generate::{GenerateOptions, generate};
use s3cmtf::problem::{EntryChunk, Problem};

/// The most memory this process ever had, in bytes.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmHWM:")).unwrap();
    line.split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<u64>()
        .unwrap()
        * 1024
}

/// Endless lines, cut at a length.
struct Lines {
    left: u64,
    next: u32,
    line: Vec<u8>,
}

impl Read for Lines {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Ok(0);
        }
        if self.line.is_empty() {
            for _ in 0..1000 {
                self.next += 1;
                let i = self.next;
                self.line.extend(
                    format!(
                        "{} {} {} {}.5\n",
                        i % 99_991 + 1,
                        i % 1009 + 1,
                        i % 31 + 1,
                        i % 5
                    )
                    .bytes(),
                );
            }
            self.left -= 1;
        }
        let n = buf.len().min(self.line.len());
        buf[..n].copy_from_slice(&self.line[..n]);
        self.line.drain(..n);
        Ok(n)
    }
}

#[test]
fn memory_of_conversion_and_problems_is_bounded() {
    let dir = Scratch::new("memory");
    let path = dir.join("t.coo");
    let lines = |left| Input::Reader {
        name: "lines".into(),
        reader: Box::new(Lines {
            left,
            next: 0,
            line: Vec::new(),
        }),
    };
    convert(lines(500), &path, &TextOptions::default(), &()).unwrap();
    let after_short = peak();
    let long = convert(lines(5000), &path, &TextOptions::default(), &()).unwrap();
    assert_eq!(long.header.count, 5_000_000);
    let grown = peak() - after_short;
    assert!(
        grown < 8 << 20,
        "ten times the text took {grown} bytes more"
    );

    // Modes of 100M rows with 1M entries: under 1 GiB from the file to the solver's copy.
    let options = {
        let mut o = GenerateOptions::new(&[100_000_000; 3], 1_000_000);
        o.write_truth = false;
        o
    };
    let made = generate(dir.path(), &options, &()).unwrap();
    let file = CooFile::open(&made.train.0, OpenMode::Mapped).unwrap();
    let problem = Problem::builder(file.view()).build(&()).unwrap();
    let mut all = EntryChunk::default();
    problem
        .tensor()
        .read_chunk(&problem.row_maps(), 0..1_000_000, &mut all)
        .unwrap();
    assert!(problem.modes().iter().all(|m| m.rows().len() > 900_000));
    let peak = peak();
    println!(
        "peak memory with dims of 100M and 1M entries: {} MiB",
        peak >> 20
    );
    assert!(peak < 1 << 30, "{peak}");
}
