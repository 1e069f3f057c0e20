//! What golden tests share: cases, how they run, and the comparison with the recorded results.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Set to record the results instead of comparing them.
const RECORD: &str = "S3CMTF_RECORD_GOLDEN";

/// Forces a kernel level.
const KERNEL: &str = "S3CMTF_KERNEL";

/// The level of results that are computed without kernels.
const ANY: &str = "any";

/// Step size and penalty of most cases; without them a fit first draws posterior samples to choose them.
pub const STEPS: &str = "--epochs 2 --eta 0.02 --lambda-reg 0.5";

/// Length of the chain of `gibbs`.
const CHAIN: &str = "--burn-in 1 --samples 2";

/// A fit, and commands that use its model. In arguments, `{data}` is the folder of the data set, `{train}` and `{test}`
/// its entries, `{work}` a folder of the case, `{model}` the fitted model, `{steps}` and `{threads}` options.
pub struct Case {
    pub name: String,
    pub data: String,
    pub options: String,
    /// Whether the result is independent of the thread count, which lock-free updates are not.
    pub is_reproducible: bool,
    /// Name and arguments of each command.
    pub commands: Vec<(&'static str, &'static str)>,
}

impl Case {
    pub fn new(name: &str, data: &str, algorithm: &str, options: &str) -> Case {
        let steps = match algorithm {
            "gibbs" => CHAIN,
            _ if options.contains("--epochs") => "",
            _ => STEPS,
        };
        let start = if options.contains("--start ") {
            ""
        } else {
            "--start identity"
        };
        Case {
            name: format!("{algorithm}/{name}"),
            data: data.to_string(),
            options: format!("--algorithm {algorithm} {start} {steps} {options}"),
            is_reproducible: !matches!(algorithm, "opt" | "naive"),
            commands: Vec::new(),
        }
    }
}

/// The rows of a table in a text: columns separated by `|`.
pub fn table<const COLUMNS: usize>(text: &'static str) -> Vec<[&'static str; COLUMNS]> {
    let lines = text.lines().filter(|line| !line.is_empty());
    let columns = |line: &'static str| line.split('|').map(str::trim).collect::<Vec<_>>();
    let row = |line| {
        columns(line)
            .try_into()
            .expect("as many columns as the others")
    };
    lines.map(row).collect()
}

/// Kinds of side information, and the data set of order N that each is fitted to.
pub const VARIANTS: &str = "
plain   | order  |
coupled | order  | --matrix 2:{data}/matrix1.coo:0.5:0.2
full    | order  | --matrix 1:{data}/matrix2.coo:0.3:full
sampled | order  | --matrix 1:{data}/matrix2.coo:0.3:sampled=3
graph   | order  | --graph 1:{data}/graph.tns:0.5
weights | order  | --weights {data}/weights.tns
nonneg  | nonneg | --nonneg --start paper
";

/// What a case gives: model hash, prediction hash, RMSE.
type Result = [String; 3];

/// Results by case and level.
type Results = BTreeMap<(String, String), Result>;

/// A golden test.
pub struct Golden {
    /// The program.
    pub program: &'static str,
    /// The folder of the recorded results.
    pub folder: &'static str,
    /// The data sets, in the form of [`table`].
    pub data: &'static str,
    pub cases: Vec<Case>,
}

