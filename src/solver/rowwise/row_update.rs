//! The update of the rows of a mode given everything else: least squares, or a sample of the conditional distribution.
//!
//! Given all other parameters, a row u has the normal distribution with precision P and mean P^-1 q,
//!
//! ```text
//! P = Lambda    + alpha sum w d d^T + sum_m alpha_m sum w v v^T + ridge M + sum_g gamma_g sum_j s_ij I
//! q = Lambda mu + alpha sum w d r   + sum_m alpha_m sum w y v   + ridge M t + sum_g gamma_g sum_j s_ij u_j
//! ```
//!
//! where d = G x_{-n} {u} is the derivative of a tensor entry's value by the row, r the value less mean and biases, y an
//! entry of matrix m and v the factor row of its column, alpha and alpha_m the precisions of the noise times the weights
//! of the matrices, N(mu, Lambda^-1) the prior, t the target of an l2 penalty in the metric M, and s_ij the similarities
//! to adjacent rows in graph g. The bias of a row is one more element, with 1 in place of d's element.
//!
//! `gibbs` samples u = P^-1 q + R^-1 z with P = R^T R and standard normal z, and has no ridge; `als` takes P^-1 q and has
//! no prior. Rows of a mode are conditionally independent unless a graph joins them, so they are updated in parallel.

use super::data_term::DataTerm;
use super::gaussian_prior::GaussianPrior;
use super::graph::Adjacency;
use super::row_solve::{solve_nonneg, solve_regularized};
use super::row_tasks::{RowTask, RowTasks};
use crate::error::Result;
use crate::kernel::{Noise, NormalEquations, PartialsScratch, cholesky_solve, cholesky_solve_pair};
use crate::parallel::ThreadPool;
use crate::progress::StopFlag;
use crate::random::{RandomStream, hash_words};
use crate::simd::{Level, padded_len};
use crate::try_alloc::{try_to_vec, try_with_capacity, try_zeroed};

/// An l2 penalty on rows: strength times (u - t)^T M (u - t).
#[derive(Clone, Copy)]
pub(super) struct Shrinkage<'a> {
    /// The strength for each row.
    pub strengths: &'a [f32],
    /// M, row-major without padding; empty for the identity.
    pub metric: &'a [f32],
    /// M t; missing elements are 0.
    pub metric_times_target: &'a [f32],
}

/// Identifies the random streams of rows, together with the number of the row.
#[derive(Clone, Copy)]
pub(super) struct StreamKey {
    pub seed: u64,
    /// One of [`stream_ids`](super::stream_ids).
    pub purpose: u64,
    /// The sweep, or the number of the posterior sample.
    pub sweep: u64,
    /// The mode, or [`FIRST_MATRIX`](super::stream_ids::FIRST_MATRIX) plus the number of a matrix.
    pub target: u64,
}

impl StreamKey {
    /// Returns a word that identifies the streams of a row.
    pub(super) fn stream_word(&self, row: u64) -> u64 {
        hash_words(&[self.seed, self.purpose, self.sweep, self.target, row])
    }

    pub(super) fn stream(&self, row: u64) -> RandomStream {
        RandomStream::new(&[self.seed, self.purpose, self.sweep, self.target, row])
    }
}

/// Whether rows are samples of their conditional distributions, or the means.
#[derive(Clone, Copy)]
pub(super) enum RowOutput {
    /// The mean P^-1 q, which is also the most likely row.
    Mean,
    Sample(StreamKey),
    /// A sample, followed by the mean.
    SampleAndMean(StreamKey),
}

/// Everything but the entries that determines the conditional distribution of a row.
pub(super) struct RowConditional<'a> {
    pub prior: &'a GaussianPrior,
    /// Biases of the rows that are fixed, and part of the first term only; empty if biases are elements of rows,
    /// or there are none.
    pub fixed_biases: &'a [f32],
    /// A penalty on the row without its bias.
    pub shrinkage: Option<Shrinkage<'a>>,
    pub output: RowOutput,
    /// The number of each row in its random stream, if it is not its position.
    pub stream_rows: Option<&'a [u32]>,
    /// The current rows, padded: where coordinate descent starts, and the neighbours in graphs.
    pub current_rows: &'a [f32],
    /// Maximum number of passes of coordinate descent over non-negative rows; `None` if rows are not constrained.
    pub nonneg_passes: Option<usize>,
    /// Similarity graphs between the rows, each with its weight.
    pub graphs: Vec<(&'a Adjacency, f64)>,
    pub level: Level,
}

