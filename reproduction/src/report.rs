//! reproduction.md and the tables as CSV.

use std::fmt::Write;

use s3cmtf::Result;
use serde_json::Value;

use super::chart::short_number;
use super::claims::{Verdict, claims};
use super::figure::Figure;
use super::figures::{self, table_position};
use super::methods::is_of_sals;
use super::store::{Key, Measurement, Store};
use s3cmtf_cli::output::format_integer;

/// Writes everything that is derived from the results.
pub(super) fn write(store: &Store) -> Result<()> {
    let measured: Vec<Figure> = Figure::ALL
        .into_iter()
        .filter(|f| measurements(store, *f).next().is_some())
        .filter(|f| *f != Figure::Accuracy || has_more_than_sals(store))
        .collect();
    for figure in &measured {
        figures::write(store, *figure)?;
    }
    store.write("results.csv", &results_csv(store))?;
    store.write("epochs.csv", &epochs_csv(store))?;
    store.write("reproduction.md", &markdown(store, &measured))
}

/// Returns the measurements that a figure shows: `sals` shows some of those of `accuracy`.
fn measurements(store: &Store, figure: Figure) -> impl Iterator<Item = (&Key, &Measurement)> {
    let source = match figure {
        Figure::Sals => Figure::Accuracy,
        other => other,
    };
    let is_shown = move |k: &Key| figure != Figure::Sals || is_of_sals(&k.method);
    store.of_figure(source).filter(move |(k, _)| is_shown(k))
}

/// Returns whether `accuracy` was measured, of which `sals` is a part.
fn has_more_than_sals(store: &Store) -> bool {
    let mut methods = store.of_figure(Figure::Accuracy);
    methods.any(|(k, _)| !is_of_sals(&k.method))
}

const PEAK_MEMORY: &str = "peak_memory_bytes";

const COLUMNS: [&str; 14] = [
    "test_rmse",
    "train_rmse",
    "seconds_per_epoch",
    "evaluation_seconds",
    "init_seconds",
    "seconds",
    "limit_seconds",
    PEAK_MEMORY,
    "threads",
    "trials",
    "speed_up",
    "independent_speed_up",
    "message",
    "command",
];

fn results_csv(store: &Store) -> String {
    let mut text = format!("figure,data,method,x,status,{}\n", COLUMNS.join(","));
    for (key, m) in store.all() {
        let x = key.x.map_or(String::new(), |x| x.to_string());
        let head = [key.figure.name(), &key.data, &key.method, &x, &m.status];
        let head = head.into_iter().map(quoted);
        let fields = COLUMNS.iter().map(|c| match m.fields.get(*c) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(s)) => quoted(s),
            Some(other) => other.to_string(),
        });
        let line: Vec<String> = head.chain(fields).collect();
        let _ = writeln!(text, "{}", line.join(","));
    }
    text
}

fn epochs_csv(store: &Store) -> String {
    let mut text = String::from("figure,data,method,x,epoch,seconds,train_rmse,test_rmse\n");
    for (key, m) in store.all() {
        let x = key.x.map_or(String::new(), |x| x.to_string());
        for (k, p) in m.points("epochs").iter().enumerate() {
            let numbers = p.iter().map(|x| {
                if x.is_finite() {
                    x.to_string()
                } else {
                    String::new()
                }
            });
            let numbers: Vec<String> = numbers.collect();
            let (data, method) = (quoted(&key.data), quoted(&key.method));
            let _ = writeln!(
                text,
                "{},{data},{method},{x},{},{}",
                key.figure.name(),
                k + 1,
                numbers.join(",")
            );
        }
    }
    text
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.into()
    }
}

