//! Identifiers of the random streams of a fit.
//!
//! A stream is a function of the seed, one of these identifiers and the numbers of the things it is for
//! (epoch, mode, row). Two purposes never share an identifier, so no random number is used twice.

/// Order of the shuffled entries.
pub const SHUFFLE: u64 = 101;
/// Starting values of factors, core and matrix columns.
pub const INITIALIZATION: u64 = 102;
/// Order of the blocks in an epoch.
pub const BLOCK_ORDER: u64 = 103;
/// Order of the entries inside the blocks of an epoch.
pub const ENTRY_ORDER: u64 = 104;
/// Partition of the rows of a mode.
pub const PARTITION: u64 = 106;
/// Random choices inside one block.
pub const BLOCK: u64 = 107;
/// Entries on which curvature and replica divergence are measured.
pub const ENTRY_SAMPLE: u64 = 108;
/// Entries that are held out for validation.
pub const HOLDOUT: u64 = 109;
/// Options of the trials of a search.
pub const TUNING: u64 = 110;
/// Rows whose entries an initialization uses.
pub const ROW_SAMPLE: u64 = 111;
