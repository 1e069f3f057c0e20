//! How the rows of a mode are shared out among threads, and what is done for each.
//!
//! Pieces of work are a formula of the data alone, and sums over the pieces of a long row are added up
//! in order: the result does not depend on the threads.

use std::ops::Range;

use super::graph::Links;
use super::normal_wishart::{Prior, solve_carefully};
use crate::error::Result;
use crate::kernel::{ModeCsr, Noise, NormalEquations, Partials, PartialsScratch, cholesky_solve};

use crate::model::FactorMatrix;
use crate::simd::Level;

use crate::linalg::CoordinateDescent;
use crate::parallel::ThreadPool;
use crate::random::RandomStream;
use crate::simd::padded_len;
use crate::solver::full_matrix::FullMatrix;
use crate::solver::gram::row_moments;

/// Entries that count towards the rows of a mode, or of the columns of a matrix.
pub(super) struct Source<'a> {
    pub lists: &'a ModeCsr,
    pub slopes: Partials<'a>,
    /// What their squared errors are multiplied with.
    pub weight: f64,
    /// Whether the row's bias is in them.
    pub biased: bool,
    /// What all cells of a full matrix add up to, of which these are the listed ones.
    pub whole: Option<Whole<'a>>,
}

/// What every row of a full matrix, or every column, has in its equations.
pub(super) struct Whole<'a> {
    /// Row-major, without padding.
    pub gram: Vec<f32>,
    pub right: Vec<f32>,
    /// For each row what `right` is multiplied with, if it is not 1.
    pub by: Option<&'a [f32]>,
}

impl Whole<'_> {
    /// What all cells of a full matrix say about the rows of its mode, given its columns.
    pub(super) fn of_rows(
        full: &FullMatrix,
        columns: &FactorMatrix,
        pool: &ThreadPool,
    ) -> Result<Whole<'static>> {
        let narrow = |x: &[f64]| x.iter().map(|&x| x as f32).collect();
        let v = row_moments(columns, columns.len(), &[], pool)?;
        Ok(Whole {
            gram: narrow(&v.gram()),
            right: narrow(&full.unobserved_column_sum(columns)),
            by: None,
        })
    }
}

impl Whole<'_> {
    /// The same of padded columns; `base` is what a 0 is in each.
    pub(super) fn of_columns(columns: &[f32], rank: usize, base: &[f32]) -> Whole<'static> {
        let (mut gram, mut right) = (vec![0.0f64; rank * rank], vec![0.0f64; rank]);
        for (column, &base) in columns.chunks_exact(padded_len(rank)).zip(base) {
            for i in 0..rank {
                let x = f64::from(column[i]);
                right[i] += f64::from(base) * x;
                let line = &mut gram[i * rank..][..rank];
                line.iter_mut()
                    .zip(column)
                    .for_each(|(g, &y)| *g += x * f64::from(y));
            }
        }
        let narrow = |x: Vec<f64>| x.into_iter().map(|x| x as f32).collect();
        Whole {
            gram: narrow(gram),
            right: narrow(right),
            by: None,
        }
    }
}

impl Source<'_> {
    fn add(&self, entries: Range<usize>, room: &mut PartialsScratch, to: &mut NormalEquations) {
        match self.whole {
            None => self.slopes.accumulate(self.lists, entries, room, to),
            Some(_) => self.slopes.accumulate_rhs(self.lists, entries, to),
        }
    }
}

/// One piece of work.
enum Task {
    /// All entries of several rows, from one place in the list of rows to another.
    Rows(Range<usize>),
    /// Some entries of the row at a place in that list, of one source.
    Piece(usize, usize, Range<usize>),
}

/// The work on some or all rows of a mode.
pub(super) struct Work {
    pub rows: Vec<u32>,
    tasks: Vec<Task>,
}

/// As much as so many entries is a row to be solved for.
const PER_ROW: usize = 64;

impl Work {
    /// The work on all rows of these lists, which are those of the sources in order.
    pub(super) fn new(lists: &[&ModeCsr]) -> Work {
        let rows = lists.first().map_or(0, |l| l.row_count());
        Work::on(lists, (0..rows as u32).collect())
    }

