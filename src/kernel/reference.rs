//! Plain scalar arithmetic, the oracle for everything faster.

/// Contracts the first mode of a core (row-major, its first mode having `row.len()` entries) with a
/// factor row: `out[k] = sum_j row[j] * core[j, k]`. Applying it mode after mode evaluates a Tucker
/// model, and a partial result can be reused by all entries that share the leading rows.
///
/// # Panics
/// If `core` does not have `row.len() * out.len()` entries.
pub fn contract_first(core: &[f32], row: &[f32], out: &mut [f32]) {
    assert_eq!(core.len(), row.len() * out.len());
    out.fill(0.0);
    for (&u, slice) in row.iter().zip(core.chunks_exact(out.len())) {
        for (o, &g) in out.iter_mut().zip(slice) {
            *o += u * g;
        }
    }
}

/// The value of a Tucker model at one cell: the core (row-major) contracted with a row of each mode.
///
/// # Panics
/// If the core does not have the product of the ranks as its number of entries.
pub fn tucker(core: &[f32], rows: &[&[f32]]) -> f32 {
    let mut current = core.to_vec();
    for row in rows {
        let mut next = vec![0.0; current.len() / row.len()];
        contract_first(&current, row, &mut next);
        current = next;
    }
    assert_eq!(current.len(), 1, "one row per mode of the core");
    current[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tucker_is_the_sum_over_all_combinations() {
        let (a, b, c) = ([1.0f32, -2.0], [0.5f32, 0.0, 3.0], [2.0f32, 4.0]);
        let core: Vec<f32> = (0..12).map(|i| i as f32 - 4.0).collect();
        let mut expected = 0.0;
        for (i, x) in a.iter().enumerate() {
            for (j, y) in b.iter().enumerate() {
                for (k, z) in c.iter().enumerate() {
                    expected += core[(i * 3 + j) * 2 + k] * x * y * z;
                }
            }
        }
        assert_eq!(tucker(&core, &[&a, &b, &c]), expected);
    }
}
