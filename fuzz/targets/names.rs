//! Names files and lists of rows.

use std::fs;
use std::path::Path;

use s3cmtf::discover::RowNames;
use s3cmtf::format::{Names, RowMap};
use s3cmtf::options::Options;

use super::Seeds;
use super::sample::with_problem;

pub fn run(input: &[u8], folder: &Path) -> bool {
    with_problem(&Options::default(), |problem| {
        check(input, folder, problem.row_maps()[0])
    })
}

fn check(input: &[u8], folder: &Path, rows: &RowMap) -> bool {
    let path = folder.join("names.tsv");
    fs::write(&path, input).unwrap();
    let mut row_names = RowNames::new(2);
    let _ = row_names.read_list(0, &path, rows);
    let text = String::from_utf8_lossy(input);
    let _ = row_names.select(0, &text, rows);
    let Ok(names) = Names::load(&path) else {
        return false;
    };
    let copy = folder.join("copy.tsv");
    names.save(&copy).unwrap();
    let again = Names::load(&copy).unwrap();
    let all = |names: &Names| -> Vec<(u64, String)> {
        names
            .iter()
            .map(|(row, name)| (row as u64, name.to_string()))
            .collect()
    };
    assert_eq!(all(&names), all(&again));
    for (_, name) in names.iter() {
        let _ = names.find(name);
    }
    if row_names.set(0, names).is_ok() {
        let _ = row_names.read_list(0, &path, rows);
        let _ = row_names.find(0, &text, rows);
        let _ = row_names.select(0, &text, rows);
        let _ = row_names.display_name(0, 1);
    }
    true
}

pub fn seeds(_: &Path) -> Seeds {
    let texts = [
        (
            "own",
            "index\tname\n1\ta\\tb\n3\tline\\nend\n12\tback\\\\slash\n",
        ),
        (
            "tsv",
            "id\ttitle\tgenres\n1\tToy Story\tA|B\n2\tAm\u{e9}lie\tC\n",
        ),
        (
            "csv",
            "id,title\r\n1,\"Me, Myself & Irene\"\r\n2,\"a \"\"b\"\"\",x\r\n",
        ),
        ("shared", "1\tx\n2\tx\n"),
        ("gap", "1\ta\n4000\tb\n"),
        ("bom", "\u{feff}1,x\n2,y\n"),
        ("carriage-returns", "1\tAction\r2\tDrama\r"),
        ("list", "1\n3\n6\n\"12\"\n"),
    ];
    texts.map(|(name, text)| (name, text.into())).to_vec()
}
