//! The options of a fit, and their descriptions.
#![allow(unsafe_code)]

use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;
use std::sync::OnceLock;

use super::arg::{
    SizedStruct, c_text, flag, given, hand_over, name_of, place, slice, struct_out, text, text_out,
};
use super::error_handle::ErrorHandle;
use super::guard::{guard, release};
use super::status::{Failure, Outcome};
use crate::options::{OPTION_TABLE, OptionKind, Options, PRESETS};

/// An option that is true or false.
pub const S3CMTF_OPTION_BOOL: i32 = 1;
/// An integer that is not negative.
pub const S3CMTF_OPTION_INTEGER: i32 = 2;
/// A finite number, or "auto" if that is the default.
pub const S3CMTF_OPTION_REAL: i32 = 3;
/// One of several words.
pub const S3CMTF_OPTION_CHOICE: i32 = 4;
/// One integer or several, separated by commas, or "auto" if that is the default.
pub const S3CMTF_OPTION_INTEGER_LIST: i32 = 5;
/// One finite number or several, separated by commas, or "auto" if that is the default.
pub const S3CMTF_OPTION_REAL_LIST: i32 = 6;

/// The description of an option. The texts are constants of the library.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct OptionDescription {
    /// sizeof(s3cmtf_option_info).
    pub size: u64,
    /// S3CMTF_OPTION_...
    pub r#type: i32,
    /// The name.
    pub name: *const c_char,
    /// The default, as s3cmtf_options_set() accepts it.
    pub default_value: *const c_char,
    /// What the option does.
    pub help: *const c_char,
    /// The smallest number; "" if the option is not a number.
    pub min: *const c_char,
    /// The largest number; "" if the option is not a number.
    pub max: *const c_char,
    /// The words of S3CMTF_OPTION_CHOICE, separated by commas; otherwise "".
    pub choices: *const c_char,
}

// The layout is part of the ABI: fields are added at the end, and none moves.
#[cfg(target_pointer_width = "64")]
const _: () = {
    use std::mem::offset_of;
    assert!(offset_of!(OptionDescription, r#type) == 8);
    assert!(offset_of!(OptionDescription, name) == 16);
    assert!(offset_of!(OptionDescription, help) == 32);
    assert!(offset_of!(OptionDescription, choices) == 56);
    assert!(size_of::<OptionDescription>() == 64);
};

// SAFETY: `repr(C)`, the size first, numbers and pointers only.
unsafe impl SizedStruct for OptionDescription {}

/// All options of a fit.
pub struct OptionsHandle {
    pub(super) options: Options,
}

/// Creates options from a preset, such as "paper" (s3cmtf_preset_name() enumerates them); NULL means "default".
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

/// Sets several options from NAME=VALUE pairs separated by white space, such as "rank=10 epochs=20 eta=0.01". A first pair
/// preset=NAME resets all options to that preset. After an error the options are unchanged.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_options_parse(
    options: Option<&mut OptionsHandle>,
    text: *const c_char,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let handle = given(options, "options")?;
        // SAFETY: a text of the caller, for this call.
        let words = unsafe { self::text(text, "text") }?;
        handle.options = parsed(handle.options.clone(), words)?;
        Ok(())
    })
}

/// These options, changed by NAME=VALUE pairs.
pub(super) fn parsed(mut options: Options, text: &str) -> Outcome<Options> {
    for (k, pair) in text.split_whitespace().enumerate() {
        let Some((name, value)) = pair.split_once('=') else {
            return Err(Failure::argument(format!(
                "'{pair}' is not NAME=VALUE; options are pairs such as \"rank=10 epochs=20\""
            )));
        };
        match (name, k) {
            ("preset", 0) => options = Options::preset(value)?,
            ("preset", _) => {
                return Err(Failure::argument(
                    "preset=NAME must come first, because it resets all other options",
                ));
            }
            _ => options.set(name, value)?,
        }
    }
    Ok(options)
}

/// Sets an option from text: "true", "12", "0.001", "blocked", "10,10,4" or "auto". Words in names are separated by '_' or
/// '-'.
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

/// Sets an option of type S3CMTF_OPTION_INTEGER. An option of another type is S3CMTF_BAD_ARGUMENT.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_options_set_integer(
    options: Option<&mut OptionsHandle>,
    name: *const c_char,
    value: u64,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    let is_integer = |kind: OptionKind| matches!(kind, OptionKind::Integer(..));
    // SAFETY: a text of the caller, for this call.
    guard(error, || unsafe {
        set_typed(options, name, "an integer", is_integer, &value.to_string())
    })
}

/// Sets an option of type S3CMTF_OPTION_REAL. ("auto" is set as text.)
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
        set_typed(
            options,
            name,
            "a real number",
            is_real,
            &format!("{value:e}"),
        )
    })
}

/// Sets an option of type S3CMTF_OPTION_BOOL to 0 or 1.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_options_set_bool(
    options: Option<&mut OptionsHandle>,
    name: *const c_char,
    value: i32,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let value = flag(value, "value")?.to_string();
        let is_flag = |kind: OptionKind| matches!(kind, OptionKind::Flag);
        // SAFETY: a text of the caller, for this call.
        unsafe { set_typed(options, name, "true or false", is_flag, &value) }
    })
}

/// Sets the option "rank" to one rank for all modes (`count` 1) or one for each mode.
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
            return Err(Failure::argument(format!(
                "count is {count}; a tensor has at most {} modes",
                crate::kernel::MAX_ORDER
            )));
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
            "the option '{key}' is not {what}; s3cmtf_options_set() sets options of every type from text"
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

/// Writes the value of an option as NUL-terminated text to `value`, which has room for `capacity` bytes, and the number of
/// bytes including the NUL to `needed`, which may be NULL. With `value` NULL and `capacity` 0 only `needed` is written.
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

/// Frees options. NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_options_free(options: Option<Box<OptionsHandle>>) {
    release(|| drop(options));
}

/// Returns the number of options there are.
#[unsafe(no_mangle)]
pub extern "C" fn s3cmtf_option_count() -> u64 {
    OPTION_TABLE.len() as u64
}

/// Writes the description of an option. `index` is below s3cmtf_option_count().
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn s3cmtf_option_get_info(
    index: u64,
    info: *mut OptionDescription,
    error: Option<&mut ErrorHandle>,
) -> i32 {
    guard(error, || {
        let index = place(index, OPTION_TABLE.len(), "index")?;
        let [name, default_value, help, min, max, choices] =
            texts()[index].each_ref().map(|text| text.as_ptr());
        let own = OptionDescription {
            size: size_of::<OptionDescription>() as u64,
            r#type: match OPTION_TABLE[index].kind {
                OptionKind::Flag => S3CMTF_OPTION_BOOL,
                OptionKind::Integer(..) => S3CMTF_OPTION_INTEGER,
                OptionKind::Real(..) => S3CMTF_OPTION_REAL,
                OptionKind::Choice(_) => S3CMTF_OPTION_CHOICE,
                OptionKind::IntegerList(..) => S3CMTF_OPTION_INTEGER_LIST,
                OptionKind::RealList(..) => S3CMTF_OPTION_REAL_LIST,
            },
            name,
            default_value,
            help,
            min,
            max,
            choices,
        };
        // SAFETY: a struct of the caller, for this call.
        unsafe { struct_out(&own, info, "info") }
    })
}

/// Returns the name of preset `index`, a constant; S3CMTF_BAD_ARGUMENT beyond the last.
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

/// The texts of the table for C.
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