    /// The work on these rows.
    pub(super) fn on(lists: &[&ModeCsr], rows: Vec<u32>) -> Work {
        let length = |row: u32| {
            lists
                .iter()
                .map(|l| l.row_entries(row as usize).len())
                .sum::<usize>()
        };
        let total: usize = rows.iter().map(|&row| length(row) + PER_ROW).sum();
        let limit = (total / 256).clamp(1 << 11, 1 << 15);
        let mut tasks = Vec::new();
        let (mut first, mut size) = (0, 0);
        for (at, &row) in rows.iter().enumerate() {
            let here = length(row);
            if here >= 2 * limit {
                if first < at {
                    tasks.push(Task::Rows(first..at));
                }
                // At most so many pieces, each with memory for its sums.
                let length = limit.max(here.div_ceil(64));
                for (s, l) in lists.iter().enumerate() {
                    let all = l.row_entries(row as usize);
                    let starts = all.clone().step_by(length);
                    tasks.extend(starts.map(|a| Task::Piece(at, s, a..(a + length).min(all.end))));
                }
                (first, size) = (at + 1, 0);
                continue;
            }
            size += here + PER_ROW;
            if size >= limit {
                tasks.push(Task::Rows(first..at + 1));
                (first, size) = (at + 1, 0);
            }
        }
        if first < rows.len() {
            tasks.push(Task::Rows(first..rows.len()));
        }
        Work { rows, tasks }
    }
}

/// What a penalty pulls rows to: M and M times that row.
pub(super) struct Pull<'a> {
    /// Row-major without padding; empty if it is the identity.
    pub metric: &'a [f32],
    /// Nothing pulls to 0.
    pub right: &'a [f32],
}

/// How a row is found from its normal equations.
pub(super) struct Rule<'a> {
    pub prior: &'a Prior,
    /// For each row a bias that is not to be found, of the first source; or none.
    pub biases: &'a [f32],
    /// For each row how strongly it is drawn to a row, and that row; not its bias.
    pub ridges: Option<(&'a [f32], Pull<'a>)>,
    /// Names the stream of random numbers; without it the most likely row is taken.
    pub draw: Option<[u64; 4]>,
    /// What rows are called in that stream, if not by their numbers.
    pub names: Option<&'a [u32]>,
    /// Whether the mean of its distribution is wanted behind a draw.
    pub means: bool,
    /// The rows as they are, padded.
    pub rows: &'a [f32],
    /// If none of their numbers may be negative: how many passes they are found in at most.
    pub nonneg: Option<usize>,
    /// What draws rows to their neighbours, and how strongly.
    pub graphs: Vec<(&'a Links, f64)>,
    pub level: Level,
}

enum Done {
    Rows(Vec<f32>),
    Piece(Box<NormalEquations>),
}

/// Memory of one thread.
struct Memory {
    room: PartialsScratch,
    sums: Vec<NormalEquations>,
    a: Vec<f32>,
    b: Vec<f32>,
    noise: Vec<f32>,
}