fn markdown(store: &Store, figures: &[Figure]) -> String {
    let head = |name: &str| store.head.get(name).cloned().unwrap_or_default();
    let conditions = head("conditions");
    let part = |name: &str| conditions["machine"][name].clone();
    let memory = part("memory_bytes").as_u64().unwrap_or(0) >> 30;
    // The first recorded results are of a command of the program.
    let program = match head("program").as_str() {
        Some("s3cmtf") | None => "s3cmtf reproduce".to_string(),
        Some(program) => program.to_string(),
    };
    let mut text = format!(
        "# Measurements of the paper's tables and figures\n\n\
         s3cmtf {}, {}. Machine: {}, {} threads, {memory} GiB of memory, {}; {} of the threads used, seed {}. Made by `{program}`; nothing is entered by hand. \
         `results.json` has every measurement with its command.\n\n\
         In the tables, O.O.M. is out of memory. O.O.T. (out of time) means that no iteration was completed within the time limit.\n",
        head("version").as_str().unwrap_or(""),
        head("date").as_str().unwrap_or(""),
        part("processor").as_str().unwrap_or("unknown processor"),
        part("threads"),
        part("system").as_str().unwrap_or(""),
        conditions["threads"],
        conditions["seed"]
    );
    let notes = store.notes();
    if !notes.is_empty() {
        text += "\nScale:\n";
        for note in notes {
            let _ = writeln!(text, "- {note}");
        }
    }
    text += &runs(store);
    text += &claims_table(store, figures);
    for figure in figures {
        let _ = write!(
            text,
            "\n## {}\n\n![]({}.svg)\n\n",
            figure.title(),
            figure.name()
        );
        text += &match figure {
            Figure::Accuracy | Figure::Sals => accuracy_table(store, *figure),
            Figure::IterationTime => time_table(store),
            Figure::Dimensionality | Figure::Entries => scaling_table(store, *figure),
            Figure::Cores => cores_table(store),
            Figure::Gap => gap_table(store),
        };
    }
    text += &data_commands(store);
    text
}

/// Returns a table of the claims of the paper.
fn claims_table(store: &Store, figures: &[Figure]) -> String {
    let mut text = String::from(
        "\n## Claims\n\n| claim of the paper | criterion | measured here | reproduced | explanation |\n| --- | --- | --- | --- | --- |\n",
    );
    for c in claims(store, figures) {
        let reproduced = match c.verdict {
            Verdict::Reproduced => "yes",
            Verdict::NotReproduced => "no",
            Verdict::Undecided => "not decided",
        };
        let measured: Vec<String> = c.measured.iter().map(|m| cell(m)).collect();
        let measured = match measured.is_empty() {
            true => "-".into(),
            false => measured.join("<br>"),
        };
        let _ = writeln!(
            text,
            "| {} | {} | {measured} | {reproduced} | {} |",
            cell(c.claim),
            cell(&c.criterion),
            cell(&c.why)
        );
    }
    text
}

/// Returns a table of the runs that made the measurements.
fn runs(store: &Store) -> String {
    if store.runs().is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "\n| run | date | figures | budget, min | time, min | program | remark |\n| --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for (k, run) in store.runs().iter().enumerate() {
        let number = |name: &str| run[name].as_f64().unwrap_or(0.0);
        let (budget, minutes) = (number("budget_minutes"), number("seconds") / 60.0);
        let figures = run["figures"].as_array();
        let figures = figures.into_iter().flatten().filter_map(Value::as_str);
        let figures: Vec<&str> = figures.collect();
        let remark = if run["complete"] == false {
            "interrupted"
        } else if minutes > 1.01 * budget {
            "longer than its budget: some measurements have a minimum time"
        } else {
            ""
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {remark} |",
            k + 1,
            cell(run["date"].as_str().unwrap_or("")),
            figures.join(", "),
            short_number(budget),
            short_number(minutes),
            cell(run["program"].as_str().unwrap_or(""))
        );
    }
    text
}

/// Returns the commands that make the data to which the other commands refer.
fn data_commands(store: &Store) -> String {
    let sets = store.head.get("data_commands").and_then(Value::as_object);
    let mut text = String::new();
    for (name, commands) in sets.into_iter().flatten() {
        let lines = commands.as_array().into_iter().flatten();
        let lines: Vec<&str> = lines.filter_map(Value::as_str).collect();
        let _ = writeln!(text, "# {name}\n{}", lines.join("\n"));
    }
    match text.is_empty() {
        true => text,
        false => format!(
            "\n## Data\n\nThe following commands write the files that the commands in `results.json` read. Run `convert` in the folder of the data set.\n\n\
             ```sh\n{text}```\n"
        ),
    }
}

