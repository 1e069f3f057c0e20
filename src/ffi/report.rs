//! A page about a model.
#![allow(unsafe_code)]

use std::ffi::c_char;

use super::arg::{given, path, place, slice, text, threads};
use super::cancel::{CancelHandle, Token};
use super::coo_handle::{CooHandle, of as entries_of};
use super::error_handle::ErrorHandle;
use super::guard::guard;
use super::model::{ModelHandle, of as model_of};
use super::names::{NamesHandle, of as names_of};
use crate::discover::RowNames;
use crate::report::{ReportOptions, write_report};

/// Writes a page about a model to `path`: data, how the fit went, core, factors, concepts, clusters, speed and settings, as
/// one file of HTML with its pictures in it, for a browser or a printer. It appears complete or not at all.
///
/// Everything but `model` and `path` may be left out, as NULL or 0. `title` is the heading. `data` are the entries that were
/// fitted to, `test` entries to measure errors on. `mode_names` has a text for each mode (what its rows are, such as "user")
/// and `names` the names of its rows; either array, and any of its items, may be NULL. The `matrix_count` matrices of
/// `matrices`, each with its mode in `matrix_modes` (counted from 0), say what clusters have in common; they come in the
/// order in which the model was fitted with them. `columns` has the names of the columns of the first `columns_count`
/// matrices, any of which may be NULL. `against` is another model of the same data to compare with.
///
/// Up to `max_k` clusters are looked for in each mode, by `seed`; 0 leaves clusters out. `cluster_counts` has the number of
/// clusters to show for each mode, 0 for the gap statistic to choose; NULL is all 0. `top` rows are listed of each
/// concept and cluster (0: 6). It runs on `threads` threads (0: all the process may use); the page does not depend on how
/// many. `cancel` may be NULL.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_report_write(
    model: Option<&ModelHandle>,
    title: *const c_char,
    data: Option<&CooHandle>,
    test: Option<&CooHandle>,
    mode_names: *const *const c_char,
    names: *const Option<&NamesHandle>,
    matrix_count: u64,
    matrix_modes: *const u64,
    matrices: *const Option<&CooHandle>,
    columns_count: u64,
    columns: *const Option<&NamesHandle>,
    against: Option<&ModelHandle>,
    max_k: u64,
    cluster_counts: *const u64,
    top: u64,
    seed: u64,
    threads: u64,
    cancel: Option<&CancelHandle>,
    path: *const c_char,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let model = model_of(model)?;
        let order = model.order();
        let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let each = |pointer: bool| if pointer { 0 } else { order as u64 };
        // SAFETY: texts and arrays of the caller, for this call.
        let (path, called, rows, modes, views, named, counts) = unsafe {
            (
                self::path(path, "path")?,
                slice(mode_names, each(mode_names.is_null()), "mode_names")?,
                slice(names, each(names.is_null()), "names")?,
                slice(matrix_modes, matrix_count, "matrix_modes")?,
                slice(matrices, matrix_count, "matrices")?,
                slice(columns, columns_count, "columns")?,
                slice(
                    cluster_counts,
                    each(cluster_counts.is_null()),
                    "cluster_counts",
                )?,
            )
        };
        let usual = ReportOptions::default();
        let mut options = ReportOptions {
            data: data.map(|d| entries_of(Some(d))).transpose()?,
            test: test.map(|t| entries_of(Some(t))).transpose()?,
            names: RowNames::new(order),
            columns: RowNames::new(named.len()),
            against: against.map(|m| model_of(Some(m))).transpose()?,
            max_k: size(max_k),
            clusters: (0..)
                .zip(counts)
                .filter(|(_, k)| **k > 0)
                .map(|(n, &k)| (n, size(k)))
                .collect(),
            top: if top > 0 { size(top) } else { usual.top },
            seed,
            threads: self::threads(threads)?,
            ..usual
        };
        if !title.is_null() {
            // SAFETY: a text of the caller, for this call.
            options.title = unsafe { text(title, "title") }?.into();
        }
        for (n, &name) in called.iter().enumerate() {
            options.modes.push(if name.is_null() {
                String::new()
            } else {
                // SAFETY: a text of the caller, for this call.
                unsafe { text(name, &format!("mode_names[{n}]")) }?.into()
            });
        }
        for (to, from) in [(&mut options.names, rows), (&mut options.columns, named)] {
            for (n, names) in from.iter().enumerate() {
                if names.is_some() {
                    to.set(n, names_of(*names)?.clone())?;
                }
            }
        }
        for (m, (&mode, matrix)) in modes.iter().zip(views).enumerate() {
            let mode = place(mode, order, &format!("matrix_modes[{m}]"))?;
            let matrix = given(*matrix, &format!("matrices[{m}]"))?;
            options.matrices.push((mode, entries_of(Some(matrix))?));
        }
        Ok(write_report(model, &options, &path, &Token(cancel))?)
    })
}
