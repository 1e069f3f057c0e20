//! Models: opening, saving, descriptions.
#![allow(unsafe_code)]

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use super::arg::{SizedStruct, given, hand_over, path, place, struct_out, text_out};
use super::cancel::{CancelHandle, Token};
use super::coo::open_mode;
use super::coo_handle::{CooHandle, MatchedSource};
use super::error_handle::ErrorHandle;
use super::guard::{guard, release};
use super::options::OptionsHandle;
use super::problem::{
    S3CMTF_MATRIX_FULL, S3CMTF_MATRIX_GRAPH, S3CMTF_MATRIX_OBSERVED, S3CMTF_MATRIX_SAMPLED,
};
use super::progress::{Progress, S3CMTF_FIT_ENDED};
use super::status::Outcome;
use crate::error::Result;
use crate::format::{ModelNames, RowMatcher};
use crate::model::{Model, load, save};
use crate::predict::{MAX_EXPORTED_TEXT, export};
use crate::printable::printable_lines;

use crate::kernel::CoreKind;
use crate::problem::MatrixKind;

/// A Tucker model: the core is a full tensor.
pub const S3CMTF_MODEL_TUCKER: i32 = 1;
/// A CP model: the core is superdiagonal.
pub const S3CMTF_MODEL_CP: i32 = 2;

/// The size of a model.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ModelInfo {
    /// sizeof(s3cmtf_model_info).
    pub size: u64,
    /// S3CMTF_MODEL_TUCKER or S3CMTF_MODEL_CP.
    pub kind: i32,
    /// The number of modes.
    pub order: u64,
    /// The number of coupled matrices, including graphs.
    pub matrices: u64,
    /// The number of epochs of the fit, for s3cmtf_model_get_epoch().
    pub epochs: u64,
    /// The number of posterior samples; 0 unless the option "algorithm" was "gibbs". Only a model with samples predicts
    /// standard deviations and quantiles.
    pub samples: u64,
    /// The mean of the training values, or 0 if the option "mean" was false. It is a term of every prediction.
    pub mean: f64,
    /// The smallest training value. Predictions may be clipped to the training values, see S3CMTF_CLIP_DEFAULT.
    pub min_value: f64,
    /// The largest training value.
    pub max_value: f64,
}

/// The size of a mode of a model.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ModeInfo {
    /// sizeof(s3cmtf_model_mode).
    pub size: u64,
    /// The size of the mode; indices are below it.
    pub dim: u64,
    /// The number of rows of its factor: of indices that occurred in the data.
    pub rows: u64,
    /// Its rank: the number of columns of its factor.
    pub rank: u64,
}

/// A coupled matrix of a model.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct MatrixInfo {
    /// sizeof(s3cmtf_model_matrix).
    pub size: u64,
    /// The mode it is coupled to.
    pub mode: u64,
    /// S3CMTF_MATRIX_...
    pub kind: i32,
    /// Its weight in the loss.
    pub weight: f64,
    /// The number of its columns.
    pub columns: u64,
    /// The number of rows of its factor: of columns that occurred in the data. A graph has none.
    pub rows: u64,
}

// The layout is part of the ABI: fields are added at the end, and none moves.
#[cfg(target_pointer_width = "64")]
const _: () = {
    use std::mem::offset_of;
    assert!(offset_of!(ModelInfo, kind) == 8);
    assert!(offset_of!(ModelInfo, order) == 16);
    assert!(offset_of!(ModelInfo, matrices) == 24);
    assert!(offset_of!(ModelInfo, epochs) == 32);
    assert!(offset_of!(ModelInfo, samples) == 40);
    assert!(offset_of!(ModelInfo, mean) == 48);
    assert!(offset_of!(ModelInfo, max_value) == 64);
    assert!(size_of::<ModelInfo>() == 72);
    assert!(offset_of!(ModeInfo, dim) == 8);
    assert!(offset_of!(ModeInfo, rows) == 16);
    assert!(offset_of!(ModeInfo, rank) == 24);
    assert!(size_of::<ModeInfo>() == 32);
    assert!(offset_of!(MatrixInfo, mode) == 8);
    assert!(offset_of!(MatrixInfo, kind) == 16);
    assert!(offset_of!(MatrixInfo, weight) == 24);
    assert!(offset_of!(MatrixInfo, columns) == 32);
    assert!(offset_of!(MatrixInfo, rows) == 40);
    assert!(size_of::<MatrixInfo>() == 48);
};

// SAFETY: `repr(C)`, the size first, numbers only.
unsafe impl SizedStruct for ModelInfo {}
// SAFETY: the same.
unsafe impl SizedStruct for ModeInfo {}
// SAFETY: the same.
unsafe impl SizedStruct for MatrixInfo {}