/// Returns a text that is one cell of a table.
fn cell(text: &str) -> String {
    let mut cell = String::new();
    for c in text.chars() {
        match c {
            '|' | '*' | '`' | '[' => {
                cell.push('\\');
                cell.push(c);
            }
            '<' => cell += "&lt;",
            '&' => cell += "&amp;",
            '\n' => cell.push(' '),
            c => cell.push(c),
        }
    }
    cell
}

/// Returns the measurements of a figure: by data set, then in the order of methods.
fn sorted(store: &Store, figure: Figure) -> Vec<(&Key, &Measurement)> {
    let mut list: Vec<_> = measurements(store, figure).collect();
    let sets: Vec<String> = list.iter().map(|(k, _)| k.data.clone()).collect();
    let place = |data: &str| sets.iter().position(|s| s == data);
    list.sort_by_key(|(k, _)| (place(&k.data), table_position(&k.method)));
    list
}

fn number(m: &Measurement, name: &str) -> String {
    m.number(name).map_or("-".into(), short_number)
}

fn memory(m: &Measurement) -> String {
    m.number(PEAK_MEMORY).map_or("-".into(), mebibytes)
}

fn mebibytes(bytes: f64) -> String {
    format!("{} MiB", format_integer((bytes / 1048576.0) as u64))
}

/// Returns the status and the reason of a measurement without results.
fn status(m: &Measurement) -> String {
    let message = m.text("message");
    match message.is_empty() {
        true => m.status.clone(),
        false => cell(&format!("{}: {message}", m.status)),
    }
}

fn accuracy_table(store: &Store, figure: Figure) -> String {
    let mut text = String::new();
    if figure == Figure::Accuracy || !has_more_than_sals(store) {
        text += "Each method of this program had the same time on a data set, unless the column says otherwise: 60% for the search for its options \
                 on held-out training entries, 40% for the fit and the evaluation of its errors. Searches have the same ranges of penalty and rank (3 to 64 \
                 for CP, for Tucker 3 to 24, at higher orders as far as the core is no larger) for the methods of the paper and its competitors, and choose \
                 fewer iterations where the error on held-out entries has risen; with 0 trials a method has the settings of its preset. Their fits \
                 stop after at most 50 epochs (500 for CMTF-OPT, of which every tenth is evaluated) or at their time limit, and their predictions are not \
                 clipped. Those of `blocked`, `gibbs` and other programs are clipped to the range of the training values. The time given to other programs is the \
                 limit of their search and fit.\n\n";
    }
    text += "| data | method | test RMSE | seconds of training | epochs | trials of the search | seconds given | peak memory | ended by |\n\
             | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
    for (key, m) in sorted(store, figure) {
        let points = m.points("epochs");
        let seconds = points.last().map(|p| p[0]).or(m.number("seconds"));
        let rmse = m
            .number("test_rmse")
            .map_or("-".into(), |x| format!("{x:.4}"));
        let ended = if m.is_ok() {
            cell(m.text("reason"))
        } else {
            status(m)
        };
        let _ = writeln!(
            text,
            "| {} | {} | {rmse} | {} | {} | {} | {} | {} | {ended} |",
            cell(&key.data),
            cell(&key.method),
            seconds.map_or("-".into(), short_number),
            if points.is_empty() {
                "-".into()
            } else {
                points.len().to_string()
            },
            number(m, "trials"),
            // Other programs have one limit for search and fit.
            m.number("given_seconds")
                .or(m.number("limit_seconds"))
                .map_or("-".into(), short_number),
            memory(m)
        );
    }
    text
}

fn time_table(store: &Store) -> String {
    let mut text = String::from(
        "The same rank for every method, matrices where the method has them, the median of the iterations.\n\n\
         | data | method | training, s | evaluation, s | iterations | peak memory | remark |\n| --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for (key, m) in sorted(store, Figure::IterationTime) {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} |",
            cell(&key.data),
            cell(&key.method),
            number(m, "seconds_per_epoch"),
            number(m, "evaluation_seconds"),
            m.points("epochs").len(),
            memory(m),
            if m.is_ok() { String::new() } else { status(m) }
        );
    }
    text
}

