//! Runs the commands of the pages in docs/guide, and checks the links of all pages.

use std::path::{Path, PathBuf};
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
            // Half a star of noise, so that a fit has an error and intervals have a width.
            let mean = if (user + film) % 4 < 2 { 4.0 } else { 2.0 };
            let stars = mean + (3.0 * next_unit(&mut state)).floor() / 2.0 - 0.5;
            let time = 827_000_000.0 + 60_000_000.0 * next_unit(&mut state);
            ratings += &format!("{},{},{stars},{time:.0}\r\n", user + 1, film * film + 1);
        }
    }
    std::fs::write(folder.join("movies.csv"), movies).unwrap();
    std::fs::write(folder.join("ratings.csv"), ratings).unwrap();
}

/// Runs the commands of movielens.md in a new folder, then those of another page. Returns the folder and the output of that
/// page.
pub(crate) fn run_page(page: &str) -> (Scratch, ProgramRun) {
    let dir = Scratch::new(page);
    write_movielens(&dir.join("ml-latest-small"));
    let mut ran = run_shell(&shell_blocks("movielens.md"), dir.path()).ok();
    if page != "movielens.md" {
        ran = run_shell(&shell_blocks(page), dir.path()).ok();
    }
    (dir, ran)
}

/// Asserts that the text contains all of `parts`, in that order.
#[track_caller]
pub(crate) fn assert_in_order<S: AsRef<str>>(text: &str, parts: &[S]) {
    let mut rest = text;
    for part in parts {
        let part = part.as_ref();
        let found = rest.find(part);
        let at = found.unwrap_or_else(|| panic!("{part:?} is not in the rest of {text}"));
        rest = &rest[at + part.len()..];
    }
}

/// Returns the number of the row of a film in the tensor of movielens.md.
fn row_of_film(dir: &Scratch, id: &str) -> String {
    let names = std::fs::read_to_string(dir.join("ratings.mode2.tsv")).unwrap();
    let (row, _) = names
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .find(|(_, name)| *name == id)
        .unwrap();
    row.to_string()
}

/// Returns the number that follows `label` in the summary line of a model.
#[track_caller]
fn summary_number(stdout: &str, model: &str, label: &str) -> f64 {
    let start = format!("{model}: stopped");
    let line = stdout.lines().find(|l| l.starts_with(&start));
    let line = line.unwrap_or_else(|| panic!("no summary of {model} in {stdout}"));
    let number = line.split(label).nth(1).unwrap();
    let number = number.trim_start().split([',', ' ']).next().unwrap();
    number.parse().unwrap()
}

#[test]
fn movielens_page() {
    let commands = shell_blocks("movielens.md");
    let count = commands.lines().filter(|l| l.starts_with("s3cmtf")).count();
    assert_eq!(count, 4, "{commands}");
    let (dir, ran) = run_page("movielens.md");
    assert_in_order(
        &ran.stdout,
        &[
            "ratings.coo: ",
            "40 x 55 x 24",
            "5 names of mode 2",
            "13 lines with a missing field",
            "5 lines with a key that the tensor does not have",
        ],
    );
    let titles = ran.stdout.lines().filter(|l| l.contains("Film ")).count();
    assert_eq!(titles, 10, "{}", ran.stdout);
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
    // Titles come with the ids of the text: those of film k are k * k + 1.
    let list = ran.stdout.split("row 17 of mode 1:\n").nth(1).unwrap();
    for line in list.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let film = words.iter().position(|w| *w == "Film").unwrap();
        let film: u32 = words[film + 1].trim_end_matches(',').parse().unwrap();
        assert_eq!(words[2], (film * film + 1).to_string(), "{line}");
    }
    let months = std::fs::read_to_string(dir.join("ratings.mode3.tsv")).unwrap();
    assert!(
        months.starts_with("index\tname\n1\t1996-03\n2\t1996-04\n"),
        "{months}"
    );
}

