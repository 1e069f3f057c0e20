//! `s3cmtf completions`

use clap::{Args, Command};
use clap_complete::Shell;
use s3cmtf::Result;

use crate::outcome::Outcome;
use crate::output::Output;

/// Print the completion script of a shell
#[derive(Args)]
#[command(after_help = "\
Examples:
  s3cmtf completions bash > ~/.local/share/bash-completion/completions/s3cmtf
  s3cmtf completions zsh > ~/.zfunc/_s3cmtf
  s3cmtf completions fish > ~/.config/fish/completions/s3cmtf.fish")]
pub(crate) struct Arguments {
    /// Shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) fn run(a: &Arguments, mut command: Command, out: &mut Output) -> Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(a.shell, &mut command, "s3cmtf", &mut script);
    let script = String::from_utf8_lossy(&script);
    out.line(script.trim_end());
    out.object(&serde_json::json!({"shell": a.shell.to_string(), "script": script}));
    Ok(Outcome::Success)
}
