//! The work of every parser grows in proportion to its input, also for inputs that are made to cost much: wide headers, long
//! names, repeated keys.
//!
//! The short form counts the instructions that the program executes, with valgrind, for an input and for one that is four times
//! as long. The long form (`CONTRIBUTING.md` has its command) compares the CPU time of two large inputs, one twice the other.

mod cases;

use std::fs;
use std::process::Stdio;

use crate::common::native::is_installed;
use crate::common::{ProgramRun, Scratch};
use crate::runner::program;

use cases::cases;

/// How much the CPU time may grow when the input is doubled. Sorting and buffers that double explain the excess over 2.
const MAX_TIME_RATIO: f64 = 2.3;

/// How much the number of instructions may grow when the input is quadrupled. Quadratic work grows 16 times.
const MAX_INSTRUCTION_RATIO: f64 = 4.6;

/// Resolution of the difference of two CPU times, in ticks.
const TICKS: f64 = 2.0;

/// Runs of the long form for each size, of which the median counts.
const RUNS: usize = 5;

/// An option with a list.
#[derive(Clone, Copy)]
struct ListOption {
    name: &'static str,
    /// Makes the items of a list of a length.
    items: fn(usize) -> Vec<String>,
}

/// A command that parses a file.
struct Case {
    name: &'static str,
    /// The arguments; `{}` stands for the folder.
    arguments: &'static str,
    /// An option whose list has the length of the input's size.
    list: Option<ListOption>,
    /// Writes the input files of a size to the folder.
    write: fn(&Scratch, usize),
    /// The exit code of the program.
    code: i32,
    /// Sizes of the short and the long form. A short size of 0 leaves the case to the long form.
    sizes: [usize; 2],
}

impl Case {
    /// A command that exits with code 0.
    fn new(
        name: &'static str,
        arguments: &'static str,
        sizes: [usize; 2],
        write: fn(&Scratch, usize),
    ) -> Case {
        Case {
            name,
            arguments,
            list: None,
            write,
            code: 0,
            sizes,
        }
    }

    /// The same command, but its input is invalid: the exit code is 2.
    fn rejected(self) -> Case {
        Case { code: 2, ..self }
    }

    fn with_list(self, name: &'static str, items: fn(usize) -> Vec<String>) -> Case {
        Case {
            list: Some(ListOption { name, items }),
            ..self
        }
    }

    fn arguments(&self, dir: &Scratch, size: usize) -> Vec<String> {
        let folder = dir.path().display().to_string();
        (self.write)(dir, size);
        let list = |list: ListOption| format!("{}={}", list.name, (list.items)(size).join(","));
        let words = self.arguments.split(' ').map(String::from);
        let all = words.chain(self.list.map(list));
        all.map(|word| word.replace("{}", &folder)).collect()
    }

    fn check(&self, output: std::process::Output) {
        let run = ProgramRun::from(output);
        let end: String = run.stderr.chars().take(2000).collect();
        assert_eq!(run.code, Some(self.code), "{}: {end}", self.name);
    }

    fn instructions(&self, dir: &Scratch, size: usize) -> f64 {
        let arguments = self.arguments(dir, size);
        let (output, count) = count_instructions(dir, &arguments);
        self.check(output);
        count
    }

    /// Returns the CPU times of the program for inputs of two sizes, in ticks of the system. Runs alternate between the
    /// sizes, so that a change of the load of the machine affects both.
    fn cpu_times(&self, sizes: [usize; 2]) -> [f64; 2] {
        let inputs = sizes.map(|size| {
            let dir = Scratch::new("parser-complexity-size");
            (self.arguments(&dir, size), dir)
        });
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..RUNS {
            for ((arguments, _), times) in inputs.iter().zip(&mut times) {
                let before = time_of_children();
                self.check(program().args(arguments).output().unwrap());
                times.push(time_of_children() - before);
            }
        }
        times.map(|mut times| {
            times.sort_by(f64::total_cmp);
            times[RUNS / 2]
        })
    }
}

/// Runs the program and counts its instructions.
fn count_instructions(dir: &Scratch, arguments: &[String]) -> (std::process::Output, f64) {
    let counts = dir.join("instructions");
    let mut command = std::process::Command::new("valgrind");
    command
        .args(["--tool=cachegrind", "--cache-sim=no"])
        .arg(format!("--log-file={}", dir.join("log").display()))
        .arg(format!("--cachegrind-out-file={}", counts.display()))
        .arg(program().get_program())
        .args(arguments)
        .stdin(Stdio::null());
    let output = command.output().unwrap();
    let text = fs::read_to_string(counts).unwrap();
    let summary = text.lines().find_map(|line| line.strip_prefix("summary:"));
    (output, summary.unwrap().trim().parse().unwrap())
}

/// Returns the CPU time of all processes that this one started and waited for, in ticks.
fn time_of_children() -> f64 {
    let text = fs::read_to_string("/proc/self/stat").unwrap();
    // The second field, the name of the program, is in parentheses and may contain blanks.
    let fields = text.rsplit_once(')').unwrap().1;
    let numbers: Vec<f64> = fields
        .split_whitespace()
        .skip(1)
        .map_while(|n| n.parse().ok())
        .collect();
    // Fields 16 and 17: cutime and cstime. The first number is field 4.
    numbers[12] + numbers[13]
}

#[test]
fn parsers_take_time_in_proportion_to_their_input() {
    let is_long = std::env::var_os("S3CMTF_LONG_TESTS").is_some_and(|v| v == "1");
    if !is_long && !is_installed("valgrind") {
        println!("skipped: valgrind is not on this machine");
        return;
    }
    let dir = Scratch::new("parser-complexity");
    // What the program does whatever its arguments are.
    let constant = if is_long {
        0.0
    } else {
        count_instructions(&dir, &["--version".into()]).1
    };
    let only = std::env::var("S3CMTF_PARSER").unwrap_or_default();
    let mut faults = Vec::new();
    for case in cases().iter().filter(|case| case.name.contains(&only)) {
        let dir = Scratch::new("parser-complexity-case");
        let [short, long] = case.sizes;
        if short == 0 && !is_long {
            continue;
        }
        let (ratio, limit, shown) = if is_long {
            let [once, twice] = case.cpu_times([long, 2 * long]);
            let shown = format!("{once} and {twice} ticks of CPU time");
            (
                (twice - TICKS).max(0.0) / once.max(1.0),
                MAX_TIME_RATIO,
                shown,
            )
        } else {
            let count = |size| case.instructions(&dir, size) - constant;
            let [one, four] = [short, 4 * short].map(count);
            let shown = format!("{one} and {four} instructions");
            (four / one, MAX_INSTRUCTION_RATIO, shown)
        };
        println!("{ratio:6.2}  {}: {shown}", case.name);
        if !(0.0..=limit).contains(&ratio) {
            faults.push(format!("{}: {ratio:.2} times, {shown}", case.name));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}
