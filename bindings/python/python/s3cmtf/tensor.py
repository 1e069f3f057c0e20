"""Sparse tensors and matrices."""

import os
import tempfile
from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import _text
from ._arrays import MAX_DIM, MAX_ORDER, Array, Indices, address, number_column, number_type, stored_column, view
from ._cells import HasModes, Modes, encode_columns, frame_columns
from ._frames import column, column_names, is_frame, numbers, value_column
from ._library import NULL, Handle, PathLike, call, create, ffi, interruptible, lib, path_bytes, struct, whole
from ._names import labels_files, require_folder, written
from ._tables import html_table
from .errors import ArgumentError, exception
from .labels import Labels


@dataclass(frozen=True)
class Faults:
    """Faults of the entries of a tensor. All are 0 in acceptable data."""

    #: Sections of the file whose checksum does not match.
    damaged_sections: int
    #: Entries with an index that is not below the size of its mode.
    out_of_range: int
    #: Entries with a value or weight that is not finite, or a negative weight.
    not_finite: int
    #: Cells that are listed more than once.
    duplicate_cells: int
    #: Entries that repeat a cell listed before.
    surplus_entries: int


@dataclass(frozen=True)
class Summary:
    """Statistics of the values of a tensor; NaN without entries."""

    min: float
    max: float
    mean: float
    standard_deviation: float
    #: The number of rows with an entry, for each mode.
    rows_used: Tuple[int, ...]