impl<'a> RowConditional<'a> {
    /// Rows with this prior and nothing else besides their entries.
    pub(super) fn new(
        prior: &'a GaussianPrior,
        output: RowOutput,
        level: Level,
    ) -> RowConditional<'a> {
        RowConditional {
            prior,
            fixed_biases: &[],
            shrinkage: None,
            output,
            stream_rows: None,
            current_rows: &[],
            nonneg_passes: None,
            graphs: Vec::new(),
            level,
        }
    }
}

/// What the equations of all rows have in common.
struct SharedTerms<'a> {
    terms: &'a [DataTerm<'a>],
    /// The prior precision plus the Gram matrices of full matrices: the upper triangle, rows padded.
    precision: Vec<f32>,
}

impl<'a> SharedTerms<'a> {
    fn new(terms: &'a [DataTerm<'a>], prior: &GaussianPrior) -> Result<SharedTerms<'a>> {
        let mut precision = try_to_vec(&prior.precision, "elements of normal equations")?;
        let width = padded_len(prior.size);
        for term in terms {
            let Some(full) = &term.full_matrix else {
                continue;
            };
            let (rank, weight) = (term.partials.rank, term.weight as f32);
            let rows = precision.chunks_exact_mut(width);
            for (p, gram) in rows.zip(full.gram.chunks_exact(rank)) {
                p.iter_mut().zip(gram).for_each(|(p, g)| *p += weight * g);
            }
        }
        Ok(SharedTerms { terms, precision })
    }
}

/// Buffers of one thread.
struct ThreadScratch {
    partials: PartialsScratch,
    /// Two rows are solved at the same time.
    rows: [RowScratch; 2],
}

/// Buffers of one row.
struct RowScratch {
    /// The sums of each term.
    sums: Vec<NormalEquations>,
    system: LinearSystem,
}

/// The normal equations P u = q of one row.
struct LinearSystem {
    /// P: the upper triangle, rows padded.
    precision: Vec<f32>,
    /// q, then the solution.
    rhs: Vec<f32>,
    /// Standard normal, then the sample.
    noise: Vec<f32>,
}

