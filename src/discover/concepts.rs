//! What the columns of a factor stand for, and how much each matters to somebody: the paper's personal profile.
//!
//! With the core contracted with the rows that are given, R = G x_1 u, concept j of a mode adds v_j (R w)_j to the
//! prediction of a cell, where v is the row of that mode and w that of the mode left. Columns have any scale and sign in
//! a fit, so that neither the numbers of R nor those of a column mean anything by themselves: what is meant is the root
//! mean square of what the concept adds, over all rows v and w by their entries. With columns of norm 1 that have
//! nothing to do with each other this is the norm of a row of R, the paper's strength, but for a common factor.

use super::layer::Layer;
use super::metric::{mean_square, metric};
use super::top_k::Ranked;
use super::{check_mode, known};
use crate::error::{Error, Result};
use crate::model::{Model, ModelMatrix};

use crate::kernel::CoreKind;

/// What to describe.
#[derive(Debug, Clone, PartialEq)]
pub struct ConceptOptions {
    /// The mode whose concepts are described, counted from 0.
    pub mode: usize,
    /// For whom: modes and their rows. Modes that are not here are averaged over.
    pub given: Vec<(usize, u32)>,
    /// How many rows and columns of matrices to give for each concept, at either end.
    pub top: usize,
    /// The least number of tensor entries of a row that is listed.
    pub least: u64,
}

impl ConceptOptions {
    /// Ten of each, for nobody.
    pub fn new(mode: usize) -> ConceptOptions {
        ConceptOptions {
            mode,
            given: Vec::new(),
            top: 10,
            least: 1,
        }
    }
}

/// A column of a coupled matrix and what it has to do with a concept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Association {
    /// Which matrix of the model, counted from 0.
    pub matrix: usize,
    /// The column, counted from 0.
    pub column: u32,
    /// What a row of loading 1 gets from the concept in the prediction of this column, over the root mean square of
    /// those predictions.
    pub share: f64,
}

/// A latent concept: a column of a factor.
#[derive(Debug, Clone, PartialEq)]
pub struct Concept {
    /// Which column, counted from 0.
    pub number: usize,
    /// The root mean square of what it adds to predictions.
    pub strength: f64,
    /// What it adds for a row of loading 1, the modes that are not given being at their mean rows. Never below 0: the
    /// sign of the column is turned so.
    pub effect: f64,
    /// Whether the sign was turned.
    pub turned: bool,
    /// The rows with the largest loadings, the largest first, and of equal ones that with more entries. A loading is a number of the column over the root mean
    /// square of them all, by entries.
    pub largest: Vec<Ranked>,
    /// The rows with the smallest loadings, the smallest first, and of equal ones that with more entries.
    pub smallest: Vec<Ranked>,
    /// Columns of the matrices of the mode that go with it most, for each matrix the largest share first.
    pub with: Vec<Association>,
    /// Those that go against it most, the smallest share first.
    pub against: Vec<Association>,
}

/// R, the core contracted with the rows that are given, where one mode besides is left; at columns of root mean square 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// The mode of its columns, counted from 0.
    pub mode: usize,
    /// How many columns it has.
    pub columns: usize,
    /// Its numbers, row by row: a row for each concept, in the order of the factor.
    pub numbers: Vec<f64>,
}

/// The concepts of a mode.
#[derive(Debug, Clone, PartialEq)]
pub struct Concepts {
    /// The mode, counted from 0.
    pub mode: usize,
    /// The concepts, the strongest first.
    pub concepts: Vec<Concept>,
    /// R, if it is a matrix.
    pub profile: Option<Profile>,
}

