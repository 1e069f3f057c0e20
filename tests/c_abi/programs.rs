//! C and C++ programs that use the library. Their sources are in `c_tests`. Each prints "ok" and nothing else, so that any
//! output of the library itself fails the test.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::native::{LibraryFolder, WARNINGS, compilers, is_installed, run_ok};
use crate::common::{ProgramRun, Scratch, real_data_folder, workspace_root};

/// Compiles a program with every compiler and runs it.
fn compile_and_run(source: &str, standard: &str, arguments: &[&str]) {
    let library = LibraryFolder::new(&source.replace('.', "-"));
    for (c, _) in compilers() {
        let program = library.compile(c, standard, source);
        assert_eq!(run_ok(program, arguments), "ok\n", "{source} by {c}");
    }
}

/// Compiles a program that takes a folder to write to with every compiler and runs it.
fn compile_and_run_in_folder(source: &str) {
    let name = source.replace('.', "-");
    let library = LibraryFolder::new(&name);
    for (c, _) in compilers() {
        let dir = Scratch::new(&format!("{name}-files-{c}"));
        let program = library.compile(c, "c99", source);
        assert_eq!(run_ok(program, [dir.path()]), "ok\n", "{source} by {c}");
    }
}

#[test]
fn every_header_compiles_alone() {
    let dir = Scratch::new("c-headers");
    let c = dir.file(
        "alone.c",
        "#include <s3cmtf.h>\nint main(void) { return 0; }\n",
    );
    let cpp = dir.file(
        "alone.cpp",
        "#include <s3cmtf.h>\nint main() { return 0; }\n",
    );
    let hpp = dir.file(
        "layer.cpp",
        "#include <s3cmtf.hpp>\nint main() { return 0; }\n",
    );
    // Instantiates the templates of the C++ header.
    let cpp_layer = workspace_root().join("c_tests/cpp_layer.cpp");
    for (cc, cxx) in compilers() {
        for (compiler, standard, file) in [
            (cc, "c99", &c),
            (cc, "c11", &c),
            (cc, "c17", &c),
            (cxx, "c++17", &cpp),
            (cxx, "c++17", &hpp),
            (cxx, "c++20", &hpp),
            (cxx, "c++2b", &hpp),
            (cxx, "c++2b", &cpp_layer),
        ] {
            let mut command = Command::new(compiler);
            command
                .arg(format!("-std={standard}"))
                .args(WARNINGS)
                .args(
                    ["-Wstrict-prototypes", "-Wshadow", "-Wconversion"]
                        .iter()
                        .filter(|w| {
                            // The warning does not exist for C++.
                            compiler == cc || !w.contains("prototypes")
                        }),
                )
                .arg("-fsyntax-only")
                .arg("-I")
                .arg(workspace_root().join("include"))
                .arg(file);
            ProgramRun::from(command.output().unwrap()).ok();
        }
    }
}

/// The examples of the README, which are the same program in C and in C++.
#[test]
fn short_examples_run() {
    let library = LibraryFolder::new("example");
    for (c, cxx) in compilers() {
        let out = run_ok(library.compile(c, "c99", "example.c"), [""; 0]);
        let prediction = out.strip_prefix("prediction ").map(str::trim);
        let prediction: f64 = prediction.and_then(|x| x.parse().ok()).unwrap();
        // The ratings are 1 to 5 and those of this film low.
        assert!((1.0..4.0).contains(&prediction), "{out}");
        let program = library.compile(cxx, "c++17", "short_example.cpp");
        assert_eq!(run_ok(program, [""; 0]), out);
    }
}

#[test]
fn files_are_converted_checked_split_and_fixed() {
    compile_and_run_in_folder("files.c");
}

#[test]
fn full_workflow_on_planted_data() {
    compile_and_run_in_folder("workflow.c");
}

#[test]
fn fits_in_one_call_equal_fits_step_by_step() {
    compile_and_run_in_folder("one_call.c");
}

#[test]
fn structs_of_older_and_newer_headers_work() {
    compile_and_run_in_folder("struct_sizes.c");
}