#[test]
fn rows_have_titles_and_ids() {
    let (dir, _) = run_page("movielens.md");
    let similar = |row: &str, format: &str| {
        let command = format!(
            "s3cmtf similar model.s3m --for '2:{row}' --names 2:ml-latest-small/movies.csv --top 1 {format}"
        );
        run_shell(&command, dir.path()).ok()
    };
    let found = similar("26", "--json").json().remove(0);
    assert_eq!(found["for"][0]["id"], "26");
    assert_eq!(found["for"][0]["name"], "Film 5 (2001)");
    assert!(found["rows"][0]["id"].is_string(), "{found}");
    // A row is given by its id, its title or its number.
    let number = format!("#{}", found["for"][0]["index"]);
    for row in ["Film 5 (2001)", &number] {
        assert_eq!(similar(row, "--json").json()[0], found, "{row}");
    }
    let text = similar("26", "").stdout;
    assert!(
        text.starts_with("row 26 of mode 2, Film 5 (2001):\n"),
        "{text}"
    );
    let csv = similar("26", "--csv").stdout;
    let head = "mode2,mode2_id,mode2_name,place,row,row_id,row_name,";
    assert!(csv.starts_with(head), "{csv}");
    let clusters =
        "s3cmtf clusters model.s3m --mode 2 -k 2 --csv --names 2:ml-latest-small/movies.csv";
    let csv = run_shell(clusters, dir.path()).ok().stdout;
    assert!(csv.starts_with("row,row_id,row_name,cluster,"), "{csv}");
    // A file with row numbers, as convert writes it, still names rows by number.
    let by_number = "s3cmtf similar model.s3m --for 2:26 --names 2:ratings.mode2.tsv --json";
    let by_number = run_shell(by_number, dir.path()).ok();
    assert_eq!(by_number.json()[0]["for"][0]["name"], "26");
    // Numbers in a later text are ids of the model, also without its names.
    let cells = "printf 'userId,movieId,month\n17,26,1997-05\n' > cells.csv\n\
        s3cmtf predict model.s3m cells.csv --no-value --names 3:ratings.mode3.tsv";
    let plain = run_shell(cells, dir.path()).ok();
    let names = format!("{cells} --names 2:ratings.mode2.tsv");
    let ran = run_shell(&names, dir.path()).ok();
    let expected = format!("17 {} 15 ", found["for"][0]["index"]);
    assert!(ran.stdout.starts_with(&expected), "{}", ran.stdout);
    assert_eq!((plain.stdout, plain.stderr), (ran.stdout, ran.stderr));
}

#[test]
fn data_page() {
    let (dir, ran) = run_page("data.md");
    assert_in_order(
        &ran.stdout,
        &[
            "visits.coo: 4 entries, 2 x 2 x 3",
            "1 line skipped as invalid; the first is line 5: the value is missing",
            "numbered.coo: ",
            "40 x 2,917 x 24",
            "3\tcarla",
            "users.coo: 5 entries",
            "1 line with a missing field",
            "1\tgender=F\n2\tgender=M\n3\tage",
            "BAD duplicates: 1 cell listed more than once",
            "fixed.coo: 3 entries (0 left out, 1 merged)",
            "order 3, 40 x 55 x 24",
            "ratings.train.coo: ",
            "last.test.coo: ",
        ],
    );
    for file in ["fixed.mode1.tsv", "ratings.test.coo", "last.train.coo"] {
        assert!(dir.join(file).is_file(), "{file}");
    }
}

#[test]
fn fitting_page() {
    let (dir, ran) = run_page("fitting.md");
    for model in ["plain.s3m", "gibbs.s3m", "valid.s3m", "tuned.s3m"] {
        let rmse = summary_number(&ran.stdout, model, "test RMSE");
        assert!(rmse < 0.7, "{model}: {rmse}");
    }
    assert_in_order(
        &ran.stdout,
        &[
            "plain.s3m\n  a cp model of 40 x 55 x 24",
            "options: algorithm=blocked",
            "(trial 0 has the default options)",
            "best.conf: trial",
            "half.s3m: stopped (epochs) after 20 epochs",
            "longer.s3m: stopped (epochs) after 40 epochs",
        ],
    );
    let options = std::fs::read_to_string(dir.join("best.conf")).unwrap();
    assert!(options.contains("\nrank="), "{options}");
}

#[test]
fn time_page() {
    let (dir, ran) = run_page("time.md");
    assert_in_order(
        &ran.stdout,
        &[
            "trace.json: ",
            "threads during epochs: ",
            "traced.s3m: stopped",
            "2 x 1",
            "bench.json: ",
        ],
    );
    let page = std::fs::read_to_string(workspace_root().join("docs/guide/time.md")).unwrap();
    for kind in s3cmtf::trace::SpanKind::ALL {
        let name = format!("`{}`", kind.name());
        assert!(page.contains(&name), "{name}");
    }
    for file in ["trace.json", "bench.json"] {
        let text = std::fs::read_to_string(dir.join(file)).unwrap();
        assert!(text.starts_with("{\"displayTimeUnit\""), "{file}");
    }
}

#[test]
fn coupled_page() {
    let (_dir, ran) = run_page("coupled.md");
    let models = "alone coupled observed sampled weight01 weight10 graph";
    for model in models.split(' ') {
        let rmse = summary_number(&ran.stdout, &format!("{model}.s3m"), "validation RMSE");
        assert!(rmse < 0.7, "{model}: {rmse}");
    }
    let warnings = ran.stderr.matches("all its entries have the same value");
    assert_eq!(warnings.count(), 1, "{}", ran.stderr);
    assert_in_order(&ran.stdout, &["1 2 1\n2 3 1\n", "unclipped", "clipped to"]);
}

