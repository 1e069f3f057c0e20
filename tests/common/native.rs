//! Compiles and runs C and C++ programs against the library of this build.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{ProgramRun, Scratch, workspace_root};

/// Warnings that every program must compile without.
pub const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];

/// Returns the installed C compilers with their C++ compilers, gcc first.
pub fn compilers() -> Vec<(&'static str, &'static str)> {
    let all = [("gcc", "g++"), ("clang", "clang++")];
    let found: Vec<_> = all.into_iter().filter(|(c, _)| is_installed(c)).collect();
    assert!(
        !found.is_empty(),
        "neither gcc nor clang is on this machine"
    );
    for (c, _) in all.iter().filter(|(c, _)| !is_installed(c)) {
        println!("skipped: {c} is not on this machine");
    }
    found
}

/// Returns whether a program is installed.
pub fn is_installed(program: &str) -> bool {
    let status = Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|s| s.success())
}

/// A temporary folder with the shared library under its installed names, and the programs compiled against it.
pub struct LibraryFolder {
    dir: Scratch,
}

impl LibraryFolder {
    /// Uses the library of this build, which cargo puts beside the test binary.
    pub fn new(name: &str) -> LibraryFolder {
        let exe = std::env::current_exe().unwrap();
        LibraryFolder::from_build(exe.parent().unwrap(), name)
    }

    /// Uses the library in the folder of another build.
    pub fn from_build(build: &Path, name: &str) -> LibraryFolder {
        let dir = Scratch::new(name);
        let library = build.join("libs3cmtf.so");
        assert!(library.is_file(), "{} was not built", library.display());
        for name in ["libs3cmtf.so", &soname()] {
            std::os::unix::fs::symlink(&library, dir.join(name)).unwrap();
        }
        LibraryFolder { dir }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn shared(&self) -> PathBuf {
        self.dir.join("libs3cmtf.so")
    }

    /// Compiles a program of `c_tests`, or one with an absolute path, with all warnings as errors.
    pub fn compile(&self, compiler: &str, standard: &str, source: &str) -> PathBuf {
        self.compile_with(compiler, standard, source, &["-ls3cmtf"])
    }

    /// Compiles a program like [`LibraryFolder::compile`], linked with other libraries.
    pub fn compile_with(
        &self,
        compiler: &str,
        standard: &str,
        source: &str,
        libraries: &[&str],
    ) -> PathBuf {
        let name = Path::new(source).file_stem().unwrap().to_string_lossy();
        let program = self.dir.join(&format!("{name}-{compiler}"));
        let mut command = Command::new(compiler);
        command
            .arg(format!("-std={standard}"))
            .args(WARNINGS)
            // Compiling with optimization takes three times as long, and longer than the programs run.
            .args(["-O0", "-g", "-I"])
            .arg(workspace_root().join("include"))
            .arg("-o")
            .arg(&program)
            .arg(workspace_root().join("c_tests").join(source))
            .arg("-L")
            .arg(self.path())
            .arg(format!("-Wl,-rpath,{}", self.path().display()))
            .args(libraries)
            .args(["-lm", "-lpthread", "-ldl"]);
        ProgramRun::from(command.output().unwrap()).ok();
        program
    }
}

/// Returns the soname of the shared library, which `build.rs` sets.
pub fn soname() -> String {
    let version: Vec<&str> = env!("CARGO_PKG_VERSION").split('.').collect();
    match version[0] {
        "0" => format!("libs3cmtf.so.0.{}", version[1]),
        major => format!("libs3cmtf.so.{major}"),
    }
}

/// Runs a program that must succeed with empty standard error. Returns its standard output.
#[track_caller]
pub fn run_ok<I: AsRef<OsStr>>(
    program: impl AsRef<OsStr>,
    arguments: impl IntoIterator<Item = I>,
) -> String {
    let run = ProgramRun::from(
        Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .unwrap(),
    )
    .ok();
    assert_eq!(run.stderr, "", "standard error must be empty");
    run.stdout
}
