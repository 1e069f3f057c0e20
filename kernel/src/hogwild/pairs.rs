//! Lock-free (HOGWILD!) SGD updates of pairs of rows: matrix entries and graph edges.
//!
//! Safe functions check the arguments; the kernel checks every row index.
#![allow(unsafe_code)]

use super::row_cache::RowCache;
use super::rows::HogwildVector;
use super::walk::{EntryWalk, HogwildSettings, PREFETCH_DISTANCE, SharedMode, prefetch_ahead};
use crate::batch::job::RowUpdate;
use crate::simd::{LANES, dispatched};

/// Updates rows and columns with `count` entries of a matrix. Returns the next position of the walk.
///
/// # Panics
/// If a length is wrong, or an entry names a row that does not exist.
pub fn update_matrix_entries(
    rows: &mut RowCache<'_>,
    columns: &mut RowCache<'_>,
    walk: &EntryWalk<'_>,
    count: usize,
    settings: &HogwildSettings<'_>,
) -> usize {
    walk.check(2);
    let level = rows.level();
    assert!(columns.level() == level && rows.stride() == columns.stride());
    let modes = [
        SharedMode::new(rows, settings, 0),
        SharedMode::new(columns, settings, 1),
    ];
    // SAFETY: lengths were checked above, the level by the rows; the kernel checks every row index.
    unsafe { update_pairs(level, &modes, walk, count, settings, false) }
}

/// Updates rows of one mode with `count` edges of a graph. Returns the next position of the walk.
///
/// # Panics
/// If a length is wrong, or an edge names a row that does not exist.
pub fn update_graph_edges(
    rows: &mut RowCache<'_>,
    walk: &EntryWalk<'_>,
    count: usize,
    settings: &HogwildSettings<'_>,
) -> usize {
    walk.check(2);
    let level = rows.level();
    let mode = SharedMode::new(rows, settings, 0);
    // SAFETY: lengths were checked above, the level by the rows; the kernel checks every row index.
    unsafe { update_pairs(level, &[mode; 2], walk, count, settings, true) }
}

dispatched! {
    /// Processes entries of a matrix, or edges of a graph.
    unsafe fn update_pairs(modes: &[SharedMode<'_>; 2], walk: &EntryWalk<'_>, count: usize, settings: &HogwildSettings<'_>, edges: bool) -> usize
        = update_pairs_body;
}

/// For a matrix, y^ = u . v. For an edge, the penalty w |u - v|^2 moves the two rows towards each other.
#[inline(always)]
unsafe fn update_pairs_body<V: HogwildVector>(
    modes: &[SharedMode<'_>; 2],
    walk: &EntryWalk<'_>,
    count: usize,
    settings: &HogwildSettings<'_>,
    edges: bool,
) -> usize {
    let stride = modes[0].stride;
    let update = RowUpdate::<V>::new(settings.eta, settings.regularizer);
    let mut at = walk.position;
    let mut ahead = at;
    for _ in 0..PREFETCH_DISTANCE {
        ahead = walk.next_position(ahead);
    }
    // SAFETY: positions stay inside the block; row indices are checked; both rows have `stride` floats.
    unsafe {
        for done in 0..count {
            prefetch_ahead::<V>(modes, walk, ahead, done);
            ahead = walk.next_position(ahead);
            let entry = walk.rows.as_ptr().add(2 * at);
            let (entry_position, value) = (at, *walk.values.as_ptr().add(at));
            at = walk.next_position(at);
            let (u, penalty_u) = modes[0].row(*entry);
            let (v, penalty_v) = modes[1].row(*entry.add(1));
            if edges && u == v {
                continue;
            }
            let scale = if edges {
                value
            } else {
                let mut sum = V::zero();
                for k in (0..stride).step_by(LANES) {
                    sum = V::load_shared(u.add(k)).mul_add(V::load_shared(v.add(k)), sum);
                }
                walk.weighted_residual(value - sum.sum(), entry_position)
            };
            let scale = V::splat(-settings.loss_weight * scale);
            for k in (0..stride).step_by(LANES) {
                let (x, y) = (V::load_shared(u.add(k)), V::load_shared(v.add(k)));
                let (direction_x, direction_y) = if edges {
                    let gap = x.mul_add(V::splat(-1.0), y);
                    (gap, gap * V::splat(-1.0))
                } else {
                    (y, x)
                };
                let (prior_x, prior_y): (V, V) = (modes[0].prior(k), modes[1].prior(k));
                update
                    .updated(x, x - prior_x, direction_x, scale, penalty_u)
                    .store_shared(u.add(k));
                update
                    .updated(y, y - prior_y, direction_y, scale, penalty_v)
                    .store_shared(v.add(k));
            }
        }
    }
    at
}
