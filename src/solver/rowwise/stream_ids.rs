//! Identifiers of the random streams of `als` and `gibbs`.
//!
//! A stream is a function of the seed, one of these identifiers and the numbers of the things it is for (sweep,
//! mode, row). So every row has its own stream, and results are independent of the thread count.

/// Rows of a mode, or columns of a matrix.
pub const ROWS: u64 = 201;
/// Mean and precision of the rows of a mode.
pub const HYPERPARAMETERS: u64 = 202;
/// Precision of the noise of the tensor or a matrix.
pub const NOISE_PRECISION: u64 = 203;
/// The core.
pub const CORE: u64 = 204;
/// Biases of rows without tensor entries.
pub const COLD_START_BIASES: u64 = 205;
/// Rows that are folded into a fitted model.
pub const FOLD_IN: u64 = 206;
/// Spectral initialization.
pub const SPECTRAL: u64 = 207;
/// The pilot chain that selects the noise variance, and the split of the training entries that it holds out.
pub const NOISE_PILOT: u64 = 208;
/// Latent values of two-valued entries.
pub const LATENT_VALUES: u64 = 209;

/// Added to the number of a matrix where other streams have the number of a mode.
pub const FIRST_MATRIX: u64 = 1 << 16;
