//! The checked-in header and list of symbols match the source. To generate them again:
//!
//! ```sh
//! S3CMTF_BLESS=1 cargo test --test c_abi header
//! ```

use std::fs;
use std::path::PathBuf;

use crate::common::workspace_root;

fn read(path: &str) -> String {
    fs::read_to_string(workspace_root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn source(name: &str) -> PathBuf {
    workspace_root().join(format!("src/ffi/{name}.rs"))
}

/// A section of the header: the declarations of some source files.
struct Group {
    title: String,
    sources: Vec<String>,
    introduction: String,
}

/// Returns the manual at the beginning of the header, and its sections.
fn manual() -> (String, Vec<Group>) {
    const BEGIN: &str = "\n@group ";
    let text = read("src/ffi/manual.txt");
    let mut parts = text.split(BEGIN);
    let manual = parts.next().unwrap().to_string();
    let groups = parts.map(|part| {
        let (first, introduction) = part.split_once('\n').unwrap();
        let (title, sources) = first.split_once(": ").unwrap();
        Group {
            title: title.to_string(),
            sources: sources.split(' ').map(String::from).collect(),
            introduction: introduction.trim().to_string(),
        }
    });
    (manual, groups.collect())
}

/// Source files of the C interface, in the order of the header.
fn sources() -> Vec<String> {
    manual().1.into_iter().flat_map(|g| g.sources).collect()
}

/// Returns text as a C comment.
fn comment(text: &str) -> String {
    let lines = text
        .lines()
        .map(|l| format!(" * {l}").trim_end().to_string());
    format!("/*\n{}\n */", lines.collect::<Vec<_>>().join("\n"))
}

fn header() -> String {
    let (manual, groups) = manual();
    let example = read("c_tests/example.c")
        .replace("/*", "//")
        .replace(" */", "");
    let example: Vec<String> = example.lines().map(|l| format!("    {l}")).collect();
    let contents: Vec<String> = groups.iter().map(|g| format!("  {}", g.title)).collect();
    let manual = manual
        .trim_end()
        .replace("@EXAMPLE@", &example.join("\n"))
        .replace("@CONTENTS@", &contents.join("\n"));
    let mut text = format!("{}\n\n{PROLOGUE}\n{}\n", comment(&manual), objects(&groups));
    for group in &groups {
        let title = format!("{}\n{}", group.title, "-".repeat(group.title.len()));
        let title = match group.introduction.as_str() {
            "" => title,
            introduction => format!("{title}\n\n{introduction}"),
        };
        text += &format!("\n{}\n\n{}\n", comment(&title), declarations(group));
    }
    text + EPILOGUE
}

const PROLOGUE: &str = "\
#ifndef S3CMTF_H
#define S3CMTF_H

#include <stdint.h>

#if defined(__GNUC__) || defined(__clang__)
#define S3CMTF_CHECK_STATUS __attribute__((warn_unused_result))
#else
#define S3CMTF_CHECK_STATUS
#endif

#ifdef __cplusplus
extern \"C\" {
#endif
";

const EPILOGUE: &str = "
#ifdef __cplusplus
}
#endif

#endif /* S3CMTF_H */
";

/// Declares the objects, each with the first sentence of its description.
fn objects(groups: &[Group]) -> String {
    const BEGIN: &str = "pub struct ";
    let renames = config().export.rename;
    let mut lines = Vec::new();
    for name in groups.iter().flat_map(|g| &g.sources) {
        let text = fs::read_to_string(source(name)).unwrap();
        let declarations: Vec<&str> = text.lines().collect();
        for (i, line) in declarations.iter().enumerate() {
            let handle = line.strip_prefix(BEGIN).and_then(|l| l.strip_suffix(" {"));
            if let Some(handle) = handle.filter(|h| h.ends_with("Handle")) {
                let c = &renames[handle];
                let above = declarations[..i].iter().rev();
                let mut words: Vec<&str> = above.map_while(|l| l.strip_prefix("/// ")).collect();
                words.reverse();
                let words = words.join(" ");
                let description = words.split_inclusive(". ").next().unwrap().trim_end();
                lines.push(format!("/** {description} */\ntypedef struct {c} {c};\n"));
            }
        }
    }
    lines.concat()
}

fn config() -> cbindgen::Config {
    cbindgen::Config::from_file(workspace_root().join("cbindgen.toml")).unwrap()
}

/// Returns the declarations of a section.
fn declarations(group: &Group) -> String {
    let mut config = config();
    let names = config.export.rename.keys();
    (config.export.exclude, config.export.include) =
        names.cloned().partition(|name| name.ends_with("Handle"));
    let mut builder = cbindgen::Builder::new().with_config(config);
    for name in &group.sources {
        builder = builder.with_src(source(name));
    }
    let mut text = Vec::new();
    builder.generate().unwrap().write(&mut text);
    let text = String::from_utf8(text).unwrap();
    wrap_functions(&shorten_comments(&add_struct_tags(text.trim())))
}

/// Writes comments without lines of their own for the beginning and the end, and constants without empty lines between them.
fn shorten_comments(text: &str) -> String {
    let mut short: Vec<String> = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let words = line.trim_start();
        let indent = &line[..line.len() - words.len()];
        if words == "/**" {
            let first = lines.next().unwrap().trim();
            short.push(format!("{indent}/** {}", first.strip_prefix("* ").unwrap()));
        } else if words == "*/" {
            *short.last_mut().unwrap() += " */";
        } else if let Some(rest) = words.strip_prefix("* ") {
            short.push(format!("{indent} *  {rest}"));
        } else if words == "*" {
            short.push(format!("{indent} *"));
        } else {
            let follows_constant = short.last().is_some_and(|l| l.starts_with("#define"));
            let precedes_constant = lines.clone().find(|l| !l.starts_with(['/', ' ']));
            let is_between =
                follows_constant && precedes_constant.is_some_and(|l| l.starts_with("#define"));
            if !(words.is_empty() && is_between) {
                short.push(line.to_string());
            }
        }
    }
    short.join("\n")
}