class Tensor(HasModes):
    """A sparse tensor in coordinate format, or a sparse matrix as a tensor of order 2.

    `indices` is a tuple of arrays, one per mode; or an array with one row per entry and one column per mode; or a data frame
    of pandas or polars with one column per mode. Integers are row numbers from 0. Strings, categories and times are labels,
    which are numbered and kept in `labels`. Without `values` every value is 1. `shape` is by default the largest index of
    each mode plus 1. The squared error of an entry is multiplied by its weight. `modes` are names of the modes; of a frame, the
    columns to use.

    Arrays of uint32 or int32 per mode with values of float32 or float64 are used in place, without a copy: do not change them
    while the tensor exists. `copy=True` copies them.

    Masked values of masked arrays are an error: remove such entries first.

    `like` is a tensor or a model whose labels keep their rows; labels that are new get the next rows.
    """

    def __init__(
        self,
        indices: Any,
        values: Any = None,
        *,
        shape: Optional[Sequence[int]] = None,
        weights: Any = None,
        modes: Optional[Sequence[Any]] = None,
        labels: Optional[Sequence[Optional[Iterable[Any]]]] = None,
        like: Any = None,
        copy: bool = False,
    ) -> None:
        known = _known(like)
        if labels is not None:
            if known is not None:
                raise ArgumentError("give either labels or like")
            known = Modes(tuple(None if of is None else _labels(of) for of in labels), None)
        columns, self._modes = encode_columns(indices, "indices", modes, known)
        if like is not None:
            check_new_labels(self._modes, like)
        if not 2 <= len(columns) <= MAX_ORDER:
            raise ArgumentError(f"a tensor has 2 to {MAX_ORDER} modes, not {len(columns)}")
        lengths = {len(of) for of in columns}
        if len(lengths) > 1:
            raise ArgumentError(f"the index arrays differ in length: {', '.join(map(str, sorted(lengths)))}")
        count = lengths.pop()
        columns = [stored_column(of) for of in columns]
        stored = np.ones(count, np.float32) if values is None else number_column(values, count, "values")
        weighted = None if weights is None else number_column(weights, count, "weights")
        if copy:
            columns, stored = [of.copy() for of in columns], stored.copy()
            weighted = None if weighted is None else weighted.copy()
        # Rows of matrices that are coupled to a mode may enlarge it if its size was not given.
        self._is_sized = shape is not None
        self._handle = _from_arrays(columns, stored, weighted, _sizes(columns, self._modes, shape))

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        modes: Optional[Sequence[Any]] = None,
        value: Any = None,
        weight: Any = None,
        *,
        shape: Optional[Sequence[int]] = None,
        like: Any = None,
    ) -> "Tensor":
        """Creates a tensor from a frame of pandas or polars with columns of indices or labels (`modes`), values and weights.
        `value` is by default the only column that `modes` and `weight` leave; else the one called rating, value, stars, score or
        count; else the only one with numbers. `value=False`: there is no value column, and every value is 1. By default `modes`
        are all columns but value and weight."""
        if not is_frame(frame):
            raise TypeError(f"a pandas or polars frame is expected, not {type(frame).__name__}")
        names = column_names(frame)
        known = _known(like)
        if modes is None and known is not None:
            modes = frame_columns(frame, known)
        if value is None:
            others = [name for name in names if name != weight and (modes is None or name not in modes)]
            value = value_column(frame, others)
        if modes is None:
            modes = [name for name in names if name != weight and (value is False or name != value)]
        values = None if value is False else numbers(column(frame, value), f"column {value!r}")
        weights = None if weight is None else numbers(column(frame, weight), f"column {weight!r}")
        return cls(frame, values, shape=shape, weights=weights, modes=modes, like=like)

    @classmethod
    def from_scipy(cls, matrix: Any, *, modes: Optional[Sequence[str]] = None, labels: Any = None) -> "Tensor":
        """Creates a tensor from a scipy.sparse matrix or array. Duplicate entries are summed, as in SciPy."""
        if not hasattr(matrix, "tocoo"):
            raise TypeError(f"a scipy.sparse matrix or array is expected, not {type(matrix).__name__}")
        coo = matrix.tocoo(copy=False)
        if not coo.has_canonical_format:
            coo = coo.copy()
            coo.sum_duplicates()
        coords = getattr(coo, "coords", None) or (coo.row, coo.col)
        return cls(tuple(coords), coo.data, shape=coo.shape, modes=modes, labels=labels)

    @classmethod
    def open(
        cls,
        path: PathLike,
        *,
        mapped: bool = True,
        verify: bool = True,
        modes: Optional[Sequence[str]] = None,
        dtype: Any = None,
        **text_options: Any,
    ) -> "Tensor":
        """Opens a binary COO file, or a text file (.tns, .mtx, .csv, .tsv, also gzipped).

        A binary file is mapped into memory, or read if `mapped` is False; `verify=False` does not verify its checksums. A
        mapped file must not be modified or truncated while the tensor exists; replacing it is safe. Names of rows in files
        beside it become labels. Text is converted first; `dtype` is the type of its values, float64 (the default) or float32.

        Options for text, by name. Lists are lists of Python; a COLUMN is a name in the header or a number from 1.

        - format: "tns", "mtx", "csv" or "tsv"; by default from the name and the content of the file
        - dims: list of the sizes of the modes; by default the largest indices
        - zero_based=True: indices count from 0 instead of 1
        - no_value=True: there is no value column; every value is 1
        - weighted=True: a weight follows each value in .tns

        Of CSV and TSV:

        - columns: list of the index columns, one per mode; by default all but value and weight
        - value: the value column; by default the only one that columns leaves, else the one called rating, value, stars, score or
          count, else the only one with numbers; without a header the last
        - weight: the weight column
        - strings: list of columns whose ids are strings even if they look like numbers; or "all"
        - names: "MODE:FILE", a names file of an earlier conversion, so that ids keep their rows; or a list of them
        - delimiter: the separator of columns, one ASCII character
        - no_header=True: the first line is data
        - time: "COLUMN:UNIT" or "COLUMN:UNIT:FORMAT", groups times by year, quarter, month, week, day, hour, weekday or
          hour-of-week; the format is s, ms or iso, by default detected; or a list of them
        - bin: "COLUMN:quantiles=N", "COLUMN:width=W" or "COLUMN:log=B", groups numbers; or a list of them
        - split: "COLUMN:SEPARATOR", a column with several ids per field, each of which gives an entry; or a list of them
        - rows_of: "MODE:FILE", reads an attribute table into a matrix: the first index column has ids of rows of this mode,
          from 0, of the binary file FILE, the others give the columns of the matrix
        - numeric: with rows_of, list of columns whose numbers are values of the matrix
        - missing: the text of a missing field, such as "NA"; lines with it are skipped
        - skip_bad_lines=True: invalid lines are skipped
        """
        kind = None if dtype is None else np.dtype(dtype)
        if kind is not None:
            number_type(kind)
        with _text.binary(path, text_options, kind) as (file, labels):
            handle = _open(file, mapped, verify)
        return cls._of(handle, Modes(labels(_order(handle)), None if modes is None else tuple(modes)))

    @classmethod
    def _of(cls, handle: Handle, modes: Modes, is_sized: bool = False) -> "Tensor":
        self = cls.__new__(cls)
        self._handle, self._modes, self._is_sized = handle, modes, is_sized
        if modes.names is not None and len(modes.names) != self.order:
            raise ArgumentError(f"{len(modes.names)} names are given for {self.order} modes")
        return self

    # Entries

    @property
    def order(self) -> int:
        """The number of modes."""
        return _order(self._use())

    @property
    def shape(self) -> Tuple[int, ...]:
        """The size of each mode."""
        handle = self._use()
        order = _order(handle)
        dims = ffi.new("uint64_t[]", order)
        call(lib.s3cmtf_coo_get_dims, handle, dims, order)
        return tuple(dims)

    @property
    def nnz(self) -> int:
        """The number of entries."""
        return int(_info(self._use()).count)

    def __len__(self) -> int:
        return self.nnz

    @property
    def indices(self) -> Tuple[Array, ...]:
        """The row numbers of the entries, one array per mode, without a copy."""
        handle = self._use()
        info, pointer = _info(handle), ffi.new("uint32_t **")
        arrays = []
        for mode in range(info.order):
            call(lib.s3cmtf_coo_view_indices, handle, mode, pointer)
            arrays.append(view(handle, pointer[0], (info.count,), np.uint32))
        return tuple(arrays)

    @property
    def values(self) -> Array:
        """The values of the entries, without a copy."""
        return self._numbers(lib.s3cmtf_coo_view_values, _info(self._use()).value_type)

    @property
    def weights(self) -> Optional[Array]:
        """The weights of the entries, without a copy; None if there are none."""
        kind = _info(self._use()).weight_type
        return self._numbers(lib.s3cmtf_coo_view_weights, kind) if kind else None

    def _numbers(self, function: Any, kind: int) -> Array:
        handle = self._use()
        pointer = ffi.new("void **")
        call(function, handle, pointer)
        return view(handle, pointer[0], (int(_info(handle).count),), np.float32 if kind == lib.S3CMTF_F32 else np.float64)

    # Operations

    def with_weights(self, weights: Any) -> "Tensor":
        """Returns a tensor with the same entries, which are shared, and other weights: an array, or a Tensor that lists the same
        cells in the same order, whose values are the weights."""
        handle = self._use()
        if isinstance(weights, Tensor):
            other = weights._use()
            weighted = create("coo", lib.s3cmtf_coo_new_weighted_by, handle, other, keep=(handle, other))
            return Tensor._of(weighted, self._modes, self._is_sized)
        column = number_column(weights, self.nnz, "weights")
        arguments = (handle, address(column), number_type(column.dtype))
        weighted = create("coo", lib.s3cmtf_coo_new_weighted, *arguments, keep=(handle,))
        return Tensor._of(weighted, self._modes, self._is_sized)

    def check(self) -> Faults:
        """Counts the faults of the entries."""
        handle, faults = self._use(), struct("coo_faults")
        interruptible(lambda cancel: call(lib.s3cmtf_coo_check, handle, cancel, faults))
        return Faults(**{name: int(getattr(faults, name)) for name in Faults.__annotations__})

    def summary(self) -> Summary:
        """Computes statistics of the values."""
        handle, found, order = self._use(), struct("coo_summary"), self.order
        rows = ffi.new("uint64_t[]", order)
        interruptible(lambda cancel: call(lib.s3cmtf_coo_summarize, handle, cancel, found, rows, order))
        return Summary(found.min, found.max, found.mean, found.standard_deviation, tuple(rows))

    def to_pandas(self) -> Any:
        """Returns a pandas frame with one line per entry: a column per mode, with labels if there are any, and the values."""
        import pandas as pd

        names = self.modes or tuple(f"mode {mode}" for mode in range(self.order))
        columns: Dict[str, Any] = {}
        for name, rows, labels in zip(names, self.indices, self.labels):
            columns[name] = rows if labels is None else labels.take(rows)
        columns["value"] = self.values
        if self.weights is not None:
            columns["weight"] = self.weights
        return pd.DataFrame(columns)

    def save(self, path: PathLike) -> None:
        """Writes a binary COO file, and the labels to files of names beside it (ratings.mode1.tsv beside ratings.coo). Those of a
        tensor that it replaces are removed. Files are written completely or not at all. A link, or a file that this program did
        not write, is renamed instead of replaced."""
        require_folder(path)
        handle, to = self._use(), path_bytes(path)
        with written(labels_files(os.fspath(os.path.splitext(path)[0]), self.labels)):
            interruptible(lambda cancel: call(lib.s3cmtf_coo_write, handle, to, 0, cancel))

    def fixed(self, keep: str = "mean") -> "Tensor":
        """Returns a tensor that passes check(): entries out of range or not finite are removed, and entries of the same cell are
        merged into one with their "mean", or with the "first" or "last" value."""
        rules = {"mean": lib.S3CMTF_KEEP_MEAN, "first": lib.S3CMTF_KEEP_FIRST, "last": lib.S3CMTF_KEEP_LAST}
        if keep not in rules:
            raise ArgumentError(f"there is no rule {keep!r}; rules are {', '.join(rules)}")
        # Only valid entries are written to a file.
        is_valid = np.isfinite(self.values)
        if self.weights is not None:
            is_valid &= np.isfinite(self.weights.astype(np.float32)) & (self.weights >= 0)
        for column, size in zip(self.indices, self.shape):
            is_valid &= column < size
        weights = None if self.weights is None else self.weights[is_valid]
        handle = _from_arrays([column[is_valid] for column in self.indices], self.values[is_valid], weights, self.shape)
        with tempfile.TemporaryDirectory() as folder:
            whole, better = os.path.join(folder, "all.coo"), os.path.join(folder, "fixed.coo")

            def work(cancel: Any) -> None:
                call(lib.s3cmtf_coo_write, handle, path_bytes(whole), 0, cancel)
                call(lib.s3cmtf_coo_fix, _open(whole, True, False), path_bytes(better), rules[keep], cancel, NULL, NULL)

            interruptible(work)
            found = Tensor._of(_open(better, True, False), self._modes, self._is_sized)
        return found._resized(self.shape)

    def split(
        self,
        test: float = 0.2,
        valid: float = 0.0,
        *,
        seed: int = 0,
        latest_per: Union[int, str, None] = None,
        by: Union[int, str, None] = None,
    ) -> Tuple["Tensor", ...]:
        """Splits the entries at random into (train, test), or (train, test, valid) if `valid` is above 0. With `latest_per`
        and `by`, the entries with the largest indices in mode `by` are held out for each row of mode `latest_per`."""
        if (latest_per is None) != (by is None):
            raise ArgumentError("latest_per and by are given together")
        request = struct("split_request", test_fraction=test, valid_fraction=valid, seed=seed)
        if latest_per is not None:
            request.latest = 1
            request.row_mode = self._modes.number(latest_per, self.order)
            request.time_mode = self._modes.number(by, self.order)
        shape = self.shape
        with tempfile.TemporaryDirectory() as folder:
            whole, prefix = os.path.join(folder, "all.coo"), os.path.join(folder, "part")
            handle, to = self._use(), path_bytes(whole)

            def work(cancel: Any) -> None:
                request.cancel = cancel
                call(lib.s3cmtf_coo_write, handle, to, 0, cancel)
                call(lib.s3cmtf_coo_split, _open(whole, True, False), path_bytes(prefix), request)

            interruptible(work)
            names = ["train"] + ["test"] * (test > 0) + ["valid"] * (valid > 0)
            parts = [_open(f"{prefix}.{name}.coo", True, False) for name in names]
        return tuple(Tensor._of(part, self._modes, self._is_sized)._resized(shape) for part in parts)

    def _check_numbers(self, what: str) -> None:
        """Raises an exception if a value or weight cannot be used in a fit."""
        for name, found, rule in (("value", self.values, "finite"), ("weight", self.weights, "finite, 0 or more")):
            if found is not None:
                is_bad = ~np.isfinite(found) if name == "value" else ~(np.isfinite(found) & (found >= 0))
                if is_bad.any():
                    place = int(np.argmax(is_bad))
                    message = f"{what} has the {name} {found[place]} at position {place}; it must be {rule}"
                    raise exception("S3CMTF_BAD_ENTRY", f"{message}. fixed() removes such entries") from None

    def _resized(self, shape: Sequence[int], modes: Optional[Modes] = None) -> "Tensor":
        """Returns a tensor with the same entries and other sizes of modes."""
        if tuple(shape) == self.shape and modes is None:
            return self
        handle = _from_arrays(list(self.indices), self.values, self.weights, shape)
        return Tensor._of(handle, modes or self._modes, self._is_sized)

    def __reduce__(self) -> Any:
        # Copies, because arrays that refer to a mapped file cannot be pickled as such.
        arrays = (self.indices, self.values, self.weights)
        return _unpickle, (*arrays, self.shape, self._modes, self._is_sized)

    def __repr__(self) -> str:
        if self.closed:
            return "Tensor(closed)"
        size = " x ".join(f"{dim:,}" for dim in self.shape)
        weighted = ", weighted" if _info(self._use()).weight_type else ""
        return f"Tensor({size}, {self.nnz:,} entries, {self.values.dtype}{weighted})"

    def _repr_html_(self) -> str:
        if self.closed:
            return "<p>Tensor(closed)</p>"
        names = self.modes or tuple(f"mode {mode}" for mode in range(self.order))
        rows: List[Sequence[Any]] = [
            (name, f"{dim:,}", "" if labels is None else ", ".join(str(label) for label in list(labels)[:3]))
            for name, dim, labels in zip(names, self.shape, self.labels)
        ]
        return html_table(repr(self), ("mode", "size", "labels"), rows)


