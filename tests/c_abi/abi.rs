//! The binary interface is the one that was recorded for this minor version, apart from functions that were added.
//!
//! libabigail compares types as the debug information of C describes them. Therefore the functions of the header are compiled as
//! empty C functions; that the library agrees with the header is the subject of `header.rs`. To record the interface of a new
//! minor version:
//!
//! ```sh
//! S3CMTF_RECORD_ABI=1 cargo test --test c_abi abi
//! ```
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::native::{compilers, is_installed};
use crate::common::{ProgramRun, Scratch, workspace_root};

/// Returns C functions with empty bodies for the declarations of a header.
fn stubs(header: &str) -> String {
    let declarations = header.split_once("extern \"C\" {").unwrap().1;
    let mut code = String::new();
    for part in declarations.split("*/") {
        code += part.split("/*").next().unwrap();
    }
    let mut text = String::from("#include <s3cmtf.h>\n");
    for statement in code.split(';') {
        // What follows the last preprocessor line.
        let lines = statement.lines().map(str::trim);
        let lines: Vec<&str> = lines.filter(|l| !l.starts_with('#')).collect();
        let declaration = lines.join(" ");
        let declaration = declaration
            .trim()
            .trim_start_matches("S3CMTF_CHECK_STATUS ");
        let is_function = declaration.ends_with(')') && !declaration.starts_with("typedef");
        if is_function {
            let body = if declaration.starts_with("void ") {
                ""
            } else {
                "return 0;"
            };
            text += &format!("{declaration} {{ {body} }}\n");
        }
    }
    text
}

/// Compiles stubs of a header into a shared library with debug information.
fn compile(dir: &Scratch, name: &str, header: &str) -> PathBuf {
    let include = dir.join(name);
    fs::create_dir(&include).unwrap();
    fs::write(include.join("s3cmtf.h"), header).unwrap();
    fs::write(include.join("stubs.c"), stubs(header)).unwrap();
    let mut command = Command::new(compilers()[0].0);
    // Relative paths, which the record contains.
    command
        .current_dir(&include)
        .args(["-std=c99", "-g", "-fPIC", "-shared", "-I."])
        .args(["stubs.c", "-o", "stubs.so"]);
    ProgramRun::from(command.output().unwrap()).ok();
    include.join("stubs.so")
}

/// Returns whether the interface of a library is compatible with the recorded one, and the report.
fn compare(recorded: &Path, library: &Path) -> (bool, String) {
    let mut command = Command::new("abidiff");
    command.arg("--no-added-syms").arg(recorded).arg(library);
    let out = command.output().unwrap();
    let report = String::from_utf8_lossy(&out.stdout).into_owned();
    (out.status.success(), report)
}

#[test]
fn binary_interface_is_compatible_with_the_recorded_one() {
    if !is_installed("abidiff") || !is_installed("abidw") {
        println!("skipped: abigail-tools are not on this machine");
        return;
    }
    let dir = Scratch::new("abi");
    let recorded = workspace_root().join("tests/fixtures/0.2/s3cmtf.abi");
    let header = fs::read_to_string(workspace_root().join("include/s3cmtf.h")).unwrap();
    let symbols = fs::read_to_string(workspace_root().join("include/s3cmtf.symbols")).unwrap();
    assert_eq!(
        stubs(&header).lines().count(),
        symbols.lines().count() + 1,
        "one line includes the header"
    );
    let library = compile(&dir, "now", &header);
    if std::env::var_os("S3CMTF_RECORD_ABI").is_some() {
        let mut command = Command::new("abidw");
        command
            .args(["--no-comp-dir-path", "--no-show-locs", "--no-corpus-path"])
            .arg("--out-file")
            .arg(&recorded)
            .arg(&library);
        ProgramRun::from(command.output().unwrap()).ok();
    }
    let (compatible, report) = compare(&recorded, &library);
    assert!(compatible, "{report}");
    // The comparison finds a changed field, a changed parameter and a removed function, and accepts a new function.
    let changed = header.replacen("    uint64_t rows;", "    uint32_t rows;", 1);
    assert!(!compare(&recorded, &compile(&dir, "field", &changed)).0);
    let changed = header.replacen(
        "int32_t kernel, int32_t *available",
        "int64_t kernel, int32_t *available",
        1,
    );
    assert!(!compare(&recorded, &compile(&dir, "parameter", &changed)).0);
    let removed = header.replacen("int32_t s3cmtf_kernel_best(void);", "", 1);
    assert!(!compare(&recorded, &compile(&dir, "removed", &removed)).0);
    let best = "int32_t s3cmtf_kernel_best(void);";
    let added = header.replacen(best, &format!("{best}\nint32_t s3cmtf_new(void);"), 1);
    let (compatible, report) = compare(&recorded, &compile(&dir, "added", &added));
    assert!(compatible, "{report}");
}