/// Describes the concepts of a mode, for the rows that are given or for nobody. Those rows must be known to the model.
/// For a model of samples they are those of its last draw.
pub fn concepts(model: &Model, options: &ConceptOptions) -> Result<Concepts> {
    let mode = options.mode;
    check_mode(model, mode)?;
    let mut given: Vec<(usize, usize)> = Vec::new();
    for &(n, index) in &options.given {
        check_mode(model, n)?;
        if n == mode || given.iter().any(|(m, _)| *m == n) {
            return Err(Error::argument(format!(
                "a row of mode {} is given {}",
                n + 1,
                if n == mode {
                    "whose concepts are asked for; give rows of other modes"
                } else {
                    "twice; give one"
                }
            )));
        }
        given.push((n, known(model, n, index)? as usize));
    }
    let layer = Layer::own(model);
    let rank = model.shape().ranks[mode];
    let diagonal = |square: Vec<f64>, rank: usize| -> Vec<f64> {
        (0..rank).map(|j| square[j * rank + j].max(0.0)).collect()
    };
    let square = mean_square(model, &layer, mode)?;
    let sizes: Vec<f64> = roots(diagonal(square.clone(), rank));
    let squares = diagonal(metric(model, &layer, mode, &given)?, rank);
    let left = contracted(model, &layer, mode, &given);
    let mean = averaged(model, &layer, mode, &left);
    let profile = match left.modes[..] {
        [other] => {
            let columns = model.shape().ranks[other];
            let others = roots(diagonal(mean_square(model, &layer, other)?, columns));
            let scaled = left.numbers.iter().enumerate();
            let scaled = scaled.map(|(k, r)| r * sizes[k / columns] * others[k % columns]);
            Some(Profile {
                mode: other,
                columns,
                numbers: scaled.collect(),
            })
        }
        _ => None,
    };
    let mut concepts = Vec::new();
    for number in 0..rank {
        let turned = mean[number] < 0.0;
        let sign = if turned { -1.0 } else { 1.0 };
        let (largest, smallest) = extremes(model, options, number, sign, sizes[number]);
        let (mut with, mut against) = (Vec::new(), Vec::new());
        let matrices = model.matrices().iter().enumerate();
        for (m, matrix) in matrices.filter(|(_, matrix)| matrix.mode == mode) {
            let mut list = associations((m, matrix), number, sign * sizes[number], &square);
            let top = options.top.min(list.len());
            // Of equal shares the smaller column is first at either end.
            list.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.column.cmp(&b.column)));
            with.extend_from_slice(&list[..top]);
            list.sort_by(|a, b| a.share.total_cmp(&b.share).then(a.column.cmp(&b.column)));
            against.extend_from_slice(&list[..top]);
        }
        concepts.push(Concept {
            number,
            strength: sizes[number] * squares[number].sqrt(),
            effect: sizes[number] * mean[number].abs(),
            turned,
            largest,
            smallest,
            with,
            against,
        });
    }
    concepts.sort_by(|a, b| {
        let by_strength = b.strength.total_cmp(&a.strength);
        by_strength.then(a.number.cmp(&b.number))
    });
    Ok(Concepts {
        mode,
        concepts,
        profile,
    })
}

fn roots(squares: Vec<f64>) -> Vec<f64> {
    squares.iter().map(|s| s.sqrt()).collect()
}

/// The rows at either end of a column.
fn extremes(
    model: &Model,
    options: &ConceptOptions,
    number: usize,
    sign: f64,
    size: f64,
) -> (Vec<Ranked>, Vec<Ranked>) {
    let own = &model.modes()[options.mode];
    let mut list: Vec<(Ranked, u64)> = Vec::new();
    for (row, index) in own.rows.indices().enumerate() {
        let count = own.counts[row];
        if count >= options.least {
            let x = sign * f64::from(own.factor.row(row)[number]);
            // Never -0, which is not what 0 is to an order.
            let score = if size > 0.0 { x / size + 0.0 } else { 0.0 };
            if !score.is_nan() {
                list.push((Ranked { index, score }, count));
            }
        }
    }
    let top = options.top.min(list.len());
    // In a non-negative model many rows have 0, and of equal loadings those say most that are known best.
    let mut end = |falling: bool| -> Vec<Ranked> {
        list.sort_by(|(a, of_a), (b, of_b)| {
            let by_score = match falling {
                true => b.score.total_cmp(&a.score),
                false => a.score.total_cmp(&b.score),
            };
            by_score.then(of_b.cmp(of_a)).then(a.index.cmp(&b.index))
        });
        list[..top].iter().map(|(row, _)| *row).collect()
    };
    (end(true), end(false))
}

/// What all columns of a matrix have to do with a concept.
fn associations(
    (m, matrix): (usize, &ModelMatrix),
    number: usize,
    size: f64,
    square: &[f64],
) -> Vec<Association> {
    let mut list = Vec::new();
    for (c, column) in matrix
        .columns
        .indices()
        .enumerate()
        .take(matrix.factor.len())
    {
        let v = matrix.factor.row(c);
        let lines = square.chunks_exact(v.len()).zip(v);
        let all: f64 = lines
            .map(|(line, &x)| {
                let each = line.iter().zip(v);
                f64::from(x) * each.map(|(a, &y)| a * f64::from(y)).sum::<f64>()
            })
            .sum();
        let share = match all.sqrt() {
            all if all > f64::MIN_POSITIVE => size * f64::from(v[number]) / all,
            _ => 0.0,
        };
        list.push(Association {
            matrix: m,
            column,
            share,
        });
    }
    list
}

