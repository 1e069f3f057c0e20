//! Commands that parse a file, and inputs that are made to cost much.

use std::fmt::Write as _;
use std::fs;

use crate::common::forged_model::ForgedModel;
use crate::common::{ProgramRun, Scratch, gzip};
use crate::runner::program;

use super::Case;

/// Writes a file of `count` lines.
fn lines(dir: &Scratch, name: &str, count: usize, line: impl Fn(usize, &mut String)) {
    let mut text = String::new();
    for i in 0..count {
        line(i, &mut text);
        text.push('\n');
    }
    dir.file(name, text);
}

fn tns_text(count: usize) -> String {
    let mut text = String::new();
    for i in 0..count {
        let _ = writeln!(
            text,
            "{} {} {} {}.25",
            i % 997 + 1,
            i % 89 + 1,
            i % 7 + 1,
            i % 5
        );
    }
    text
}

/// Writes a CSV file of `count` columns: a header line and one line of values.
fn wide_table(dir: &Scratch, count: usize) {
    let header: Vec<String> = (0..count).map(|i| format!("c{i}")).collect();
    let row = vec!["1"; count].join(",");
    dir.file("in.csv", format!("{}\n{row}\n", header.join(",")));
}

/// The model that all cases of models change.
fn small_model(dir: &Scratch) -> ForgedModel {
    let path = dir.join("small.s3m");
    if !path.exists() {
        dir.file("small.tns", tns_text(200));
        dir.file("genres.tns", "1 1 1\n2 1 1\n3 2 1\n");
        let words = "fit --tensor {}/small.tns --matrix 2:{}/genres.tns --rank 2 --epochs 1 -o {}/small.s3m";
        let folder = dir.path().display().to_string();
        let arguments = words.split(' ').map(|word| word.replace("{}", &folder));
        ProgramRun::from(program().args(arguments).output().unwrap()).ok();
    }
    ForgedModel::read(&path)
}

/// Writes a model with text appended to a section.
fn longer_section(dir: &Scratch, section: &str, text: &str) {
    let mut model = small_model(dir);
    model.section_mut(section).extend(text.as_bytes());
    model.write(&dir.join("m.s3m"));
}

/// Writes a model with copies of its coupled matrix.
fn many_matrices(dir: &Scratch, count: usize) {
    let mut model = small_model(dir);
    let of_first: Vec<_> = model
        .sections
        .iter()
        .filter_map(|(name, bytes)| {
            let rest = name.strip_prefix("matrix0")?;
            Some((rest.to_string(), bytes.clone()))
        })
        .collect();
    let meta = String::from_utf8(model.section_mut("meta").clone()).unwrap();
    let mut text = meta.replace("matrices=1\n", &format!("matrices={count}\n"));
    for m in 1..count {
        for line in meta.lines().filter(|line| line.starts_with("matrix0")) {
            let _ = writeln!(
                text,
                "{}",
                line.replacen("matrix0", &format!("matrix{m}"), 1)
            );
        }
        let copies = of_first.iter();
        let copies = copies.map(|(rest, bytes)| (format!("matrix{m}{rest}"), bytes.clone()));
        model.sections.extend(copies);
    }
    *model.section_mut("meta") = text.into_bytes();
    model.write(&dir.join("m.s3m"));
}

/// Writes a model with sections that all have the same bytes, as only a forger would: every one is the whole of the file.
fn overlapping_sections(dir: &Scratch, count: usize) {
    let mut model = small_model(dir);
    let contents = vec![7u8; 64 * count];
    model.sections.push(("all0".into(), contents.clone()));
    let first = model.sections.len();
    model
        .sections
        .extend((1..count).map(|k| (format!("all{k}"), Vec::new())));
    let mut bytes = model.to_bytes();
    // Rows of the table: the name in 40 bytes, then offset, length and checksum.
    let row = |k: usize| 64 + 64 * k + 40..64 + 64 * k + 60;
    let whole = bytes[row(first - 1)].to_vec();
    for k in first..first + count - 1 {
        bytes[row(k)].copy_from_slice(&whole);
    }
    let table = bytes[64..64 + 64 * (first + count - 1)].to_vec();
    let mut crc = crc32fast::Hasher::new();
    crc.update(&bytes[..56]);
    crc.update(&table);
    bytes[56..60].copy_from_slice(&crc.finalize().to_le_bytes());
    dir.file("m.s3m", bytes);
}

