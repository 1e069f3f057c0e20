//! The installed library: pkg-config and CMake projects outside the tree find it, shared and static.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::native::{compilers, is_installed, run_ok, soname};
use crate::common::{ProgramRun, Scratch, workspace_root};

/// This build, installed into a temporary prefix.
struct Installation {
    dir: Scratch,
    libdir: &'static str,
}

/// Library folders of common systems.
const LIBDIRS: [&str; 2] = ["lib", "lib/x86_64-linux-gnu"];

impl Installation {
    fn new(name: &str, libdir: &'static str) -> Installation {
        let dir = Scratch::new(&format!("{name}-{}", libdir.replace('/', "-")));
        let built = std::env::current_exe().unwrap();
        let mut command = Command::new(workspace_root().join("packaging/install.sh"));
        command
            .arg(dir.join("prefix"))
            .env("LIBDIR", libdir)
            .env("S3CMTF_BUILT", built.parent().unwrap());
        ProgramRun::from(command.output().unwrap()).ok();
        for name in ["example.c", "cpp_layer.cpp", "check.h"] {
            fs::copy(workspace_root().join("c_tests").join(name), dir.join(name)).unwrap();
        }
        // The prefix is moved after installation: no file may contain its path.
        fs::rename(dir.join("prefix"), dir.join("moved")).unwrap();
        Installation { dir, libdir }
    }

    fn lib(&self) -> PathBuf {
        self.dir.join("moved").join(self.libdir)
    }

    fn pkg_config(&self, arguments: &[&str]) -> Vec<String> {
        let mut command = Command::new("pkg-config");
        command
            .args(arguments)
            .arg("s3cmtf")
            .env("PKG_CONFIG_PATH", self.lib().join("pkgconfig"));
        let flags = ProgramRun::from(command.output().unwrap()).ok().stdout;
        flags.split_whitespace().map(String::from).collect()
    }

    /// Compiles the example outside the tree with these flags and runs it.
    fn run_example(&self, flags: &[String]) {
        let program = self.dir.join("example");
        let mut command = Command::new(compilers()[0].0);
        command
            .current_dir(self.dir.path())
            .args(["-std=c99", "example.c", "-o"])
            .arg(&program)
            .args(flags);
        ProgramRun::from(command.output().unwrap()).ok();
        self.run_program(&program, "prediction");
    }

    /// Runs a program, whose output must contain `word`.
    fn run_program(&self, program: &Path, word: &str) {
        let mut command = Command::new(program);
        command
            .arg(self.dir.path())
            .env("LD_LIBRARY_PATH", self.lib());
        let run = ProgramRun::from(command.output().unwrap()).ok();
        assert!(
            run.stdout.contains(word) && run.stderr.is_empty(),
            "{}",
            run.stderr
        );
    }
}

#[test]
fn pkg_config_finds_shared_and_static_library() {
    if !is_installed("pkg-config") {
        println!("skipped: pkg-config is not on this machine");
        return;
    }
    for libdir in LIBDIRS {
        let installation = Installation::new("install-pkg-config", libdir);
        assert_eq!(
            installation.pkg_config(&["--modversion"]),
            [env!("CARGO_PKG_VERSION")]
        );
        installation.run_example(&installation.pkg_config(&["--cflags", "--libs"]));
        // Without the shared library the linker takes the static one.
        for entry in fs::read_dir(installation.lib()).unwrap() {
            let path = entry.unwrap().path();
            if path.to_string_lossy().contains(".so") {
                fs::remove_file(path).unwrap();
            }
        }
        installation.run_example(&installation.pkg_config(&["--static", "--cflags", "--libs"]));
    }
}

#[test]
fn invalid_libdir_is_rejected() {
    let dir = Scratch::new("install-refused");
    for libdir in ["/usr/lib", "../lib", "lib/../..", "lib/"] {
        let mut command = Command::new(workspace_root().join("packaging/install.sh"));
        command
            .arg(dir.join("prefix"))
            .env("LIBDIR", libdir)
            .env("S3CMTF_BUILT", "nowhere");
        let out = command.output().unwrap();
        assert_eq!(out.status.code(), Some(2), "{libdir}");
        assert!(!dir.join("prefix").exists());
    }
}