/// The core after some of its modes are contracted.
struct Left {
    /// The modes that are left besides the one described, ascending.
    modes: Vec<usize>,
    /// The mode described comes first, then the others. Of a diagonal core that has two others or more, the diagonal
    /// alone.
    numbers: Vec<f64>,
}

/// The core contracted with the rows that are given.
fn contracted(model: &Model, layer: &Layer<'_>, mode: usize, given: &[(usize, usize)]) -> Left {
    let shape = model.shape();
    let row = |n: usize, row: usize| -> Vec<f64> {
        let mut numbers = vec![0.0f32; shape.ranks[n]];
        layer.read(n, row, &mut numbers);
        numbers.iter().map(|&x| f64::from(x)).collect()
    };
    let is_given = |n: &usize| given.iter().any(|(m, _)| m == n);
    let modes: Vec<usize> = (0..shape.order())
        .filter(|n| *n != mode && !is_given(n))
        .collect();
    let rank = shape.ranks[mode];
    if shape.kind == CoreKind::Diagonal {
        let core = layer.core()[..rank].iter().map(|&g| f64::from(g));
        let mut diagonal: Vec<f64> = core.collect();
        for &(n, r) in given {
            let times = |(d, x): (&mut f64, f64)| *d *= x;
            diagonal.iter_mut().zip(row(n, r)).for_each(times);
        }
        if modes.len() != 1 {
            return Left {
                modes,
                numbers: diagonal,
            };
        }
        let mut numbers = vec![0.0; rank * rank];
        (0..rank).for_each(|j| numbers[j * rank + j] = diagonal[j]);
        return Left { modes, numbers };
    }
    let dense = shape.dense_core(layer.core());
    let mut numbers: Vec<f64> = dense.iter().map(|&g| f64::from(g)).collect();
    let mut ranks = shape.ranks.clone();
    for &(n, r) in given {
        numbers = along(&numbers, &ranks, n, &row(n, r));
        ranks[n] = 1;
    }
    // The mode described first.
    let after: usize = ranks[mode + 1..].iter().product();
    let before = numbers.len() / (rank * after).max(1);
    let mut first = Vec::with_capacity(numbers.len());
    for j in 0..rank {
        for b in 0..before {
            first.extend_from_slice(&numbers[(b * rank + j) * after..][..after]);
        }
    }
    Left {
        modes,
        numbers: first,
    }
}

/// That contracted with the mean rows of the modes left: what each concept counts for a row, on the average.
fn averaged(model: &Model, layer: &Layer<'_>, mode: usize, left: &Left) -> Vec<f64> {
    let shape = model.shape();
    let rank = shape.ranks[mode];
    let mean = |n: usize| -> Vec<f64> {
        let mut numbers = vec![0.0f32; shape.ranks[n]];
        layer.read(n, model.modes()[n].rows.len(), &mut numbers);
        numbers.iter().map(|&x| f64::from(x)).collect()
    };
    let mut numbers = left.numbers.clone();
    if shape.kind == CoreKind::Diagonal {
        if left.modes.len() == 1 {
            numbers = (0..rank).map(|j| numbers[j * rank + j]).collect();
        }
        for &n in &left.modes {
            let times = |(d, x): (&mut f64, f64)| *d *= x;
            numbers.iter_mut().zip(mean(n)).for_each(times);
        }
        return numbers;
    }
    let mut ranks: Vec<usize> = vec![rank];
    ranks.extend(left.modes.iter().map(|&n| shape.ranks[n]));
    for (at, &n) in left.modes.iter().enumerate() {
        numbers = along(&numbers, &ranks, at + 1, &mean(n));
        ranks[at + 1] = 1;
    }
    numbers
}

/// A dense tensor contracted with a vector along mode `n`.
fn along(from: &[f64], ranks: &[usize], n: usize, by: &[f64]) -> Vec<f64> {
    let after: usize = ranks[n + 1..].iter().product();
    let mut out = Vec::with_capacity(from.len() / by.len().max(1));
    for block in from.chunks_exact((by.len() * after).max(1)) {
        for k in 0..after {
            let each = by.iter().enumerate();
            out.push(each.map(|(j, x)| x * block[j * after + k]).sum());
        }
    }
    out
}
