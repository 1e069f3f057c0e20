//! Compiling and running programs in C and C++ against the library of this build.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Ran, Scratch, workspace_root};

/// What every program must compile with.
pub const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];

/// The C compilers of this machine, gcc first; each with its C++ sibling.
pub fn compilers() -> Vec<(&'static str, &'static str)> {
    let all = [("gcc", "g++"), ("clang", "clang++")];
    let found: Vec<_> = all.into_iter().filter(|(c, _)| present(c)).collect();
    assert!(
        !found.is_empty(),
        "neither gcc nor clang is on this machine"
    );
    for (c, _) in all.iter().filter(|(c, _)| !present(c)) {
        println!("skipped: {c} is not on this machine");
    }
    found
}

/// Whether a program is on this machine.
pub fn present(program: &str) -> bool {
    let asked = Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    asked.is_ok_and(|s| s.success())
}

/// A folder with the shared library of a build under the names it has when installed.
pub struct Library {
    dir: Scratch,
}

impl Library {
    pub fn new(name: &str) -> Library {
        // Beside the tests, where cargo puts what they depend on.
        let exe = std::env::current_exe().unwrap();
        Library::of(exe.parent().unwrap(), name)
    }

    /// The one in a folder of another build.
    pub fn of(built: &Path, name: &str) -> Library {
        let dir = Scratch::new(name);
        let library = built.join("libs3cmtf.so");
        assert!(library.is_file(), "{} was not built", library.display());
        for name in ["libs3cmtf.so", &soname()] {
            std::os::unix::fs::symlink(&library, dir.join(name)).unwrap();
        }
        Library { dir }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn shared(&self) -> PathBuf {
        self.dir.join("libs3cmtf.so")
    }

    /// Compiles a program of `c_tests`, with all warnings as errors.
    pub fn compile(&self, compiler: &str, standard: &str, source: &str) -> PathBuf {
        self.compile_with(compiler, standard, source, &["-ls3cmtf"])
    }

    /// The same, linked with these libraries and those of the system.
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
            .args(["-O1", "-g", "-I"])
            .arg(workspace_root().join("include"))
            .arg("-o")
            .arg(&program)
            .arg(workspace_root().join("c_tests").join(source))
            .arg("-L")
            .arg(self.path())
            .arg(format!("-Wl,-rpath,{}", self.path().display()))
            .args(libraries)
            .args(["-lm", "-lpthread", "-ldl"]);
        Ran::from(command.output().unwrap()).ok();
        program
    }
}

/// The name of the shared library for the loader: `build.rs` gives it.
pub fn soname() -> String {
    let version: Vec<&str> = env!("CARGO_PKG_VERSION").split('.').collect();
    match version[0] {
        "0" => format!("libs3cmtf.so.0.{}", version[1]),
        major => format!("libs3cmtf.so.{major}"),
    }
}

/// Runs a program, which must end well and print nothing to standard error.
#[track_caller]
pub fn run<I: AsRef<OsStr>>(
    program: impl AsRef<OsStr>,
    arguments: impl IntoIterator<Item = I>,
) -> String {
    let ran = Ran::from(
        Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .unwrap(),
    )
    .ok();
    assert_eq!(ran.err, "", "something was printed");
    ran.out
}
