//! The interval between two measurements of the curvature, which is adapted to its growth.
//!
//! A merge adds deltas along flat directions. A direction that has become steep since the last measurement would overshoot. From a
//! start with nearly parallel rows, features grow exponentially, and the curvature along them can grow by orders of magnitude
//! within an epoch. The safety factor of the curvature leaves room for some growth. As in the step size control of an ODE
//! solver, the growth in one interval determines the length of the next.

use super::config::FitInputs;
use super::curvature::Curvature;
use super::curvature_basis::{CURVATURE_SAFETY_FACTOR, CurvatureBasis};
use super::merge_interval::UNITS_PER_BLOCK;
use super::segment_settings::SegmentSettings;

/// Growth of the curvature in an interval that is neither too long nor too short: the square root of the safety factor.
const TARGET_GROWTH: f64 = 2.0;

/// Limits of the ratio of an interval to the previous one.
const MAX_SHRINKAGE: f64 = 0.25;
const MAX_LENGTHENING: f64 = 2.0;

/// A direction is flat if its deltas would be added even if its curvature were so many times as high.
const FLATNESS: f64 = 10.0;

/// Entries between two measurements at least. A measurement takes as long as the updates of some ten thousand entries.
const MIN_ENTRIES: usize = 1 << 16;

/// Measurements per epoch at least, so that the growth is known.
const MIN_MEASUREMENTS: usize = 2;

/// Returns the end of the segment that starts at unit `start` and should have `units`. There is no short last segment.
pub(super) fn segment_end(start: usize, units: f64) -> usize {
    let end = start + (units.round() as usize).max(1);
    if UNITS_PER_BLOCK.saturating_sub(end) < (end - start) / 2 {
        UNITS_PER_BLOCK
    } else {
        end
    }
}

/// Returns the allowed interval that is closest to `units`, for a tensor with `entries` entries.
pub(super) fn bounded_interval(units: f64, entries: usize) -> f64 {
    let epoch = UNITS_PER_BLOCK as f64;
    let shortest = epoch * MIN_ENTRIES as f64 / (entries as f64).max(1.0);
    let longest = epoch / MIN_MEASUREMENTS as f64;
    if shortest > longest {
        epoch
    } else {
        units.clamp(shortest.max(1.0), longest)
    }
}

/// Returns the interval that follows one of `units` in which the curvature grew to `growth` times its value.
pub(super) fn next_interval(units: f64, growth: f64, entries: usize) -> f64 {
    let change = TARGET_GROWTH.ln() / growth.ln().max(f64::MIN_POSITIVE);
    bounded_interval(
        units * change.clamp(MAX_SHRINKAGE, MAX_LENGTHENING),
        entries,
    )
}

/// Returns the largest growth of the curvature of a replicated parameter along any direction, at least 1. There are `merged`
/// tensor entries between two merges.
pub(super) fn curvature_growth(
    inputs: &FitInputs<'_>,
    old: &Curvature,
    settings: &SegmentSettings<'_>,
    merged: f64,
) -> f64 {
    let (plan, new) = (inputs.plan, &settings.curvature);
    // The highest curvature of a flat direction of a parameter with so many entries between two merges.
    let flat = |eta: f32, entries: f64| {
        let rate = FLATNESS * f64::from(CURVATURE_SAFETY_FACTOR * eta) * entries;
        1.0 / rate.max(f64::MIN_POSITIVE)
    };
    let mut growths = Vec::new();
    let replicated = |n: &usize| plan.modes[*n].axis.is_none() && plan.longest_row.is_none();
    for n in (0..plan.modes.len()).filter(replicated) {
        let entries = merged / plan.modes[n].partition.row_count() as f64;
        let flat = flat(settings.eta, entries);
        growths.push(basis_growth([&old.rows[n], &new.rows[n]], [1.0; 2], flat));
    }
    for (m, matrix) in plan.matrices.iter().enumerate() {
        if let (true, Some(columns)) = (matrix.columns_replicated, &matrix.columns) {
            let data = inputs.data;
            let fraction = merged / data.tensor.len() as f64;
            let entries = data.matrices[m].entries.len() as f64 * fraction;
            let flat = flat(settings.eta, entries / columns.row_count() as f64);
            let bases = [&old.columns[m], &new.columns[m]];
            growths.push(basis_growth(bases, [1.0; 2], flat));
        }
    }
    // Of the directions of the core, those that have the steepest direction of all modes but one.
    for n in 0..new.core.len() {
        let steepest_others = |curvature: &Curvature| -> f64 {
            let others = curvature.core.iter().enumerate().filter(|(k, _)| *k != n);
            let highest = others.map(|(_, b)| b.curvature.iter().copied().fold(0.0, f32::max));
            highest.map(f64::from).product()
        };
        let factors = [steepest_others(old), steepest_others(new)];
        let flat = flat(settings.core_eta, merged);
        growths.push(basis_growth([&old.core[n], &new.core[n]], factors, flat));
    }
    // A NaN belongs to a diverged fit, which the driver detects; the maximum ignores it.
    growths.into_iter().fold(1.0, f64::max)
}

