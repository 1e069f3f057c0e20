//! Compiles and runs the programs of the guides for C and C++ (docs/guide/c.md and cpp.md).
#![cfg(target_os = "linux")]

use std::fs;
use std::process::Command;

use crate::common::native::{LibraryFolder, compilers};
use crate::common::{ProgramRun, workspace_root};

/// Returns the blocks of a language on a page.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let text = fs::read_to_string(workspace_root().join("docs/guide").join(page)).unwrap();
    let begin = format!("\n```{language}\n");
    let blocks = text.split(&begin).skip(1);
    blocks
        .map(|b| b.split("```").next().unwrap().to_string())
        .collect()
}

/// Replaces numbers, which depend on threads and instruction sets, by `#`.
fn without_numbers(text: &str) -> String {
    let mut replaced = String::new();
    for c in text.chars() {
        if !c.is_ascii_digit() {
            replaced.push(c);
        } else if !replaced.ends_with('#') {
            replaced.push('#');
        }
    }
    replaced
}

/// Returns the numbers of the line that begins with `start`.
fn numbers(text: &str, start: &str) -> Vec<f64> {
    let line = text.lines().find_map(|l| l.strip_prefix(start)).unwrap();
    line.split([' ', ',', ':'])
        .filter_map(|word| word.parse().ok())
        .collect()
}

/// Compiles the blocks of a page as one program with the C or C++ compilers, runs it, and compares its output with that of the
/// page.
fn check_page(page: &str, language: &str, standard: &str) {
    let library = LibraryFolder::new(page);
    let source = library.path().join(format!("guide.{language}"));
    fs::write(&source, blocks(page, language).join("\n")).unwrap();
    let shown = blocks(page, "text").pop().unwrap();
    for (c, cxx) in compilers() {
        let compiler = if language == "c" { c } else { cxx };
        let program = library.compile(compiler, standard, source.to_str().unwrap());
        let mut command = Command::new(program);
        let output = command.current_dir(library.path()).output().unwrap();
        let run = ProgramRun::from(output).ok();
        assert_eq!(run.stderr, "", "{compiler}");
        assert_eq!(
            without_numbers(&run.stdout),
            without_numbers(&shown),
            "{compiler}: {}",
            run.stdout
        );
        // User 0 likes even films, user 1 odd ones.
        let stars = numbers(&run.stdout, "user 0 would give film 4 in month 1:");
        assert!((4.0..=5.0).contains(&stars[0]), "{}", run.stdout);
        let stars = numbers(&run.stdout, "film 4:");
        assert!(stars[0] > 4.0 && stars[2] < 3.0, "{}", run.stdout);
        let model = library.path().join("films.s3m");
        assert!(model.is_file());
        fs::remove_file(model).unwrap();
    }
}

#[test]
fn c_page() {
    check_page("c.md", "c", "c11");
}

#[test]
fn cpp_page() {
    check_page("cpp.md", "cpp", "c++17");
}