impl ThreadScratch {
    fn new(terms: &[DataTerm<'_>], size: usize) -> Result<ThreadScratch> {
        let row = || {
            Ok(RowScratch {
                sums: empty_sums(terms)?,
                system: LinearSystem {
                    precision: try_zeroed(size * padded_len(size), "elements of normal equations")?,
                    rhs: vec![0.0; padded_len(size)],
                    noise: vec![0.0; padded_len(size)],
                },
            })
        };
        Ok(ThreadScratch {
            partials: PartialsScratch::default(),
            rows: [row()?, row()?],
        })
    }
}

fn empty_sums(terms: &[DataTerm<'_>]) -> Result<Vec<NormalEquations>> {
    let ranks = terms.iter().map(|s| s.partials.rank);
    ranks.map(NormalEquations::new).collect()
}

/// Updates all rows of the tasks and returns them in the order of [`RowTasks::rows`], [`RowConditional::output_len`]
/// floats each, biases last.
pub(super) fn update_rows(
    tasks: &RowTasks,
    terms: &[DataTerm<'_>],
    conditional: &RowConditional<'_>,
    pool: &ThreadPool<'_>,
) -> Result<Vec<f32>> {
    let scratch = || ThreadScratch::new(terms, conditional.prior.size);
    let shared = SharedTerms::new(terms, conditional.prior)?;
    let len = conditional.output_len();
    let stop = pool.stop();
    let mut out: Vec<f32> = try_zeroed(tasks.rows.len() * len, "row elements")?;
    let slots = tasks.row_slots(&mut out, len);
    let run_task = |scratch: &mut ThreadScratch, t: usize| {
        Ok(match &tasks.tasks[t] {
            RowTask::Rows(positions) => {
                let rows = &tasks.rows[positions.clone()];
                let updated = conditional.update(rows, &shared, scratch, stop)?;
                let mut slot = slots[t].lock().unwrap_or_else(|e| e.into_inner());
                slot[..updated.len()].copy_from_slice(&updated);
                None
            }
            RowTask::PartOfRow { term, entries, .. } => {
                let term = &terms[*term];
                let mut sums = Box::new(NormalEquations::new(term.partials.rank)?);
                term.accumulate(entries.clone(), &mut scratch.partials, &mut sums, stop)?;
                Some(sums)
            }
        })
    };
    let parts = pool.try_map(tasks.tasks.len(), scratch, run_task)?;
    // Position and sums of each long row. Its parts follow each other.
    let mut long_rows: Vec<(usize, Vec<NormalEquations>)> = Vec::new();
    for (task, part) in tasks.tasks.iter().zip(parts) {
        if let (RowTask::PartOfRow { position, term, .. }, Some(part)) = (task, part) {
            if long_rows.last().is_none_or(|(last, _)| last != position) {
                long_rows.push((*position, empty_sums(terms)?));
            }
            if let Some((_, sums)) = long_rows.last_mut() {
                sums[*term].add(&part);
            }
        }
    }
    let solved = pool.try_map(long_rows.len(), scratch, |scratch, k| {
        let (position, sums) = &long_rows[k];
        let row = tasks.rows[*position] as usize;
        let mut out = Vec::with_capacity(len);
        conditional.solve(row, &shared, sums, &mut scratch.rows[0].system, &mut out);
        Ok(out)
    })?;
    for ((position, _), row) in long_rows.iter().zip(solved) {
        out[position * len..(position + 1) * len].copy_from_slice(&row);
    }
    Ok(out)
}

impl RowConditional<'_> {
    /// Number of floats that the update of a row returns.
    pub(super) fn output_len(&self) -> usize {
        match self.output {
            RowOutput::SampleAndMean(_) => 2 * self.prior.size,
            RowOutput::Mean | RowOutput::Sample(_) => self.prior.size,
        }
    }

    /// Updates some rows from all their entries. Returns any rows if `stop` is requested.
    fn update(
        &self,
        rows: &[u32],
        shared: &SharedTerms<'_>,
        scratch: &mut ThreadScratch,
        stop: &StopFlag,
    ) -> Result<Vec<f32>> {
        let mut out = try_with_capacity(rows.len() * self.output_len(), "row elements")?;
        for pair in rows.chunks(2) {
            if stop.requested() {
                break;
            }
            for (&row, scratch_row) in pair.iter().zip(&mut scratch.rows) {
                for (term, sums) in shared.terms.iter().zip(&mut scratch_row.sums) {
                    sums.clear();
                    let entries = term.csr.row_entries(row as usize);
                    term.accumulate(entries, &mut scratch.partials, sums, stop)?;
                }
            }
            match *pair {
                [a, b] => self.solve_pair([a, b], shared, &mut scratch.rows, &mut out),
                _ => {
                    for (&row, RowScratch { sums, system }) in pair.iter().zip(&mut scratch.rows) {
                        self.solve(row as usize, shared, sums, system, &mut out);
                    }
                }
            }
        }
        Ok(out)
    }

    /// Solves for two rows at once. The results are those of two calls of [`Self::solve`].
    fn solve_pair(
        &self,
        rows: [u32; 2],
        shared: &SharedTerms<'_>,
        scratch: &mut [RowScratch; 2],
        out: &mut Vec<f32>,
    ) {
        let rows = rows.map(|row| row as usize);
        let is_solved = self.nonneg_passes.is_none() && {
            for (row, RowScratch { sums, system }) in rows.into_iter().zip(&mut *scratch) {
                self.assemble(row, shared, sums, system);
            }
            let [a, b] = scratch.each_mut().map(|row| &mut row.system);
            let noise = [
                self.noise(rows[0], &mut a.noise),
                self.noise(rows[1], &mut b.noise),
            ];
            let systems = [&mut a.precision[..], &mut b.precision];
            let rhs = [&mut a.rhs[..], &mut b.rhs];
            cholesky_solve_pair(self.level, self.prior.size, systems, rhs, noise)
        };
        for (row, RowScratch { sums, system }) in rows.into_iter().zip(scratch) {
            if is_solved {
                self.append_solution(system, out);
            } else {
                self.solve(row, shared, sums, system, out);
            }
        }
    }

    /// Updates one row from the sums over its entries and appends it to `out`.
    fn solve(
        &self,
        row: usize,
        shared: &SharedTerms<'_>,
        sums: &[NormalEquations],
        system: &mut LinearSystem,
        out: &mut Vec<f32>,
    ) {
        let size = self.prior.size;
        self.assemble(row, shared, sums, system);
        let LinearSystem {
            precision,
            rhs,
            noise,
        } = system;
        if let Some(passes) = self.nonneg_passes {
            let start = &self.current_rows[row * padded_len(size)..][..size];
            solve_nonneg(size, precision, rhs, start, passes);
        } else if !cholesky_solve(self.level, size, precision, rhs, self.noise(row, noise)) {
            self.assemble(row, shared, sums, system);
            let LinearSystem {
                precision,
                rhs,
                noise,
            } = system;
            solve_regularized(size, precision, rhs, self.noise(row, noise));
        }
        self.append_solution(system, out);
    }

    /// Appends the solution of a row's equations to `out`: the sample first if there are both.
    fn append_solution(&self, system: &LinearSystem, out: &mut Vec<f32>) {
        let size = self.prior.size;
        if matches!(self.output, RowOutput::SampleAndMean(_)) {
            out.extend_from_slice(&system.noise[..size]);
        }
        out.extend_from_slice(&system.rhs[..size]);
    }

    /// Fills `noise` from the row's random stream.
    fn noise<'n>(&self, row: usize, noise: &'n mut [f32]) -> Noise<'n> {
        let (RowOutput::Sample(key) | RowOutput::SampleAndMean(key)) = self.output else {
            return Noise::None;
        };
        let stream_row = match self.stream_rows {
            Some(rows) => u64::from(rows[row]),
            None => row as u64,
        };
        let mut s = key.stream(stream_row);
        let (used, padding) = noise.split_at_mut(self.prior.size);
        used.iter_mut()
            .for_each(|z| *z = s.standard_normal() as f32);
        padding.fill(0.0);
        if matches!(self.output, RowOutput::SampleAndMean(_)) {
            Noise::MeanAndSample(noise)
        } else {
            Noise::Sample(noise)
        }
    }

