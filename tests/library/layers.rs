//! Architecture rules that the compiler does not check: the direction of imports and the files with `unsafe` code.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::workspace_root;

/// Layers of the crate `s3cmtf_kernel`, lowest first. A layer may import only itself and the layers before it.
const KERNEL_LAYERS: [&str; 7] = [
    "base", "parallel", "simd", "linalg", FAMILIES, // What the library imports.
    "kernel", "lib",
];

/// The layer of all families of kernels. They import files of each other; no two files import each other.
const FAMILIES: &str = "families";

/// Files and folders of the families.
const FAMILY_MODULES: [&str; 9] = [
    "batch",
    "entries",
    "flops_probe",
    "graph_update",
    "hogwild",
    "nearest",
    "per_entry",
    "rowwise",
    "shape",
];

/// Names under which `s3cmtf_kernel` exports the modules of `base`.
const BASE_MODULES: [&str; 9] = [
    "cache_line",
    "error",
    "printable",
    "progress",
    "random",
    "sort",
    "trace",
    "try_alloc",
    "value_range",
];

/// Layers of the library, lowest first. The modules of `s3cmtf_kernel` that it re-exports are below all of them.
const LAYERS: [&str; 14] = [
    "memory",
    "nearest_name",
    "normal_distribution",
    "trace",
    "format",
    "options",
    "problem",
    "fit_plan",
    "model",
    "solver",
    "generate",
    "predict",
    "discover",
    "ffi",
];

/// Folders and files that may contain `allow(unsafe_code)`: memory maps and the C boundary.
const UNSAFE: [&str; 2] = ["ffi/", "format/file_bytes.rs"];

/// The same of the kernels: vectors, kernels and threads.
const UNSAFE_IN_KERNELS: [&str; 13] = [
    "batch/",
    "entries/",
    "flops_probe.rs",
    "graph_update.rs",
    "hogwild/",
    "nearest.rs",
    "parallel/cpu_affinity.rs",
    "parallel/signals.rs",
    "parallel/worker_threads.rs",
    "per_entry/",
    "rowwise/",
    "shape/",
    "simd/",
];

/// The same of the program: what happens before its runtime starts.
const UNSAFE_IN_PROGRAM: [&str; 1] = ["process_start.rs"];