/// Removes the results of an earlier run, which the next would continue.
fn new_batch(dir: &Scratch) {
    let _ = fs::remove_dir_all(dir.join("in.batch"));
}

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("tns", "convert {}/in.tns {}/out.coo", [4_000, 4_000_000], |dir, n| {
                dir.file("in.tns", tns_text(n));
            }),
        Case::new("tns, numbers of many digits", "convert {}/in.tns {}/out.coo", [0, 450_000], |dir, n| {
                let line = format!("1 1 1 0.{}1\n", "0".repeat(n));
                dir.file("in.tns", line.repeat(60));
            }),
        Case::new("tns, comments and blanks", "convert {}/in.tns {}/out.coo", [0, 400_000], |dir, n| {
                let comments = format!("#{}\n\n \n", " ".repeat(100)).repeat(n);
                dir.file("in.tns", format!("{comments}1 1 1 1\n"));
            }),
        Case::new("gzip", "convert {}/in.tns.gz {}/out.coo", [0, 3_000_000], |dir, n| {
                dir.file("in.tns.gz", gzip(tns_text(n).as_bytes()));
            }),
        Case::new("gzip of many members", "convert {}/in.tns.gz {}/out.coo", [500, 300_000], |dir, n| {
                dir.file("in.tns.gz", gzip(b"1 2 3 4.5\n").repeat(n));
            }),
        Case::new("mtx", "convert {}/in.mtx {}/out.coo", [0, 4_000_000], |dir, n| {
                let mut text =
                    format!("%%MatrixMarket matrix coordinate real general\n997 89 {n}\n");
                for i in 0..n {
                    let _ = writeln!(text, "{} {} {}.5", i % 997 + 1, i % 89 + 1, i % 5);
                }
                dir.file("in.mtx", text);
            }),
        Case::new("csv of names", "convert {}/in.csv {}/out.coo", [2_000, 150_000], |dir, n| {
                lines(dir, "in.csv", n, |i, text| {
                    let _ = match i {
                        0 => write!(text, "user,film,stars"),
                        _ => write!(text, "user{i},film{},{}", i % 89, i % 5),
                    };
                });
            }),
        Case::new("csv with quotes", "convert {}/in.csv {}/out.coo", [4_000, 2_000_000], |dir, n| {
                lines(dir, "in.csv", n, |i, text| {
                    let _ = match i {
                        0 => write!(text, "\"user\",\"film, or series\",stars"),
                        _ => write!(
                            text,
                            "\"a \"\"{}\"\" b\",\"f{}\n\",{}",
                            i % 500,
                            i % 89,
                            i % 5
                        ),
                    };
                });
            }),
        Case::new("csv, one long quoted field", "convert {}/in.csv {}/out.coo", [10_000, 2_000_000], |dir, n| {
                dir.file(
                    "in.csv",
                    format!("user,film,stars\n\"{}\",b,1\n", "\"\"\nx".repeat(n)),
                );
            }),
        Case::new("csv, wide header", "convert {}/in.csv {}/out.coo --columns c0,c1 --value c2", [8_000, 800_000], |dir, n| {
                wide_table(dir, n);
            }),
        Case::new("csv, wide header, all columns are indices", "convert {}/in.csv {}/out.coo", [0, 800_000], |dir, n| {
                wide_table(dir, n);
            }).rejected(),
        Case::new("csv, wide header, misspelt column", "convert {}/in.csv {}/out.coo --columns c0,d1", [0, 200_000], |dir, n| {
                wide_table(dir, n);
            }).rejected(),
        Case::new("csv, wide header, many columns named", "convert {}/in.csv {}/out.coo", [500, 8_000], |dir, n| {
                wide_table(dir, 8 * n);
            }).rejected().with_list("--columns", |n| (0..n).map(|i| format!("c{}", 8 * i)).collect()),
        Case::new("csv, attribute table of many numbers", "convert {}/in.csv {}/out.coo --rows-of 1:{}/t.coo --columns c0", [1_000, 9_000], |dir, n| {
                let tensor = dir.join("t.coo");
                if !tensor.exists() {
                    dir.file("t.tns", "1 1 1\n2 2 1\n");
                    let arguments = ["convert".into(), dir.join("t.tns"), tensor];
                    ProgramRun::from(program().args(arguments).output().unwrap()).ok();
                }
                wide_table(dir, n);
            }).with_list("--numeric", |n| (1..n).map(|i| format!("c{i}")).collect()),
        Case::new("csv, times, bins and lists", "convert {}/in.csv {}/out.coo --time when:month --bin age:width=5 --split genres:|", [0, 600_000], |dir, n| {
                lines(dir, "in.csv", n, |i, text| {
                    let _ = match i {
                        0 => write!(text, "when,age,genres,stars"),
                        _ => write!(
                            text,
                            "{},{},a{}|b,{}",
                            800_000_000 + 9_999 * i,
                            i % 90,
                            i % 300,
                            i % 5
                        ),
                    };
                });
            }),
        Case::new("csv, one long list", "convert {}/in.csv {}/out.coo --split genres:|", [2_000, 200_000], |dir, n| {
                let list: Vec<String> = (0..n).map(|i| format!("g{i}")).collect();
                dir.file(
                    "in.csv",
                    format!("user,genres,stars\na,{},1\n", list.join("|")),
                );
            }),
        Case::new("names files", "convert {}/in.csv {}/out.coo --names 1:{}/names.tsv --names 2:{}/names.csv", [1_500, 150_000], |dir, n| {
                dir.file("in.csv", "user,film,stars\nn1,n2,3\n");
                lines(dir, "names.tsv", n, |i, text| {
                    let _ = match i {
                        0 => write!(text, "index\tname"),
                        _ => write!(text, "{i}\tn{i}"),
                    };
                });
                lines(dir, "names.csv", n, |i, text| {
                    let _ = match i {
                        0 => write!(text, "index,name"),
                        _ => write!(text, "{i},\"n{i}\""),
                    };
                });
            }),
        Case::new("names file of one name", "convert {}/in.csv {}/out.coo --names 1:{}/names.tsv", [0, 1_500_000], |dir, n| {
                dir.file("in.csv", "user,film,stars\nn1,n2,3\n");
                lines(dir, "names.tsv", n, |i, text| {
                    let _ = write!(text, "{}\tsame", i + 1);
                });
            }).rejected(),
        Case::new("list of rows by name", "recommend {}/m.s3m --mode 1 --for 2:1 --only {}/rows.txt --csv --names 1:{}/names.tsv", [1_500, 150_000], |dir, n| {
                longer_section(dir, "options", "");
                lines(dir, "names.tsv", n, |i, text| {
                    let _ = write!(text, "{}\tname {}", i + 1, i + 1);
                });
                lines(dir, "rows.txt", n, |i, text| {
                    let _ = write!(text, "name {}", i % 50 + 1);
                });
            }),
        Case::new("long unknown name", "recommend {}/m.s3m --mode 1 --for 2:1 --only {}/rows.txt --names 1:{}/names.tsv", [200, 80_000], |dir, n| {
                longer_section(dir, "options", "");
                dir.file(
                    "names.tsv",
                    format!("1\t{}\n2\t{}\n", "ab ".repeat(n), "c".repeat(n)),
                );
                dir.file("rows.txt", format!("{}\n", "ba ".repeat(n)));
            }).rejected(),
        Case::new("options, many lines", "fit --tensor {}/none.coo --config {}/options.txt -o {}/out.s3m", [4_000, 1_500_000], |dir, n| {
                lines(dir, "options.txt", n, |i, text| {
                    let _ = write!(text, "rank={}\n# comment\n", i % 50 + 1);
                });
            }).rejected(),
        Case::new("options, long unknown name", "fit --tensor {}/none.coo --config {}/options.txt -o {}/out.s3m", [1_000, 300_000], |dir, n| {
                dir.file("options.txt", format!("{}=1\n", "lambda-reg".repeat(n)));
            }).rejected(),
        Case::new("options, long list", "fit --tensor {}/none.coo --config {}/options.txt -o {}/out.s3m", [0, 2_000_000], |dir, n| {
                dir.file("options.txt", format!("lambda_bias=1{}\n", ",1".repeat(n)));
            }).rejected(),
        Case::new("batch line of many names", "batch {}/in.jsonl", [2_000, 20_000], |dir, n| {
                new_batch(dir);
                let fields: Vec<String> = (0..n).map(|i| format!("\"f{i}\":[{i},{{}}]")).collect();
                dir.file("in.jsonl", format!("{{{}}}\n", fields.join(",")));
            }).rejected(),
        Case::new("batch line of repeated names", "batch {}/in.jsonl", [4_000, 36_000], |dir, n| {
                new_batch(dir);
                let objects = vec![r#"{"a":1,"a":2}"#; n].join(",");
                dir.file("in.jsonl", format!("{{\"matrices\":[{objects}]}}\n"));
            }).rejected(),
        Case::new("batch line of many options", "batch {}/in.jsonl", [1_500, 40_000], |dir, n| {
                new_batch(dir);
                let options: Vec<String> = (0..n).map(|i| format!("\"o{i}\":1")).collect();
                let line = r#"{"job":"fit","tensor":"t","output":"o","options":{"#;
                dir.file("in.jsonl", format!("{line}{}}}}}\n", options.join(",")));
            }).rejected(),
        Case::new("batch lines", "batch {}/in.jsonl", [30, 2_000], |dir, n| {
                new_batch(dir);
                lines(dir, "in.jsonl", n, |i, text| {
                    let folder = dir.path().display();
                    let _ = write!(
                        text,
                        r#"{{"job":"predict","model":"{folder}/m{i}","file":"{folder}/f","output":"{folder}/o{i}"}}"#
                    );
                });
            }).rejected(),
        Case::new("batch lines that wait for a fit", "batch {}/in.jsonl --job-threads 1", [0, 3_000], |dir, n| {
                new_batch(dir);
                let _ = fs::remove_file(dir.join("m.s3m"));
                dir.file("small.tns", tns_text(200));
                let folder = dir.path().display();
                lines(dir, "in.jsonl", n, |i, text| {
                    let _ = match i {
                        0 => write!(
                            text,
                            r#"{{"job":"fit","tensor":"{folder}/small.tns","output":"{folder}/m.s3m","options":{{"rank":8}}}}"#
                        ),
                        _ => write!(
                            text,
                            r#"{{"job":"predict","model":"{folder}/m.s3m","file":"{folder}/none","output":"{folder}/o{i}"}}"#
                        ),
                    };
                });
            }).rejected(),
        Case::new("batch journal", "batch {}/in.jsonl", [800, 250_000], |dir, n| {
                new_batch(dir);
                fs::create_dir(dir.join("in.batch")).unwrap();
                lines(dir, "in.batch/results.jsonl", n, |i, text| {
                    let _ = write!(text, r#"{{"id":"a","status":"done","job":"{}"}}"#, i / 2);
                });
                dir.file("in.jsonl", "");
            }),
        Case::new("model, text of shape", "info {}/m.s3m", [0, 2_000_000], |dir, n| {
                longer_section(dir, "meta", &"later=1\n".repeat(n));
            }),
        Case::new("model, record of the fit", "info {}/m.s3m", [600, 100_000], |dir, n| {
                longer_section(
                    dir,
                    "record",
                    &"note=1 warning something\nlater=1\n".repeat(n),
                );
            }),
        Case::new("model, options", "info {}/m.s3m", [1_000, 200_000], |dir, n| {
                longer_section(dir, "options", &"rank=2\nunknown=1\n".repeat(n));
            }),
        Case::new("model, many matrices", "info {}/m.s3m", [100, 600], |dir, n| {
                many_matrices(dir, n);
            }),
        Case::new("model, overlapping sections", "info {}/m.s3m", [400, 1_900], |dir, n| {
                overlapping_sections(dir, n);
            }).rejected(),
        Case::new("coo", "info {}/in.coo", [0, 2_000_000], |dir, n| {
                dir.file("in.tns", tns_text(n));
                let arguments = ["convert".into(), dir.join("in.tns"), dir.join("in.coo")];
                ProgramRun::from(program().args(arguments).output().unwrap()).ok();
            }),
    ]
}