/// A fitted model.
pub struct ModelHandle {
    pub(super) model: Arc<Model>,
    names: Arc<RowNames>,
}

impl Clone for ModelHandle {
    fn clone(&self) -> Self {
        ModelHandle {
            model: self.model.clone(),
            names: self.names.clone(),
        }
    }
}

/// The names of the rows of a model.
struct RowNames {
    names: OnceLock<ModelNames>,
    /// The file of the model, beside which they are.
    path: PathBuf,
}

impl ModelHandle {
    pub(super) fn new(model: Model, names: ModelNames) -> ModelHandle {
        ModelHandle {
            model: Arc::new(model),
            names: Arc::new(RowNames {
                names: OnceLock::from(names),
                path: PathBuf::new(),
            }),
        }
    }

    fn loaded(model: Model, path: PathBuf) -> ModelHandle {
        ModelHandle {
            model: Arc::new(model),
            names: Arc::new(RowNames {
                names: OnceLock::new(),
                path,
            }),
        }
    }

    pub(super) fn names(&self) -> Result<&ModelNames> {
        let RowNames { names, path } = &*self.names;
        if let Some(names) = names.get() {
            return Ok(names);
        }
        let found = self.model.row_names(path)?;
        Ok(names.get_or_init(|| found))
    }

    /// Returns a matcher of the rows of the model.
    pub(super) fn matcher(&self) -> Result<RowMatcher> {
        let names = self.names()?.clone();
        Ok(self.model.matcher_with("the model".into(), names))
    }
}

/// Returns the model and the entries, whose rows are matched with its own.
pub(super) fn with_entries<'a>(
    model: Option<&'a ModelHandle>,
    coo: Option<&'a CooHandle>,
) -> Outcome<(&'a Model, MatchedSource<'a>)> {
    let (model, coo) = (given(model, "model")?, given(coo, "coo")?);
    let entries = MatchedSource::entries(&coo.source, &mut model.matcher()?)?;
    Ok((&model.model, entries))
}

/// Opens a model file, or the model in a checkpoint. `mode` is S3CMTF_OPEN_MAPPED or S3CMTF_OPEN_PRIVATE.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_model_load(
    path: *const c_char,
    mode: i32,
    model: Option<&mut MaybeUninit<*mut ModelHandle>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let out = given(model, "model")?;
        // SAFETY: a text of the caller, for this call.
        let path = unsafe { self::path(path, "path") }?;
        let model = load(&path, open_mode(mode)?)?;
        hand_over(out, ModelHandle::loaded(model, path));
        Ok(())
    })
}

/// Writes a model file, which appears complete or not at all. If its rows have names, because its tensor was opened from a file with
/// names, these are written beside it (PATH.mode1.tsv), as are those of columns of matrices (PATH.matrix1.tsv).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_model_save(
    model: Option<&ModelHandle>,
    path: *const c_char,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let model = given(model, "model")?;
        // SAFETY: a text of the caller, for this call.
        let path = unsafe { self::path(path, "path") }?;
        let names = model.names()?;
        // Names that the host wrote for a model without names stay.
        let staged = (!names.is_empty()).then(|| names.stage(&path));
        let staged = staged.transpose()?;
        save(&model.model, &path)?;
        if let Some(staged) = staged {
            staged.commit()?;
        }
        Ok(())
    })
}

/// Writes factors, core, mean, biases, and factors and offsets of the matrices to a folder as .npy files, factors and core
/// also as text. Text tables have a line for each row up to the size of its mode; a model whose tables would exceed 16 GiB
/// is an error. `cancel` may be NULL.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_model_export(
    model: Option<&ModelHandle>,
    folder: *const c_char,
    cancel: Option<&CancelHandle>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let model = of(model)?;
        // SAFETY: a text of the caller, for this call.
        let folder = unsafe { path(folder, "folder") }?;
        export(model, &folder, MAX_EXPORTED_TEXT, &Token(cancel))?;
        Ok(())
    })
}

/// Frees a model. Views of its factors become invalid; fits that start from it do not. NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_model_free(model: Option<Box<ModelHandle>>) {
    release(|| drop(model));
}

/// Writes the kind and the size of a model, and its mean and range of values.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_model_get_info(
    model: Option<&ModelHandle>,
    info: *mut ModelInfo,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let model = of(model)?;
        let own = ModelInfo {
            size: size_of::<ModelInfo>() as u64,
            kind: match model.shape().kind() {
                CoreKind::Full => S3CMTF_MODEL_TUCKER,
                CoreKind::Diagonal => S3CMTF_MODEL_CP,
            },
            order: model.order() as u64,
            matrices: model.matrices().len() as u64,
            epochs: model.history().len() as u64,
            samples: model.samples().map_or(0, |s| s.len() as u64),
            mean: model.mean(),
            min_value: model.range().min,
            max_value: model.range().max,
        };
        // SAFETY: a struct of the caller, for this call.
        unsafe { struct_out(&own, info, "info") }
    })
}