fn collect_rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect_rust_files(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// Returns the path relative to `folder` and the text of each Rust file below `folder`.
pub(super) fn rust_sources(folder: &str) -> Vec<(String, String)> {
    let root = workspace_root().join(folder);
    let mut found = Vec::new();
    collect_rust_files(&root, &mut found);
    found
        .into_iter()
        .map(|p| {
            let name = p
                .strip_prefix(&root)
                .unwrap()
                .to_string_lossy()
                .replace('\\', "/");
            (name, fs::read_to_string(p).unwrap())
        })
        .collect()
}

/// Checks that files below `folder` import only their own layer and lower ones. `rank` gives the number of the layer of a module.
/// Returns the number of imports.
fn check_layers(folder: &str, rank: impl Fn(&str) -> Option<usize>) -> usize {
    let mut checked_imports = 0;
    for (name, text) in rust_sources(folder) {
        let layer = name.split(['/', '.']).next().unwrap();
        if name == "lib.rs" {
            continue;
        }
        let own =
            rank(layer).unwrap_or_else(|| panic!("{folder}/{name}: layer {layer} is not listed"));
        // Unit tests at the end of a file may import any layer.
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
        for (at, _) in code.match_indices("crate::") {
            let rest = &code[at + "crate::".len()..];
            let used = rest
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .next()
                .unwrap();
            let Some(used_rank) = rank(used) else {
                continue;
            };
            // Links in documentation are not imports.
            let line = &code[code[..at].rfind('\n').map_or(0, |i| i + 1)..at];
            if line.trim_start().starts_with("//") {
                continue;
            }
            checked_imports += 1;
            assert!(
                used_rank <= own,
                "{folder}/{name}: layer {layer} imports the higher layer {used}"
            );
        }
    }
    checked_imports
}

#[test]
fn layers_import_only_lower_layers() {
    let in_kernels = check_layers("kernel/src", |module| {
        let layer = match module {
            _ if FAMILY_MODULES.contains(&module) => FAMILIES,
            _ if BASE_MODULES.contains(&module) => "base",
            _ => module,
        };
        KERNEL_LAYERS.iter().position(|l| *l == layer)
    });
    let in_library = check_layers("src", |module| LAYERS.iter().position(|l| *l == module));
    assert!(
        in_kernels > 50 && in_library > 50,
        "found only {in_kernels} and {in_library} imports: the test no longer recognizes them"
    );
}

#[test]
fn program_uses_only_the_public_rust_interface_of_the_library() {
    let sources = rust_sources("cli/src");
    assert!(sources.len() > 10, "the sources of the program moved");
    for (name, text) in sources {
        for forbidden in ["s3cmtf::ffi", "#[path", "include!("] {
            assert!(!text.contains(forbidden), "cli/src/{name}: {forbidden}");
        }
    }
}

#[test]
fn unsafe_code_is_only_in_the_listed_files() {
    for (folder, places) in [("src", &UNSAFE[..]), ("kernel/src", &UNSAFE_IN_KERNELS)] {
        for (name, text) in rust_sources(folder) {
            let allowed = places.iter().any(|place| name.starts_with(place));
            assert!(
                allowed || !text.contains("allow(unsafe_code)"),
                "{folder}/{name}"
            );
        }
    }
    for (name, text) in rust_sources("cli/src") {
        let allowed = UNSAFE_IN_PROGRAM.contains(&name.as_str());
        assert!(
            allowed || !text.contains("allow(unsafe_code)"),
            "cli/src/{name}"
        );
    }
    for (name, text) in rust_sources("reproduction/src") {
        assert!(
            name.starts_with("kernels/") || !text.contains("allow(unsafe_code)"),
            "reproduction/src/{name}"
        );
    }
    for crate_root in [
        "src/lib.rs",
        "kernel/src/lib.rs",
        "cli/src/lib.rs",
        "cli/src/main.rs",
        "reproduction/src/lib.rs",
        "reproduction/src/main.rs",
    ] {
        let text = fs::read_to_string(workspace_root().join(crate_root)).unwrap();
        assert!(text.contains("#![deny(unsafe_code)]"), "{crate_root}");
    }
}

/// The baselines, as their folders in `reproduction/src/algorithms`, their types and their names are called.
const BASELINES: [&str; 3] = ["sals", "cmtfopt", "tuckerals"];

#[test]
fn the_product_names_no_baseline() {
    let is_word = |c: char| c.is_alphanumeric() || "_-".contains(c);
    for folder in ["src", "cli/src"] {
        for (name, text) in rust_sources(folder) {
            let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
            for word in code.split(|c| !is_word(c)) {
                let word = word.replace(['_', '-'], "").to_lowercase();
                assert!(!BASELINES.contains(&&word[..]), "{folder}/{name}: {word}");
            }
        }
    }
    // The test still recognizes them.
    let algorithms = rust_sources("reproduction/src/algorithms");
    for baseline in BASELINES {
        let is_of = |name: &str| name.replace('_', "").starts_with(baseline);
        assert!(algorithms.iter().any(|(name, _)| is_of(name)), "{baseline}");
    }
}

/// A path in a `use` declaration: its segments, with `crate`, `super` and `self` resolved.
type UsePath = Vec<String>;

/// Returns the module that a file below a source folder defines: `a/b.rs` and `a/b/mod.rs` are both `[a, b]`.
fn module_of(file: &str) -> UsePath {
    let stem = file.trim_end_matches(".rs");
    let stem = stem.strip_suffix("/mod").unwrap_or(stem);
    if stem == "lib" {
        return Vec::new();
    }
    stem.split('/').map(String::from).collect()
}

/// Expands a use tree such as `a::{b, c::{d, e}}` into one path per name.
fn expand_use_tree(tree: &str, prefix: &[String], paths: &mut Vec<UsePath>) {
    let tree = tree.trim();
    let Some(open) = tree.find('{') else {
        let name = tree.split(" as ").next().unwrap();
        let segments = name.split("::").map(|s| s.trim().to_string());
        paths.push(prefix.iter().cloned().chain(segments).collect());
        return;
    };
    let outer = tree[..open].trim_end_matches("::").split("::");
    let prefix: Vec<String> = prefix
        .iter()
        .cloned()
        .chain(
            outer
                .filter(|s| !s.is_empty())
                .map(|s| s.trim().to_string()),
        )
        .collect();
    let inner = &tree[open + 1..tree.rfind('}').unwrap()];
    let (mut depth, mut start) = (0, 0);
    for (at, c) in inner.char_indices().chain([(inner.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if !inner[start..at].trim().is_empty() {
                    expand_use_tree(&inner[start..at], &prefix, paths);
                }
                start = at + 1;
            }
            _ => {}
        }
    }
}

/// Returns the paths of the `use` declarations of a file outside tests, each with whether it is a re-export.
fn use_paths(module: &[String], text: &str) -> Vec<(UsePath, bool)> {
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
    let code: String = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .map(|line| format!("{line}\n"))
        .collect();
    let mut found = Vec::new();
    for (at, _) in code.match_indices("use ") {
        let before = code[..at].rsplit('\n').next().unwrap().trim();
        if !before.is_empty() && !before.starts_with("pub") {
            continue;
        }
        let Some(end) = code[at..].find(';') else {
            continue;
        };
        let mut paths = Vec::new();
        expand_use_tree(&code[at + 4..at + end], &[], &mut paths);
        for path in paths {
            let mut resolved = match path[0].as_str() {
                "crate" => Vec::new(),
                _ => module.to_vec(),
            };
            for segment in path {
                match segment.as_str() {
                    "crate" | "self" => {}
                    "super" => {
                        resolved.pop();
                    }
                    _ => resolved.push(segment),
                }
            }
            found.push((resolved, !before.is_empty()));
        }
    }
    found
}

/// Returns the paths that a file has outside of `use` declarations and tests, such as `super::sgd::Blocked`.
fn inline_paths(module: &[String], text: &str) -> Vec<UsePath> {
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
    let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let lines = code.lines().map(str::trim_start);
    let lines =
        lines.filter(|l| !l.starts_with("//") && !l.starts_with("use ") && !l.contains(" use "));
    let words = lines.flat_map(|l| l.split(|c| !is_path(c)));
    let paths = words.filter_map(|word| {
        let mut resolved = match word.split("::").next()? {
            "crate" => Vec::new(),
            "super" | "self" => module.to_vec(),
            _ => return None,
        };
        for segment in word.split("::") {
            match segment {
                "crate" | "self" => {}
                "super" => drop(resolved.pop()),
                _ => resolved.push(segment.to_string()),
            }
        }
        Some(resolved)
    });
    paths.collect()
}

/// Returns for each of these files the numbers of the files that define what it imports by `use`, or by any path.
pub(super) fn imports(sources: &[(String, String)], by_any_path: bool) -> Vec<Vec<usize>> {
    let files: HashMap<UsePath, usize> = (0..sources.len())
        .map(|f| (module_of(&sources[f].0), f))
        .collect();
    let uses: Vec<Vec<(UsePath, bool)>> = sources
        .iter()
        .map(|(name, text)| use_paths(&module_of(name), text))
        .collect();
    // The file that defines the item at the end of a path, through re-exports.
    let defining_file = |path: &UsePath| {
        let mut path = path.clone();
        for _ in 0..8 {
            let depth = (0..=path.len())
                .rev()
                .find(|&depth| files.contains_key(&path[..depth]))?;
            let file = files[&path[..depth]];
            let Some(item) = path.get(depth) else {
                return Some(file);
            };
            let mut reexports = uses[file].iter().filter(|(_, is_reexport)| *is_reexport);
            match reexports.find(|(target, _)| target.last() == Some(item) && target != &path) {
                Some((target, _)) => path = target.clone(),
                None => return Some(file),
            }
        }
        None
    };
    (0..sources.len())
        .map(|f| {
            let (name, text) = &sources[f];
            let inline = match by_any_path {
                true => inline_paths(&module_of(name), text),
                false => Vec::new(),
            };
            let imported = uses[f].iter().filter(|(_, is_reexport)| !is_reexport);
            let imported = imported.map(|(path, _)| path).chain(&inline);
            imported
                .filter(|path| files.contains_key(&path[..1.min(path.len())]))
                .filter_map(&defining_file)
                .filter(|&target| target != f && !sources[f].0.contains("tests"))
                .collect()
        })
        .collect()
}

#[test]
fn no_two_files_import_each_other() {
    let in_library = check_imports_have_no_cycle("src");
    let in_kernels = check_imports_have_no_cycle("kernel/src");
    assert!(
        in_library > 500 && in_kernels > 250,
        "{in_library}, {in_kernels}"
    );
}

/// Checks that no imports of files below `folder` form a cycle, and returns their number.
fn check_imports_have_no_cycle(folder: &str) -> usize {
    let sources = rust_sources(folder);
    let imports = imports(&sources, false);
    let count = imports.iter().map(Vec::len).sum();
    // Files that are left after removing those without imports, again and again, are on cycles or import such files.
    let mut remaining: Vec<usize> = (0..sources.len()).collect();
    loop {
        let before = remaining.len();
        let kept = remaining.clone();
        remaining.retain(|&f| imports[f].iter().any(|target| kept.contains(target)));
        let kept = remaining.clone();
        remaining.retain(|&f| kept.iter().any(|&other| imports[other].contains(&f)));
        if remaining.len() == before {
            break;
        }
    }
    let cyclic: Vec<String> = remaining
        .iter()
        .map(|&f| {
            let on_cycle = imports[f]
                .iter()
                .filter(|target| remaining.contains(target));
            let names: Vec<&str> = on_cycle.map(|&t| sources[t].0.as_str()).collect();
            format!("{} imports {}", sources[f].0, names.join(", "))
        })
        .collect();
    assert!(cyclic.is_empty(), "import cycles:\n{}", cyclic.join("\n"));
    count
}
