//! What the threads of an epoch are given.

use super::fit_inputs::FitInputs;
use super::parameters::Parameters;
use crate::kernel::{CoreLayout, CoreShape};

/// The arguments of an epoch.
#[derive(Clone, Copy)]
pub(super) struct EpochArguments<'a> {
    pub inputs: &'a FitInputs<'a>,
    /// Layout of the tensor's core.
    pub layout: &'a CoreLayout,
    /// Shape of the model's core.
    pub shape: &'a CoreShape,
    pub parameters: &'a Parameters<'a>,
    pub eta: f64,
    /// Identifies the random streams of the epoch.
    pub stream_id: &'a [u64],
}
