//! The directions of L-BFGS: the inverse Hessian from the last changes of parameters and gradient.
//!
//! The two-loop recursion (Nocedal and Wright, "Numerical Optimization", algorithm 7.4) runs on the coefficients of the
//! changes. It needs only their inner products, of which an iteration computes the new ones in one pass over the history; a
//! second pass forms the direction.

use std::collections::VecDeque;

use super::parameter_vector::{ParameterVector, products_with};
use s3cmtf::error::Result;
use s3cmtf::internals::Model;
use s3cmtf_kernel::parallel::ThreadPool;

/// Number of changes that are kept.
pub(super) const MAX_PAIRS: usize = 10;

/// Pairs are discarded if their curvature s^T y is at most this multiple of |s| |y|: it is then dominated by rounding errors.
const MIN_CURVATURE: f64 = 1e-10;

/// Changes of parameters and gradient in one iteration.
pub(super) struct Pair {
    pub parameters: ParameterVector,
    pub gradient: ParameterVector,
}

/// The last changes.
#[derive(Default)]
pub(super) struct History {
    pairs: Vec<Pair>,
    /// Positions in `pairs`, oldest first. The other pairs are free.
    order: VecDeque<usize>,
    /// Inner products of the changes of parameters at the first position with those of the gradient at the second.
    parameters_gradient: [[f64; MAX_PAIRS]; MAX_PAIRS],
    /// Inner products of the changes of the gradient.
    gradient_gradient: [[f64; MAX_PAIRS]; MAX_PAIRS],
}

impl History {
    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Forgets all changes.
    pub(super) fn clear(&mut self) {
        self.order.clear();
    }

    /// Adds changes of parameters and gradient, in place of the oldest if there are enough, and leaves unused vectors behind.
    pub(super) fn add(
        &mut self,
        parameters: &mut ParameterVector,
        gradient: &mut ParameterVector,
        model: &Model,
    ) -> Result<()> {
        if self.pairs.len() < MAX_PAIRS && self.order.len() == self.pairs.len() {
            self.pairs.push(Pair {
                parameters: ParameterVector::zeros(model)?,
                gradient: ParameterVector::zeros(model)?,
            });
        }
        let free = (0..self.pairs.len()).find(|k| !self.order.contains(k));
        let Some(position) = free.or_else(|| self.order.pop_front()) else {
            return Ok(());
        };
        let pair = &mut self.pairs[position];
        std::mem::swap(&mut pair.parameters, parameters);
        std::mem::swap(&mut pair.gradient, gradient);
        self.order.push_back(position);
        Ok(())
    }

    /// Returns the changes of parameters and gradient in turn, oldest first.
    pub(super) fn vectors(&self) -> Vec<&ParameterVector> {
        let pairs = self.order.iter().map(|&k| &self.pairs[k]);
        pairs
            .flat_map(|pair| [&pair.parameters, &pair.gradient])
            .collect()
    }

    /// Adds changes that [`History::vectors`] returned, with their inner products.
    pub(super) fn restore(
        &mut self,
        vectors: Vec<ParameterVector>,
        model: &Model,
        pool: &ThreadPool<'_>,
    ) -> Result<()> {
        let mut vectors = vectors.into_iter();
        while let (Some(mut parameters), Some(mut gradient)) = (vectors.next(), vectors.next()) {
            // Completes the inner products of the newest pair so far. Those of the last one are left to the next direction.
            self.products(&parameters, pool)?;
            self.add(&mut parameters, &mut gradient, model)?;
        }
        Ok(())
    }

    /// Computes minus the inverse Hessian times the gradient: minus the gradient itself without changes.
    pub(super) fn direction(
        &mut self,
        gradient: &ParameterVector,
        to: &mut ParameterVector,
        pool: &ThreadPool<'_>,
    ) -> Result<()> {
        let Some(products) = self.products(gradient, pool)? else {
            return to.set_combination(&[(-1.0, gradient)], pool);
        };
        let Coefficients {
            of_gradient,
            of_pairs,
        } = self.two_loops(&products);
        let mut terms = vec![(of_gradient, gradient)];
        for (&k, [parameters, gradient]) in self.order.iter().zip(of_pairs) {
            terms.push((parameters, &self.pairs[k].parameters));
            terms.push((gradient, &self.pairs[k].gradient));
        }
        to.set_combination(&terms, pool)
    }

    /// Completes the inner products of the newest pair and returns those of the gradient with each pair: with the change of
    /// parameters, and with that of the gradient. Returns `None` if no pair has positive curvature.
    fn products(
        &mut self,
        gradient: &ParameterVector,
        pool: &ThreadPool<'_>,
    ) -> Result<Option<Vec<[f64; 2]>>> {
        let Some(&newest) = self.order.back() else {
            return Ok(None);
        };
        let pairs = || self.order.iter().map(|&k| &self.pairs[k]);
        let vectors: Vec<&ParameterVector> = pairs()
            .flat_map(|pair| [&pair.parameters, &pair.gradient])
            .collect();
        let others = [
            gradient,
            &self.pairs[newest].parameters,
            &self.pairs[newest].gradient,
        ];
        let products = products_with(&vectors, others, pool)?;
        let (of_pairs, _) = products.as_chunks::<2>();
        let mut with_gradient = Vec::new();
        let mut square = 0.0;
        for (&k, [parameters, change]) in self.order.iter().zip(of_pairs) {
            with_gradient.push([parameters[0], change[0]]);
            self.parameters_gradient[k][newest] = parameters[2];
            self.parameters_gradient[newest][k] = change[1];
            self.gradient_gradient[k][newest] = change[2];
            self.gradient_gradient[newest][k] = change[2];
            square = parameters[1];
        }
        // Those of the newest pair come last.
        let largest = (square * self.gradient_gradient[newest][newest]).sqrt();
        let curvature = self.parameters_gradient[newest][newest];
        if curvature.is_nan() || curvature <= MIN_CURVATURE * largest {
            self.order.pop_back();
            with_gradient.pop();
        }
        Ok((!self.is_empty()).then_some(with_gradient))
    }

    /// Computes the coefficients of the direction from the inner products of the gradient with each pair, oldest first.
    fn two_loops(&self, products: &[[f64; 2]]) -> Coefficients {
        let order = &self.order;
        let sy = |i: usize, j: usize| self.parameters_gradient[order[i]][order[j]];
        let yy = |i: usize, j: usize| self.gradient_gradient[order[i]][order[j]];
        let count = order.len();
        let mut first = vec![0.0; count];
        for i in (0..count).rev() {
            let newer: f64 = (i + 1..count).map(|j| first[j] * sy(i, j)).sum();
            first[i] = (products[i][0] - newer) / sy(i, i);
        }
        let newest = count - 1;
        let scale = sy(newest, newest) / yy(newest, newest);
        let mut last: Vec<f64> = Vec::new();
        for i in 0..count {
            let gradients: f64 = (0..count).map(|j| first[j] * yy(i, j)).sum();
            let older: f64 = (0..i).map(|j| last[j] * sy(j, i)).sum();
            let second = (scale * (products[i][1] - gradients) + older) / sy(i, i);
            last.push(first[i] - second);
        }
        Coefficients {
            of_gradient: -scale,
            of_pairs: (0..count).map(|i| [-last[i], scale * first[i]]).collect(),
        }
    }
}

/// The coefficients of a direction.
struct Coefficients {
    of_gradient: f64,
    /// Of the changes of parameters and gradient of each pair, oldest first.
    of_pairs: Vec<[f64; 2]>,
}
