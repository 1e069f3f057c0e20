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

/// A table of `count` columns with a header.
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
        Case {
            name: "tns",
            arguments: "convert {}/in.tns {}/out.coo",
            write: |dir, n| {
                dir.file("in.tns", tns_text(n));
                vec![]
            },
            code: 0,
            sizes: [4_000, 4_000_000],
        },
        Case {
            name: "tns, numbers of many digits",
            arguments: "convert {}/in.tns {}/out.coo",
            write: |dir, n| {
                let line = format!("1 1 1 0.{}1\n", "0".repeat(n));
                dir.file("in.tns", line.repeat(60));
                vec![]
            },
            code: 0,
            sizes: [0, 450_000],
        },
        Case {
            name: "tns, comments and blanks",
            arguments: "convert {}/in.tns {}/out.coo",
            write: |dir, n| {
                let comments = format!("#{}\n\n \n", " ".repeat(100)).repeat(n);
                dir.file("in.tns", format!("{comments}1 1 1 1\n"));
                vec![]
            },
            code: 0,
            sizes: [0, 400_000],
        },
        Case {
            name: "gzip",
            arguments: "convert {}/in.tns.gz {}/out.coo",
            write: |dir, n| {
                dir.file("in.tns.gz", gzip(tns_text(n).as_bytes()));
                vec![]
            },
            code: 0,
            sizes: [0, 3_000_000],
        },
        Case {
            name: "gzip of many members",
            arguments: "convert {}/in.tns.gz {}/out.coo",
            write: |dir, n| {
                dir.file("in.tns.gz", gzip(b"1 2 3 4.5\n").repeat(n));
                vec![]
            },
            code: 0,
            sizes: [500, 300_000],
        },
        Case {
            name: "mtx",
            arguments: "convert {}/in.mtx {}/out.coo",
            write: |dir, n| {
                let mut text =
                    format!("%%MatrixMarket matrix coordinate real general\n997 89 {n}\n");
                for i in 0..n {
                    let _ = writeln!(text, "{} {} {}.5", i % 997 + 1, i % 89 + 1, i % 5);
                }
                dir.file("in.mtx", text);
                vec![]
            },
            code: 0,
            sizes: [0, 4_000_000],
        },
        Case {
            name: "csv of names",
            arguments: "convert {}/in.csv {}/out.coo",
            write: |dir, n| {
                lines(dir, "in.csv", n, |i, text| {
                    let _ = match i {
                        0 => write!(text, "user,film,stars"),
                        _ => write!(text, "user{i},film{},{}", i % 89, i % 5),
                    };
                });
                vec![]
            },
            code: 0,
            sizes: [2_000, 150_000],
        },
        Case {
            name: "csv with quotes",
            arguments: "convert {}/in.csv {}/out.coo",
            write: |dir, n| {
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
                vec![]
            },
            code: 0,
            sizes: [4_000, 2_000_000],
        },
        Case {
            name: "csv, one long quoted field",
            arguments: "convert {}/in.csv {}/out.coo",
            write: |dir, n| {
                dir.file(
                    "in.csv",
                    format!("user,film,stars\n\"{}\",b,1\n", "\"\"\nx".repeat(n)),
                );
                vec![]
            },
            code: 0,
            sizes: [10_000, 2_000_000],
        },
        Case {
            name: "csv, wide header",
            arguments: "convert {}/in.csv {}/out.coo --columns c0,c1 --value c2",
            write: |dir, n| {
                wide_table(dir, n);
                vec![]
            },
            code: 0,
            sizes: [8_000, 800_000],
        },
        Case {
            name: "csv, wide header, all columns are indices",
            arguments: "convert {}/in.csv {}/out.coo",
            write: |dir, n| {
                wide_table(dir, n);
                vec![]
            },
            code: 2,
            sizes: [0, 800_000],
        },
        Case {
            name: "csv, wide header, misspelt column",
            arguments: "convert {}/in.csv {}/out.coo --columns c0,d1",
            write: |dir, n| {
                wide_table(dir, n);
                vec![]
            },
            code: 2,
            sizes: [0, 200_000],
        },
        Case {
            name: "csv, wide header, many columns named",
            arguments: "convert {}/in.csv {}/out.coo",
            write: |dir, n| {
                wide_table(dir, 8 * n);
                let columns: Vec<String> = (0..n).map(|i| format!("c{}", 8 * i)).collect();
                vec![format!("--columns={}", columns.join(","))]
            },
            code: 2,
            sizes: [500, 8_000],
        },
        Case {
            name: "csv, attribute table of many numbers",
            arguments: "convert {}/in.csv {}/out.coo --rows-of 1:{}/t.coo --columns c0",
            write: |dir, n| {
                let tensor = dir.join("t.coo");
                if !tensor.exists() {
                    dir.file("t.tns", "1 1 1\n2 2 1\n");
                    let arguments = ["convert".into(), dir.join("t.tns"), tensor];
                    ProgramRun::from(program().args(arguments).output().unwrap()).ok();
                }
                wide_table(dir, n);
                let columns: Vec<String> = (1..n).map(|i| format!("c{i}")).collect();
                vec![format!("--numeric={}", columns.join(","))]
            },
            code: 0,
            sizes: [1_000, 9_000],
        },
        Case {
            name: "csv, times, bins and lists",
            arguments: "convert {}/in.csv {}/out.coo --time when:month --bin age:width=5 --split genres:|",
            write: |dir, n| {
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
                vec![]
            },
            code: 0,
            sizes: [0, 600_000],
        },
        Case {
            name: "csv, one long list",
            arguments: "convert {}/in.csv {}/out.coo --split genres:|",
            write: |dir, n| {
                let list: Vec<String> = (0..n).map(|i| format!("g{i}")).collect();
                dir.file(
                    "in.csv",
                    format!("user,genres,stars\na,{},1\n", list.join("|")),
                );
                vec![]
            },
            code: 0,
            sizes: [2_000, 200_000],
        },
        Case {
            name: "names files",
            arguments: "convert {}/in.csv {}/out.coo --names 1:{}/names.tsv --names 2:{}/names.csv",
            write: |dir, n| {
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
                vec![]
            },
            code: 0,
            sizes: [1_500, 150_000],
        },
        Case {
            name: "names file of one name",
            arguments: "convert {}/in.csv {}/out.coo --names 1:{}/names.tsv",
            write: |dir, n| {
                dir.file("in.csv", "user,film,stars\nn1,n2,3\n");
                lines(dir, "names.tsv", n, |i, text| {
                    let _ = write!(text, "{}\tsame", i + 1);
                });
                vec![]
            },
            code: 2,
            sizes: [0, 1_500_000],
        },
        Case {
            name: "list of rows by name",
            arguments: "recommend {}/m.s3m --mode 1 --for 2:1 --only {}/rows.txt --csv --names 1:{}/names.tsv",
            write: |dir, n| {
                longer_section(dir, "options", "");
                lines(dir, "names.tsv", n, |i, text| {
                    let _ = write!(text, "{}\tname {}", i + 1, i + 1);
                });
                lines(dir, "rows.txt", n, |i, text| {
                    let _ = write!(text, "name {}", i % 50 + 1);
                });
                vec![]
            },
            code: 0,
            sizes: [1_500, 150_000],
        },
        Case {
            name: "long unknown name",
            arguments: "recommend {}/m.s3m --mode 1 --for 2:1 --only {}/rows.txt --names 1:{}/names.tsv",
            write: |dir, n| {
                longer_section(dir, "options", "");
                dir.file(
                    "names.tsv",
                    format!("1\t{}\n2\t{}\n", "ab ".repeat(n), "c".repeat(n)),
                );
                dir.file("rows.txt", format!("{}\n", "ba ".repeat(n)));
                vec![]
            },
            code: 2,
            sizes: [200, 80_000],
        },
        Case {
            name: "options, many lines",
            arguments: "fit --tensor {}/none.coo --config {}/options.txt -o {}/out.s3m",
            write: |dir, n| {
                lines(dir, "options.txt", n, |i, text| {
                    let _ = write!(text, "rank={}\n# comment\n", i % 50 + 1);
                });
                vec![]
            },
            code: 2,
            sizes: [4_000, 1_500_000],
        },
        Case {
            name: "options, long unknown name",
            arguments: "fit --tensor {}/none.coo --config {}/options.txt -o {}/out.s3m",
            write: |dir, n| {
                dir.file("options.txt", format!("{}=1\n", "lambda-reg".repeat(n)));
                vec![]
            },
            code: 2,
            sizes: [1_000, 300_000],
        },
        Case {
            name: "options, long list",
            arguments: "fit --tensor {}/none.coo --config {}/options.txt -o {}/out.s3m",
            write: |dir, n| {
                dir.file("options.txt", format!("lambda_bias=1{}\n", ",1".repeat(n)));
                vec![]
            },
            code: 2,
            sizes: [0, 2_000_000],
        },
        Case {
            name: "batch line of many names",
            arguments: "batch {}/in.jsonl",
            write: |dir, n| {
                new_batch(dir);
                let fields: Vec<String> = (0..n).map(|i| format!("\"f{i}\":[{i},{{}}]")).collect();
                dir.file("in.jsonl", format!("{{{}}}\n", fields.join(",")));
                vec![]
            },
            code: 2,
            sizes: [2_000, 20_000],
        },
        Case {
            name: "batch line of repeated names",
            arguments: "batch {}/in.jsonl",
            write: |dir, n| {
                new_batch(dir);
                let objects = vec![r#"{"a":1,"a":2}"#; n].join(",");
                dir.file("in.jsonl", format!("{{\"matrices\":[{objects}]}}\n"));
                vec![]
            },
            code: 2,
            sizes: [4_000, 36_000],
        },
        Case {
            name: "batch line of many options",
            arguments: "batch {}/in.jsonl",
            write: |dir, n| {
                new_batch(dir);
                let options: Vec<String> = (0..n).map(|i| format!("\"o{i}\":1")).collect();
                let line = r#"{"job":"fit","tensor":"t","output":"o","options":{"#;
                dir.file("in.jsonl", format!("{line}{}}}}}\n", options.join(",")));
                vec![]
            },
            code: 2,
            sizes: [1_500, 40_000],
        },
        Case {
            name: "batch lines",
            arguments: "batch {}/in.jsonl",
            write: |dir, n| {
                new_batch(dir);
                lines(dir, "in.jsonl", n, |i, text| {
                    let folder = dir.path().display();
                    let _ = write!(
                        text,
                        r#"{{"job":"predict","model":"{folder}/m{i}","file":"{folder}/f","output":"{folder}/o{i}"}}"#
                    );
                });
                vec![]
            },
            code: 2,
            sizes: [30, 2_000],
        },
        Case {
            name: "batch lines that wait for a fit",
            arguments: "batch {}/in.jsonl --job-threads 1",
            write: |dir, n| {
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
                vec![]
            },
            code: 2,
            sizes: [0, 3_000],
        },
        Case {
            name: "batch journal",
            arguments: "batch {}/in.jsonl",
            write: |dir, n| {
                new_batch(dir);
                fs::create_dir(dir.join("in.batch")).unwrap();
                lines(dir, "in.batch/results.jsonl", n, |i, text| {
                    let _ = write!(text, r#"{{"id":"a","status":"done","job":"{}"}}"#, i / 2);
                });
                dir.file("in.jsonl", "");
                vec![]
            },
            code: 0,
            sizes: [800, 250_000],
        },
        Case {
            name: "model, text of shape",
            arguments: "info {}/m.s3m",
            write: |dir, n| {
                longer_section(dir, "meta", &"later=1\n".repeat(n));
                vec![]
            },
            code: 0,
            sizes: [0, 2_000_000],
        },
        Case {
            name: "model, record of the fit",
            arguments: "info {}/m.s3m",
            write: |dir, n| {
                longer_section(
                    dir,
                    "record",
                    &"note=1 warning something\nlater=1\n".repeat(n),
                );
                vec![]
            },
            code: 0,
            sizes: [600, 100_000],
        },
        Case {
            name: "model, options",
            arguments: "info {}/m.s3m",
            write: |dir, n| {
                longer_section(dir, "options", &"rank=2\nunknown=1\n".repeat(n));
                vec![]
            },
            code: 0,
            sizes: [1_000, 200_000],
        },
        Case {
            name: "model, many matrices",
            arguments: "info {}/m.s3m",
            write: |dir, n| {
                many_matrices(dir, n);
                vec![]
            },
            code: 0,
            sizes: [100, 600],
        },
        Case {
            name: "model, overlapping sections",
            arguments: "info {}/m.s3m",
            write: |dir, n| {
                overlapping_sections(dir, n);
                vec![]
            },
            code: 2,
            sizes: [400, 1_900],
        },
        Case {
            name: "coo",
            arguments: "info {}/in.coo",
            write: |dir, n| {
                dir.file("in.tns", tns_text(n));
                let arguments = ["convert".into(), dir.join("in.tns"), dir.join("in.coo")];
                ProgramRun::from(program().args(arguments).output().unwrap()).ok();
                vec![]
            },
            code: 0,
            sizes: [0, 2_000_000],
        },
    ]
}