/// Runs the program and returns what it prints.
fn run(program: &str, arguments: &str, level: &str) -> String {
    let mut command = Command::new(program);
    command
        .args(arguments.split_whitespace())
        .stdin(Stdio::null());
    match level {
        ANY => command.env_remove(KERNEL),
        _ => command.env(KERNEL, level),
    };
    let output = command.output().expect("the program starts");
    assert!(
        output.status.success(),
        "level {level}: s3cmtf {arguments}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("the program prints UTF-8")
}

/// FNV-1a with 64 bits.
struct Hash(u64);

impl Hash {
    fn new() -> Hash {
        Hash(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn text(&self) -> String {
        format!("{:016x}", self.0)
    }
}

fn hash_text(text: &str) -> String {
    let mut hash = Hash::new();
    hash.add(text.as_bytes());
    hash.text()
}

/// Hash of the files of a folder and of its folders: names and contents, by name.
fn hash_folder(folder: &Path) -> String {
    fn add(folder: &Path, hash: &mut Hash) {
        let entries = fs::read_dir(folder).expect("a folder");
        let paths: BTreeSet<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
        for path in paths {
            hash.add(path.file_name().unwrap().as_encoded_bytes());
            if path.is_dir() {
                add(&path, hash);
            } else {
                hash.add(&fs::read(&path).unwrap());
            }
        }
    }
    let mut hash = Hash::new();
    add(folder, &mut hash);
    hash.text()
}

/// Removes fields from lines of JSON.
fn without_fields(mut json: String, keys: &[&str]) -> String {
    for key in keys {
        let key = format!("\"{key}\":");
        while let Some(at) = json.find(&key) {
            let rest = &json[at..];
            let end = rest.find([',', '}']).expect("a field ends");
            json.replace_range(at..at + end, "");
        }
    }
    json
}

/// The number of a field, with 7 digits after the point.
fn number_of(json: &str, key: &str) -> String {
    let key = format!("\"{key}\":");
    let at = json.rfind(&key).expect("the field is there") + key.len();
    let end = json[at..].find([',', '}']).expect("a field ends");
    match json[at..at + end].parse::<f64>() {
        Ok(x) => format!("{x:.7}"),
        Err(_) => json[at..at + end].to_string(),
    }
}

/// Kernel levels, slowest first, and whether this machine has them.
fn levels() -> Vec<(&'static str, bool)> {
    let mut levels = vec![("scalar", true), ("wide", true)];
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        let avx2 = has!("avx2") && has!("fma");
        let avx512 = avx2 && has!("avx512f") && has!("avx512dq") && has!("avx512vl");
        levels.extend([("avx2", avx2), ("avx512", avx512)]);
    }
    levels
}

/// Generates a data set, with a graph, entry weights and new rows beside it. Returns the hash of everything.
fn generate(program: &str, root: &Path, [name, rows, arguments]: [&str; 3]) -> String {
    let run = |arguments: &str, level| run(program, arguments, level);
    let rows: usize = rows.parse().unwrap();
    let folder = root.join(name);
    let data = folder.display();
    let made = format!("generate -o {data} {arguments} --rank 3 --noise 0.1 --test 0.2 --seed 7");
    run(&made, ANY);
    run(
        &format!("convert {data}/tensor.train.coo {data}/train.tns"),
        ANY,
    );
    let hash = hash_folder(&folder);
    let text = fs::read_to_string(folder.join("train.tns")).unwrap();
    let entries: Vec<&str> = text.lines().filter(|l| !l.starts_with('#')).collect();
    let index = |line: &str| line.rsplit_once(' ').unwrap().0.to_string();
    let mut weights = String::new();
    for (i, line) in entries.iter().enumerate() {
        writeln!(weights, "{} {}", index(line), [1.0, 0.5, 2.0, 0.25][i % 4]).unwrap();
    }
    fs::write(folder.join("weights.tns"), weights).unwrap();
    let mut graph = String::new();
    for i in 1..=200 {
        writeln!(graph, "{} {} 1", i * 7 % rows + 1, i * 11 % rows + 1).unwrap();
    }
    fs::write(folder.join("graph.tns"), graph).unwrap();
    // The entries of the first rows again, for rows beyond the last one and for other known rows.
    let (mut new, mut old) = (String::new(), String::new());
    for line in &entries {
        let (row, rest) = line.split_once(' ').unwrap();
        let row: usize = row.parse().unwrap();
        if row <= 5 {
            writeln!(new, "{} {rest}", rows + row).unwrap();
            writeln!(old, "{} {rest}", row + 20).unwrap();
        }
    }
    fs::write(folder.join("new.tns"), new).unwrap();
    fs::write(folder.join("old.tns"), old).unwrap();
    hash
}

/// Hash of a saved model, without the record of its fit.
fn hash_model(program: &str, model: &Path, level: &str) -> String {
    let folder = model.with_extension("export");
    run(
        program,
        &format!("export {} -o {}", model.display(), folder.display()),
        level,
    );
    hash_folder(&folder)
}

/// Runs a case at a level with a number of threads. Returns the results of its fit and its commands by name.
fn run_case(
    program: &str,
    root: &Path,
    case: &Case,
    level: &str,
    threads: u32,
) -> Vec<(String, Result)> {
    let run = |arguments: &str, level| run(program, arguments, level);
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let work = root.join(format!("work{}", NUMBER.fetch_add(1, Ordering::Relaxed)));
    fs::create_dir(&work).unwrap();
    let model = work.join("model.s3m");
    let fill = |text: &str| {
        let data = root.join(&case.data).display().to_string();
        text.replace("{train}", "{data}/tensor.train.coo")
            .replace("{test}", "{data}/tensor.test.coo")
            .replace("{steps}", &format!("--start identity {STEPS}"))
            .replace("{data}", &data)
            .replace("{work}", &work.display().to_string())
            .replace("{model}", &model.display().to_string())
            .replace("{threads}", &format!("--threads {threads}"))
    };
    let options = &case.options;
    let fit = "fit --tensor {train} --test {test} -o {model} {threads} --no-pin --seed 1 --json";
    let rmse = number_of(&run(&fill(&format!("{fit} {options}")), level), "test_rmse");
    let predictions = run(&fill("predict {model} {test} {threads}"), level);
    let mut results = vec![(
        case.name.clone(),
        [
            hash_model(program, &model, level),
            hash_text(&predictions),
            rmse,
        ],
    )];
    for (name, arguments) in &case.commands {
        let arguments = fill(arguments);
        let mut words = arguments.split_whitespace();
        let saved = words.find(|&w| w == "-o").and_then(|_| words.next());
        let saved = saved
            .map(Path::new)
            .filter(|p| p.extension().is_some_and(|e| e == "s3m"));
        let hash = match saved {
            Some(saved) => {
                run(&arguments, level);
                hash_model(program, saved, level)
            }
            None => {
                // The order in which trials end depends on the threads; the list of them does not.
                let printed = run(&format!("{arguments} --json"), level);
                let lines = printed.lines().filter(|l| !l.starts_with("{\"rung\":"));
                let lines = lines.collect::<Vec<_>>().join("\n");
                hash_text(&without_fields(lines, &["seconds", "output", "file"]))
            }
        };
        results.push((
            format!("{} {name}", case.name),
            [hash, "-".into(), "-".into()],
        ));
    }
    fs::remove_dir_all(&work).unwrap();
    results
}

/// Results, and what went wrong.
#[derive(Default)]
struct Found {
    results: Results,
    failures: Vec<String>,
}

/// Runs `work` on every number below `count`, on all processors. A panic becomes a failure.
fn in_parallel(
    count: usize,
    work: impl Fn(usize) -> Vec<((String, String), Result)> + Sync,
) -> Found {
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Found::default());
    let processors = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        for _ in 0..processors.min(count) {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= count {
                        return;
                    }
                    let outcome =
                        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(i)));
                    let mut found = found.lock().unwrap();
                    match outcome {
                        Ok(results) => found.results.extend(results),
                        Err(what) => {
                            let what = what
                                .downcast_ref::<String>()
                                .map_or("panicked", String::as_str);
                            found.failures.push(what.to_string());
                        }
                    }
                }
            });
        }
    });
    found.into_inner().unwrap()
}