/// Fills the lines of function declarations, which the generator writes with one parameter per line.
fn wrap_functions(text: &str) -> String {
    const WIDTH: usize = 120;
    let mut wrapped = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if !line.starts_with("S3CMTF_CHECK_STATUS") {
            wrapped.push(line.to_string());
            continue;
        }
        let mut declaration = line.to_string();
        while !declaration.ends_with(';') {
            declaration += " ";
            declaration += lines.next().unwrap().trim();
        }
        let indent = "    ";
        let mut current = String::new();
        for word in declaration.split_inclusive(", ") {
            if current.len() + word.trim_end().len() > WIDTH {
                wrapped.push(current.trim_end().to_string());
                current = indent.to_string();
            }
            current += word;
        }
        wrapped.push(current);
    }
    wrapped.join("\n")
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

/// Returns the exported functions in the order of the header.
fn exported_functions() -> Vec<String> {
    let mut found = Vec::new();
    for name in sources() {
        let text = fs::read_to_string(source(&name)).unwrap();
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
fn every_function_has_a_symbol_version() {
    let map = read("packaging/s3cmtf.map");
    let mut versioned: Vec<&str> = map
        .lines()
        .filter_map(|line| line.trim().strip_suffix(';'))
        .filter(|name| name.starts_with("s3cmtf_"))
        .collect();
    versioned.sort();
    let symbols = read("include/s3cmtf.symbols");
    assert_eq!(versioned, symbols.lines().collect::<Vec<_>>());
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
            assert_eq!(sources().contains(&name), expected, "{name}");
        }
    }
}

#[test]
fn example_of_the_cpp_header_is_the_tested_program() {
    let as_comment = |line: &str| format!("//     {line}").trim_end().to_string() + "\n";
    let example: String = read("c_tests/example.cpp")
        .lines()
        .map(as_comment)
        .collect();
    assert!(read("include/s3cmtf.hpp").contains(&format!("// EXAMPLE\n//\n{example}//\n")));
}

#[test]
fn readme_examples_are_the_tested_programs() {
    let readme = read("README.md");
    for (language, program) in [("c", "example.c"), ("cpp", "short_example.cpp")] {
        let block = format!(
            "```{language}\n{}```\n",
            read(&format!("c_tests/{program}"))
        );
        assert!(readme.contains(&block), "{program}");
    }
}
