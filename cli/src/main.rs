//! The command-line program. All of it is in the library of this package.
#![deny(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    s3cmtf_cli::program::main(&[])
}
