//! The columns of CSV and TSV files: headers, names and numbers of columns, the value column, and files as other programs
//! write them.

use std::fs;

use crate::common::{ProgramRun, Scratch, gzip};
use crate::derived_ids::{entries, names};
use crate::runner::{expand_paths, run, run_with_input};

/// Converts `text` in a file `name` of a new folder.
#[track_caller]
fn converted(name: &str, text: impl AsRef<[u8]>, arguments: &[&str]) -> (Scratch, ProgramRun) {
    let line = std::panic::Location::caller().line();
    let dir = Scratch::new(&format!("columns-{line}"));
    dir.file(name, text);
    let input = format!("@{name}");
    let all = [&["convert", &input, "@out.coo"], arguments].concat();
    let ran = run(expand_paths(&dir, &all));
    (dir, ran)
}

/// Returns the entries of a text, as indices and value separated by blanks.
#[track_caller]
fn read(name: &str, text: impl AsRef<[u8]>, arguments: &[&str]) -> Vec<String> {
    let (dir, ran) = converted(name, text, arguments);
    ran.ok();
    let line = |(indices, value): (Vec<u32>, f64)| {
        let indices: Vec<String> = indices.iter().map(u32::to_string).collect();
        format!("{} {value}", indices.join(" "))
    };
    entries(&dir, "out.coo").into_iter().map(line).collect()
}

/// Asserts that a text is refused with a message that has all `words`, and that nothing is written.
#[track_caller]
fn refused(name: &str, text: impl AsRef<[u8]>, arguments: &[&str], words: &[&str]) {
    let (dir, ran) = converted(name, text, arguments);
    ran.failed(2, words).failed(2, &[name]);
    assert_eq!(dir.names(), [name], "something was left behind");
}

#[test]
fn a_first_line_of_data_is_not_a_header() {
    let remedy = &["line 1", "--no-header", "option no_header"][..];
    let ratings = "1,10,4,847117005\n2,20,3.5,841000000\n";
    let named = &["--columns", "1,2", "--value", "3"][..];
    for more in [&[][..], named, &["--no-value"], &["--skip-bad-lines"]] {
        refused("r.csv", ratings, more, remedy);
        refused("r.csv", format!("\u{feff}{ratings}"), more, remedy);
        refused("r.csv.gz", gzip(ratings.as_bytes()), more, remedy);
        refused("r.tsv", ratings.replace(',', "\t"), more, remedy);
    }
    let quoted = "\"1\",\"10\",\"4\"\n2,20,3\n";
    refused("r.csv", quoted, &[], remedy);
    // Numbers with empty fields, and dates.
    refused("r.csv", "1,10,4,\n2,20,3,\n", &[], remedy);
    refused("r.csv", "1,10,nan\n2,20,3\n", &[], remedy);
    refused(
        "r.csv",
        "1,2005-04-02\n2,2005-04-03\n",
        &["--no-value"],
        remedy,
    );
    refused(
        "r.csv",
        "1,2005-04-02,4\n2,2005-04-03,3\n",
        &["--time", "2:month"],
        remedy,
    );
    // Years may be names of columns.
    let years = "2019,2020,2021\n1,2,3\n";
    refused(
        "r.csv",
        years,
        &["--columns", "2019,2020", "--value", "2021"],
        &["rename a column"],
    );

    let read_all = [&["--no-header"], named].concat();
    assert_eq!(read("r.csv", ratings, &read_all), ["1 10 4", "2 20 3.5"]);
    // Without a header the last column has the values, or the last that is not named.
    assert_eq!(
        read("r.csv", "1,10,4\n2,20,3\n", &["--no-header"]),
        ["1 10 4", "2 20 3"]
    );
    let options = ["--no-header", "--columns", "3,1"];
    assert_eq!(
        read("r.csv", "1,4,10\n2,3,20\n", &options),
        ["10 1 4", "20 2 3"]
    );
    let options = ["--no-header", "--weight", "3", "--values", "f64"];
    assert_eq!(
        read("r.csv", "1,10,4,2\n2,20,3,5\n", &options),
        ["1 10 2", "2 20 5"]
    );
    refused(
        "r.csv",
        "1,2\n",
        &["--no-header", "--columns", "1,2"],
        &["--no-value"],
    );
}