    /// Assembles P and q of a row from the prior, the sums over its entries, the penalty and the graphs.
    fn assemble(
        &self,
        row: usize,
        shared: &SharedTerms<'_>,
        sums: &[NormalEquations],
        system: &mut LinearSystem,
    ) {
        let LinearSystem {
            precision: p,
            rhs: q,
            ..
        } = system;
        let (size, terms) = (self.prior.size, shared.terms);
        p.copy_from_slice(&shared.precision);
        q.fill(0.0);
        q[..size].copy_from_slice(&self.prior.precision_times_mean);
        for (term, sums) in terms.iter().zip(sums) {
            self.add_term(term, sums, row, p, q);
        }
        if let (Some(bias), Some((term, sums))) =
            (self.fixed_biases.get(row), terms.iter().zip(sums).next())
        {
            let weight = term.weight as f32 * bias;
            let partial_sum = sums.partial_sum();
            q.iter_mut()
                .zip(partial_sum)
                .for_each(|(q, s)| *q -= weight * s);
        }
        let rank = terms.first().map_or(0, |s| s.partials.rank);
        if let Some(shrinkage) = &self.shrinkage {
            shrinkage.add(row, rank, padded_len(size), p, q);
        }
        self.add_neighbours(row, rank, p, q);
    }

    /// Adds one data term to the equations of a row, given the sums over its entries, except for the Gram matrix of a full
    /// matrix.
    fn add_term(
        &self,
        term: &DataTerm<'_>,
        sums: &NormalEquations,
        row: usize,
        p: &mut [f32],
        q: &mut [f32],
    ) {
        let (size, weight) = (self.prior.size, term.weight as f32);
        let width = padded_len(size);
        if let Some(full) = &term.full_matrix {
            let scale = weight * full.rhs_scales.map_or(1.0, |scales| scales[row]);
            q.iter_mut()
                .zip(&full.rhs)
                .for_each(|(q, r)| *q += scale * r);
        }
        if sums.entry_count == 0 {
            return;
        }
        if term.full_matrix.is_none() {
            sums.add_weighted_gram(self.level, weight, p, width);
        }
        q.iter_mut()
            .zip(sums.rhs())
            .for_each(|(q, r)| *q += weight * r);
        if term.has_bias {
            let last = size - 1;
            for (i, s) in sums.partial_sum().iter().enumerate() {
                p[i * width + last] += weight * s;
            }
            p[last * width + last] += (term.weight * sums.weight_sum) as f32;
            q[last] += (term.weight * sums.residual_sum) as f32;
        }
    }

    /// Adds the penalty of the graphs on differences to adjacent rows.
    fn add_neighbours(&self, row: usize, rank: usize, p: &mut [f32], q: &mut [f32]) {
        let width = padded_len(self.prior.size);
        for (graph, weight) in &self.graphs {
            for &(other, similarity) in graph.neighbours(row) {
                let strength = (weight * f64::from(similarity)) as f32;
                let other = &self.current_rows[other as usize * padded_len(rank)..][..rank];
                for (j, u) in other.iter().enumerate() {
                    p[j * width + j] += strength;
                    q[j] += strength * u;
                }
            }
        }
    }
}

impl Shrinkage<'_> {
    /// Adds the penalty on a row to its equations, whose rows have `width` floats.
    fn add(&self, row: usize, rank: usize, width: usize, p: &mut [f32], q: &mut [f32]) {
        let strength = self.strengths[row];
        for j in 0..rank {
            match self.metric.get(j * rank + j..(j + 1) * rank) {
                None => p[j * width + j] += strength,
                Some(metric) => p[j * width + j..]
                    .iter_mut()
                    .zip(metric)
                    .for_each(|(p, m)| *p += strength * m),
            }
            q[j] += strength * self.metric_times_target.get(j).copied().unwrap_or(0.0);
        }
    }
}
