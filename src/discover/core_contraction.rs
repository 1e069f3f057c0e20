//! Contraction of the core with rows of some modes, in double precision.

use super::parameter_view::ParameterView;
use crate::error::Result;
use crate::kernel::CoreKind;
use crate::model::Model;
use crate::try_alloc::{CORE_ENTRIES, try_collect, try_to_vec, try_with_capacity};

/// The core after contraction with the given rows.
pub(super) struct ContractedCore {
    /// The remaining modes besides the described one, ascending.
    pub modes: Vec<usize>,
    /// The described mode is the first, followed by the remaining modes. For a hyper-diagonal core with more or fewer than
    /// one remaining mode, only the diagonal.
    pub values: Vec<f64>,
}

/// Returns a row of a mode in double precision.
fn row_values(model: &Model, parameters: &ParameterView<'_>, mode: usize, row: usize) -> Vec<f64> {
    let mut values = vec![0.0f32; model.shape().ranks()[mode]];
    parameters.read(mode, row, &mut values);
    values.iter().map(|&x| f64::from(x)).collect()
}

/// Contracts the core with the given rows.
pub(super) fn contract_given(
    model: &Model,
    parameters: &ParameterView<'_>,
    mode: usize,
    given: &[(usize, usize)],
) -> Result<ContractedCore> {
    let shape = model.shape();
    let is_given = |n: &usize| given.iter().any(|(m, _)| m == n);
    let modes: Vec<usize> = (0..shape.order())
        .filter(|n| *n != mode && !is_given(n))
        .collect();
    let rank = shape.ranks()[mode];
    if shape.kind() == CoreKind::Diagonal {
        let core = parameters.core()[..rank].iter().map(|&g| f64::from(g));
        let mut diagonal: Vec<f64> = core.collect();
        for &(n, r) in given {
            let multiply = |(d, x): (&mut f64, f64)| *d *= x;
            let row = row_values(model, parameters, n, r);
            diagonal.iter_mut().zip(row).for_each(multiply);
        }
        if modes.len() != 1 {
            return Ok(ContractedCore {
                modes,
                values: diagonal,
            });
        }
        let mut values = vec![0.0; rank * rank];
        (0..rank).for_each(|j| values[j * rank + j] = diagonal[j]);
        return Ok(ContractedCore { modes, values });
    }
    let dense = shape.dense_core(parameters.core())?;
    let elements = dense.iter().map(|&g| f64::from(g));
    let mut values: Vec<f64> = try_collect(dense.len(), elements, CORE_ENTRIES)?;
    let mut ranks = shape.ranks().to_vec();
    for &(n, r) in given {
        values = contract_mode(&values, &ranks, n, &row_values(model, parameters, n, r));
        ranks[n] = 1;
    }
    // Permute the described mode to the front.
    let stride: usize = ranks[mode + 1..].iter().product();
    let outer = values.len() / (rank * stride).max(1);
    let mut permuted = try_with_capacity(values.len(), CORE_ENTRIES)?;
    for j in 0..rank {
        for o in 0..outer {
            permuted.extend_from_slice(&values[(o * rank + j) * stride..][..stride]);
        }
    }
    Ok(ContractedCore {
        modes,
        values: permuted,
    })
}

/// Contracts the remaining modes with their mean rows. The result is the mean contribution of each concept per unit of
/// its factor column.
pub(super) fn contract_means(
    model: &Model,
    parameters: &ParameterView<'_>,
    mode: usize,
    contracted: &ContractedCore,
) -> Result<Vec<f64>> {
    let shape = model.shape();
    let rank = shape.ranks()[mode];
    // The row behind the last one is the mean row.
    let mean = |n: usize| row_values(model, parameters, n, model.modes()[n].rows.len());
    let mut values = try_to_vec(&contracted.values, CORE_ENTRIES)?;
    if shape.kind() == CoreKind::Diagonal {
        if contracted.modes.len() == 1 {
            values = (0..rank).map(|j| values[j * rank + j]).collect();
        }
        for &n in &contracted.modes {
            let multiply = |(d, x): (&mut f64, f64)| *d *= x;
            values.iter_mut().zip(mean(n)).for_each(multiply);
        }
        return Ok(values);
    }
    let mut ranks: Vec<usize> = vec![rank];
    ranks.extend(contracted.modes.iter().map(|&n| shape.ranks()[n]));
    for (at, &n) in contracted.modes.iter().enumerate() {
        values = contract_mode(&values, &ranks, at + 1, &mean(n));
        ranks[at + 1] = 1;
    }
    Ok(values)
}

/// Contracts a dense tensor with a vector along mode `n`.
fn contract_mode(tensor: &[f64], ranks: &[usize], n: usize, vector: &[f64]) -> Vec<f64> {
    let stride: usize = ranks[n + 1..].iter().product();
    let mut out = Vec::with_capacity(tensor.len() / vector.len().max(1));
    for block in tensor.chunks_exact((vector.len() * stride).max(1)) {
        for k in 0..stride {
            let terms = vector.iter().enumerate();
            out.push(terms.map(|(j, x)| x * block[j * stride + k]).sum());
        }
    }
    out
}