/// Returns the largest ratio of the curvature of the second basis to that of the first, along the directions of the second,
/// each times its factor. Both are increased by `flat`, so that flat directions do not count.
fn basis_growth(bases: [&CurvatureBasis; 2], factors: [f64; 2], flat: f64) -> f64 {
    let [old, new] = bases;
    let ratio = |k: usize| {
        let direction = new.direction(k);
        (new.along(&direction) * factors[1] + flat) / (old.along(&direction) * factors[0] + flat)
    };
    (0..new.rank).map(ratio).fold(1.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Level;

    fn basis(directions: &[f32], curvature: [f32; 2]) -> CurvatureBasis {
        CurvatureBasis::new(Level::best(), directions.to_vec(), curvature.to_vec())
    }

    #[test]
    fn growth_is_measured_along_the_new_directions() {
        let old = basis(&[], [8.0, 1.0]);
        let new = basis(&[0.6, 0.8, -0.8, 0.6], [9.0, 2.0]);
        // The old curvature along the new directions is 0.36 * 8 + 0.64 = 3.52 and 0.64 * 8 + 0.36 = 5.48.
        let growth = basis_growth([&old, &new], [1.0; 2], 0.0);
        assert!((growth - 9.0 / 3.52).abs() < 1e-5, "{growth}");
        let growth = basis_growth([&old, &new], [1.0, 3.0], 0.0);
        assert!((growth - 27.0 / 3.52).abs() < 1e-5, "{growth}");
        assert_eq!(basis_growth([&old, &old], [1.0; 2], 0.0), 1.0);
    }

    #[test]
    fn flat_directions_do_not_count() {
        let old = basis(&[], [8.0, 1e-6]);
        let new = basis(&[], [8.0, 1e-3]);
        assert!(basis_growth([&old, &new], [1.0; 2], 1e-6) > 100.0);
        assert!(basis_growth([&old, &new], [1.0; 2], 0.1) < 1.02);
    }

    #[test]
    fn the_interval_follows_the_growth_within_its_limits() {
        let entries = 64 << 20;
        assert_eq!(next_interval(100.0, 2.0, entries), 100.0);
        assert!((next_interval(100.0, 4.0, entries) - 50.0).abs() < 1e-9);
        assert_eq!(next_interval(100.0, 1e9, entries), 25.0);
        assert_eq!(next_interval(100.0, 1.0, entries), 200.0);
        assert_eq!(next_interval(500.0, 1.0, entries), 512.0);
        // A unit has 1024 entries, so 64 units are the shortest interval.
        assert_eq!(next_interval(64.0, 1e9, 1 << 20), 64.0);
        // Too few entries for two measurements per epoch.
        assert_eq!(bounded_interval(64.0, 100_000), 1024.0);
    }

    #[test]
    fn the_last_segment_is_not_short() {
        assert_eq!(segment_end(0, 64.0), 64);
        assert_eq!(segment_end(0, 0.2), 1);
        assert_eq!(segment_end(500, 400.0), 1024);
        assert_eq!(segment_end(500, 300.0), 800);
        assert_eq!(segment_end(1000, 400.0), 1024);
    }
}
