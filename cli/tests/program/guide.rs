//! Runs the code blocks of the pages in docs/guide.

use std::path::Path;
use std::process::Command;

use crate::common::{ProgramRun, Scratch, next_unit, workspace_root};

/// Returns the shell commands of a page: the contents of its `sh` blocks, one after the other.
fn shell_blocks(page: &str) -> String {
    let text = std::fs::read_to_string(workspace_root().join("docs/guide").join(page)).unwrap();
    let blocks = text.split("```sh\n").skip(1);
    blocks.map(|b| b.split("```").next().unwrap()).collect()
}

/// Runs commands in a folder, with the program in the search path.
fn run_shell(commands: &str, folder: &Path) -> ProgramRun {
    let program = Path::new(env!("CARGO_BIN_EXE_s3cmtf"));
    let mut path = program.parent().unwrap().as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let shell = Command::new("sh")
        .args(["-e", "-c", commands])
        .env("PATH", path)
        .current_dir(folder)
        .output();
    ProgramRun::from(shell.unwrap())
}

/// Writes a small folder with the layout of MovieLens: ids with gaps, quoted titles, films without genres or ratings.
fn write_movielens(folder: &Path) {
    std::fs::create_dir(folder).unwrap();
    let genres = [
        "Action|Sci-Fi",
        "Comedy",
        "Drama|Romance",
        "(no genres listed)",
    ];
    let mut movies = String::from("movieId,title,genres\r\n");
    for film in 0..60 {
        let (id, genres) = (film * film + 1, genres[film % 4]);
        let title = match film % 3 {
            0 => format!("\"Film {film}, The ({})\"", 1950 + film),
            1 => format!("\"A \"\"Quoted\"\" Film {film} (1999)\""),
            _ => format!("Film {film} (2001)"),
        };
        movies += &format!("{id},{title},{genres}\r\n");
    }
    let mut ratings = String::from("userId,movieId,rating,timestamp\r\n");
    let mut state = 1;
    for user in 0..40u32 {
        // The last five films have no ratings.
        for film in 0..55u32 {
            if next_unit(&mut state) < 0.5 {
                continue;
            }
            let stars = if (user + film) % 4 < 2 { 4.5 } else { 2.0 };
            let time = 827_000_000.0 + 60_000_000.0 * next_unit(&mut state);
            ratings += &format!("{},{},{stars},{time:.0}\r\n", user + 1, film * film + 1);
        }
    }
    std::fs::write(folder.join("movies.csv"), movies).unwrap();
    std::fs::write(folder.join("ratings.csv"), ratings).unwrap();
}

#[test]
fn movielens_page() {
    let dir = Scratch::new("guide-movielens");
    write_movielens(&dir.join("ml-latest-small"));
    let commands = shell_blocks("movielens.md");
    let count = commands.lines().filter(|l| l.starts_with("s3cmtf")).count();
    assert_eq!(count, 4, "{commands}");
    let ran = run_shell(&commands, dir.path()).ok();
    let expected = [
        "5 rows with a key that the tensor does not have",
        "13 rows with a missing field",
        "5 names of mode 2",
    ];
    for expected in expected {
        assert!(ran.stdout.contains(expected), "{}", ran.stdout);
    }
    let titles = ran.stdout.lines().filter(|l| l.contains("Film ")).count();
    assert_eq!(titles, 10, "{}", ran.stdout);
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
    let months = std::fs::read_to_string(dir.join("ratings.mode3.tsv")).unwrap();
    assert!(
        months.starts_with("index\tname\n1\t1996-03\n2\t1996-04\n"),
        "{months}"
    );
}