/// Returns a table with a row per method and a column per position of the horizontal axis.
fn grid(store: &Store, figure: Figure, field: &str, show: &dyn Fn(f64) -> String) -> String {
    let mut xs: Vec<u64> = store.of_figure(figure).filter_map(|(k, _)| k.x).collect();
    xs.sort_unstable();
    xs.dedup();
    let mut text = String::from("| method |");
    for x in &xs {
        let _ = write!(text, " {} |", short_number(*x as f64));
    }
    let _ = writeln!(text, "\n| --- |{}", " --- |".repeat(xs.len()));
    for method in store.methods(figure) {
        let _ = write!(text, "| {} |", cell(&method));
        for x in &xs {
            let mut of_cell = store.of_figure(figure);
            let found = of_cell.find(|(k, _)| k.method == method && k.x == Some(*x));
            let shown = found.map_or("-".into(), |(_, m)| match m.number(field) {
                Some(number) => show(number),
                None if m.is_ok() => "-".into(),
                None => m.status.clone(),
            });
            let _ = write!(text, " {shown} |");
        }
        text.push('\n');
    }
    text
}

/// Returns a list of the measurements without results, with the reasons; empty if there are none.
fn reasons(store: &Store, figure: Figure) -> String {
    let mut list: Vec<(String, Vec<&str>)> = Vec::new();
    for (key, m) in store.of_figure(figure).filter(|(_, m)| !m.is_ok()) {
        let x = key.x.map_or(String::new(), |x| short_number(x as f64));
        let reason = format!("- {x}, {}", status(m));
        match list.iter_mut().find(|(r, _)| *r == reason) {
            Some((_, methods)) => methods.push(&key.method),
            None => list.push((reason, vec![&key.method])),
        }
    }
    let mut text = String::new();
    for (reason, methods) in &list {
        let _ = writeln!(text, "{reason} ({})", cell(&methods.join(", ")));
    }
    if text.is_empty() {
        text
    } else {
        format!("\n{text}")
    }
}

fn scaling_table(store: &Store, figure: Figure) -> String {
    let seconds = |x: f64| format!("{} s", short_number(x));
    let times = grid(store, figure, "seconds_per_epoch", &seconds);
    let memory = grid(store, figure, PEAK_MEMORY, &mebibytes);
    let reasons = reasons(store, figure);
    format!(
        "Seconds per iteration, the mean of the first two:\n\n{times}{reasons}\nPeak memory:\n\n{memory}"
    )
}

fn cores_table(store: &Store) -> String {
    let figure = Figure::Cores;
    let one = grid(store, figure, "speed_up", &short_number);
    let independent = grid(store, figure, "independent_speed_up", &short_number);
    let reasons = reasons(store, figure);
    let peaks = store.methods(figure).into_iter().filter_map(|method| {
        let peaks = store.curve(figure, &method, PEAK_MEMORY);
        let peak = peaks.iter().map(|p| p.1).reduce(f64::max)?;
        Some(format!("{} {}", cell(&method), mebibytes(peak)))
    });
    let peaks: Vec<String> = peaks.collect();
    format!(
        "{}, without matrices. `bench` takes the fastest epoch, of S3CMTF-naive on a sample of the entries. One fit with several threads:\n\n{one}{reasons}\nTotal speed-up of as many independent fits, run concurrently with one thread each:\n\n\
         {independent}\nPeak memory, including the independent fits: {}.\n",
        store.data_sets(figure).join(", "),
        peaks.join(", ")
    )
}

fn gap_table(store: &Store) -> String {
    let mut text = String::from(
        "Models of S3CMTF-opt with the paper's settings; distances between rows of the factor, as in the paper.\n\n\
         | data | model | mode | largest gap | peak memory | remark |\n| --- | --- | --- | --- | --- | --- |\n",
    );
    for (key, m) in sorted(store, Figure::Gap) {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} |",
            cell(&key.data),
            cell(&key.method),
            m.text("mode"),
            number(m, "largest_gap"),
            memory(m),
            if m.is_ok() { String::new() } else { status(m) }
        );
    }
    text
}