#[test]
fn a_first_line_of_names_and_numbers_is_not_a_header() {
    let words = &["line 1", "'5', which looks like data", "--no-header"][..];
    let text = "anna,heat,5\nbob,alien,3\n";
    for options in [
        &[][..],
        &["--columns", "1,2"],
        &["--columns", "anna,heat"],
        &["--columns", "1,2", "--value", "3"],
        &["--columns", "1,2", "--no-value", "--weight", "3"],
        &["--skip-bad-lines"],
    ] {
        refused("r.csv", text, options, words);
    }
    assert_eq!(read("r.csv", text, &["--no-header"]), ["1 1 5", "2 2 3"]);
    let dated = "anna,heat,2005-04-02,5\nbob,alien,2005-04-03,3\n";
    refused(
        "r.csv",
        dated,
        &["--time", "3:month"],
        &["'2005-04-02'", "--no-header"],
    );
    // A number is a name for those who ask for it.
    let years = "user,item,2019,2020\nann,b,4,5\n";
    let options = ["--columns", "user,item", "--value", "2019"];
    assert_eq!(read("r.csv", years, &options), ["1 1 4"]);
}

#[test]
fn attribute_tables_need_a_header_too() {
    let dir = Scratch::new("columns-attributes");
    dir.file("r.csv", "u,m,rating\n1,1,1\n2,2,2\n1,3,3\n");
    run(expand_paths(&dir, &["convert", "@r.csv", "@r.coo"])).ok();
    let go = |text: &str, more: &[&str]| {
        dir.file("t.csv", text);
        let all = [
            &["convert", "@t.csv", "@g.coo", "--rows-of", "2:@r.coo"],
            more,
        ];
        run(expand_paths(&dir, &all.concat()))
    };
    let numbers = "1,107\n2,90\n3,170\n";
    let by_number = ["--columns", "1", "--numeric", "2"];
    go(numbers, &by_number).failed(2, &["line 1", "--no-header"]);
    go(numbers, &[&by_number[..], &["--no-header"]].concat()).ok();
    assert_eq!(entries(&dir, "g.coo").len(), 3);
    // The key looks like data.
    let categories = "1,Crime\n2,Drama\n3,Drama\n";
    go(categories, &["--columns", "1,2"]).failed(2, &["'1' may be the name", "--no-header"]);
    let reversed = "3,Drama\n2,Drama\n1,Crime\n";
    go(reversed, &["--columns", "1,2"]).failed(2, &["'3', which looks like data", "--no-header"]);
    go(categories, &["--columns", "1,2", "--no-header"]).ok();
    assert_eq!(entries(&dir, "g.coo").len(), 3);
    // A name that the options ask for is ambiguous.
    let twice = "id,tag,tag,id\n1,a,b,1\n2,b,a,2\n";
    go(twice, &["--columns", "1,tag"]).failed(2, &["columns 2, 3 are called 'tag'"]);
    go(twice, &["--columns", "id,2"]).failed(2, &["columns 1, 4 are called 'id'"]);
    go(twice, &["--columns", "1,2"]).ok();
    // Columns of the matrix have names of their own.
    go(twice, &["--columns", "1,2,3"]).failed(2, &["would be called \"tag=", "rename"]);
    let joint = "id,a,a=b\n1,b=c,c\n2,x,y\n";
    go(joint, &["--columns", "id,a,a=b"]).failed(2, &["would be called \"a=b=c\""]);
    let bins = "id,size,n\n1,3,\"[0, 5)\"\n2,4,x\n";
    let named = "id,size,\"size=[0, 5)\"\n1,3,7\n2,4,8\n";
    let rule = ["--bin", "size:width=5"];
    go(bins, &[&["--columns", "id,size,n"], &rule[..]].concat()).ok();
    go(
        named,
        &[&["--columns", "id,size", "--numeric", "3"], &rule[..]].concat(),
    )
    .failed(2, &["would be called \"size=[0, 5)\""]);
}

