//! Names with characters that are invisible, control a terminal, or change the direction of text: no output shows them, and all
//! outputs that are read again return them as they were.

use std::path::{Path, PathBuf};

use s3cmtf::format::Names;
use s3cmtf::printable::is_deceptive;

use crate::common::forged_model::ForgedModel;
use crate::common::{ProgramRun, Scratch};
use crate::runner::run;

/// One character of each range that is deceptive, apart from NUL, tab and line ends, which a line of text or an argument cannot
/// have.
const CHARACTERS: [char; 29] = [
    '\u{1}',
    '\u{7}',
    '\u{8}',
    '\u{1b}',
    '\u{7f}',
    '\u{85}',
    '\u{9b}',
    '\u{ad}',
    '\u{61c}',
    '\u{115f}',
    '\u{180e}',
    '\u{200b}',
    '\u{200c}',
    '\u{200d}',
    '\u{200e}',
    '\u{200f}',
    '\u{2028}',
    '\u{2029}',
    '\u{202a}',
    '\u{202b}',
    '\u{202c}',
    '\u{202d}',
    '\u{202e}',
    '\u{2060}',
    '\u{2066}',
    '\u{2069}',
    '\u{3164}',
    '\u{feff}',
    '\u{e0041}',
];

/// Returns the name of a row that has one of the characters, inside and at its end.
fn name(kind: &str, k: usize) -> String {
    let c = CHARACTERS[k % CHARACTERS.len()];
    format!("{kind}{k}{c}x{c}")
}

/// Asserts that a text of several lines has none of the characters.
fn check_text(text: &str, what: &str) {
    let found = text
        .chars()
        .find(|&c| is_deceptive(c) && c != '\n' && c != '\t');
    assert_eq!(found, None, "{what}: {text:?}");
}

/// Runs the program and asserts that neither of its outputs has one of the characters.
fn run_checked(arguments: &[&str]) -> ProgramRun {
    let done = run(arguments);
    check_text(&done.stdout, &format!("{arguments:?}"));
    check_text(&done.stderr, &format!("{arguments:?}"));
    done
}

/// A model whose rows, columns, modes and files have such names.
struct Model {
    dir: Scratch,
    file: PathBuf,
    tensor: PathBuf,
    matrix: PathBuf,
}

impl Model {
    fn new() -> Model {
        let dir = Scratch::new("deceptive-names");
        let count = CHARACTERS.len();
        let mut csv = String::from("us\u{202e}er,film\u{200b},stars\n");
        let mut attributes = String::from("film,gen\u{2067}re\n");
        for i in 0..12 * count {
            let (user, film) = (name("u", i % count), name("f", i * 7 % count));
            csv += &format!("{user},{film},{}\n", 1 + i % 5);
        }
        for k in 0..count {
            attributes += &format!("{},{}\n", name("f", k), name("g", k % 3));
        }
        // All files of the model have such a name too.
        let csv = dir.file("rat\u{202e}ings.csv", csv);
        let attributes = dir.file("attri\u{2066}butes.csv", attributes);
        let (tensor, matrix) = (
            dir.join("rat\u{202e}ings.coo"),
            dir.join("gen\u{200f}res.coo"),
        );
        let file = dir.join("mo\u{202e}del\u{1b}.s3m");
        let texts = [&csv, &attributes, &tensor, &matrix, &file].map(|p| p.to_str().unwrap());
        let [csv, attributes, t, m, f] = texts;
        run_checked(&["convert", csv, t, "--strings", "all"]).ok();
        run_checked(&[
            "convert",
            attributes,
            m,
            "--rows-of",
            &format!("2:{t}"),
            "--columns",
            "1,2",
        ])
        .ok();
        let matrix_of_films = format!("2:{m}");
        let fit = [
            "fit",
            "--tensor",
            t,
            "--matrix",
            &matrix_of_films,
            "--rank",
            "2",
            "--epochs",
            "2",
            "-o",
            f,
        ];
        run_checked(&fit).ok();
        run_checked(&[&fit[..], &["--json"]].concat()).ok();
        Model {
            dir,
            file,
            tensor,
            matrix,
        }
    }
}

