//! The size of the structure: how much a reader has to know for one thing. The bounds are what was reached; they only fall.

use std::collections::{BTreeSet, HashMap};

use super::layers::{imports, rust_sources};

/// Largest number of files and lines of the library, without its kernels, that the fit imports, with every file that continues an
/// `impl` of a type in use.
const FIT_CLOSURE: (usize, usize) = (168, 29904);

/// Largest number of files of the kernels.
const MAX_KERNEL_FILES: usize = 102;

/// Largest number of files of fewer than 70 lines, `mod.rs` apart.
const MAX_SMALL_FILES: usize = 45;

/// Largest number of names that more than one type has.
const MAX_SHARED_NAMES: usize = 28;

/// Largest number of types whose names say nothing.
const MAX_EMPTY_NAMES: usize = 3;

/// Names of types that say nothing about them.
const EMPTY_NAMES: [&str; 6] = ["Context", "Info", "Inputs", "Job", "Request", "Settings"];

/// Returns the sources of the library and of its kernels.
fn library_sources() -> Vec<(String, String)> {
    [rust_sources("src"), rust_sources("kernel/src")].concat()
}

/// Returns the code of a file without comments and unit tests.
fn code_of(text: &str) -> impl Iterator<Item = &str> {
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
    code.lines().filter(|l| !l.trim_start().starts_with("//"))
}

/// Returns the name at the start of a text.
fn leading_name(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    &text[..end.unwrap_or(text.len())]
}

/// Returns the names of the types that a file defines.
fn types(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for line in code_of(text) {
        let line = line.trim_start_matches("pub(super) ");
        let line = line.trim_start_matches("pub(crate) ");
        let line = line.trim_start_matches("pub ");
        for keyword in ["struct ", "enum ", "trait "] {
            found.extend(line.strip_prefix(keyword).map(leading_name));
        }
    }
    found
}

/// Returns the names of the types whose `impl` blocks without a trait a file has.
fn implemented(text: &str) -> Vec<&str> {
    let blocks = code_of(text).filter(|l| l.starts_with("impl") && !l.contains(" for "));
    blocks
        .map(|line| {
            let mut rest = &line["impl".len()..];
            if rest.starts_with('<') {
                let mut depth = 0;
                let end = rest.find(|c| {
                    depth += i32::from(c == '<') - i32::from(c == '>');
                    depth == 0
                });
                rest = &rest[end.map_or(0, |end| end + 1)..];
            }
            leading_name(rest.trim_start())
        })
        .collect()
}

/// Asserts that a number is the bound, or below it and the bound is to follow.
fn assert_bound(what: &str, found: usize, bound: usize, names: &str) {
    assert!(found <= bound, "{what}: {found}, at most {bound}: {names}");
    if found < bound {
        println!("{what}: {found}; the bound of {bound} can fall");
    }
}

/// The files behind a fit: those it imports, directly or not, and those that continue an `impl` of a type that these define.
#[test]
fn a_fit_stands_on_few_files() {
    let sources = rust_sources("src");
    let imports = imports(&sources, true);
    let start = sources.iter().position(|(name, _)| name == "solver/fit.rs");
    let mut closure = BTreeSet::from([start.expect("solver/fit.rs")]);
    loop {
        let before = closure.len();
        let direct: Vec<usize> = closure.iter().flat_map(|&f| imports[f].clone()).collect();
        closure.extend(direct);
        let mut defined: HashMap<&str, Vec<usize>> = HashMap::new();
        for &f in &closure {
            for name in types(&sources[f].1) {
                defined.entry(name).or_default().push(f);
            }
        }
        for f in 0..sources.len() {
            let continues = implemented(&sources[f].1).into_iter().any(|name| {
                let files = defined.get(name);
                files.is_some_and(|files| files.iter().any(|file| imports[f].contains(file)))
            });
            if continues {
                closure.insert(f);
            }
        }
        if closure.len() == before {
            break;
        }
    }
    let lines = closure.iter().map(|&f| sources[f].1.lines().count()).sum();
    assert!(
        closure.len() > 50,
        "{} files: imports are no longer found",
        closure.len()
    );
    assert_bound("files behind a fit", closure.len(), FIT_CLOSURE.0, "");
    assert_bound("lines behind a fit", lines, FIT_CLOSURE.1, "");
    let kernels = rust_sources("kernel/src").len();
    assert_bound("files of the kernels", kernels, MAX_KERNEL_FILES, "");
}

#[test]
fn files_are_not_small() {
    let sources = library_sources();
    let small = sources.iter().filter(|(name, text)| {
        text.lines().count() < 70 && !name.ends_with("mod.rs") && name != "lib.rs"
    });
    let small: Vec<&str> = small.map(|(name, _)| name.as_str()).collect();
    assert_bound(
        "small files",
        small.len(),
        MAX_SMALL_FILES,
        &small.join(", "),
    );
}

#[test]
fn a_name_has_one_meaning() {
    let mut places: HashMap<String, usize> = HashMap::new();
    for (_, text) in library_sources() {
        for name in types(&text) {
            *places.entry(name.to_string()).or_default() += 1;
        }
    }
    assert!(
        places.len() > 300,
        "{} types: they are no longer found",
        places.len()
    );
    let mut shared: Vec<&str> = places
        .iter()
        .filter(|(_, n)| **n > 1)
        .map(|(name, _)| &**name)
        .collect();
    shared.sort_unstable();
    assert_bound(
        "names of several types",
        shared.len(),
        MAX_SHARED_NAMES,
        &shared.join(", "),
    );
    let empty = EMPTY_NAMES
        .iter()
        .filter(|name| places.contains_key(**name));
    let empty: Vec<&str> = empty.copied().collect();
    assert_bound(
        "empty names",
        empty.len(),
        MAX_EMPTY_NAMES,
        &empty.join(", "),
    );
}
