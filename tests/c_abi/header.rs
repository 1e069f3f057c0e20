//! The checked-in header and list of symbols match the source. To generate them again:
//!
//! ```sh
//! S3CMTF_BLESS=1 cargo test --test c_abi header
//! ```

use std::fs;
use std::path::PathBuf;

use crate::common::workspace_root;

/// Source files of the C interface, in the order of the header.
const SOURCES: [&str; 25] = [
    "status",
    "error_handle",
    "error",
    "library",
    "cancel",
    "text",
    "element_type",
    "coo_handle",
    "coo",
    "coo_files",
    "coo_weights",
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
];

fn read(path: &str) -> String {
    fs::read_to_string(workspace_root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn source(name: &str) -> PathBuf {
    workspace_root().join(format!("src/ffi/{name}.rs"))
}

/// Returns the manual with its example as a C comment.
fn manual() -> String {
    let example = read("c_tests/example.c");
    assert!(
        !example.contains("*/"),
        "the example is printed inside a comment"
    );
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
    move_callbacks_into_extern_c(&add_struct_tags(&text)).replace("@MANUAL@", &manual())
}

/// Gives structs a tag besides their typedef, so that other headers can declare them.
fn add_struct_tags(text: &str) -> String {
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

/// Moves `extern "C" {` before the callback types, because pointers to C functions and to C++ functions are different types.
fn move_callbacks_into_extern_c(text: &str) -> String {
    const BEGIN: &str = "#ifdef __cplusplus\nextern \"C\" {\n#endif // __cplusplus\n\n";
    assert_eq!(text.matches(BEGIN).count(), 1);
    let text = text.replace(BEGIN, "");
    let callback = text.find("callback)(").unwrap();
    let comment = text[..callback].rfind("/**").unwrap();
    format!("{}{BEGIN}{}", &text[..comment], &text[comment..])
}

/// Returns the exported functions in the order of the header.
fn exported_functions() -> Vec<String> {
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

/// Asserts that a checked-in file equals the generated text, or writes it if S3CMTF_BLESS is set.
#[track_caller]
fn assert_up_to_date(path: &str, generated: &str) {
    if std::env::var_os("S3CMTF_BLESS").is_some() {
        fs::write(workspace_root().join(path), generated).unwrap();
    }
    assert!(
        read(path) == generated,
        "{path} does not match the source; S3CMTF_BLESS=1 cargo test --test c_abi header generates it again"
    );
}

#[test]
fn header_matches_the_source() {
    let generated = header();
    for name in exported_functions() {
        assert!(
            generated.contains(&format!("{name}(")),
            "{name} is not declared"
        );
    }
    assert_up_to_date("include/s3cmtf.h", &generated);
}

#[test]
fn symbol_list_matches_the_source() {
    let mut names = exported_functions();
    assert!(names.len() > 60);
    names.sort();
    names.dedup();
    assert_up_to_date("include/s3cmtf.symbols", &(names.join("\n") + "\n"));
}

#[test]
fn every_source_file_with_c_functions_is_in_the_header() {
    for entry in fs::read_dir(workspace_root().join("src/ffi")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "rs") {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let text = fs::read_to_string(&path).unwrap();
            let has = text.contains("no_mangle")
                || text.contains("pub const S3CMTF")
                || name.ends_with("_handle");
            // Functions of test builds are not in the header.
            let expected = has && name != "testing";
            assert_eq!(SOURCES.contains(&name.as_str()), expected, "{name}");
        }
    }
}

#[test]
fn readme_example_is_the_tested_program() {
    assert!(read("README.md").contains(&read("c_tests/example.c")));
}