/// Writes the size of a mode and of its factor.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_model_get_mode(
    model: Option<&ModelHandle>,
    mode: u64,
    info: *mut ModeInfo,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let model = of(model)?;
        let n = place(mode, model.order(), "mode")?;
        let own = ModeInfo {
            size: size_of::<ModeInfo>() as u64,
            dim: model.dims()[n],
            rows: model.modes()[n].rows.len() as u64,
            rank: model.shape().ranks()[n] as u64,
        };
        // SAFETY: a struct of the caller, for this call.
        unsafe { struct_out(&own, info, "info") }
    })
}

/// Writes the mode, the kind and the size of a coupled matrix.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_model_get_matrix(
    model: Option<&ModelHandle>,
    matrix: u64,
    info: *mut MatrixInfo,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let model = of(model)?;
        let matrix = &model.matrices()[place(matrix, model.matrices().len(), "matrix")?];
        let own = MatrixInfo {
            size: size_of::<MatrixInfo>() as u64,
            mode: matrix.mode as u64,
            kind: match matrix.kind {
                MatrixKind::Observed | MatrixKind::Auto => S3CMTF_MATRIX_OBSERVED,
                MatrixKind::Graph => S3CMTF_MATRIX_GRAPH,
                MatrixKind::Full => S3CMTF_MATRIX_FULL,
                MatrixKind::Sampled(_) => S3CMTF_MATRIX_SAMPLED,
            },
            weight: matrix.weight,
            columns: matrix.columns.dim(),
            rows: matrix.columns.len() as u64,
        };
        // SAFETY: a struct of the caller, for this call.
        unsafe { struct_out(&own, info, "info") }
    })
}

/// Returns the options of the fit, with the values that the fit chose in place of "auto".
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_model_get_options(
    model: Option<&ModelHandle>,
    options: Option<&mut MaybeUninit<*mut OptionsHandle>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let (model, out) = (of(model)?, given(options, "options")?);
        let options = model.options().clone();
        hand_over(out, OptionsHandle { options });
        Ok(())
    })
}

/// Writes the plan of the fit as JSON: what it did, and why (docs/reference/json.md); an empty text for a model that was not
/// fitted. s3cmtf_fit_set_plan() repeats it. `text`, `capacity` and `needed` as in s3cmtf_options_get().
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_model_get_plan(
    model: Option<&ModelHandle>,
    text: *mut c_char,
    capacity: u64,
    needed: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let json = of(model)?.plan().map(|plan| plan.to_json());
        // SAFETY: a buffer of the caller, for this call.
        unsafe { text_out(&json.unwrap_or_default(), text, capacity, needed, "text") }
    })
}

/// Writes the record of the fit as lines NAME=VALUE: note=EPOCH EVENT TEXT for each event (rolled-back, rank-lowered or
/// warning), then reason, epochs, best_epoch, train_rmse, test_rmse, valid_rmse, clipped, threads, kernel, update_seconds,
/// eval_seconds, seconds, read_seconds and init_seconds, and thread_share=ACTIVITY FRACTION for each activity of the threads
/// of a traced fit. A checkpoint has only events. `text`, `capacity` and `needed` as in s3cmtf_options_get().
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_model_get_record(
    model: Option<&ModelHandle>,
    text: *mut c_char,
    capacity: u64,
    needed: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let lines = of(model)?.record().to_text();
        let lines = printable_lines(&lines);
        // SAFETY: a buffer of the caller, for this call.
        unsafe { text_out(&lines, text, capacity, needed, "text") }
    })
}

/// Writes the errors, the loss and the times of an epoch, below s3cmtf_model_info.epochs.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_model_get_epoch(
    model: Option<&ModelHandle>,
    epoch: u64,
    progress: *mut Progress,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let model = of(model)?;
        let history = model.history();
        let figures = &history[place(epoch, history.len(), "epoch")?];
        let mut own = Progress::new(model.options().epochs);
        own.state = S3CMTF_FIT_ENDED;
        own.set_epoch(figures);
        // SAFETY: a struct of the caller, for this call.
        unsafe { own.write_to(progress) }
    })
}

/// The model of a handle that must not be NULL.
pub(super) fn of(model: Option<&ModelHandle>) -> Outcome<&Model> {
    Ok(&given(model, "model")?.model)
}