#[test]
fn rows_of_files_are_matched_by_name() {
    compile_and_run_in_folder("row_names.c");
}

#[test]
fn recommendations_concepts_clusters_and_names_work() {
    compile_and_run_in_folder("discover.c");
}

#[test]
fn full_workflow_on_real_data() {
    let Some(data) = real_data_folder("ml100k") else {
        return;
    };
    let library = LibraryFolder::new("workflow-real");
    let dir = Scratch::new("workflow-real-files");
    for source in ["files.c", "workflow.c"] {
        let program = library.compile(compilers()[0].0, "c99", source);
        assert_eq!(run_ok(program, [dir.path(), &data]), "ok\n", "{source}");
    }
}

#[test]
fn model_fitted_in_one_process_predicts_in_another() {
    let library = LibraryFolder::new("separate-processes");
    let dir = Scratch::new("separate-processes-files");
    let mut csv = String::from("user,film,month,stars\n");
    for i in 0..4000u32 {
        let (user, film, month) = (i * 7 % 50, i * 11 % 30, i % 6);
        let stars = f64::from((1 + user % 5) * (1 + film % 3)) / 3.0;
        csv += &format!("{},{},{},{stars}\n", user + 1, film + 1, month + 1);
    }
    let csv = dir.file("ratings.csv", csv);
    for (c, _) in compilers() {
        let program = library.compile(c, "c99", "separate_processes.c");
        let model = dir.join(&format!("model-{c}.s3m"));
        let log = run_ok(
            &program,
            ["fit".as_ref(), csv.as_os_str(), model.as_os_str()],
        );
        assert_eq!(log.lines().count(), 10);
        let predict = |user: &str| -> f64 {
            let words = [model.to_str().unwrap(), user, "3", "1"];
            let out = run_ok(&program, ["predict"].iter().chain(&words));
            out.trim().parse().unwrap()
        };
        // User 5 rates five times as high as user 1; user 5000 is unknown.
        let (low, middle, high) = (predict("1"), predict("5000"), predict("5"));
        assert!(low < middle && middle < high, "{low} {middle} {high}");
    }
}

#[test]
fn misuse_returns_errors_and_never_crashes() {
    compile_and_run("misuse.c", "c99", &[]);
    let library = LibraryFolder::new("misuse-list");
    let program = library.compile(compilers()[0].0, "c99", "misuse.c");
    let mut tested: Vec<String> = run_ok(program, ["list"])
        .lines()
        .map(String::from)
        .collect();
    tested.sort();
    let symbols = fs::read_to_string(workspace_root().join("include/s3cmtf.symbols")).unwrap();
    let symbols: Vec<&str> = symbols.lines().collect();
    assert_eq!(
        tested, symbols,
        "the table of misuse.c and the header have different functions"
    );
}

#[test]
fn library_runs_on_host_threads_with_signals_and_small_stacks() {
    // The documented stack size is sufficient for optimized code only.
    let stack: &[&str] = if cfg!(debug_assertions) {
        &["8388608"]
    } else {
        &[]
    };
    compile_and_run("threads.c", "c99", stack);
}

#[test]
fn library_can_be_loaded_and_unloaded_repeatedly() {
    let library = LibraryFolder::new("reload");
    for (c, _) in compilers() {
        // Not linked with the library, which would keep it loaded.
        let program = library.compile_with(c, "gnu99", "reload.c", &[]);
        assert_eq!(run_ok(program, [library.shared()]), "ok\n");
    }
}