#[test]
fn the_value_column_is_found_by_its_name_or_its_numbers() {
    let ratings = "userId,movieId,rating,timestamp\n1,10,4,847117005\n2,20,3.5,841000000\n";
    let both = ["1 10 4", "2 20 3.5"];
    let indices = ["--columns", "userId,movieId"];
    assert_eq!(read("r.csv", ratings, &indices), both);
    assert_eq!(
        read("r.csv", ratings, &[]),
        ["1 10 847117005 4", "2 20 841000000 3.5"]
    );
    let months = [&["--time", "timestamp:month"][..], &indices[..0]].concat();
    assert_eq!(read("r.csv", ratings, &months), ["1 10 4 4", "2 20 1 3.5"]);
    // In a stream, gzipped, in any case, with blanks and a byte order mark.
    assert_eq!(read("r.csv.gz", gzip(ratings.as_bytes()), &indices), both);
    for name in ["Rating", "VALUE", "stars", "Score", "count", " rating "] {
        let text = format!("\u{feff}{}", ratings.replace("rating", name));
        assert_eq!(read("r.csv", text, &indices), both, "{name}");
    }
    let dir = Scratch::new("columns-stream");
    let all = ["convert", "-", "@out.coo", "--columns", "userId,movieId"];
    let all = expand_paths(&dir, &all);
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    run_with_input(&all, ratings.as_bytes()).ok();
    assert_eq!(entries(&dir, "out.coo").len(), 2);

    // The only column that is left, whatever its name.
    let three = "user,item,x\n1,2,3\n";
    assert_eq!(read("r.csv", three, &["--columns", "user,item"]), ["1 2 3"]);
    assert_eq!(read("r.csv", three, &["--columns", "item,x"]), ["2 3 1"]);
    assert_eq!(read("r.csv", three, &["--strings", "user,item"]), ["1 1 3"]);
    let weighted = "user,item,x,w\n1,2,3,4\n";
    let options = ["--columns", "user,item", "--weight", "w"];
    assert_eq!(read("r.csv", weighted, &options), ["1 2 3"]);
    assert_eq!(read("r.csv", three, &["--no-value"]), ["1 2 3 1"]);
    // The only one with numbers.
    assert_eq!(read("r.csv", "user,x,item\nann,3,b\n", &[]), ["1 1 3"]);
    assert_eq!(
        read("r.csv", "user,x,day\nann,3,2005-04-02\n", &[]),
        ["1 1 3"]
    );
    assert_eq!(
        read("r.csv", "user,x,item\nann,-3e2,b\n", &[]),
        ["1 1 -300"]
    );
    let several = "user,score,item,rating\nann,PG,b,3\n";
    assert_eq!(read("r.csv", several, &[]), ["1 1 1 3"]);
    // Without a line of data.
    let (dir, ran) = converted("r.csv", "a,b,x\n", &["--dims", "3,4"]);
    ran.ok();
    assert!(entries(&dir, "out.coo").is_empty());
}

