//! Files: binary COO, text import, names of rows, and operations on files.
//!
//! Enters: paths or readers of binary COO files (`.coo`) and of text (`.tns`, `.mtx`, `.csv`, `.tsv`). Leaves: a
//! [`CooView`], one slice per column, of an opened [`CooFile`] or of a [`CooData`] in memory; and new files, which appear
//! complete or not at all (`atomic`).
//!
//! Open `coo_view` and `header` first. `docs/reference/formats.md` specifies the binary format byte by byte; `header_codec`
//! encodes and decodes its header, [`CooWriter`] writes it as a stream, `text` imports into it. [`check`], [`repair`],
//! [`summarize`] and [`split`] work on whole files. [`RowMap`] numbers the rows of a mode that occur; [`Names`] has their names.

pub(crate) mod atomic;
mod batches;
mod check;
mod convert;
mod coo_data;
mod coo_file;
mod coo_view;
mod coo_writer;
mod file_bytes;
mod group_by_key;
mod header;
mod header_codec;
#[cfg(unix)]
mod leftovers;
mod line_reader;
mod names;
mod names_table;
pub(crate) mod npy;
mod output_target;
mod repair;
mod row_map;
mod row_match;
mod split;
mod summary;
mod temporary_file;
mod text;
mod tns_export;
mod whole_file;

pub use atomic::{write_all_atomically, write_atomically};
pub use check::{CheckReport, DuplicatePosition, Faults, InvalidEntry, check, check_view};
pub use convert::{ConversionReport, convert, is_coo_file, open, open_unverified, write};
pub use coo_data::CooData;
pub use coo_file::CooFile;
pub use coo_view::{CooView, Values};
pub use coo_writer::{CooWriter, Dims};
pub use file_bytes::OpenMode;
pub use header::{
    ALIGN, HEADER_LEN, Header, MAGIC, MAX_DIM, MIN_ORDER, Section, VERSION, ValueKind,
};
pub use names::{ModeNames, ModelNames, Names, StagedModelNames};
pub use output_target::{OutputFolder, check_derived_target, check_target};
pub use repair::{DuplicatePolicy, RepairReport, repair};
pub use row_map::RowMap;
pub use row_match::{MatchedRole, RowMatch, RowMatcher};
pub use split::{SplitOptions, SplitPart, SplitRule, split};
pub use summary::{ModeSummary, Summary, ValueSummary, summarize};
pub use temporary_file::is_temporary_name;
pub use text::{
    BinRule, BinnedColumn, DelimitedOptions, Input, NumberRule, SkippedLines, TextFormat,
    TextOptions, TextPrefix, TimeFormat, TimeUnit, read_text_prefix,
};
pub use tns_export::write_tns;
pub use whole_file::{SizeLimit, read_whole, read_whole_text};

pub(crate) use atomic::AtomicFile;
pub(crate) use batches::for_each_valid_batch;
pub(crate) use coo_data::OwnedValues;
pub(crate) use coo_writer::StagedCoo;
pub(crate) use file_bytes::FileBytes;
pub(crate) use row_map::RowMapBuilder;
