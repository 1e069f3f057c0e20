//! `naive`: Algorithm 2 of the paper inside Algorithm 1, one entry and one float at a time.

use crate::error::Result;
use crate::kernel::{
    CoreShape, EntryWalk, HogwildSettings, Method, Regularizer, RowCache, TensorKernel, WalkOutcome,
};
use crate::try_alloc::{CORE_ENTRIES, try_zeroed};

/// The kernel of `naive`, with a private core.
pub(super) struct NaiveKernel {
    shape: CoreShape,
    kernel: TensorKernel,
    pub(super) core: Vec<f32>,
    rows: Vec<f32>,
    partials: Vec<f32>,
}

impl NaiveKernel {
    pub(super) fn new(shape: &CoreShape) -> Result<NaiveKernel> {
        Ok(NaiveKernel {
            kernel: TensorKernel::new(shape, Method::Naive)?,
            core: try_zeroed(shape.core_len(), CORE_ENTRIES)?,
            rows: vec![0.0; shape.rows_len()],
            partials: vec![0.0; shape.rows_len()],
            shape: shape.clone(),
        })
    }

    /// Updates rows and core with `count` entries of a walk.
    pub(super) fn update_tensor(
        &mut self,
        factors: &mut [RowCache<'_>],
        walk: &EntryWalk<'_>,
        count: usize,
        settings: &HogwildSettings<'_>,
    ) -> WalkOutcome {
        let mut squared_error = 0.0;
        let mut at = walk.position;
        for _ in 0..count {
            let entry = &walk.rows[at * walk.order..][..walk.order];
            for (n, &row) in entry.iter().enumerate() {
                factors[n].load(row, &mut self.rows[self.shape.row(n)]);
            }
            let value = self
                .kernel
                .gradients(&self.core, &self.rows, &mut self.partials);
            let error = walk.values[at] - value;
            let weighted_residual = error * walk.weights.get(at).copied().unwrap_or(1.0);
            squared_error += f64::from(error) * f64::from(weighted_residual);
            if let Some(eta) = settings.core_eta {
                self.update_core(eta * weighted_residual, settings.regularizer);
            }
            for (n, &row) in entry.iter().enumerate() {
                let (eta, penalty) = (settings.eta, settings.penalties[n][row as usize]);
                let range = self.shape.row(n);
                let partials = &self.partials[range.clone()];
                let floats = self.rows[range.clone()].iter_mut().zip(partials);
                for ((u, d), prior_mean) in floats.zip(settings.prior_means[n]) {
                    let gradient = weighted_residual * d;
                    *u = updated(
                        *u,
                        *prior_mean,
                        eta,
                        gradient,
                        penalty,
                        settings.regularizer,
                    );
                }
                factors[n].store(row, &self.rows[range]);
            }
            at = walk.next_position(at);
        }
        WalkOutcome {
            next_position: at,
            squared_error,
        }
    }

    /// G <- G + eta e u (x) v (x) w, with the rows before their update. The worker applies the penalty of the core.
    fn update_core(&mut self, scale: f32, rule: Regularizer) {
        self.kernel
            .update_core(&mut self.core, &self.rows, 1.0, scale);
        if rule.nonneg {
            self.core.iter_mut().for_each(|g| *g = g.max(0.0));
        }
    }
}

/// Returns a parameter after one SGD update. `negative_gradient` is that of the squared error; the penalty shrinks to
/// `prior_mean`.
#[inline]
fn updated(
    x: f32,
    prior_mean: f32,
    eta: f32,
    negative_gradient: f32,
    penalty: f32,
    rule: Regularizer,
) -> f32 {
    let difference = x - prior_mean;
    let subgradient = if rule.l1 {
        sign(difference)
    } else {
        difference
    };
    let x = x + eta * (negative_gradient - penalty * subgradient);
    if rule.nonneg { x.max(0.0) } else { x }
}

/// Returns the sign of `x` as -1, 0 or 1. Unlike `signum` it is 0 at 0, a subgradient of the absolute value.
#[inline]
fn sign(x: f32) -> f32 {
    if x > 0.0 {
        1.0
    } else if x < 0.0 {
        -1.0
    } else {
        0.0
    }
}