#[test]
fn cmake_finds_shared_and_static_library() {
    if !is_installed("cmake") {
        println!("skipped: cmake is not on this machine");
        return;
    }
    for libdir in LIBDIRS {
        cmake(&Installation::new("install-cmake", libdir));
    }
}

fn cmake(installation: &Installation) {
    installation.dir.file(
        "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.13)\n\
         project(outside C CXX)\n\
         set(CMAKE_C_STANDARD 99)\n\
         set(CMAKE_CXX_STANDARD 17)\n\
         find_package(Threads REQUIRED)\n\
         find_package(s3cmtf 0.2 REQUIRED)\n\
         find_package(s3cmtf 99 QUIET)\n\
         if(s3cmtf_FOUND)\n  message(FATAL_ERROR \"found a version that is not installed\")\nendif()\n\
         add_executable(shared example.c)\n\
         target_link_libraries(shared s3cmtf::s3cmtf)\n\
         add_executable(fixed example.c)\n\
         target_link_libraries(fixed s3cmtf::static)\n\
         add_executable(layer cpp_layer.cpp)\n\
         target_link_libraries(layer s3cmtf::s3cmtf m Threads::Threads)\n",
    );
    let build = installation.dir.join("build");
    let mut configure = Command::new("cmake");
    configure
        .arg("-S")
        .arg(installation.dir.path())
        .arg("-B")
        .arg(&build)
        .arg(match installation.libdir {
            "lib" => format!(
                "-DCMAKE_PREFIX_PATH={}",
                installation.dir.join("moved").display()
            ),
            // CMake searches a prefix for this folder only on systems that use it.
            _ => format!(
                "-Ds3cmtf_DIR={}",
                installation.lib().join("cmake/s3cmtf").display()
            ),
        });
    ProgramRun::from(configure.output().unwrap()).ok();
    let mut make = Command::new("cmake");
    make.arg("--build").arg(&build);
    ProgramRun::from(make.output().unwrap()).ok();
    installation.run_program(&build.join("shared"), "prediction");
    installation.run_program(&build.join("fixed"), "prediction");
    installation.run_program(&build.join("layer"), "ok");
}

#[test]
fn shared_library_is_small_and_has_few_dependencies() {
    let installation = Installation::new("install-size", LIBDIRS[0]);
    let shared = installation.lib().join(soname());
    let size = fs::metadata(&shared).unwrap().len();
    println!("libs3cmtf.so: {size} bytes");
    // Debug builds have no limit. Most of the size is the kernels of all solvers at four instruction sets.
    const MAX_BYTES: u64 = 8 << 20;
    assert!(cfg!(debug_assertions) || size < MAX_BYTES, "{size} bytes");
    if !is_installed("readelf") || !is_installed("nm") {
        println!("skipped: binutils are not on this machine");
        return;
    }
    let path = shared.to_str().unwrap();
    let dynamic = run_ok("readelf", ["-d", path]);
    assert!(dynamic.contains(&format!("[{}]", soname())), "{dynamic}");
    for line in dynamic.lines().filter(|l| l.contains("(NEEDED)")) {
        let needed = line.split(['[', ']']).nth(1).unwrap();
        // ld-linux is part of the C library.
        let known = ["libc.so", "libm.so", "libgcc_s.so", "ld-linux"];
        assert!(known.iter().any(|k| needed.starts_with(k)), "{needed}");
    }
    let names = run_ok("nm", ["-D", "--defined-only", path]);
    let symbols = fs::read_to_string(workspace_root().join("include/s3cmtf.symbols")).unwrap();
    // Every function has a symbol version, and nothing else is exported. The version itself is an absolute symbol.
    let functions: Vec<&str> = names.lines().filter(|l| !l.contains(" A ")).collect();
    assert_eq!(functions.len(), symbols.lines().count());
    for line in functions {
        assert!(
            line.contains(" T s3cmtf_") && line.contains("@@S3CMTF_0."),
            "{line}"
        );
    }
}
