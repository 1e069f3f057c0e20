//! Tests of the C interface: the header, programs in C and C++ that use it, and its installation.

#[path = "../common/mod.rs"]
mod common;

mod abi;
mod guide;
mod header;
mod install;
mod integers;
mod programs;
