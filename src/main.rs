//! The command-line program. Everything it does is a call into the library.
#![deny(unsafe_code)]

mod cli;

fn main() -> std::process::ExitCode {
    cli::run()
}
