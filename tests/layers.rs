//! The layers import in one direction only, and `unsafe` stays where it is allowed.

use std::fs;
use std::path::{Path, PathBuf};

/// Each may use those before it.
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

/// The only files that may say `allow(unsafe_code)`.
const UNSAFE: [&str; 64] = [
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
    "format/memory.rs",
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
    "kernel/per_entry.rs",
    "kernel/row_cache.rs",
    "kernel/tensor.rs",
    "parallel/affinity.rs",
    "parallel/signals.rs",
    "parallel/workers.rs",
    "simd/mod.rs",
    "simd/x86.rs",
];

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

fn all_sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    sources(&root, &mut found);
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
fn layers_import_only_what_is_below_them() {
    let rank = |layer: &str| LAYERS.iter().position(|l| *l == layer);
    let mut seen = 0;
    for (name, text) in all_sources() {
        let layer = name.split(['/', '.']).next().unwrap();
        if name == "lib.rs" || name == "main.rs" || layer == "cli" {
            continue;
        }
        let own = rank(layer).unwrap_or_else(|| panic!("{name}: its layer is not in the list"));
        // Tests at the end of a file may use anything to set the scene.
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
            seen += 1;
            assert!(
                used_rank <= own,
                "{name}: layer {layer} uses {used}, which is above it"
            );
        }
    }
    assert!(seen > 50, "the test no longer finds imports");
}

#[test]
fn the_program_uses_only_the_public_library() {
    for (name, text) in all_sources() {
        if name.starts_with("cli/") {
            assert!(
                !text.contains("crate::"),
                "{name} reaches around the library's public functions"
            );
        }
    }
}

#[test]
fn unsafe_code_is_where_it_is_allowed() {
    for (name, text) in all_sources() {
        let allowed = UNSAFE.contains(&name.as_str());
        assert_eq!(text.contains("allow(unsafe_code)"), allowed, "{name}");
    }
    for root in ["lib.rs", "main.rs"] {
        let (_, text) = all_sources().into_iter().find(|(n, _)| n == root).unwrap();
        assert!(text.contains("#![deny(unsafe_code)]"), "{root}");
    }
}