impl Memory {
    fn new(sources: &[Source<'_>], size: usize) -> Memory {
        Memory {
            room: PartialsScratch::default(),
            sums: sources
                .iter()
                .map(|s| NormalEquations::new(s.slopes.rank))
                .collect(),
            a: vec![0.0; size * padded_len(size)],
            b: vec![0.0; padded_len(size)],
            noise: vec![0.0; padded_len(size)],
        }
    }
}

/// Solves for all rows of the work, in their order; `None` if `cancelled` said so. Each row comes with as many numbers as the prior
/// has: its bias is the last.
pub(super) fn update(
    work: &Work,
    sources: &[Source<'_>],
    rule: &Rule<'_>,
    pool: &ThreadPool,
    cancelled: &mut dyn FnMut() -> bool,
) -> Result<Option<Vec<f32>>> {
    let memory = || Memory::new(sources, rule.prior.size);
    let size = rule.numbers();
    let done = pool.map(work.tasks.len(), cancelled, memory, |m, t| {
        match &work.tasks[t] {
            Task::Rows(rows) => {
                let mut out = Vec::with_capacity(rows.len() * size);
                for &row in &work.rows[rows.clone()] {
                    let row = row as usize;
                    for (source, sums) in sources.iter().zip(&mut m.sums) {
                        sums.clear();
                        source.add(source.lists.row_entries(row), &mut m.room, sums);
                    }
                    let sums: Vec<&NormalEquations> = m.sums.iter().collect();
                    rule.solve(
                        row,
                        sources,
                        &sums,
                        (&mut m.a, &mut m.b, &mut m.noise),
                        &mut out,
                    );
                }
                Done::Rows(out)
            }
            Task::Piece(_, s, entries) => {
                let source = &sources[*s];
                let mut sums = Box::new(NormalEquations::new(source.slopes.rank));
                source.add(entries.clone(), &mut m.room, &mut sums);
                Done::Piece(sums)
            }
        }
    })?;
    let Some(done) = done else {
        return Ok(None);
    };
    let mut out = vec![0.0f32; work.rows.len() * size];
    // Pieces of one row follow each other.
    let mut long: Vec<(usize, Vec<NormalEquations>)> = Vec::new();
    for (task, done) in work.tasks.iter().zip(done) {
        match (task, done) {
            (Task::Rows(rows), Done::Rows(numbers)) => {
                out[rows.start * size..rows.end * size].copy_from_slice(&numbers);
            }
            (Task::Piece(row, s, _), Done::Piece(piece)) => {
                if long.last().is_none_or(|(last, _)| last != row) {
                    let none = sources.iter().map(|s| NormalEquations::new(s.slopes.rank));
                    long.push((*row, none.collect()));
                }
                if let Some((_, sums)) = long.last_mut() {
                    sums[*s].add(&piece);
                }
            }
            _ => unreachable!("every task gives what it is"),
        }
    }
    let solved = pool.map(long.len(), cancelled, memory, |m, k| {
        let (at, sums) = &long[k];
        let row = work.rows[*at] as usize;
        let sums: Vec<&NormalEquations> = sums.iter().collect();
        let mut out = Vec::with_capacity(size);
        rule.solve(
            row,
            sources,
            &sums,
            (&mut m.a, &mut m.b, &mut m.noise),
            &mut out,
        );
        out
    })?;
    let Some(solved) = solved else {
        return Ok(None);
    };
    for ((at, _), numbers) in long.iter().zip(solved) {
        out[at * size..(at + 1) * size].copy_from_slice(&numbers);
    }
    Ok(Some(out))
}

impl Rule<'_> {
    /// How many numbers a row is found as.
    fn numbers(&self) -> usize {
        self.prior.size
            * if self.draw.is_some() && self.means {
                2
            } else {
                1
            }
    }

    /// One row from its sums.
    fn solve(
        &self,
        row: usize,
        sources: &[Source<'_>],
        sums: &[&NormalEquations],
        (a, b, noise): (&mut [f32], &mut [f32], &mut [f32]),
        out: &mut Vec<f32>,
    ) {
        let size = self.prior.size;
        self.equations(row, sources, sums, a, b);
        if let Some(passes) = self.nonneg {
            let before = &self.rows[row * padded_len(size)..][..size];
            solve_bounded(size, a, b, before, passes);
        } else if !cholesky_solve(self.level, size, a, b, self.noise(row, noise)) {
            self.equations(row, sources, sums, a, b);
            solve_carefully(size, a, b, self.noise(row, noise));
        }
        if self.numbers() > size {
            out.extend_from_slice(&noise[..size]);
        }
        out.extend_from_slice(&b[..size]);
    }

    /// The random numbers of a row.
    fn noise<'n>(&self, row: usize, noise: &'n mut [f32]) -> Noise<'n> {
        let Some([seed, purpose, sweep, target]) = self.draw else {
            return Noise::None;
        };
        let name = self.names.map_or(row as u64, |names| u64::from(names[row]));
        let mut s = RandomStream::new(&[seed, purpose, sweep, target, name]);
        let (used, padding) = noise.split_at_mut(self.prior.size);
        used.iter_mut()
            .for_each(|z| *z = s.standard_normal() as f32);
        padding.fill(0.0);
        match self.means {
            true => Noise::MeanAndSample(noise),
            false => Noise::Sample(noise),
        }
    }

