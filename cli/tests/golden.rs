//! Golden results: hashes of fitted models, of their predictions and of what the other commands print, for a matrix
//! of cases at every kernel level. A change of the code that is meant to keep the arithmetic must keep all of them.
//!
//! The cases run the program, so they depend on command-line options and file formats only. Each case fits a model
//! to planted data from `generate` and hashes the exported files and the predictions of the test entries.
//! Algorithms whose result is independent of the thread count run with one and with two threads and must agree;
//! `opt` and `naive` update rows without locks and run with one thread.
//!
//! The expected results are in `cli/tests/golden/<architecture>-<system>.tsv`, because the mathematical functions of the
//! C library and the portable vectors round differently elsewhere. A line has five columns separated by tabs: case,
//! kernel level (`any` for generated data), model hash (for a command: hash of its output), prediction hash, test
//! RMSE. The RMSE shows whether a new summation order changed a result by rounding alone.
//!
//! To record the results again:
//!
//! ```text
//! S3CMTF_RECORD_GOLDEN=1 cargo test --release --test golden
//! ```
//!
//! Lines of kernel levels that this machine lacks stay as they are.

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

/// Data sets: name, size of the first mode, arguments of `generate`.
///
/// - `scattered`: too few entries per row for fiber batches, so entries are updated one by one.
/// - `blocks`: several blocks, with a matrix whose columns are replicated and one whose columns are partitioned.
/// - `classes`: so sparse that entries are coloured into conflict-free classes.
const DATA: &str = "
order2     | 150  | --dims 150,120 --entries 3500 --skew 0.3 --matrix 2:6:full --matrix 1:30:400
order3     | 120  | --dims 120,90,8 --entries 4000 --skew 0.3 --matrix 2:6:full --matrix 1:30:400
order4     | 60   | --dims 60,50,8,5 --entries 4000 --skew 0.3 --matrix 2:6:full --matrix 1:30:400
order5     | 30   | --dims 30,25,8,5,4 --entries 3000 --skew 0.3
nonneg2    | 150  | --dims 150,120 --entries 3500 --nonneg
nonneg3    | 120  | --dims 120,90,8 --entries 4000 --nonneg
nonneg4    | 60   | --dims 60,50,8,5 --entries 4000 --nonneg
scattered3 | 250  | --dims 250,240,230 --entries 4000
scattered4 | 90   | --dims 90,80,70,60 --entries 4000
blocks     | 1200 | --dims 1200,900,10 --entries 47000 --matrix 1:6:full --matrix 2:900:5000 --matrix 3:5:full
classes    | 9000 | --dims 9000,8000,10000 --entries 34000 --matrix 1:20:9000 --matrix 2:300:3000
";

/// Thread counts that must give the same result.
const REPRODUCIBLE: &[u32] = &[1, 2];

/// Thread counts of lock-free algorithms.
const LOCK_FREE: &[u32] = &[1];

/// Step size and penalty of most cases; without them a fit first draws posterior samples to choose them.
const STEPS: &str = "--epochs 2 --eta 0.02 --lambda-reg 0.5";

/// Length of the chain of `gibbs`.
const CHAIN: &str = "--burn-in 2 --samples 3";

/// A fit, and commands that use its model. In arguments, `{data}` is the folder of the data set, `{train}` and `{test}`
/// its entries, `{work}` a folder of the case, `{model}` the fitted model, `{steps}` and `{threads}` options.
struct Case {
    name: String,
    data: String,
    options: String,
    threads: &'static [u32],
    /// Name and arguments of each command.
    commands: Vec<(&'static str, &'static str)>,
}

impl Case {
    fn new(name: &str, data: &str, algorithm: &str, options: &str) -> Case {
        let steps = match algorithm {
            "gibbs" => CHAIN,
            _ if options.contains("--epochs") => "",
            _ => STEPS,
        };
        let start = match options.contains("--start ") {
            true => "",
            false => "--start identity",
        };
        Case {
            name: format!("{algorithm}/{name}"),
            data: data.to_string(),
            options: format!("--algorithm {algorithm} {start} {steps} {options}"),
            threads: match algorithm {
                "opt" | "naive" => LOCK_FREE,
                _ => REPRODUCIBLE,
            },
            commands: Vec::new(),
        }
    }
}