#[test]
fn predictions_page() {
    let (dir, ran) = run_page("predictions.md");
    let [film_2, film_50] = ["2", "50"].map(|id| row_of_film(&dir, id));
    assert_in_order(
        &ran.stdout,
        &[
            format!("\n1 {film_50} 15 "),
            format!("\n17 {film_50} 15 "),
            format!("\n17 {film_2} 15 "),
            "predictions.coo: 3 predictions".into(),
            "clipped to 1.5 to 4.5".into(),
            "\"quantiles\":[".into(),
            "coverage ".into(),
            "row 17 of mode 1:".into(),
        ],
    );
    let with_interval =
        |l: &&str| l.starts_with(&format!("17 {film_50} 15 ")) && l.split(' ').count() == 7;
    assert_eq!(ran.stdout.lines().filter(with_interval).count(), 1);
    let coverage = ran.stdout.split("coverage ").nth(1).unwrap();
    let coverage: f64 = coverage.lines().next().unwrap().parse().unwrap();
    assert!((0.8..=0.99).contains(&coverage), "{coverage}");
    assert!(dir.join("predictions.coo").is_file());
}

#[test]
fn new_rows_page() {
    let (dir, ran) = run_page("new-rows.md");
    let [film_1, film_2] = ["1", "2"].map(|id| row_of_film(&dir, id));
    assert_in_order(
        &ran.stdout,
        &[
            format!("1001 {film_1} 15 "),
            "model2.s3m: 1 row of mode 1 added, from 4 entries".into(),
            "row 1001 of mode 1:".into(),
            "model3.s3m: 0 rows of mode 1 added, 1 row replaced, from 5 entries".into(),
            "model4.s3m: 2 rows of mode 2 added, from 0 entries and 3 of matrices".into(),
            "row 17 of mode 1:".into(),
            "cold.s3m: stopped".into(),
            format!("\n17 {film_2} 15 "),
        ],
    );
    // The page says that these two fail.
    let recommend = "s3cmtf recommend model.s3m --mode 2 --for 1:1001";
    run_shell(recommend, dir.path()).failed(2, &["row 1001 of mode 1 is not in the model"]);
    let again = "s3cmtf fold-in model2.s3m --mode 1 --tensor new-user.csv --columns userId,movieId,month --value rating \
        --names 2:ratings.mode2.tsv --names 3:ratings.mode3.tsv -o model5.s3m";
    run_shell(again, dir.path()).failed(2, &["is in the model already"]);
}

/// Pages whose code is in C and C++; tests/c_abi compiles and runs it.
const TESTED_ELSEWHERE: [&str; 2] = ["c.md", "cpp.md"];

#[test]
fn every_page_has_a_test() {
    let source = concat!(include_str!("guide.rs"), include_str!("guide_discovery.rs"));
    for page in std::fs::read_dir(workspace_root().join("docs/guide")).unwrap() {
        let page = page.unwrap().file_name().into_string().unwrap();
        let call = format!("run_page(\"{page}\")");
        let tested = source.contains(&call) || TESTED_ELSEWHERE.contains(&page.as_str());
        assert!(tested, "no test in {} runs docs/guide/{page}", file!());
    }
}

/// Returns the Markdown files in a folder and its subfolders.
fn markdown_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let (folders, files): (Vec<_>, Vec<_>) =
        entries.map(|e| e.unwrap().path()).partition(|p| p.is_dir());
    let mut pages: Vec<_> = files
        .into_iter()
        .filter(|p| p.extension().is_some_and(|e| e == "md"))
        .collect();
    pages.extend(folders.iter().flat_map(|f| markdown_files(f)));
    pages
}

/// Returns the lines of a page that are not in code blocks.
fn prose(page: &Path) -> String {
    let text = std::fs::read_to_string(page).unwrap();
    let mut in_code = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            lines.push(line);
        }
    }
    lines.join("\n")
}

/// Returns the anchors of the headings of a page, as GitHub makes them.
fn anchors(page: &Path) -> Vec<String> {
    let text = prose(page);
    let headings = text.lines().filter(|l| l.starts_with('#'));
    let anchor = |heading: &str| {
        let kept = heading.trim_start_matches('#').trim().to_lowercase();
        kept.chars()
            .filter(|c| c.is_alphanumeric() || "-_ ".contains(*c))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn links_of_pages_lead_somewhere() {
    let root = workspace_root();
    let mut pages = markdown_files(&root.join("docs"));
    pages.extend(["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|p| root.join(p)));
    let mut broken = Vec::new();
    let mut checked = 0;
    for page in &pages {
        let text = prose(page);
        let targets = text.split("](").skip(1);
        for target in targets.map(|rest| rest.split([')', ' ']).next().unwrap()) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            checked += 1;
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let linked = match file {
                "" => page.clone(),
                file => page.parent().unwrap().join(file),
            };
            let found = linked.exists()
                && (anchor.is_empty() || anchors(&linked).iter().any(|a| a == anchor));
            if !found {
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(checked > 50, "only {checked} links found");
    assert!(broken.is_empty(), "broken links:\n{}", broken.join("\n"));
}
