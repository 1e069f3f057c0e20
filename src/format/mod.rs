//! Files: binary COO (read by mapping, written atomically), text import, and what can be done to a
//! file as such: check, mend, summarize, split.
//!
//! `docs/format.md` specifies the binary format byte by byte.

pub(crate) mod atomic;
mod check;
mod convert;
mod coo;
mod group;
mod layout;
mod memory;
mod names;
pub(crate) mod npy;
mod owned;
mod rows;
mod split;
mod summary;
mod text;
mod write;

pub use check::{
    CheckReport, DuplicatePolicy, DuplicatePosition, Faults, InvalidEntry, RepairReport, check,
    check_view, repair,
};
pub use convert::{ConversionReport, convert, is_coo_file, open, write, write_tns};
pub use coo::{CooFile, CooView, Values};
pub use layout::{
    ALIGN, HEADER_LEN, Header, MAGIC, MAX_DIM, MIN_ORDER, Section, VERSION, ValueKind,
};
pub use memory::OpenMode;
pub use names::Names;
pub(crate) use names::find_names_beside;
pub use owned::CooData;
pub(crate) use owned::OwnedValues;
pub use rows::RowMap;
pub use split::{SplitOptions, SplitPart, SplitRule, split};
pub use summary::{ModeSummary, Summary, ValueSummary, summarize};
pub(crate) use text::TextSource;
pub use text::{DelimitedOptions, Input, TextFormat, TextOptions};
pub use write::{CooWriter, Dims};

pub(crate) use atomic::AtomicFile;
pub(crate) use memory::FileBytes;
pub(crate) use rows::RowMapBuilder;
pub(crate) use write::StagedCoo;