#[test]
fn a_value_column_that_is_not_certain_is_refused() {
    for (text, options, words) in [
        (
            "user,item,x\n1,2,3\n",
            &[][..],
            &[
                "line 1",
                "'user', 'item', 'x' have numbers",
                "none is called rating, value, stars, score or count",
                "--columns user,item --value x",
                "options columns and value",
            ][..],
        ),
        // The example does not take a time for the value.
        (
            "user,item,x,when\nann,bob,3,847117005\n",
            &[],
            &["'x', 'when' have", "--columns user,item,when --value x"],
        ),
        (
            "user,item,x,when\nann,bob,3,847117005\n",
            &["--columns", "user,item"],
            &["'x', 'when' have", "such as --value x"],
        ),
        (
            "user,item,rating,score\nann,bob,3,4\n",
            &[],
            &["'rating', 'score' may", "--columns user,item --value score"],
        ),
        (
            "user,rating,rating\n1,2,3\n",
            &[],
            &["'rating', 'rating' may", "--value 3"],
        ),
        // Names that the shell or the list of columns would split.
        (
            "user id,\"a,b\",it's\n1,2,3\n",
            &[],
            &["--columns 'user id',2 --value 'it'\\''s'"],
        ),
        // What is missing or written with a decimal comma may be a number.
        (
            "user;n;x\n;7;3\n",
            &["--delimiter", ";"],
            &["'user', 'n', 'x'"],
        ),
        (
            "user;n;x\nann;7;3,5\n",
            &["--delimiter", ";"],
            &["'n', 'x'"],
        ),
        (
            "user;n;x\nann;7;1.234,5\n",
            &["--delimiter", ";"],
            &["'n', 'x'"],
        ),
        ("user,n,x\nann,7,NA\n", &[], &["'n', 'x'"]),
        (
            "user,n,x\nann,7,(none)\n",
            &["--missing", "(none)"],
            &["'n', 'x'"],
        ),
        ("user,n,x\nann,7,$3.50\n", &[], &["'n', 'x'"]),
        ("user,n,x\nann,7\n", &[], &["'n', 'x'"]),
        (
            "user,item,place\nann,bob,c\n",
            &[],
            &["no column has numbers", "--no-value", "option no_value"],
        ),
        (
            "user,item\n1,2\n",
            &["--columns", "user,item"],
            &["no column is left", "--no-value"],
        ),
        ("user,item\n1,2\n", &[], &["1 index columns", "--no-value"]),
        (
            "user,item,rating\nann,bob,high\n",
            &[],
            &["line 2", "value 'high' is not a number"],
        ),
    ] {
        refused("r.csv", text, options, words);
    }
    // Matrices follow the same rule.
    let dir = Scratch::new("columns-matrix");
    dir.file("r.tns", "1 1 1 1\n2 2 2 2\n1 2 1 3\n");
    dir.file("m.csv", "film,genre,share\n1,1,1\n2,2,1\n");
    let fit = ["fit", "--tensor", "@r.tns", "--matrix", "2:@m.csv"];
    let more = ["--rank", "2", "--epochs", "1", "-o", "@m.s3m"];
    let go = |text: &[&str]| run(expand_paths(&dir, &[&fit, text, &more].concat()));
    go(&[]).failed(2, &["m.csv", "--value share", "--matrix-text NAME=VALUE"]);
    go(&["--matrix-text", "value=share"]).ok();
    dir.file("m.csv", "film,genre,value\n1,1,1\n2,2,1\n");
    go(&[]).ok();
}

#[test]
fn columns_that_are_asked_for_have_one_meaning() {
    let twice = "user,item,user,x\nann,b,cleo,3\n";
    let words = &["columns 1, 3 are called 'user'", "number"][..];
    for options in [
        &["--columns", "user,item", "--value", "x"][..],
        &["--columns", "item,2", "--value", "user"],
        &["--value", "x", "--weight", "user"],
        &["--value", "x", "--strings", "user"],
        &["--value", "x", "--bin", "user:width=2"],
        &["--value", "x", "--time", "user:month"],
        &["--value", "x", "--split", "user:|"],
    ] {
        refused("r.csv", twice, options, words);
    }
    // A name that is not asked for may occur twice.
    assert_eq!(
        read("r.csv", twice, &["--columns", "1,item", "--value", "x"]),
        ["1 1 3"]
    );
    assert_eq!(read("r.csv", twice, &[]), ["1 1 1 3"]);
    // Blanks around names do not tell them apart, those within do.
    let blanks = "user, item ,item,i tem,x\n1,2,3,4,5\n";
    let value = ["--value", "x", "--columns"];
    refused(
        "r.csv",
        blanks,
        &[&value[..], &["user,item"]].concat(),
        &["columns 2, 3"],
    );
    assert_eq!(
        read("r.csv", blanks, &[&value[..], &["user, i tem"]].concat()),
        ["1 4 5"]
    );
    // A name that is also the number of another column.
    let numbers = "a,3,b,x\n1,2,5,6\n";
    let words = &[
        "'3' may be the name of column 2 or the number",
        "rename",
        "--no-header",
    ][..];
    for options in [
        &["--columns", "a,b", "--value", "3"],
        &["--columns", "a,3", "--value", "x"],
    ] {
        refused("r.csv", numbers, options, words);
    }
    let options = ["--columns", "1,b", "--value", "4"];
    assert_eq!(read("r.csv", numbers, &options), ["1 5 6"]);
    // Also if it is its own number: the first line may be data.
    let own = "a,2,b,x\n1,2,5,6\n";
    refused(
        "r.csv",
        own,
        &["--columns", "a,2"],
        &["'2' may be the name of column 2"],
    );
    // Columns without a name: numbers of lines, and what follows the last delimiter.
    let pandas = ",user,item,rating\n0,ann,b,3\n";
    refused(
        "r.csv",
        pandas,
        &[],
        &["column 1 has no name", "--columns user,item"],
    );
    assert_eq!(
        read("r.csv", pandas, &["--columns", "user,item"]),
        ["1 1 3"]
    );
    let of_r = "\"\",\"user\",\"item\",\"x\"\n\"1\",\"ann\",\"b\",3\n";
    refused(
        "r.csv",
        of_r,
        &[],
        &["column 1 has no name", "--columns user,item"],
    );
    assert_eq!(read("r.csv", of_r, &["--columns", "user,item"]), ["1 1 3"]);
    let trailing = "user,item,rating,\nann,b,3,\n";
    refused(
        "r.csv",
        trailing,
        &[],
        &["column 4 has no name", "--columns user,item"],
    );
    assert_eq!(
        read("r.csv", trailing, &["--columns", "user,item"]),
        ["1 1 3"]
    );
    refused(
        "r.csv",
        "user,item,rating\nann,b,3,\n",
        &[],
        &["4 columns, but the first line has 3"],
    );
    // A byte order mark and quotes are no part of a name.
    let marked = "\u{feff}\"user\",\"item\",\"x\"\nann,b,3\n";
    assert_eq!(
        read("r.csv", marked, &["--columns", "user,item", "--value", "x"]),
        ["1 1 3"]
    );
    let marked = "\u{feff}user\titem\tx\nann\tb\t3\n";
    assert_eq!(
        read("r.tsv", marked, &["--columns", "user,item", "--value", "x"]),
        ["1 1 3"]
    );
}

