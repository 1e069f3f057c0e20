//! What all layers use.
//!
//! - `error`, `progress`: the error type, progress reports and cancellation. `trace`: where the time of a fit goes.
//! - `random`: reproducible random streams. `sort`: stable sorts that can be cancelled.
//! - `try_alloc`: memory whose allocation may fail. `cache_line`: values that share no cache line.
//! - `value_range`: the range of values. `printable`: characters of names that deceive.

pub mod cache_line;
pub mod error;
pub mod printable;
pub mod progress;
pub mod random;
pub mod sort;
pub mod trace;
pub mod try_alloc;
pub mod value_range;