def _known(like: Any) -> Optional[Modes]:
    if like is None:
        return None
    modes = getattr(like, "_modes", None)
    if not isinstance(modes, Modes):
        raise TypeError(f"like is a Tensor or a Model, not {type(like).__name__}")
    return modes


def check_new_labels(modes: Modes, like: Any) -> None:
    """Raises an exception if new labels would get rows that exist without a label."""
    for mode, (old, new, size) in enumerate(zip(like.labels, modes.labels, like.shape)):
        if old is not None and new is not None and len(old) < min(size, len(new)):
            raise ArgumentError(
                f"{modes.title(mode)} has {size} rows, of which {len(old)} have labels; the new label {new[len(old)]!r} has no"
                " row of its own"
            )


def _labels(labels: Iterable[Any]) -> Labels:
    return labels if isinstance(labels, Labels) else Labels(labels)


def _sizes(columns: Sequence[Array], modes: Modes, shape: Optional[Sequence[int]]) -> List[int]:
    """Returns the sizes of modes: those given, or large enough for the indices and the labels."""
    if shape is not None and (np.ndim(shape) != 1 or isinstance(shape, str)):
        raise TypeError(f"shape is a sequence of sizes, one per mode, not {shape!r}")
    if shape is not None and len(shape) != len(columns):
        raise ArgumentError(f"shape has {len(shape)} sizes for {len(columns)} modes")
    sizes = []
    for mode, (of, labels) in enumerate(zip(columns, modes.labels)):
        if shape is None:
            size = max(int(of.max()) + 1 if of.size else 1, len(labels) if labels else 1)
        else:
            size = whole(shape[mode], f"the size of {modes.title(mode)}")
        if not 0 < size <= MAX_DIM:
            raise ArgumentError(f"the size of {modes.title(mode)} is {size}; it must be 1 to {MAX_DIM}")
        if shape is not None and of.size and of.max() >= size:
            place = int(np.argmax(of >= size))
            message = f"{modes.title(mode)} has the index {of[place]} at position {place}; its size is {size}"
            raise exception("S3CMTF_BAD_ENTRY", message)
        sizes.append(size)
    return sizes


