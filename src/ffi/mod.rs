//! The C ABI: the functions that `include/s3cmtf.h` declares. The header is generated from these files, and its comments
//! are the ones here, written for C programmers.
//!
//! One file per C object. The types of the arguments express ownership: `Option<&T>` is a `const T *` that may be shared
//! between threads, `Option<&mut T>` a `T *` that may not, `Option<Box<T>>` a handle that is freed, `Option<&mut
//! MaybeUninit<T>>` an output, written last and only on success. Arrays, strings and structs that begin with their size are
//! raw pointers and pass through `arg`, the only place that trusts a length. Every body runs in `guard::guard`: panics
//! become a status, nothing is printed, and the floating-point mode of the host neither matters nor changes.

// Names and numbers of arguments are those of the C functions, whose contract is in their comments.
#![allow(clippy::missing_safety_doc, clippy::too_many_arguments)]

mod arg;
mod arrays;
#[cfg(test)]
mod call_tests;
mod cancel;
mod clusters;
mod concepts;
mod coo;
mod coo_files;
mod coo_handle;
mod coo_weights;
mod error;
mod error_handle;
mod evaluate;
mod fit;
mod float;
mod fold_in;
mod guard;
mod host;
mod indices;
mod library;
mod model;
mod model_numbers;
mod names;
mod options;
mod predict;
mod problem;
mod progress;
mod recommend;
mod run;
mod status;
#[cfg(s3cmtf_test)]
mod testing;
mod text;
mod tune;

/// Everything C sees, for Rust programs that measure or test the boundary itself.
pub mod c {
    pub use super::arrays::*;
    pub use super::cancel::*;
    pub use super::clusters::*;
    pub use super::concepts::*;
    pub use super::coo::*;
    pub use super::coo_files::*;
    pub use super::coo_handle::*;
    pub use super::coo_weights::*;
    pub use super::error::*;
    pub use super::error_handle::*;
    pub use super::evaluate::*;
    pub use super::fit::*;
    pub use super::fold_in::*;
    pub use super::library::*;
    pub use super::model::*;
    pub use super::model_numbers::*;
    pub use super::names::*;
    pub use super::options::*;
    pub use super::predict::*;
    pub use super::problem::*;
    pub use super::progress::*;
    pub use super::recommend::*;
    pub use super::status::*;
    pub use super::text::*;
    pub use super::tune::*;
}