#[test]
fn no_command_shows_characters_that_deceive() {
    let model = Model::new();
    let (file, tensor, matrix) = (
        model.file.to_str().unwrap(),
        model.tensor.to_str().unwrap(),
        model.matrix.to_str().unwrap(),
    );
    let missing = format!("{file}\u{202e}missing");
    let user = format!("1:{}", name("u", 8));
    let unknown = format!("1:{}", name("unknown", 22));
    let report = model.dir.join("re\u{202e}port.html");
    let report_file = report.to_str().unwrap();
    let commands: [&[&str]; 16] = [
        &["info", file],
        &["info", tensor],
        &["check", tensor],
        &["recommend", file, "--mode", "2", "--for", &user],
        &["similar", file, "--for", &user],
        &["concepts", file, "--mode", "2"],
        &["concepts", file, "--mode", "2", "--for", &user],
        &[
            "clusters", file, "--mode", "2", "-k", "3", "--matrix", matrix,
        ],
        &["eval", file, tensor],
        &[
            "report",
            file,
            "--data",
            tensor,
            "--title",
            "ti\u{202e}tle",
            "--modes",
            "a\u{200b},b\u{7}",
            "-o",
            report_file,
        ],
        // Errors and warnings quote names and files.
        &["recommend", file, "--mode", "2", "--for", &unknown],
        &["similar", file, "--for", &unknown],
        &["info", &missing],
        &[
            "fit",
            "--tensor",
            tensor,
            "--matrix",
            "1:no\u{202e}file",
            "-o",
            "x",
        ],
        &["info", "--no\u{202e}option"],
        &[
            "fit",
            "--tensor",
            tensor,
            "-o",
            "x",
            "--algorithm",
            "gib\u{202e}bs",
        ],
    ];
    for command in commands {
        let done = run_checked(command);
        let lines = run_checked(&[command, &["--json"]].concat());
        assert_eq!(done.code, lines.code, "{command:?}");
        if done.code == Some(0) {
            lines.json();
        }
    }
    check_text(&std::fs::read_to_string(&report).unwrap(), "the report");
    // JSON has the names as they are.
    let list = [
        "recommend",
        file,
        "--mode",
        "2",
        "--for",
        &user,
        "--top",
        "100",
        "--json",
    ];
    let list = run_checked(&list).ok().json();
    let mut names: Vec<&str> = list[0]["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["name"].as_str().unwrap())
        .collect();
    names.sort_unstable();
    let mut expected: Vec<String> = (0..CHARACTERS.len()).map(|k| name("f", k)).collect();
    expected.sort_unstable();
    assert_eq!(names, expected);
}

/// Returns all files in a folder with these endings.
fn files(folder: &Path, ends: &[&str]) -> Vec<PathBuf> {
    let all = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path());
    let matches = |p: &PathBuf| ends.iter().any(|end| p.to_str().unwrap().ends_with(end));
    all.filter(matches).collect()
}

#[test]
fn files_of_names_and_records_escape_characters_that_deceive() {
    let model = Model::new();
    let tables = files(model.dir.path(), &[".tsv"]);
    // Those of the tensor, the matrix and the model.
    assert!(tables.len() >= 5, "{tables:?}");
    for table in &tables {
        check_text(
            &std::fs::read_to_string(table).unwrap(),
            table.to_str().unwrap(),
        );
    }
    let users = Names::load_beside(&model.tensor, 0).unwrap().unwrap();
    let mut found: Vec<&str> = users.iter().map(|(_, name)| name).collect();
    found.sort_unstable();
    let mut expected: Vec<String> = (0..CHARACTERS.len()).map(|k| name("u", k)).collect();
    expected.sort_unstable();
    assert_eq!(found, expected);
    // Names that a user writes need no escapes.
    let file = model.file.to_str().unwrap();
    let titles: String = (0..CHARACTERS.len())
        .map(|k| format!("{},{}\n", name("f", k), name("title", k)))
        .collect();
    let titles = model.dir.file("titles.csv", titles);
    let titles = format!("2:{}", titles.display());
    let list = [
        "similar",
        file,
        "--for",
        &format!("2:{}", name("title", 3)),
        "--names",
        &titles,
    ];
    run_checked(&list).ok();
    // The log and the journal of a batch, whose jobs name such files.
    let tensor = model.tensor.to_str().unwrap();
    let output = model.dir.join("ba\u{202e}tch.s3m");
    let job = serde_json::json!({
        "id": "batch", "job": "fit", "tensor": tensor, "output": output.to_str().unwrap(), "options": {"epochs": 1},
    });
    let broken =
        serde_json::json!({"id": "bro\u{202e}ken", "job": "fit", "tensor": "no\u{202e}file"});
    let jobs = model.dir.file("jobs.jsonl", format!("{job}\n{broken}\n"));
    let folder = model.dir.join("batch");
    let batch = [
        "batch",
        jobs.to_str().unwrap(),
        "-o",
        folder.to_str().unwrap(),
    ];
    run_checked(&batch).failed(2, &[]);
    let records = files(&folder, &[".jsonl", ".log"]);
    assert!(records.len() >= 3, "{records:?}");
    for record in records {
        check_text(
            &std::fs::read_to_string(&record).unwrap(),
            record.to_str().unwrap(),
        );
    }
    // A second run finds the job by its text.
    let again = run_checked(&[&batch[..], &["--json"]].concat());
    assert!(again.stdout.contains("\"skipped\""), "{}", again.stdout);
}

#[test]
fn options_and_records_of_a_model_are_shown_without_characters_that_deceive() {
    let model = Model::new();
    let forged = model.dir.join("forged.s3m");
    let hostile: String = CHARACTERS
        .iter()
        .filter(|c| !"\u{85}\u{2028}".contains(**c))
        .collect();
    let mut file = ForgedModel::read(&model.file);
    let options = file.section_mut("options");
    options.extend(format!("\noption{hostile}=value{hostile}\n").as_bytes());
    let record = file.section_mut("record");
    let note = format!("note=1 warning text{hostile}\nreason=epochs{hostile}\nkernel=k{hostile}\n");
    *record = [note.as_bytes(), record].concat();
    file.write(&forged);
    let forged = forged.to_str().unwrap();
    let page = model.dir.join("forged.html");
    for command in [
        &["info", forged][..],
        &["report", forged, "-o", page.to_str().unwrap()],
        &["recommend", forged, "--mode", "2", "--for", "1:#1"],
    ] {
        run_checked(command);
        run_checked(&[command, &["--json"]].concat());
    }
    let shown = run_checked(&["info", forged]).ok().stdout;
    assert!(
        shown.contains("option\u{fffd}") || shown.contains("text\u{fffd}"),
        "{shown}"
    );
    check_text(&std::fs::read_to_string(page).unwrap(), "the report");
}