/// The rows of a table in a text: columns separated by `|`.
fn table<const COLUMNS: usize>(text: &'static str) -> Vec<[&'static str; COLUMNS]> {
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
const VARIANTS: &str = "
plain   | order  |
coupled | order  | --matrix 2:{data}/matrix1.coo:0.5:0.2
full    | order  | --matrix 1:{data}/matrix2.coo:0.3:full
sampled | order  | --matrix 1:{data}/matrix2.coo:0.3:sampled=3
graph   | order  | --graph 1:{data}/graph.tns:0.5
weights | order  | --weights {data}/weights.tns
nonneg  | nonneg | --nonneg --start paper
";

/// Every algorithm, model and order with every kind of side information.
fn side_information() -> Vec<Case> {
    let mut cases = Vec::new();
    for algorithm in ["blocked", "opt", "naive", "als", "gibbs"] {
        for (model, rank) in [("tucker", 3), ("cp", 5)] {
            for order in 2..=4 {
                for [variant, data, extra] in table(VARIANTS) {
                    // Posterior samples have either sign.
                    if variant == "nonneg" && algorithm == "gibbs" {
                        continue;
                    }
                    let name = format!("{model}/order {order}/{variant}");
                    let options = format!("--model {model} --rank {rank} {extra}");
                    let data = format!("{data}{order}");
                    cases.push(Case::new(&name, &data, algorithm, &options));
                }
            }
        }
    }
    cases
}

/// Ranks on both sides of the limits of the specialised kernels, with fiber batches and with single entries: model,
/// data set, order, ranks.
const RANKS: &str = "
tucker | order2     | 2 | 1 8 16 20 33 7,4
tucker | order3     | 3 | 1 4 8 10 12 16 20 32 5,3,2 20,6,3 4,17,9
tucker | order4     | 4 | 4 8 9,3,4,2
tucker | order5     | 5 | 3 4,2,3,2,2
tucker | scattered3 | 3 | 4 8 16 20 9,18,3
tucker | scattered4 | 4 | 4 8
cp     | order2     | 1 | 16 40
cp     | order3     | 1 | 1 16 32 48 64 80
cp     | order4     | 1 | 16 32 64
cp     | order5     | 1 | 8 32
cp     | scattered3 | 1 | 8 16 32 64
cp     | scattered4 | 1 | 16 40
";

/// Core elements up to which an algorithm runs with these ranks: time per entry grows with them, and for `naive`, `als`
/// and `gibbs` steeply.
const LARGEST_CORE: [(&str, usize); 5] = [
    ("blocked", usize::MAX),
    ("opt", 9_000),
    ("naive", 600),
    ("als", 600),
    ("gibbs", 600),
];

fn ranks() -> Vec<Case> {
    let mut cases = Vec::new();
    for [model, data, core_order, ranks] in table(RANKS) {
        for rank in ranks.split(' ') {
            let listed = rank.split(',').map(|j| j.parse::<usize>().unwrap());
            let core_order = core_order.parse().unwrap();
            let core: usize = match rank.contains(',') {
                true => listed.product(),
                false => listed.sum::<usize>().pow(core_order),
            };
            for (algorithm, largest) in LARGEST_CORE {
                if core <= largest {
                    let name = format!("{model}/{data}/rank {rank}");
                    let options = format!("--model {model} --rank {rank}");
                    cases.push(Case::new(&name, data, algorithm, &options));
                }
            }
        }
    }
    cases
}

/// Starts, penalties, presets and other settings, and the schedules of larger data: algorithm, name, data set, options.
const SETTINGS: &str = "
blocked | start auto            | order3  | --start auto --epochs 3
blocked | start drawn tucker    | order3  | --start drawn --epochs 3 --rank 4
blocked | start drawn order 2   | order2  | --start drawn --epochs 3 --rank 4
blocked | start drawn order 4   | order4  | --start drawn --epochs 3 --rank 4
opt     | start drawn           | order3  | --start drawn --epochs 3 --rank 4
als     | start drawn           | order3  | --start drawn --epochs 3 --rank 4
blocked | start drawn coupled   | order3  | --start drawn --epochs 3 --model cp {matrix} {full} {graph}
blocked | automatic step size   | order3  | --start identity --epochs 2 --rank 4
blocked | start modes           | order3  | --start identity --start-modes 1,3 --rank 4
blocked | start normal          | order3  | --start normal --rank 4
blocked | start paper           | order3  | --start paper --rank 4
opt     | start normal          | order4  | --start normal --rank 3
als     | start normal          | order3  | --start normal --rank 4
als     | start paper           | order3  | --start paper --rank 4
gibbs   | start auto            | order3  | --start auto --model cp --rank 8
gibbs   | start sgd             | order3  | --start sgd --model cp --rank 8
gibbs   | start drawn           | order4  | --start drawn --model cp --rank 8
gibbs   | thinned               | order3  | --model cp --rank 8 --thin 2 --no-mean --no-biases
blocked | l1                    | order3  | --rank 4 --penalty l1 {matrix}
blocked | l1 cp                 | order4  | --rank 6 --model cp --penalty l1
opt     | l1                    | order3  | --rank 4 --penalty l1 {matrix}
naive   | l1                    | order3  | --rank 4 --penalty l1 {matrix}
blocked | no biases             | order3  | --rank 4 --no-biases
blocked | no mean               | order3  | --rank 4 --no-mean --no-biases
opt     | no biases             | order3  | --rank 4 --no-biases
als     | no biases             | order3  | --rank 4 --no-biases
blocked | bias penalties        | order3  | --rank 4 --lambda-bias 2,3,4
blocked | not orthogonal        | order3  | --rank 4 --no-orthogonal --no-clip
blocked | penalty per row       | order3  | --rank 4 --penalty-per row
als     | penalty per entry     | order3  | --rank 4 --penalty-per entry
blocked | inverse schedule      | order3  | --rank 4 --schedule inverse --decay 0.3 --core-step 0.5
blocked | mode steps            | order3  | --rank 4 --mode-steps 1,0.5,2
blocked | paper preset          | order3  | --preset paper --start paper --epochs 3 {matrix}
opt     | paper preset          | order3  | --preset paper --start paper --epochs 3 {matrix}
naive   | paper preset          | order3  | --preset paper --start paper --epochs 1 {matrix}
blocked | validation            | order3  | --rank 4 --epochs 6 --eta 0.02 --lambda-reg 0.5 --valid 0.1 --patience 2
als     | validation            | order3  | --rank 4 --epochs 4 --lambda-reg 0.5 --valid 0.1 --patience 1
blocked | all side information  | order3  | --rank 4,3,5 {matrix} {full} {graph} {weights}
opt     | all side information  | order3  | --rank 4,3,5 {matrix} {full} {graph} {weights}
naive   | all side information  | order3  | --rank 4,3,5 {matrix} {full} {graph} {weights}
als     | all side information  | order3  | --rank 4,3,5 {matrix} {full} {graph} {weights}
gibbs   | all side information  | order3  | --model tucker --rank 4,3,5 {matrix} {full} {graph} {weights}
blocked | blocks tucker         | blocks  | --rank 3 {matrices} --matrix 3:{data}/matrix3.coo {graph}
blocked | blocks cp             | blocks  | --rank 16 --model cp --matrix 2:{data}/matrix2.coo:sampled=1 {weights}
opt     | blocks tucker         | blocks  | --rank 3 {matrices} --matrix 3:{data}/matrix3.coo {graph}
als     | blocks cp             | blocks  | --rank 4 --model cp --matrix 1:{data}/matrix1.coo
gibbs   | blocks cp             | blocks  | --rank 4 --model cp --matrix 1:{data}/matrix1.coo
blocked | classes tucker        | classes | --rank 3 {matrices} {graph}
blocked | classes cp            | classes | --rank 8 --model cp {weights}
opt     | classes tucker        | classes | --rank 3 {matrices} {graph}
als     | classes cp            | classes | --rank 4 --model cp {graph}
";

/// Abbreviations in [`SETTINGS`].
const ABBREVIATIONS: &str = "
{matrix}   | --matrix 2:{data}/matrix1.coo:0.5
{full}     | --matrix 1:{data}/matrix2.coo:full
{matrices} | --matrix 1:{data}/matrix1.coo --matrix 2:{data}/matrix2.coo
{graph}    | --graph 1:{data}/graph.tns:0.5
{weights}  | --weights {data}/weights.tns
";

fn settings() -> Vec<Case> {
    let case = |[algorithm, name, data, options]: [&str; 4]| {
        let write_out = |text: String, [short, long]: [&str; 2]| text.replace(short, long);
        let short = table(ABBREVIATIONS).into_iter();
        let options = short.fold(options.to_string(), write_out);
        Case::new(name, data, algorithm, &options)
    };
    table(SETTINGS).into_iter().map(case).collect()
}

/// Commands that use a model: those of every algorithm (`all`), and those of one.
const COMMANDS: &str = "
all     | eval               | eval {model} {test} --rank 2 --at 5 --exclude {train} {threads}
all     | fold-in            | fold-in {model} --mode 1 --tensor {data}/new.tns -o {work}/folded.s3m {threads}
all     | fold-in replace    | fold-in {model} --mode 1 --tensor {data}/old.tns --replace -o {work}/replaced.s3m {threads}
all     | recommend          | recommend {model} --rank 2 --for 1:1-40 -k 5 --exclude {train} {threads}
all     | similar            | similar {model} 2:1-40 -k 5 {threads}
all     | concepts           | concepts {model} 2
all     | concepts for       | concepts {model} 2 --for 1:3
all     | clusters           | clusters {model} 2 --max-k 6 --references 3 --matrix {data}/matrix1.coo {threads}
gibbs   | quantiles          | predict {model} {test} --deviation --quantiles 0.05,0.9 {threads}
gibbs   | recommend quantile | recommend {model} --rank 2 --for 1:1-40 -k 5 --quantile 0.2 {threads}
blocked | unclipped          | predict {model} {test} --no-clip {threads}
blocked | init               | fit --tensor {train} --init {model} {steps} --seed 2 -o {work}/init.s3m {threads}
blocked | checkpoint         | fit --tensor {train} --rank 4 {steps} --checkpoint {work}/saved -o {work}/first.s3m {threads}
blocked | resume             | fit --tensor {train} --resume {work}/saved --epochs 4 -o {work}/resumed.s3m {threads}
blocked | tune               | tune --tensor {train} --trials 3 --rungs 2 --epochs 3 --rank 3,4 --start identity -o {work}/best.conf {threads}
";

fn commands() -> Vec<Case> {
    let case = |(algorithm, model): (&str, &str)| {
        let options = format!("{model} --matrix 2:{{data}}/matrix1.coo:0.5");
        let all = table(COMMANDS).into_iter();
        let own = all.filter(|[by, _, _]| *by == "all" || *by == algorithm);
        Case {
            commands: own.map(|[_, name, arguments]| (name, arguments)).collect(),
            ..Case::new("commands", "order3", algorithm, &options)
        }
    };
    let models = [
        ("blocked", "--model tucker --rank 4"),
        ("als", "--model cp --rank 6"),
        ("gibbs", "--model cp --rank 6"),
    ];
    models.into_iter().map(case).collect()
}

/// What a case gives: model hash, prediction hash, RMSE.
type Result = [String; 3];

/// Results by case and level.
type Results = BTreeMap<(String, String), Result>;

/// Runs the program and returns what it prints.
fn run(arguments: &str, level: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_s3cmtf"));
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
fn generate(root: &Path, [name, rows, arguments]: [&str; 3]) -> String {
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
    // Rows beyond the last one, with the entries of known rows.
    let first = |line: &str| {
        line.split_once(' ')
            .map(|(row, rest)| (row.parse().unwrap(), rest.to_string()))
    };
    let mut new = String::new();
    let mut old = String::new();
    for (row, rest) in entries.iter().filter_map(|l| first(l)) {
        let row: usize = row;
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
fn hash_model(model: &Path, level: &str) -> String {
    let folder = model.with_extension("export");
    run(
        &format!("export {} {}", model.display(), folder.display()),
        level,
    );
    hash_folder(&folder)
}

/// Runs a case at a level with a number of threads. Returns the results of its fit and its commands by name.
fn run_case(root: &Path, case: &Case, level: &str, threads: u32) -> Vec<(String, Result)> {
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
        [hash_model(&model, level), hash_text(&predictions), rmse],
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
                hash_model(saved, level)
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

/// Runs all cases at the levels.
fn compute(levels: &[&str]) -> Found {
    let root = std::env::temp_dir().join(format!("s3cmtf-golden-{}", std::process::id()));
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(&root).unwrap();
    let data = table(DATA);
    let mut found = in_parallel(data.len(), |i| {
        let name = format!("data/{}", data[i][0]);
        vec![(
            (name, ANY.into()),
            [generate(&root, data[i]), "-".into(), "-".into()],
        )]
    });
    assert!(found.failures.is_empty(), "{}", found.failures.join("\n"));
    let groups = [side_information(), ranks(), settings(), commands()];
    let cases: Vec<Case> = groups.into_iter().flatten().collect();
    let names: BTreeSet<&str> = cases.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names.len(), cases.len(), "two cases have the same name");
    let fits = in_parallel(cases.len() * levels.len(), |i| {
        let (case, level) = (&cases[i / levels.len()], levels[i % levels.len()]);
        let mut runs = case
            .threads
            .iter()
            .map(|&t| (t, run_case(&root, case, level, t)));
        let (_, first) = runs.next().expect("at least one thread count");
        for (threads, other) in runs {
            assert_eq!(
                first, other,
                "level {level}: {threads} threads give another result than 1"
            );
        }
        let results = first.into_iter();
        results
            .map(|(name, result)| ((name, level.into()), result))
            .collect()
    });
    found.results.extend(fits.results);
    found.failures = fits.failures;
    fs::remove_dir_all(&root).unwrap();
    found
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
                let parts = [("model", 0), ("predictions", 1)];
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

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "takes minutes without optimization; run it with --release"
)]
fn results_are_the_recorded_ones() {
    let system = format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{system}.tsv"));
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
    let found = compute(&here);
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
