//! The data sets and the cases of the golden results.

use crate::harness::{Case, VARIANTS, table};

/// Data sets: name, size of the first mode, arguments of `generate`.
///
/// - `orderN`: fiber batches for tucker, entries one by one for cp, in one block or a few.
/// - `fibersN`: one row has most entries, which makes a single block with fiber batches for cp as well.
/// - `scatteredN`: too few entries per row for fiber batches, so entries are updated one by one.
/// - `blocks`: several blocks, with a matrix whose columns are replicated and one whose columns are partitioned.
/// - `classes`: so sparse that entries are coloured into conflict-free classes.
pub const DATA: &str = "
order2     | 150  | --dims 150,120 --entries 3000 --skew 0.3 --matrix 2:6:full --matrix 1:30:400
order3     | 120  | --dims 120,90,8 --entries 3000 --skew 0.3 --matrix 2:6:full --matrix 1:30:400
order4     | 60   | --dims 60,50,8,5 --entries 3000 --skew 0.3 --matrix 2:6:full --matrix 1:30:400
order5     | 30   | --dims 30,25,8,5,4 --entries 3000 --skew 0.3
nonneg2    | 150  | --dims 150,120 --entries 3000 --nonneg
nonneg3    | 120  | --dims 120,90,8 --entries 3000 --nonneg
nonneg4    | 60   | --dims 60,50,8,5 --entries 3000 --nonneg
fibers2    | 3000 | --dims 3000,5 --entries 4000 --skew 0,3
fibers3    | 800  | --dims 800,30,4 --entries 4000 --skew 0,3,0
fibers4    | 300  | --dims 300,20,4,3 --entries 4000 --skew 0,3,0,0
fibers5    | 150  | --dims 150,12,4,3,2 --entries 4000 --skew 0,3,0,0,0
scattered2 | 3000 | --dims 3000,2800 --entries 4000
scattered3 | 3000 | --dims 3000,2800,2600 --entries 4000
scattered4 | 2000 | --dims 2000,1800,1700,1600 --entries 4000
blocks     | 1200 | --dims 1200,900,10 --entries 47000 --matrix 1:6:full --matrix 2:900:5000 --matrix 3:5:full
classes    | 9000 | --dims 9000,8000,10000 --entries 34000 --matrix 1:20:9000 --matrix 2:300:3000
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

/// Ranks on both sides of the limits of the specialized kernels: model, data set, order of the core, ranks.
const RANKS: &str = "
tucker | order2     | 2 | 1 8 16 20 33 7,4
tucker | order3     | 3 | 1 4 8 10 12 16 20 32 5,3,2 20,6,3 4,17,9
tucker | order4     | 4 | 4 8 9,3,4,2
tucker | order5     | 5 | 3 4,2,3,2,2
tucker | scattered2 | 2 | 3 8 16 20 9,18
tucker | scattered3 | 3 | 4 8 12
tucker | scattered4 | 4 | 2 4
cp     | order2     | 1 | 16 40
cp     | order3     | 1 | 1 16 32 48 64 80
cp     | order4     | 1 | 16 32 64
cp     | order5     | 1 | 8 32
cp     | fibers2    | 1 | 8 32
cp     | fibers3    | 1 | 4 16 32 64
cp     | fibers4    | 1 | 8 40
cp     | fibers5    | 1 | 8 32
cp     | scattered3 | 1 | 8 32
";

/// Core elements up to which an algorithm runs with these ranks, to limit the time.
const LARGEST_CORE: [(&str, usize); 5] = [
    ("blocked", usize::MAX),
    ("opt", 9_000),
    ("naive", 130),
    ("als", 300),
    ("gibbs", 40),
];