#[test]
fn files_of_other_programs_are_read_or_refused() {
    let table = "user,item,rating\nann,b,3.5\n";
    let expected = ["1 1 3.5"];
    for (delimiter, file, remedy) in [
        (";", "r.csv", "--delimiter ';'"),
        ("|", "r.csv", "--delimiter '|'"),
        ("\t", "r.csv", "--from tsv"),
        (";", "r.tsv", "--delimiter ';'"),
        (",", "r.tsv", "--from csv"),
    ] {
        let text = table.replace(',', delimiter);
        refused(file, &text, &[], &["is the delimiter right?", remedy]);
        let options: Vec<String> = remedy.split(' ').map(|w| w.replace('\'', "")).collect();
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        assert_eq!(read(file, &text, &options), expected, "{delimiter:?}");
    }
    // Numbers.
    for (number, words) in [
        ("\"3,5\"", &["value '3,5'", "decimal point"][..]),
        ("\"1,234\"", &["value '1,234'", "thousands"]),
        ("\"1.234,5\"", &["decimal point"]),
        ("1 234", &["value '1 234' is not a number"]),
        ("$3", &["value '$3' is not a number"]),
        ("\\N", &["value '\\\\N' is not a number"]),
    ] {
        let text = format!("user,item,rating\nann,b,{number}\n");
        refused("r.csv", text, &[], &[&["line 2"], words].concat());
    }
    refused("r.tns", "1 1 3,5\n", &["--from", "tns"], &["decimal point"]);
    let weight = "user,item,rating,w\nann,b,3,\"1,5\"\n";
    refused(
        "r.csv",
        weight,
        &["--weight", "w"],
        &["weight '1,5'", "decimal point"],
    );
    let binned = "age,item,rating\n\"1,5\",b,3\n";
    refused(
        "r.csv",
        binned,
        &["--bin", "age:width=1"],
        &["'1,5'", "decimal point"],
    );
    // Missing ids.
    let missing = "user,item,tags,rating\nann,\\N,a|b,3\nbob,c,a|\\N,4\n";
    let words = &["line 2", "mode 2", "--missing '\\N'"][..];
    refused("r.csv", missing, &["--columns", "user,item"], words);
    let lists = ["--split", "tags:|"];
    refused("r.csv", missing, &lists, &["line 2", "'item'", "--missing"]);
    let options = [&lists[..], &["--columns", "user,tags"]].concat();
    refused(
        "r.csv",
        missing,
        &options,
        &["line 3", "'tags'", "--missing"],
    );
    let options = ["--missing", "\\N", "--columns", "user,item"];
    assert_eq!(read("r.csv", missing, &options), ["1 1 4"]);
    let (dir, ran) = converted(
        "r.csv",
        missing.replace("\\N", "NA"),
        &["--columns", "user,item"],
    );
    let ran = ran.ok();
    assert!(
        ran.stderr.contains("mode 2 has a row called \"NA\""),
        "{}",
        ran.stderr
    );
    assert_eq!(names(&dir, "out.mode2.tsv"), ["NA", "c"]);
    // Quotes in TSV are text, unless the header shows that they enclose fields.
    let quoted = "\"user\"\t\"item\"\t\"rating\"\n\"ann\"\t\"b\"\t3.5\n";
    let words = &["quotes", "--from csv --delimiter $'\\t'"][..];
    refused("r.tsv", quoted, &[], words);
    assert_eq!(
        read("r.tsv", quoted, &["--from", "csv", "--delimiter", "\t"]),
        expected
    );
    let (dir, ran) = converted("r.tsv", "user\titem\trating\nann\t\"b\"\t3.5\n", &[]);
    ran.ok();
    assert_eq!(names(&dir, "out.mode2.tsv"), ["\"b\""]);
    // Encodings.
    let latin = b"user,item,rating\nJos\xe9,b,3.5\n";
    let words = &["line 2", "not UTF-8", "iconv"][..];
    refused("r.csv", latin, &[], words);
    refused("r.csv", latin, &["--split", "item:|"], words);
    for (mark, bytes) in [
        (&b"\xff\xfe"[..], u16::to_le_bytes as fn(u16) -> [u8; 2]),
        (&b"\xfe\xff"[..], u16::to_be_bytes),
    ] {
        let wide: Vec<u8> = table.encode_utf16().flat_map(bytes).collect();
        refused(
            "r.csv",
            [mark, &wide].concat(),
            &[],
            &["is UTF-16", "UTF-8"],
        );
        refused("r.csv", wide, &[], &["zero bytes", "UTF-16"]);
    }
    // Two colons, as in MovieLens 1M: every second column is empty.
    let colons = "1::1193::5::978300760\n2::661::3::978302109\n";
    refused(
        "r.dat",
        colons,
        &[],
        &["1 columns", "--from csv and --delimiter"],
    );
    let options = ["--from", "csv", "--delimiter", ":", "--no-header"];
    let options = [&options[..], &["--columns", "1,3", "--value", "5"]].concat();
    assert_eq!(read("r.dat", colons, &options), ["1 1193 5", "2 661 3"]);
    for delimiter in [",", ";"] {
        let text = format!("sep={delimiter}\n{}", table.replace(',', delimiter));
        let words = &["line 1", "delete it"];
        refused("r.csv", text, &["--delimiter", delimiter], words);
    }
    // A file without lines, and one with a title above the header.
    refused("r.csv", "\n \n", &[], &["has no lines"]);
    refused(
        "r.csv",
        format!("Ratings of May\n{table}"),
        &[],
        &["is the delimiter right?"],
    );
    refused(
        "r.csv",
        format!("{table}{table}"),
        &[],
        &["line 3", "value 'rating'"],
    );
}

#[test]
fn values_that_look_like_times_are_remarked_on() {
    // The ratings of MovieLens 100K, which have no header and no extension that tells their format.
    let text = "196\t242\t3\t881250949\n186\t302\t3\t891717742\n";
    let (_, ran) = converted("u.data", text, &[]);
    let ran = ran.ok();
    assert!(
        ran.stderr.contains("values look like times"),
        "{}",
        ran.stderr
    );
    let options = [
        "--from",
        "tsv",
        "--no-header",
        "--columns",
        "1,2",
        "--value",
        "3",
    ];
    let (dir, ran) = converted("u.data", text, &options);
    assert_eq!(ran.ok().stderr, "");
    assert_eq!(
        entries(&dir, "out.coo"),
        [(vec![196, 242], 3.0), (vec![186, 302], 3.0)]
    );
    fs::write(dir.join("u.csv"), "user,item,when\nann,b,881250949\n").unwrap();
    let go = |more: &[&str]| {
        let all = [&["convert", "@u.csv", "@u.coo"], more].concat();
        run(expand_paths(&dir, &all)).ok().stderr
    };
    assert!(go(&[]).contains("values look like times"));
    assert!(!go(&["--value", "when"]).contains("values look like times"));
}
