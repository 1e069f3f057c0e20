//! Bins of numbers: the borders in the name of a bin contain its numbers.

use std::collections::HashSet;
use std::fs;

use proptest::collection::vec;
use proptest::prelude::*;
use s3cmtf::format::{CooFile, Names, OpenMode, TextOptions, convert};

use super::check;
use crate::common::Scratch;

/// A rule for bins, and decimal numbers to group by it.
#[derive(Debug, Clone)]
struct BinnedNumbers {
    rule: String,
    numbers: Vec<String>,
    /// Whether each number begins a bin.
    is_border: Vec<bool>,
}

/// Numbers in tenths of a width.
fn widths() -> impl Strategy<Value = BinnedNumbers> {
    let digits = prop_oneof![3 => 1..100i64, 1 => 1..1_000_000i64];
    let numbers = vec((-2000..2000i64, prop_oneof![Just(0), 0..10i64]), 1..40);
    (digits, -9..6i32, 0..1000i64, numbers).prop_map(|(digits, exponent, start, numbers)| {
        let number = |&(k, tenths): &(i64, i64)| {
            let tenths = (start * 1000 + k) * 10 + tenths;
            format!("{}e{}", tenths * digits, exponent - 1)
        };
        BinnedNumbers {
            rule: format!("width={digits}e{exponent}"),
            numbers: numbers.iter().map(number).collect(),
            is_border: numbers.iter().map(|(_, tenths)| *tenths == 0).collect(),
        }
    })
}

/// Quantiles and powers of numbers that are far apart, or differ only behind some zeros.
fn other_rules() -> impl Strategy<Value = BinnedNumbers> {
    let far = vec((1..500u64, -4..5i32), 1..40).prop_map(|numbers| {
        let numbers = numbers
            .into_iter()
            .map(|(digits, exponent)| format!("{digits}e{exponent}"));
        (0, numbers.collect::<Vec<_>>())
    });
    let near = (1..5u32, 1..13usize, vec(1..500u64, 1..40)).prop_map(|(whole, zeros, digits)| {
        let number = |digits: &u64| format!("{whole}.{}{digits}", "0".repeat(zeros));
        (zeros, digits.iter().map(number).collect())
    });
    let kind = (0..3usize, 1..10u32, 2..12u32);
    (prop_oneof![far, near], kind).prop_map(|((zeros, numbers), (kind, digit, count))| {
        let rule = match kind {
            0 => format!("quantiles={count}"),
            1 => format!("log={count}"),
            // Not too many bins.
            _ => format!("log=1.{}{digit}", "0".repeat(zeros + 1)),
        };
        BinnedNumbers {
            rule,
            is_border: vec![false; numbers.len()],
            numbers,
        }
    })
}

/// Returns the borders in the name of a bin, and whether each belongs to it.
fn parse_name(name: &str) -> ([f64; 2], [bool; 2]) {
    let inner = &name[1..name.len() - 1];
    let (low, high) = inner.split_once(", ").unwrap();
    let borders = [low, high].map(|text| text.parse().unwrap());
    (borders, [name.starts_with('['), name.ends_with(']')])
}

#[test]
fn named_borders_contain_the_numbers_of_their_bin() {
    let scratch = Scratch::new("properties-bins");
    let [text, coo] = ["a.csv", "a.coo"].map(|name| scratch.join(name));
    let inputs = prop_oneof![widths(), other_rules()];
    check(100, inputs, |binned| {
        let lines = binned
            .numbers
            .iter()
            .map(|number| format!("{number},1,2\n"));
        fs::write(
            &text,
            format!("x,item,value\n{}", lines.collect::<String>()),
        )
        .unwrap();
        let mut options = TextOptions::default();
        options.set("bin", &format!("x:{}", binned.rule)).unwrap();
        let report = match convert(text.as_path().into(), &coo, &options, &()) {
            Ok(report) => report,
            Err(error) => {
                assert!(error.to_string().contains("choose wider"), "{error}");
                return;
            }
        };
        let names = Names::load(&report.names[0].1).unwrap();
        let names: Vec<&str> = names.iter().map(|(_, name)| name).collect();
        assert_eq!(names.len() as u64, report.header.dims[0]);
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
        let file = CooFile::open(&coo, OpenMode::Private).unwrap();
        let rows = file.view().column(0).to_vec();
        for ((number, row), is_border) in binned.numbers.iter().zip(rows).zip(&binned.is_border) {
            let (x, name) = (number.parse::<f64>().unwrap(), names[row as usize]);
            let ([low, high], [has_low, has_high]) = parse_name(name);
            assert!(low < x || (has_low && low == x), "{number} in {name}");
            assert!(x < high || (has_high && high == x), "{number} in {name}");
            assert!(!is_border || low == x, "{number} begins {name}");
        }
        for pair in names.windows(2) {
            let [before, after] = [pair[0], pair[1]].map(parse_name);
            assert_eq!(before.0[1], after.0[0], "{pair:?}");
            assert!(before.1[1] != after.1[0], "{pair:?}");
        }
    });
}
