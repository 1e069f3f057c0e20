//! Architecture rules that the compiler does not check: the direction of imports and the files with `unsafe` code.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::workspace_root;

/// Layers of the library, lowest first. A layer may import only itself and the layers before it.
const LAYERS: [&str; 20] = [
    "error",
    "progress",
    "random",
    "json",
    "try_alloc",
    "simd",
    "kernel",
    "linalg",
    "format",
    "options",
    "problem",
    "model",
    "parallel",
    "solver",
    "generate",
    "predict",
    "discover",
    "report",
    "batch",
    "ffi",
];

/// The only files that may contain `allow(unsafe_code)`, relative to `src`.
const UNSAFE: [&str; 65] = [
    "ffi/arg.rs",
    "ffi/batch.rs",
    "ffi/cancel.rs",
    "ffi/clusters.rs",
    "ffi/concepts.rs",
    "ffi/coo.rs",
    "ffi/coo_files.rs",
    "ffi/coo_weights.rs",
    "ffi/error.rs",
    "ffi/fit.rs",
    "ffi/float.rs",
    "ffi/fold_in.rs",
    "ffi/generator.rs",
    "ffi/host.rs",
    "ffi/indices.rs",
    "ffi/library.rs",
    "ffi/model.rs",
    "ffi/model_numbers.rs",
    "ffi/names.rs",
    "ffi/options.rs",
    "ffi/predict.rs",
    "ffi/problem.rs",
    "ffi/progress.rs",
    "ffi/recommend.rs",
    "ffi/report.rs",
    "ffi/spread.rs",
    "ffi/status.rs",
    "ffi/tables.rs",
    "ffi/testing.rs",
    "ffi/text.rs",
    "ffi/tune.rs",
    "format/file_bytes.rs",
    "kernel/batch.rs",
    "kernel/batch_iter.rs",
    "kernel/batch_update.rs",
    "kernel/cell.rs",
    "kernel/cholesky.rs",
    "kernel/entry.rs",
    "kernel/eval.rs",
    "kernel/exclusive_rows.rs",
    "kernel/fiber_sums.rs",
    "kernel/flops_probe.rs",
    "kernel/graph.rs",
    "kernel/hogwild_rows.rs",
    "kernel/hogwild_rows_x86.rs",
    "kernel/hyper_diagonal.rs",
    "kernel/lockfree.rs",
    "kernel/mode_product.rs",
    "kernel/nearest.rs",
    "kernel/normal_equations.rs",
    "kernel/order3_large.rs",
    "kernel/order3_small.rs",
    "kernel/order4.rs",
    "kernel/order_n.rs",
    "kernel/packed_core.rs",
    "kernel/packed_core_x86.rs",
    "kernel/partials.rs",
    "kernel/per_entry.rs",
    "kernel/row_cache.rs",
    "kernel/tensor.rs",
    "parallel/affinity.rs",
    "parallel/signals.rs",
    "parallel/workers.rs",
    "simd/mod.rs",
    "simd/x86.rs",
];

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
fn rust_sources(folder: &str) -> Vec<(String, String)> {
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

#[test]
fn layers_import_only_lower_layers() {
    let rank = |layer: &str| LAYERS.iter().position(|l| *l == layer);
    let mut checked_imports = 0;
    for (name, text) in rust_sources("src") {
        let layer = name.split(['/', '.']).next().unwrap();
        if name == "lib.rs" {
            continue;
        }
        let own = rank(layer).unwrap_or_else(|| panic!("{name}: layer {layer} is not in LAYERS"));
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
                "{name}: layer {layer} imports the higher layer {used}"
            );
        }
    }
    assert!(
        checked_imports > 50,
        "found only {checked_imports} imports: the test no longer recognises them"
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
    for (name, text) in rust_sources("src") {
        let allowed = UNSAFE.contains(&name.as_str());
        assert_eq!(text.contains("allow(unsafe_code)"), allowed, "{name}");
    }
    for (name, text) in rust_sources("cli/src") {
        assert!(!text.contains("allow(unsafe_code)"), "cli/src/{name}");
    }
    for crate_root in ["src/lib.rs", "cli/src/main.rs"] {
        let text = fs::read_to_string(workspace_root().join(crate_root)).unwrap();
        assert!(text.contains("#![deny(unsafe_code)]"), "{crate_root}");
    }
}