    /// The normal equations: the prior and the sums of all sources.
    fn equations(
        &self,
        row: usize,
        sources: &[Source<'_>],
        sums: &[&NormalEquations],
        a: &mut [f32],
        b: &mut [f32],
    ) {
        let size = self.prior.size;
        let width = padded_len(size);
        a.copy_from_slice(&self.prior.precision);
        b.fill(0.0);
        b[..size].copy_from_slice(&self.prior.right);
        for (source, sums) in sources.iter().zip(sums) {
            let weight = source.weight as f32;
            let rank = source.slopes.rank;
            if let Some(whole) = &source.whole {
                for (i, gram) in whole.gram.chunks_exact(rank).enumerate() {
                    let row = &mut a[i * width + i..];
                    row.iter_mut()
                        .zip(&gram[i..])
                        .for_each(|(a, g)| *a += weight * g);
                }
                let by = weight * whole.by.map_or(1.0, |by| by[row]);
                b.iter_mut()
                    .zip(&whole.right)
                    .for_each(|(b, r)| *b += by * r);
            }
            if sums.entry_count == 0 {
                continue;
            }
            for i in 0..rank {
                let row = &mut a[i * width + i..];
                row.iter_mut()
                    .zip(sums.gram_row(i))
                    .for_each(|(a, s)| *a += weight * s);
            }
            b.iter_mut()
                .zip(sums.rhs())
                .for_each(|(b, r)| *b += weight * r);
            if source.biased {
                let last = size - 1;
                for (i, s) in sums.partial_sum().iter().enumerate() {
                    a[i * width + last] += weight * s;
                }
                a[last * width + last] += (source.weight * sums.weight_sum) as f32;
                b[last] += (source.weight * sums.residual_sum) as f32;
            }
        }
        if let (Some(bias), Some((source, sums))) =
            (self.biases.get(row), sources.iter().zip(sums).next())
        {
            let weight = source.weight as f32 * bias;
            let sums = sums.partial_sum();
            b.iter_mut().zip(sums).for_each(|(b, s)| *b -= weight * s);
        }
        let rank = sources.first().map_or(0, |s| s.slopes.rank);
        if let Some((ridges, pull)) = &self.ridges {
            for j in 0..rank {
                match pull.metric.get(j * rank + j..(j + 1) * rank) {
                    None => a[j * width + j] += ridges[row],
                    Some(metric) => a[j * width + j..]
                        .iter_mut()
                        .zip(metric)
                        .for_each(|(a, m)| *a += ridges[row] * m),
                }
                b[j] += ridges[row] * pull.right.get(j).copied().unwrap_or(0.0);
            }
        }
        for (links, weight) in &self.graphs {
            for &(other, similarity) in links.of(row) {
                let pull = (weight * f64::from(similarity)) as f32;
                let other = &self.rows[other as usize * padded_len(rank)..][..rank];
                for (j, u) in other.iter().enumerate() {
                    a[j * width + j] += pull;
                    b[j] += pull * u;
                }
            }
        }
    }
}

/// Solves A x = b over x >= 0 from `before` on; the result is in `b`. The upper triangle of A counts.
fn solve_bounded(size: usize, a: &[f32], b: &mut [f32], before: &[f32], passes: usize) {
    let width = padded_len(size);
    let at = |i: usize, j: usize| f64::from(a[i.min(j) * width + i.max(j)]);
    let full: Vec<f64> = (0..size * size).map(|k| at(k / size, k % size)).collect();
    let right: Vec<f64> = b[..size].iter().map(|&b| f64::from(b)).collect();
    let mut x: Vec<f64> = before.iter().map(|&x| f64::from(x)).collect();
    let problem = CoordinateDescent {
        nonneg: true,
        l1: 0.0,
        prior: &[],
        passes,
    };
    problem.minimize(&full, &right, &mut x);
    b.iter_mut().zip(x).for_each(|(b, x)| *b = x as f32);
}

/// Makes the errors of all entries of some lists, the work on all of whose rows this is, and hands each piece of them to `take`, which sees
/// where they lie; returns what it gave, in order.
pub(super) fn errors<T: Send>(
    work: &Work,
    source: &Source<'_>,
    rows: &[f32],
    biases: &[f32],
    pool: &ThreadPool,
    take: impl Fn(Range<usize>, &[f32]) -> T + Sync,
) -> Result<Vec<T>> {
    let width = padded_len(source.slopes.rank);
    let memory = || (PartialsScratch::default(), Vec::new());
    let one = |room: &mut PartialsScratch, row: usize, entries: Range<usize>, out: &mut [f32]| {
        let bias = biases.get(row).copied().unwrap_or(0.0);
        let row = &rows[row * width..(row + 1) * width];
        source
            .slopes
            .residuals(source.lists, entries, row, bias, room, out);
    };
    let done = pool.map(work.tasks.len(), &mut || false, memory, |(room, out), t| {
        let (range, rows) = match &work.tasks[t] {
            Task::Rows(rows) => {
                let first = source.lists.row_entries(rows.start).start;
                (
                    first..source.lists.row_entries(rows.end - 1).end,
                    rows.clone(),
                )
            }
            Task::Piece(row, _, entries) => (entries.clone(), *row..row + 1),
        };
        debug_assert_eq!(work.rows[rows.start] as usize, rows.start);
        out.clear();
        out.resize(range.len(), 0.0);
        for row in rows {
            let all = source.lists.row_entries(row);
            let entries = all.start.max(range.start)..all.end.min(range.end);
            let place = entries.start - range.start..entries.end - range.start;
            one(room, row, entries, &mut out[place]);
        }
        take(range, out)
    })?;
    Ok(done.unwrap_or_default())
}