/// The short form runs 160 cycles: one for each algorithm, with and without a coupled matrix, in the foreground and in the
/// background, with each of eight outcomes.
#[test]
fn cycles_and_concurrent_fits_leave_nothing_behind() {
    let is_long = std::env::var_os("S3CMTF_LONG_TESTS").is_some_and(|v| v == "1");
    let library = LibraryFolder::new("cycles");
    let dir = Scratch::new("cycles-files");
    let program = library.compile(compilers()[0].0, "c99", "cycles.c");
    let folder = dir.path().to_str().unwrap();
    // Without a cache of stacks: how many the C library keeps after threads have ended depends on how many ran at the same time.
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.env("GLIBC_TUNABLES", "glibc.pthread.stack_cache_size=0");
        ProgramRun::from(command.arg(folder).args(arguments).output().unwrap())
    };
    let out = run(&[if is_long { "10000" } else { "160" }]).ok().stdout;
    print!("{out}");
    if out.starts_with("skipped") {
        return;
    }
    assert!(out == "ok\n" || is_long && out.ends_with("\nok\n"), "{out}");
    // An object of a few bytes that is not freed in one of 64 cycles is found.
    run(&["160", "leak"]).failed(1, &["allocations"]);
}

#[test]
fn failed_allocation_returns_a_status() {
    compile_and_run("memory.c", "c99", &[]);
}

#[test]
fn floating_point_mode_of_the_host_is_preserved() {
    compile_and_run("float_mode.c", "c99", &[]);
}

/// Builds the library with functions that panic on request. Its target folder is separate, because the cargo that runs this
/// test has locked the other one, and is kept for the next run.
fn library_that_panics() -> LibraryFolder {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("panics");
    let mut command = Command::new(env!("CARGO"));
    command
        .args([
            "rustc",
            "--frozen",
            "--quiet",
            "--package=s3cmtf",
            "--lib",
            "--crate-type=cdylib",
        ])
        .args(["--profile=dev", "--target-dir"])
        .arg(&target)
        .args(["--", "--cfg=s3cmtf_test"])
        .current_dir(workspace_root())
        // Builds without optimization and debug information are the fastest.
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "0")
        .env("CARGO_PROFILE_DEV_DEBUG", "false")
        // With a target triple cargo would use a subfolder.
        .env_remove("CARGO_BUILD_TARGET");
    ProgramRun::from(command.output().unwrap()).ok();
    LibraryFolder::from_build(&target.join("debug"), "panic")
}

#[test]
fn panic_returns_a_status() {
    let library = library_that_panics();
    for (c, _) in compilers() {
        let mut command = Command::new(library.compile(c, "c99", "panic.c"));
        // Unoptimized kernels have stack frames of megabytes.
        command.env("RUST_MIN_STACK", "33554432");
        let run = ProgramRun::from(command.output().unwrap()).ok();
        assert_eq!((&run.stdout[..], &run.stderr[..]), ("ok\n", ""), "{c}");
    }
}

#[test]
fn cpp_wrapper_works() {
    let library = LibraryFolder::new("cpp-layer");
    let dir = Scratch::new("cpp-layer-files");
    // One standard per compiler: compiling takes longer than all else here. `every_header_compiles_alone` has a third.
    for ((_, cxx), standard) in compilers().into_iter().zip(["c++17", "c++20"]) {
        let program = library.compile(cxx, standard, "cpp_layer.cpp");
        assert_eq!(run_ok(program, [dir.path()]), "ok\n", "{cxx} {standard}");
    }
}

#[test]
fn cpp_example_runs() {
    let library = LibraryFolder::new("cpp-example");
    for (_, cxx) in compilers() {
        let out = run_ok(library.compile(cxx, "c++17", "example.cpp"), [""; 0]);
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(lines.len(), 11, "{out}");
        assert!(lines[9].starts_with("epoch 10: training RMSE 0."), "{out}");
        assert!(lines[10].starts_with("prediction "), "{out}");
    }
}

#[test]
fn only_listed_symbols_are_exported() {
    if !is_installed("nm") {
        println!("skipped: nm is not on this machine");
        return;
    }
    let library = LibraryFolder::new("symbols");
    let shared = library.shared();
    let out = run_ok("nm", ["-D", "--defined-only", shared.to_str().unwrap()]);
    let mut names: Vec<&str> = out
        .lines()
        .filter_map(|l| l.split_whitespace().last())
        .collect();
    names.sort_unstable();
    let symbols = fs::read_to_string(workspace_root().join("include/s3cmtf.symbols")).unwrap();
    assert_eq!(names, symbols.lines().collect::<Vec<_>>());
}