/// A folder that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    /// Prefers a file system in memory: the program flushes what it saves to the disk, which takes longer than the fits.
    fn new() -> Scratch {
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() && std::env::var_os("TMPDIR").is_none() {
            memory.to_path_buf()
        } else {
            std::env::temp_dir()
        };
        let folder = parent.join(format!("s3cmtf-golden-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Scratch(folder)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Golden {
    /// Runs all cases at the levels.
    fn compute(&self, levels: &[&str]) -> Found {
        let program = self.program;
        let scratch = Scratch::new();
        let root = scratch.0.as_path();
        let data = table(self.data);
        let mut found = in_parallel(data.len(), |i| {
            let name = format!("data/{}", data[i][0]);
            vec![(
                (name, ANY.into()),
                [generate(program, root, data[i]), "-".into(), "-".into()],
            )]
        });
        assert!(found.failures.is_empty(), "{}", found.failures.join("\n"));
        let cases = &self.cases;
        let names: BTreeSet<&str> = cases.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names.len(), cases.len(), "two cases have the same name");
        let fits = in_parallel(cases.len() * levels.len(), |i| {
            let (number, level) = (i / levels.len(), levels[i % levels.len()]);
            let case = &cases[number];
            let results = run_case(program, root, case, level, 1);
            // The thread count changes the schedule only, which all levels share. The cases alternate between two levels.
            let with_threads = [levels.first(), levels.last()][number % 2];
            if case.is_reproducible && with_threads == Some(&level) {
                let other = run_case(program, root, case, level, 2);
                assert_eq!(results, other, "level {level}: 2 threads differ from 1");
            }
            let keyed = |(name, result)| ((name, level.to_string()), result);
            results.into_iter().map(keyed).collect()
        });
        found.results.extend(fits.results);
        found.failures = fits.failures;
        found
    }
}

fn parse(text: &str) -> Results {
    let mut results = Results::new();
    for line in text.lines() {
        let columns: Vec<String> = line.split('\t').map(str::to_string).collect();
        let [case, level, model, predictions, rmse] = columns.try_into().expect("five columns");
        results.insert((case, level), [model, predictions, rmse]);
    }
    results
}

fn print(results: &Results) -> String {
    let line = |((case, level), [model, predictions, rmse]): (&(String, String), &Result)| {
        format!("{case}\t{level}\t{model}\t{predictions}\t{rmse}\n")
    };
    results.iter().map(line).collect()
}

/// A line for each result that differs.
fn differences(recorded: &Results, found: &Results, levels: &[&str]) -> Vec<String> {
    let here = recorded
        .keys()
        .filter(|(_, level)| level == ANY || levels.contains(&level.as_str()));
    let keys: BTreeSet<_> = here.chain(found.keys()).collect();
    let mut lines = Vec::new();
    for key in keys {
        let (case, level) = key;
        let line = match (recorded.get(key), found.get(key)) {
            (Some(old), Some(new)) if old == new => continue,
            (Some(old), Some(new)) => {
                let parts = [("model", 0), ("predictions", 1), ("RMSE", 2)];
                let changed: Vec<&str> = parts
                    .iter()
                    .filter(|(_, k)| old[*k] != new[*k])
                    .map(|p| p.0)
                    .collect();
                format!(
                    "{} changed, RMSE {} -> {}",
                    changed.join(" and "),
                    old[2],
                    new[2]
                )
            }
            (Some(_), None) => "recorded, but not computed".into(),
            (None, _) => "computed, but not recorded".into(),
        };
        lines.push(format!("{case} ({level}): {line}"));
    }
    lines
}

/// Compares the results of all cases with the recorded ones, or records them.
pub fn check(golden: &Golden) {
    let system = format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS);
    let file = Path::new(golden.folder).join(format!("{system}.tsv"));
    let record = std::env::var_os(RECORD).is_some_and(|v| v == "1");
    let recorded = fs::read_to_string(&file)
        .map(|text| parse(&text))
        .unwrap_or_default();
    if recorded.is_empty() && !record {
        println!("skipped: no results are recorded for {system}");
        return;
    }
    let (here, missing): (Vec<_>, Vec<_>) = levels().into_iter().partition(|level| level.1);
    for (level, _) in missing {
        println!("skipped: this machine does not have kernel level {level}");
    }
    let here: Vec<&str> = here.into_iter().map(|level| level.0).collect();
    let found = golden.compute(&here);
    assert!(
        found.failures.is_empty(),
        "{} cases failed:\n{}",
        found.failures.len(),
        found.failures.join("\n")
    );
    if record {
        let mut all = recorded;
        all.retain(|(_, level), _| level != ANY && !here.contains(&level.as_str()));
        all.extend(found.results);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, print(&all)).unwrap();
        println!("{} results are recorded in {}", all.len(), file.display());
        return;
    }
    let changed = differences(&recorded, &found.results, &here);
    assert!(
        changed.is_empty(),
        "{} of {} results differ from {}:\n{}\nIf that is intended, record them again: {RECORD}=1",
        changed.len(),
        found.results.len(),
        file.display(),
        changed.join("\n")
    );
}
