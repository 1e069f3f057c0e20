//! The checked-in header and list of symbols are what the code says. To make them anew:
//!
//! ```sh
//! S3CMTF_BLESS=1 cargo test --test c_abi header
//! ```

use std::fs;
use std::path::PathBuf;

use crate::common::workspace_root;

/// In the order in which a reader wants them.
const SOURCES: [&str; 25] = [
    "status",
    "error",
    "library",
    "cancel",
    "text",
    "coo",
    "coo_files",
    "coo_weights",
    "generator",
    "options",
    "problem",
    "progress",
    "fit",
    "tune",
    "model",
    "model_numbers",
    "predict",
    "spread",
    "fold_in",
    "recommend",
    "concepts",
    "clusters",
    "names",
    "report",
    "batch",
];

fn read(path: &str) -> String {
    fs::read_to_string(workspace_root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn source(name: &str) -> PathBuf {
    workspace_root().join(format!("src/ffi/{name}.rs"))
}

/// A comment of C around the manual and its example.
fn manual() -> String {
    let example = read("c_tests/example.c");
    assert!(!example.contains("*/"), "it stands in a comment");
    let indented: Vec<String> = example.lines().map(|l| format!("    {l}")).collect();
    let text = read("src/ffi/manual.txt").replace("@EXAMPLE@", &indented.join("\n"));
    let lines = text
        .lines()
        .map(|l| format!(" * {l}").trim_end().to_string());
    format!("/*\n{}\n */", lines.collect::<Vec<_>>().join("\n"))
}

fn header() -> String {
    let config = cbindgen::Config::from_file(workspace_root().join("cbindgen.toml")).unwrap();
    let mut builder = cbindgen::Builder::new().with_config(config);
    for name in SOURCES {
        builder = builder.with_src(source(name));
    }
    let mut text = Vec::new();
    builder.generate().unwrap().write(&mut text);
    let text = String::from_utf8(text).unwrap();
    callback_in_c(&structs_named(&text)).replace("@MANUAL@", &manual())
}

/// Structs have a name too, so that others may declare them.
fn structs_named(text: &str) -> String {
    const BEGIN: &str = "typedef struct {";
    let mut pieces = text.split(BEGIN);
    let mut named = pieces.next().unwrap().to_string();
    for piece in pieces {
        let end = piece.find("\n} ").unwrap() + 3;
        let name = piece[end..].split(';').next().unwrap();
        named += &format!("typedef struct {name} {{{piece}");
    }
    named
}

/// Moves the beginning of the part for C before the types of callbacks: a pointer to a function of C is
/// another type than one of C++.
fn callback_in_c(text: &str) -> String {
    const BEGIN: &str = "#ifdef __cplusplus\nextern \"C\" {\n#endif // __cplusplus\n\n";
    assert_eq!(text.matches(BEGIN).count(), 1);
    let text = text.replace(BEGIN, "");
    let callback = text.find("callback)(").unwrap();
    let comment = text[..callback].rfind("/**").unwrap();
    format!("{}{BEGIN}{}", &text[..comment], &text[comment..])
}

/// The exported functions, in the order of the header.
fn functions() -> Vec<String> {
    let mut found = Vec::new();
    for name in SOURCES {
        let text = fs::read_to_string(source(name)).unwrap();
        for (at, marker) in text.match_indices("extern \"C\" fn s3cmtf_") {
            let from = at + marker.len() - "s3cmtf_".len();
            found.push(text[from..].split('(').next().unwrap().to_string());
        }
    }
    found
}

#[track_caller]
fn same(path: &str, made: &str) {
    if std::env::var_os("S3CMTF_BLESS").is_some() {
        fs::write(workspace_root().join(path), made).unwrap();
    }
    assert!(
        read(path) == made,
        "{path} is not what the code says; S3CMTF_BLESS=1 cargo test --test c_abi header makes it anew"
    );
}

#[test]
fn header_matches_the_source() {
    let made = header();
    for name in functions() {
        assert!(made.contains(&format!("{name}(")), "{name} is not declared");
    }
    same("include/s3cmtf.h", &made);
}

#[test]
fn symbol_list_matches_the_source() {
    let mut names = functions();
    assert!(names.len() > 60);
    names.sort();
    names.dedup();
    same("include/s3cmtf.symbols", &(names.join("\n") + "\n"));
}

#[test]
fn every_source_file_with_c_functions_is_in_the_header() {
    for entry in fs::read_dir(workspace_root().join("src/ffi")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "rs") {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let text = fs::read_to_string(&path).unwrap();
            let has = text.contains("no_mangle") || text.contains("pub const S3CMTF");
            // What only builds for tests have is nobody's business.
            let shown = has && name != "testing";
            assert_eq!(SOURCES.contains(&name.as_str()), shown, "{name}");
        }
    }
}

#[test]
fn readme_example_is_the_tested_program() {
    assert!(read("README.md").contains(&read("c_tests/example.c")));
}