def _from_arrays(columns: List[Array], values: Array, weights: Optional[Array], shape: Sequence[int]) -> Handle:
    indices = Indices(columns)
    dims = ffi.new("uint64_t[]", list(shape))
    entries = struct("entries", order=len(columns), dims=dims, values=address(values), value_type=number_type(values.dtype))
    if weights is not None:
        entries.weights, entries.weight_type = address(weights), number_type(weights.dtype)
    indices.fill(entries.indices)
    return create("coo", lib.s3cmtf_coo_new_view, entries, keep=(indices, values, weights))


def _open(path: PathLike, mapped: bool, verify: bool) -> Handle:
    mode = (lib.S3CMTF_OPEN_MAPPED if mapped else lib.S3CMTF_OPEN_PRIVATE) | (0 if verify else lib.S3CMTF_OPEN_UNVERIFIED)
    file = path_bytes(path)
    return interruptible(lambda cancel: create("coo", lib.s3cmtf_coo_open, file, mode, NULL, cancel))


def _info(handle: Handle) -> Any:
    info = struct("coo_info")
    call(lib.s3cmtf_coo_get_info, handle, info)
    return info


def _order(handle: Handle) -> int:
    return int(_info(handle).order)


def _unpickle(indices: Any, values: Array, weights: Optional[Array], shape: Any, modes: Modes, is_sized: bool) -> Tensor:
    return Tensor._of(_from_arrays(list(indices), values, weights, shape), modes, is_sized)
