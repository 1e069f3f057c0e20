//! `s3cmtf man`

use std::path::PathBuf;

use clap::{Args, Command};
use clap_mangen::Man;
use s3cmtf::format::{OutputFolder, write_all_atomically};
use s3cmtf::{Error, Result};
use serde_json::json;

use crate::outcome::Outcome;
use crate::output::Output;

/// Write man pages: s3cmtf.1 and one page per command
#[derive(Args)]
#[command(after_help = "\
Examples:
  s3cmtf man -o ~/.local/share/man/man1
  s3cmtf man -o pages")]
pub(crate) struct Arguments {
    /// Folder to write the pages to; created if it does not exist
    #[arg(short, long, value_name = "FOLDER")]
    output: PathBuf,
}

pub(super) fn run(a: &Arguments, mut command: Command, out: &mut Output) -> Result<Outcome> {
    command.build();
    let folder = OutputFolder::create(&a.output)?;
    let commands = command.get_subcommands().filter(|c| c.get_name() != "help");
    let mut files = Vec::new();
    for page in [&command].into_iter().chain(commands) {
        // `s3cmtf-fit` is the name of a page, `s3cmtf fit` that of a command.
        let name = page
            .get_display_name()
            .unwrap_or(page.get_name())
            .to_string();
        let file = folder.file(format!("{name}.1"))?;
        let man =
            Man::new(page.clone().display_name(name)).source(format!("s3cmtf {}", s3cmtf::VERSION));
        let mut text = Vec::new();
        man.render(&mut text)
            .map_err(|e| Error::io(format!("cannot make {}", file.display()), e))?;
        files.push((file, text));
    }
    write_all_atomically(&files)?;
    let files: Vec<String> = files.iter().map(|f| f.0.display().to_string()).collect();
    for file in &files {
        out.line(file);
    }
    out.object(&json!({"files": files}));
    Ok(Outcome::Success)
}
