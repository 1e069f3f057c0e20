//! `s3cmtf demo`

use std::fs;
use std::path::Path;

use crate::common::{ProgramRun, Scratch, real_data_folder};
use crate::runner::{program, run};
use s3cmtf::format::OpenMode;
use serde_json::Value;

fn demo(arguments: &[&str], output: &Path) -> ProgramRun {
    let mut command = program();
    command.arg("demo").args(arguments).arg("-o").arg(output);
    ProgramRun::from(command.output().unwrap()).ok()
}

fn summary(ran: &ProgramRun) -> Value {
    ran.json().pop().unwrap()["summary"].take()
}

#[test]
fn demo_recovers_the_planted_structure() {
    let dir = Scratch::new("demo");
    let ran = demo(&["--json", "--threads", "2"], dir.path());
    let found = summary(&ran);
    let rmse = |name: &str| found[name].as_f64().unwrap();
    assert!(rmse("test_rmse_planted") < rmse("test_rmse_coupled"));
    assert!(
        rmse("test_rmse_coupled") < rmse("test_rmse_uncoupled"),
        "coupling helps"
    );
    assert!(rmse("test_rmse_uncoupled") < 0.8 * rmse("test_rmse_biases"));
    assert!(rmse("test_rmse_biases") < 0.95 * rmse("test_rmse_mean"));
    let few = ran
        .json()
        .into_iter()
        .find(|o| o["sparse_rows"].is_object())
        .unwrap();
    let few = |name: &str| few["sparse_rows"][name].as_f64().unwrap();
    assert!(
        few("test_rmse_coupled") < 0.98 * few("test_rmse_uncoupled"),
        "coupling helps most for rows with few entries"
    );
    // Nearly every cluster is one category in one city.
    let clusters = &found["clusters"];
    assert_eq!(clusters["clusters"].as_array().unwrap().len(), 24);
    for m in clusters["agreement"].as_array().unwrap() {
        let share = |name: &str| m[name].as_f64().unwrap();
        assert!(
            share("purity") > 0.9 && share("purity") > share("purity_uncoupled"),
            "{m}"
        );
    }
    assert_eq!(found["person"]["recommended"].as_array().unwrap().len(), 8);
    assert!(found["person"]["name"].as_str().unwrap().contains(' '));
    // The object has the figures of the text.
    assert_eq!(found["training_entries"], 240_000);
    assert_eq!(found["dims"], serde_json::json!([3000, 2400, 24]));
    for fit in found["fits"].as_array().unwrap() {
        assert!(
            fit["epochs"].as_u64() > Some(0) && fit["ranks"][2].is_u64(),
            "{fit}"
        );
    }
    assert!(found["kernel"].is_string());
    let person = &found["person"];
    assert_eq!(person["highest"].as_array().unwrap().len(), 5);
    assert_eq!(
        person["recommended"][0]["labels"].as_array().unwrap().len(),
        2
    );
    assert!(
        person["recommended"]
            .as_array()
            .unwrap()
            .iter()
            .all(|r| r.get("test_value").is_some())
    );
    let cluster = &clusters["clusters"][0];
    assert_eq!(cluster["members"].as_array().unwrap().len(), 3);
    assert!(cluster["labels"][0]["count"].as_u64() <= cluster["size"].as_u64());
    // The written files exist and are usable.
    let page = fs::read_to_string(dir.join("report.html")).unwrap();
    for word in ["Lisbon", "Sushi", "Jan 2023", "id=\"clusters\""] {
        assert!(page.contains(word), "{word}");
    }
    // The report has the same clusters as the text.
    let section = page.split("Clusters of place</h3>").nth(1).unwrap();
    let section = section.split("<h3>").next().unwrap();
    for word in [
        "2,400 rows in 24 clusters",
        "The other model has 24 clusters",
        "Steakhouse \u{d7}",
        "Kyoto \u{d7}",
    ] {
        assert!(section.contains(word), "{word}: {section}");
    }
    assert!(!section.contains("better than one"), "{section}");
    for m in [1, 2] {
        let said = format!("of the entropy of matrix {m}");
        let percent = section
            .split(&said)
            .next()
            .unwrap()
            .rsplit("They explain ")
            .next();
        let percent = percent.unwrap().trim().trim_end_matches('%');
        assert!(
            percent.parse::<f64>().unwrap() > 80.0,
            "{percent} {section}"
        );
    }
    let epochs = fs::read_to_string(dir.join("coupled.log.jsonl")).unwrap();
    let last: Value = serde_json::from_str(epochs.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&last["event"], epochs.lines().count() > 5),
        (&"stopped".into(), true)
    );
    let coupled = dir.join("coupled.s3m");
    let model = s3cmtf::model::load(&coupled, OpenMode::Private).unwrap();
    assert_eq!(model.matrices().len(), 2);
    assert_eq!(found["clipped"], model.clips());
    let person = found["person"]["name"].as_str().unwrap();
    let of = format!("1:{person}");
    let listed = run([
        Path::new("recommend"),
        &coupled,
        Path::new("--mode"),
        Path::new("2"),
        Path::new("--for"),
        Path::new(&of),
    ]);
    let first = found["person"]["recommended"][0]["name"].as_str().unwrap();
    let listed = listed.ok().stdout;
    assert!(
        listed.contains(first),
        "names are found beside the model: {listed}"
    );
    let meant = run([Path::new("concepts"), &coupled, Path::new("--mode=2")]).ok();
    assert!(
        meant.stdout.contains("Sushi ") && !meant.stdout.contains("column"),
        "{}",
        meant.stdout
    );
}