fn ranks() -> Vec<Case> {
    let mut cases = Vec::new();
    for [model, data, core_order, ranks] in table(RANKS) {
        for rank in ranks.split(' ') {
            let listed = rank.split(',').map(|j| j.parse::<usize>().unwrap());
            let core_order = core_order.parse().unwrap();
            let core: usize = if rank.contains(',') {
                listed.product()
            } else {
                listed.sum::<usize>().pow(core_order)
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
blocked | start normal          | order3  | --start normal --rank 4
blocked | start paper           | order3  | --start paper --rank 4
opt     | start normal          | order4  | --start normal --rank 3
als     | start normal          | order3  | --start normal --rank 4
als     | start paper           | order3  | --start paper --rank 4
gibbs   | start auto            | order3  | --start auto --model cp --rank 8
gibbs   | start drawn           | order4  | --start drawn --model cp --rank 8
gibbs   | no biases             | order3  | --model cp --rank 8 --no-mean --no-biases
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
blocked | paper preset          | order3  | --preset paper --start paper --epochs 3 {matrix}
opt     | paper preset          | order3  | --preset paper --start paper --epochs 3 {matrix}
naive   | paper preset          | order3  | --preset paper --start paper --epochs 1 {matrix}
blocked | validation            | order3  | --rank 4 --epochs 6 --eta 0.02 --lambda-reg 0.5 --valid 0.1 --patience 2
als     | validation            | order3  | --rank 4 --epochs 4 --lambda-reg 0.5 --valid 0.1 --patience 1
blocked | all side information  | order3  | --rank 4,3,5 {matrix} {full} {graph} {weights}
blocked | selected weights      | order3  | --rank 4,3,5 --matrix 2:{data}/matrix1.coo --matrix 1:{data}/matrix2.coo:full
opt     | all side information  | order3  | --rank 4,3,5 {matrix} {full} {graph} {weights}
naive   | all side information  | order3  | --rank 4,3,5 {matrix} {full} {graph} {weights}
als     | all side information  | order3  | --rank 4,3,5 {matrix} {full} {graph} {weights}
gibbs   | all side information  | order3  | --model tucker --rank 4,3,5 {matrix} {full} {graph} {weights}
blocked | blocks tucker         | blocks  | --rank 3 {matrices} --matrix 3:{data}/matrix3.coo:1 {graph}
blocked | blocks fibers         | blocks  | --rank 8 {matrices} --matrix 3:{data}/matrix3.coo:1 {graph} {weights}
blocked | blocks cp             | blocks  | --rank 16 --model cp --matrix 2:{data}/matrix2.coo:1:sampled=1 {weights}
opt     | blocks tucker         | blocks  | --rank 3 {matrices} --matrix 3:{data}/matrix3.coo:1 {graph}
als     | blocks cp             | blocks  | --rank 4 --model cp --matrix 1:{data}/matrix1.coo:1
gibbs   | blocks cp             | blocks  | --rank 4 --model cp --matrix 1:{data}/matrix1.coo:1
blocked | classes tucker        | classes | --rank 3 {matrices} {graph}
blocked | classes rank 12       | classes | --rank 12
blocked | classes cp            | classes | --rank 8 --model cp {weights}
opt     | classes tucker        | classes | --rank 3 {matrices} {graph}
als     | classes cp            | classes | --rank 4 --model cp {graph}
";

/// Abbreviations in [`SETTINGS`].
const ABBREVIATIONS: &str = "
{matrix}   | --matrix 2:{data}/matrix1.coo:0.5
{full}     | --matrix 1:{data}/matrix2.coo:1:full
{matrices} | --matrix 1:{data}/matrix1.coo:1 --matrix 2:{data}/matrix2.coo:1
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
all     | eval               | eval {model} {test} --mode 2 --top 5 --exclude {train} {threads}
all     | fold-in            | fold-in {model} --mode 1 --tensor {data}/new.tns -o {work}/folded.s3m {threads}
all     | fold-in replace    | fold-in {model} --mode 1 --tensor {data}/old.tns --replace -o {work}/replaced.s3m {threads}
all     | recommend          | recommend {model} --mode 2 --for 1:1-40 --top 5 --exclude {train} {threads}
all     | similar            | similar {model} --for 2:1-40 --top 5 {threads}
all     | concepts           | concepts {model} --mode 2
all     | concepts for       | concepts {model} --mode 2 --for 1:3
all     | clusters           | clusters {model} --mode 2 --max-k 6 --references 3 --matrix {data}/matrix1.coo {threads}
gibbs   | quantiles          | predict {model} {test} --deviation --quantiles 0.05,0.9 {threads}
gibbs   | recommend quantile | recommend {model} --mode 2 --for 1:1-40 --top 5 --quantile 0.2 {threads}
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

/// Every case.
pub fn all() -> Vec<Case> {
    let groups = [side_information(), ranks(), settings(), commands()];
    groups.into_iter().flatten().collect()
}
