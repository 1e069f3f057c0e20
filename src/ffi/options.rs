//! The options of a fit, and the table they come from.
#![allow(unsafe_code)]

use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;
use std::sync::OnceLock;

use super::arg::{c_text, choice, flag, given, hand_over, name_of, place, slice, text, text_out};
use super::error_handle::ErrorHandle;
use super::guard::{guard, release};
use super::status::{Failure, Outcome};
use crate::options::{OPTION_TABLE, OptionKind, Options, PRESETS};

/// An option is true or false.
pub const S3CMTF_OPTION_TYPE_FLAG: i32 = 1;
/// An option is a whole number.
pub const S3CMTF_OPTION_TYPE_WHOLE: i32 = 2;
/// An option is a finite number, or "auto" if that is its default.
pub const S3CMTF_OPTION_TYPE_REAL: i32 = 3;
/// An option is one of some words.
pub const S3CMTF_OPTION_TYPE_CHOICE: i32 = 4;
/// An option is one whole number, or several separated by commas, or "auto" if that is its default.
pub const S3CMTF_OPTION_TYPE_RANKS: i32 = 5;
/// An option is one finite number, or several separated by commas, or "auto" if that is its default.
pub const S3CMTF_OPTION_TYPE_REALS: i32 = 6;

/// s3cmtf_option_text() gives the name of an option.
pub const S3CMTF_OPTION_NAME: i32 = 1;
/// It gives the default, as s3cmtf_options_set() takes it.
pub const S3CMTF_OPTION_DEFAULT: i32 = 2;
/// It gives what the option does.
pub const S3CMTF_OPTION_HELP: i32 = 3;
/// It gives the smallest number the option takes; empty if it takes none.
pub const S3CMTF_OPTION_LOW: i32 = 4;
/// It gives the largest number the option takes; empty if it takes none.
pub const S3CMTF_OPTION_HIGH: i32 = 5;
/// It gives the words the option takes, separated by commas; empty if it takes others.
pub const S3CMTF_OPTION_WORDS: i32 = 6;

/// All options of a fit. They start as a preset and are set by name; the table of names, types, ranges,
/// defaults and help texts is read with s3cmtf_option_count() and its kin. A fit copies them.
///
/// Options whose default is "auto" are chosen by the fit, from the data; a number or a word put there is taken
/// as it is. s3cmtf_options_set() with "auto" gives the choice back. What was chosen is in the options of the
/// model: see s3cmtf_model_get_options().
pub struct OptionsHandle {
    pub(super) options: Options,
}

/// Makes options, to be freed with s3cmtf_options_free(). `preset` names settings to start from, such as
/// "paper" (s3cmtf_preset_name() lists them); NULL means "default".
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_options_new(
    preset: *const c_char,
    options: Option<&mut MaybeUninit<*mut OptionsHandle>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let out = given(options, "options")?;
        let options = if preset.is_null() {
            Options::default()
        } else {
            // SAFETY: a text of the caller, for this call.
            Options::preset(unsafe { text(preset, "preset") }?)?
        };
        hand_over(out, OptionsHandle { options });
        Ok(())
    })
}

/// Sets an option to what a text says: "true", "12", "0.001", "blocked", "10,10,4", "auto". Names have
/// underscores or dashes.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_options_set(
    options: Option<&mut OptionsHandle>,
    name: *const c_char,
    value: *const c_char,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        // SAFETY: a text of the caller, for this call.
        let value = unsafe { text(value, "value") };
        // SAFETY: the same.
        unsafe { set(options, name, value) }
    })
}

/// Sets an option of type S3CMTF_OPTION_TYPE_WHOLE; one of another type is S3CMTF_BAD_ARGUMENT, here and
/// below.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_options_set_whole(
    options: Option<&mut OptionsHandle>,
    name: *const c_char,
    value: u64,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    let is_whole = |kind: OptionKind| matches!(kind, OptionKind::Integer(..));
    // SAFETY: a text of the caller, for this call.
    guard(error, || unsafe {
        set_typed(options, name, "whole number", is_whole, &value.to_string())
    })
}

/// Sets an option of type S3CMTF_OPTION_TYPE_REAL to a number. NaN does not mean "auto": that is set as a text.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_options_set_real(
    options: Option<&mut OptionsHandle>,
    name: *const c_char,
    value: f64,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    let is_real = |kind: OptionKind| matches!(kind, OptionKind::Real(..));
    // SAFETY: a text of the caller, for this call.
    guard(error, || unsafe {
        set_typed(options, name, "number", is_real, &format!("{value:e}"))
    })
}

/// Sets an option of type S3CMTF_OPTION_TYPE_FLAG: `value` is 0 or 1.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_options_set_flag(
    options: Option<&mut OptionsHandle>,
    name: *const c_char,
    value: i32,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let value = flag(value, "value")?.to_string();
        let is_flag = |kind: OptionKind| matches!(kind, OptionKind::Flag);
        // SAFETY: a text of the caller, for this call.
        unsafe { set_typed(options, name, "flag", is_flag, &value) }
    })
}

/// Sets the option "rank": `count` is 1, or the number of modes.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_options_set_ranks(
    options: Option<&mut OptionsHandle>,
    ranks: *const u64,
    count: u64,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        if count > crate::kernel::MAX_ORDER as u64 {
            return Err(Failure::argument(format!("{count} ranks are too many")));
        }
        // SAFETY: an array of the caller, for this call.
        let ranks = unsafe { slice(ranks, count, "ranks") }?;
        let words: Vec<String> = ranks.iter().map(u64::to_string).collect();
        // SAFETY: a constant text.
        unsafe { set(options, c"rank".as_ptr(), Ok(&words.join(","))) }
    })
}