#[test]
fn demo_runs_on_a_folder_of_files() {
    let dir = Scratch::new("demo-folder");
    let data = dir.join("shop");
    let arguments = [
        "--dims",
        "80,50,4",
        "--entries",
        "2500",
        "--rank",
        "3",
        "--noise",
        "0.3",
        "--test",
        "0.2",
        "--factor-mean",
        "0.5",
        "--skew",
        "1:10",
        "--matrix",
        "2:5:groups=0.6",
        "--matrix",
        "1:6:full:ones=0.3",
        "--no-truth",
    ];
    run(["generate", "-o", data.to_str().unwrap()]
        .iter()
        .chain(&arguments))
    .ok();
    fs::rename(data.join("matrix1.coo"), data.join("item_category.coo")).unwrap();
    fs::rename(data.join("matrix2.coo"), data.join("client_taste.coo")).unwrap();
    // A matrix may have rows beyond the inferred size of the tensor.
    for part in ["train", "test"] {
        let from = data.join(format!("tensor.{part}.coo"));
        let to = data.join(format!("tensor.{part}.tns"));
        run([Path::new("convert"), &from, &to]).ok();
        fs::remove_file(from).unwrap();
    }
    let mut text = String::from("51 1 1\n");
    let category =
        s3cmtf::format::CooFile::open(data.join("item_category.coo"), OpenMode::Mapped).unwrap();
    let view = category.view();
    for k in 0..view.len() {
        let value = view.values().get(k);
        text += &format!(
            "{} {} {value}\n",
            view.column(0)[k] + 1,
            view.column(1)[k] + 1
        );
    }
    fs::write(data.join("item_category.tns"), text).unwrap();
    fs::remove_file(data.join("item_category.coo")).unwrap();
    let names = |count: usize, what: &str| {
        (1..=count)
            .map(|i| format!("{i}\t{what} <{i}> & co\n"))
            .collect::<String>()
    };
    fs::write(data.join("items.tsv"), names(50, "thing")).unwrap();
    fs::write(data.join("categories.tsv"), names(5, "kind")).unwrap();
    fs::write(
        data.join("meta.json"),
        "{\"tensor\": {\"modes\": [\"client\", \"item\", \"week\"]}, \"client_taste\": {\"columns\": [\"a\", \"b\", \"c\", \"d\", \"e\", \"f\"]}}",
    )
    .unwrap();
    let folder = data.to_str().unwrap();
    let text = demo(&["--data", folder, "--threads", "2"], &dir.join("out")).stdout;
    for word in [
        "thing <",
        "kind <",
        "Where a client has",
        "of the entropy of category",
        "(item) in 5 clusters",
        "report.html",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(dir.join("out/coupled.s3m.matrix2.tsv").is_file());
    // Without meta.json, modes are named after matrices, and unused files of names are reported.
    let bare = dir.join("no-meta");
    fs::create_dir(&bare).unwrap();
    for file in fs::read_dir(&data).unwrap().map(Result::unwrap) {
        fs::copy(file.path(), bare.join(file.file_name())).unwrap();
    }
    fs::remove_file(bare.join("meta.json")).unwrap();
    // Now the matrix has exactly the size of its mode.
    let category = fs::read_to_string(bare.join("item_category.tns")).unwrap();
    fs::write(
        bare.join("item_category.tns"),
        category.replacen("51 1 1\n", "", 1),
    )
    .unwrap();
    fs::write(bare.join("clocks.tsv"), names(3, "clock")).unwrap();
    let text = demo(
        &["--data", bare.to_str().unwrap(), "--threads", "2"],
        &dir.join("no-meta-out"),
    )
    .stdout;
    for word in [
        "thing <",
        "kind <",
        "Where a client has",
        "clocks.tsv matches no mode",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(!text.contains("items.tsv"), "{text}");
    // The output folder must not be the data folder.
    let same = data.join(".");
    run(["demo", "--data", folder, "-o", same.to_str().unwrap()])
        .failed(2, &["is the folder of --data"]);
    assert!(!data.join("report.html").exists() && !data.join("coupled.s3m").exists());
    let page = fs::read_to_string(dir.join("out/report.html")).unwrap();
    assert!(page.contains("thing &lt;") && !page.contains("thing <"));
    // A second run into the same folder; the report is independent of the thread count.
    let again = demo(
        &["--data", folder, "--threads", "1", "--json"],
        &dir.join("out"),
    );
    assert_eq!(
        summary(&again)["clipped"],
        false,
        "the values are unbounded"
    );
    let again = fs::read_to_string(dir.join("out/report.html")).unwrap();
    let parts = |page: &str| {
        let parts = page.split("id=\"core\"").nth(1).unwrap();
        parts.split("id=\"speed\"").next().unwrap().to_string()
    };
    assert!(parts(&page) == parts(&again));
    // Data without matrices, names and meta.json.
    for name in [
        "meta.json",
        "items.tsv",
        "categories.tsv",
        "item_category.tns",
        "client_taste.coo",
    ] {
        fs::remove_file(data.join(name)).unwrap();
    }
    let bare = summary(&demo(
        &["--data", folder, "--json", "--threads", "2"],
        &dir.join("bare"),
    ));
    assert!(bare["test_rmse_coupled"].is_null() && bare["test_rmse_planted"].is_null());
    assert!(
        bare["test_rmse_uncoupled"].as_f64().unwrap() < bare["test_rmse_mean"].as_f64().unwrap()
    );
    // There is one fit, and the output does not mention coupling.
    assert_eq!(bare["fits"].as_array().unwrap().len(), 1);
    assert_eq!(bare["clusters"]["uses_gap_statistic"], true);
    let text = demo(&["--data", folder, "--threads", "2"], &dir.join("bare")).stdout;
    assert!(!text.contains("coupled"), "{text}");
    let files = fs::read_dir(dir.join("bare")).unwrap();
    let files: Vec<_> = files.map(|f| f.unwrap().file_name()).collect();
    let models = files.iter().map(|f| f.to_string_lossy());
    let models: Vec<_> = models.filter(|f| f.ends_with(".s3m")).collect();
    assert_eq!(models, ["model.s3m"]);
    // If only users have a matrix, users are clustered and items are still recommended.
    let tastes: String = (0..80)
        .map(|i| format!("{} {} 1\n", i + 1, 1 + i % 3))
        .collect();
    fs::write(data.join("client_taste.tns"), tastes).unwrap();
    // All users rate item 7 highest, in every week.
    let train = data.join("tensor.train.tns");
    let mut text = fs::read_to_string(&train).unwrap();
    for i in 0..4 * 80 {
        text += &format!("{} 7 {} 9\n", 1 + i / 4, 1 + i % 4);
    }
    fs::write(&train, text).unwrap();
    fs::write(
        data.join("meta.json"),
        "{\"tensor\": {\"modes\": [\"client\", \"item\", \"week\"]}}",
    )
    .unwrap();
    let people = demo(
        &["--data", folder, "--json", "--threads", "2"],
        &dir.join("people"),
    );
    let people = summary(&people);
    assert_eq!(people["clusters"]["mode"], 1);
    assert_eq!(people["clusters"]["clusters"].as_array().unwrap().len(), 3);
    assert_eq!(
        people["clusters"]["clusters"][0]["labels"][0]["attribute"],
        "taste"
    );
    let highest = people["person"]["highest"].as_array().unwrap();
    let mut rows: Vec<u64> = highest
        .iter()
        .map(|r| r["index"].as_u64().unwrap())
        .collect();
    rows.sort_unstable();
    rows.dedup();
    assert_eq!(rows.len(), 5, "each once, in whichever week: {highest:?}");
    // The recommended rows are items, of which there are 50.
    let listed = people["person"]["recommended"].as_array().unwrap();
    assert!(!listed.is_empty() && listed.iter().all(|r| r["index"].as_u64().unwrap() <= 50));
    fs::remove_file(data.join("tensor.test.tns")).unwrap();
    let out = dir.join("none").display().to_string();
    run(["demo", "--data", folder, "-o", &out]).failed(2, &["tensor.test.tns", "is missing"]);
    run(["demo", "--data", "/no/such/folder", "-o", &out]).failed(2, &["is no folder"]);
    // Unreadable data leaves no output folder.
    fs::write(data.join("tensor.test.tns"), "1 1 3\n").unwrap();
    run(["demo", "--data", folder, "-o", &out])
        .failed(2, &["tensor.test.tns", "has 2 modes", "has 3"]);
    assert!(!dir.join("none").exists());
    let file = data.join("tensor.test.tns").display().to_string();
    run(["demo", "-o", &file]).failed(2, &["is no folder"]);
    fs::write(data.join("meta.json"), "{").unwrap();
    fs::copy(data.join("tensor.train.tns"), data.join("tensor.test.tns")).unwrap();
    run(["demo", "--data", folder, "-o", &out]).failed(2, &["meta.json", "is not JSON"]);
}

#[test]
fn demo_runs_on_real_ratings() {
    let Some(data) = real_data_folder("ml100k") else {
        return;
    };
    let dir = Scratch::new("demo-real");
    // A fifth of the training entries shows that the demo understands the files.
    let part = dir.join("ml100k");
    fs::create_dir(&part).unwrap();
    for file in fs::read_dir(&data).unwrap().map(Result::unwrap) {
        let text = fs::read_to_string(file.path()).unwrap();
        let text = if file.file_name() == "tensor.train.tns" {
            text.lines()
                .step_by(5)
                .flat_map(|line| [line, "\n"])
                .collect()
        } else {
            text
        };
        fs::write(part.join(file.file_name()), text).unwrap();
    }
    let text = demo(
        &["--data", part.to_str().unwrap(), "--threads", "2"],
        &dir.join("out"),
    )
    .stdout;
    for word in ["Where a movie has", "(movie) in", "Drama"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let page = fs::read_to_string(dir.join("out/report.html")).unwrap();
    assert!(page.contains("Star Wars") && page.contains("Children&#39;s"));
}
