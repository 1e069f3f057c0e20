//! The C boundary called as a program in C calls it: objects by raw pointers, arrays of exactly the length that is passed to
//! the call, requests that are filled field by field. The data is small enough for Miri, which checks every access.
#![allow(unsafe_code)]

mod fits;
mod invalid_entries;
mod objects;
mod requests;