/// Sets an option whose type must be the one of the setter.
///
/// # Safety
/// As [`text`].
unsafe fn set_typed(
    options: Option<&mut OptionsHandle>,
    name: *const c_char,
    what: &str,
    fits: impl Fn(OptionKind) -> bool,
    value: &str,
) -> Outcome {
    // SAFETY: the caller's promise.
    let key = unsafe { text(name, "name") }?.replace('-', "_");
    match OPTION_TABLE.iter().find(|o| o.name == key) {
        Some(option) if !fits(option.kind) => Err(Failure::argument(format!(
            "the option '{key}' is not a {what}; set it with the function of its type, or as a text"
        ))),
        // SAFETY: the caller's promise.
        _ => unsafe { set(options, name, Ok(value)) },
    }
}

/// # Safety
/// As [`text`].
unsafe fn set(
    options: Option<&mut OptionsHandle>,
    name: *const c_char,
    value: Outcome<&str>,
) -> Outcome {
    let handle = given(options, "options")?;
    // SAFETY: the caller's promise.
    let name = unsafe { text(name, "name") }?;
    Ok(handle.options.set(name, value?)?)
}

/// Writes the value of an option as text, as s3cmtf_options_set() takes it, into `value`, which has room for
/// `capacity` bytes, and into `needed` the number of its bytes; both with the NUL at the end. With `value`
/// NULL and `capacity` 0 only `needed` is written. `needed` may be NULL.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_options_get(
    options: Option<&OptionsHandle>,
    name: *const c_char,
    value: *mut c_char,
    capacity: u64,
    needed: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let handle = given(options, "options")?;
        // SAFETY: a text of the caller, for this call.
        let name = unsafe { text(name, "name") }?;
        let found = handle
            .options
            .get(name)
            .ok_or_else(|| Failure::argument(format!("there is no option '{name}'")))?;
        // SAFETY: a buffer of the caller, for this call.
        unsafe { text_out(&found, value, capacity, needed, "value") }
    })
}

/// Frees options. NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_options_free(options: Option<Box<OptionsHandle>>) {
    release(|| drop(options));
}

/// The number of options in the table.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_option_count() -> u64 {
    OPTION_TABLE.len() as u64
}

/// The type of an option: S3CMTF_OPTION_TYPE_FLAG and so on. `index` counts from 0.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_option_type(
    index: u64,
    option_type: Option<&mut MaybeUninit<i32>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let out = given(option_type, "option_type")?;
        out.write(
            match OPTION_TABLE[place(index, OPTION_TABLE.len(), "index")?].kind {
                OptionKind::Flag => S3CMTF_OPTION_TYPE_FLAG,
                OptionKind::Integer(..) => S3CMTF_OPTION_TYPE_WHOLE,
                OptionKind::Real(..) => S3CMTF_OPTION_TYPE_REAL,
                OptionKind::Choice(_) => S3CMTF_OPTION_TYPE_CHOICE,
                OptionKind::IntegerList(..) => S3CMTF_OPTION_TYPE_RANKS,
                OptionKind::RealList(..) => S3CMTF_OPTION_TYPE_REALS,
            },
        );
        Ok(())
    })
}

/// A text about an option: `what` is S3CMTF_OPTION_NAME and so on. Constant, never freed.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_option_text(
    index: u64,
    what: i32,
    text: Option<&mut MaybeUninit<*const c_char>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let out = given(text, "text")?;
        let index = place(index, OPTION_TABLE.len(), "index")?;
        let column = choice(
            what,
            &[
                (S3CMTF_OPTION_NAME, 0),
                (S3CMTF_OPTION_DEFAULT, 1),
                (S3CMTF_OPTION_HELP, 2),
                (S3CMTF_OPTION_LOW, 3),
                (S3CMTF_OPTION_HIGH, 4),
                (S3CMTF_OPTION_WORDS, 5),
            ],
            "what",
        )?;
        out.write(texts()[index][column].as_ptr());
        Ok(())
    })
}

/// The name of a preset, for s3cmtf_options_new(). `index` counts from 0; beyond the last it is
/// S3CMTF_BAD_ARGUMENT. Constant, never freed.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_preset_name(
    index: u64,
    name: Option<&mut MaybeUninit<*const c_char>>,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    static NAMES: OnceLock<Vec<CString>> = OnceLock::new();
    guard(error, || {
        let out = given(name, "name")?;
        out.write(name_of(PRESETS, &NAMES, index)?);
        Ok(())
    })
}

/// The texts of the table for C, made once.
fn texts() -> &'static [[CString; 6]] {
    static TEXTS: OnceLock<Vec<[CString; 6]>> = OnceLock::new();
    TEXTS.get_or_init(|| {
        let row = |o: &crate::options::OptionInfo| {
            let (low, high, words) = match o.kind {
                OptionKind::Flag => (String::new(), String::new(), String::new()),
                OptionKind::Integer(a, b) => (a.to_string(), b.to_string(), String::new()),
                OptionKind::Real(a, b) | OptionKind::RealList(a, b) => {
                    (format!("{a:e}"), format!("{b:e}"), String::new())
                }
                OptionKind::IntegerList(a, b) => (a.to_string(), b.to_string(), String::new()),
                OptionKind::Choice(words) => (String::new(), String::new(), words.join(",")),
            };
            [o.name, o.default, o.help, &low, &high, &words].map(c_text)
        };
        OPTION_TABLE.iter().map(row).collect()
    })
}
