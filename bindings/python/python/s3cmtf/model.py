"""Fitted models."""

import json
import os
import tempfile
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from ._arrays import Array, address, number_type, view
from ._base import Mode
from ._cells import Modes, row_number, unlabelled
from ._library import Handle, PathLike, call, create, ffi, interruptible, lib, path_bytes, string, struct
from ._names import (
    check_mode_names,
    labels_files,
    read_column_labels,
    read_labels,
    read_mode_names,
    require_folder,
    write_mode_names,
    written,
)
from ._tables import html_table
from ._text import require_file
from .discovery import Discovery
from .errors import ArgumentError
from .folding import Folding
from .labels import Labels
from .matrix import KIND_NAMES
from .options import read_options
from .prediction import Prediction
from .ranking import Rankings


@dataclass(frozen=True)
class CoupledMatrix:
    """A coupled matrix of a model."""

    #: The mode it is coupled to.
    mode: int
    kind: str
    #: Its weight in the loss; 0 if the fit left it out.
    weight: float
    #: The number of its columns.
    columns: int
    #: The labels of its columns, if they have labels.
    labels: Optional[Labels]


class Model(Prediction, Rankings, Discovery, Folding):
    """A fitted model. It never changes, and any number of threads may use it.

    s3cmtf.fit() and Model.load() create models. Rows and modes are given by number from 0, or by label and name if the tensor
    had labels and names. Factors, core and biases are arrays that refer to the memory of the model and keep it alive.
    """

    @classmethod
    def _of(cls, handle: Handle, modes: Modes, columns: Sequence[Optional[Labels]]) -> "Model":
        self = cls.__new__(cls)
        self._handle, self._modes, self._columns = handle, modes, tuple(columns)
        return self

    # Files

    @classmethod
    def load(cls, path: PathLike, *, mapped: bool = False, modes: Optional[Sequence[str]] = None) -> "Model":
        """Reads a model file, or the model in a checkpoint, with the labels and the names of the modes in files beside it;
        labels are strings. `modes` are other names for the modes. With mapped=True the file is mapped into memory: it must not
        be modified or truncated while the model exists; replacing it is safe."""
        require_file(path)
        how = lib.S3CMTF_OPEN_MAPPED if mapped else lib.S3CMTF_OPEN_PRIVATE
        handle = create("model", lib.s3cmtf_model_load, path_bytes(path), how)
        model = cls._of(handle, unlabelled(0), ())
        if modes is not None and len(modes) != model.order:
            raise ArgumentError(f"{len(modes)} names are given for {model.order} modes")
        names = read_mode_names(path, model.order) if modes is None else tuple(modes)
        model._modes = Modes(read_labels(path, model.order), names)
        model._columns = read_column_labels(path, model._info().matrices)
        return model

    def save(self, path: PathLike) -> None:
        """Writes a model file, and files beside it: labels of rows (PATH.mode1.tsv), labels of matrix columns
        (PATH.matrix1.tsv) and names of modes (PATH.modes.tsv). Those of a model that it replaces are removed. Files are written
        completely or not at all. A link, or a file that this program did not write, is renamed instead of replaced."""
        require_folder(path)
        stem = os.fspath(path)
        check_mode_names(self.modes)
        with written(labels_files(stem, self.labels, self._columns)):
            call(lib.s3cmtf_model_save, self._use(), path_bytes(path))
        write_mode_names(path, self.modes)

    def export(self, folder: PathLike) -> None:
        """Writes factors, core, mean, biases and factors of matrices to a folder as .npy files, factors and core also as
        text."""
        model, to = self._use(), path_bytes(folder)
        interruptible(lambda cancel: call(lib.s3cmtf_model_export, model, to, cancel))

    def __reduce__(self) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.s3m")
            call(lib.s3cmtf_model_save, self._use(), path_bytes(path))
            with open(path, "rb") as file:
                return _unpickle, (file.read(), self._modes, self._columns)

    # Size and record

    @property
    def kind(self) -> str:
        """ "tucker" or "cp"."""
        return "tucker" if self._info().kind == lib.S3CMTF_MODEL_TUCKER else "cp"

    @property
    def ranks(self) -> Tuple[int, ...]:
        """The rank of each mode."""
        return tuple(int(self._mode_info(mode).rank) for mode in range(self.order))

    @property
    def samples(self) -> int:
        """The number of posterior samples; 0 unless the algorithm was gibbs. Intervals need samples."""
        return int(self._info().samples)

    @property
    def mean(self) -> float:
        """The mean of the training values, or 0 if the option mean was False."""
        return float(self._info().mean)

    @property
    def value_range(self) -> Tuple[float, float]:
        """The smallest and the largest training value."""
        info = self._info()
        return float(info.min_value), float(info.max_value)

    @property
    def options(self) -> Dict[str, Any]:
        """The options of the fit, with the values that the fit chose in place of "auto"."""
        return read_options(create("options", lib.s3cmtf_model_get_options, self._use()))

    @property
    def plan(self) -> Optional[Dict[str, Any]]:
        """What the fit did, and why: its plan, which fit() repeats with plan=; None if the model has none. Modes and matrices count
        from 1, as in the JSON of the program."""
        text = string(lib.s3cmtf_model_get_plan, self._use())
        plan: Optional[Dict[str, Any]] = json.loads(text) if text else None
        return plan

    def _record(self) -> List[Tuple[str, str]]:
        lines = string(lib.s3cmtf_model_get_record, self._use()).splitlines()
        return [(name, value) for name, _, value in (line.partition("=") for line in lines)]

    def _record_lines(self, wanted: str) -> List[str]:
        return [value for name, value in self._record() if name == wanted]

    @property
    def record(self) -> Dict[str, Any]:
        """The record of the fit: why it ended, its errors, its times. Events are in `notes`."""
        return {name: _parsed(value) for name, value in self._record() if name not in ("note", "thread_share")}

    @property
    def notes(self) -> List[str]:
        """The events of the fit, as "EPOCH EVENT TEXT"."""
        return self._record_lines("note")

    @property
    def history(self) -> Array:
        """Errors, loss and times of each epoch, as a structured array with the fields epoch, eta, loss, train_rmse, test_rmse,
        valid_rmse, update_seconds and eval_seconds. Quantities that were not measured are NaN."""
        numbers = ("eta", "loss", "train_rmse", "test_rmse", "valid_rmse", "update_seconds", "eval_seconds")
        kinds = [("epoch", np.int64), *((name, np.float64) for name in numbers)]
        rows = []
        state = struct("progress")
        for epoch in range(self._info().epochs):
            call(lib.s3cmtf_model_get_epoch, self._use(), epoch, state)
            rows.append(tuple(getattr(state, name) for name, _ in kinds))
        return np.array(rows, dtype=kinds)

    # Numbers

    def _view(self, function: Any, *arguments: Any) -> Tuple[Handle, Any]:
        handle, found = self._use(), ffi.new("s3cmtf_view *")
        call(function, handle, *arguments, found)
        return handle, found

    def _matrix_view(self, function: Any, *arguments: Any) -> Array:
        handle, found = self._view(function, *arguments)
        return view(handle, found.numbers, (found.rows, found.columns), np.float32, (4 * found.stride, 4))

    def factor(self, mode: Mode) -> Array:
        """The factor of a mode, rows x rank, without a copy. Row r belongs to the index rows(mode)[r]."""
        return self._matrix_view(lib.s3cmtf_model_view_factor, self._number(mode))

    @property
    def factors(self) -> Tuple[Array, ...]:
        """The factors of all modes."""
        return tuple(self.factor(mode) for mode in range(self.order))

    def biases(self, mode: Mode) -> Array:
        """The biases of a mode, one per row of its factor, without a copy; empty if the model has no biases."""
        return self._matrix_view(lib.s3cmtf_model_view_biases, self._number(mode)).reshape(-1)

    @property
    def core(self) -> Array:
        """The core without a copy: an array of shape `ranks`, or the superdiagonal of a CP model."""
        handle, found = self._view(lib.s3cmtf_model_view_core)
        if self.kind == "cp":
            return view(handle, found.numbers, (found.columns,), np.float32)
        ranks = self.ranks
        strides = [4, 4 * found.stride]
        for rank in ranks[-2:0:-1]:
            strides.append(strides[-1] * rank)
        return view(handle, found.numbers, ranks, np.float32, tuple(strides[::-1]))

    def row(self, mode: Mode, row: Any) -> Array:
        """The factor row of an index or label; the mean row if the index did not occur in the data."""
        number = self._number(mode)
        index = row_number(row, self.labels[number], self._modes.title(number))
        if index >= self.shape[number]:
            raise ArgumentError(f"there is no row {index}; {self._modes.title(number)} has rows 0 to {self.shape[number] - 1}")
        found = np.empty(self._mode_info(number).rank, np.float32)
        arguments = (number, index, address(found), found.size, number_type(found.dtype))
        call(lib.s3cmtf_model_copy_row, self._use(), *arguments)
        return found

    @property
    def matrices(self) -> Tuple[CoupledMatrix, ...]:
        """The coupled matrices."""
        found, info = [], struct("model_matrix")
        for matrix in range(self._info().matrices):
            call(lib.s3cmtf_model_get_matrix, self._use(), matrix, info)
            kind = KIND_NAMES.get(info.kind, str(info.kind))
            found.append(CoupledMatrix(int(info.mode), kind, float(info.weight), int(info.columns), self._columns[matrix]))
        return tuple(found)

    def _matrix_number(self, matrix: int) -> int:
        count = int(self._info().matrices)
        if not 0 <= matrix < count:
            known = f"matrices are 0 to {count - 1}" if count else "the model has none"
            raise ArgumentError(f"there is no coupled matrix {matrix}; {known}")
        return matrix

    def matrix_factor(self, matrix: int) -> Array:
        """The factor of the columns of a coupled matrix, without a copy. Row r belongs to column matrix_columns(matrix)[r]."""
        return self._matrix_view(lib.s3cmtf_model_view_matrix, self._matrix_number(matrix))

    def matrix_offsets(self, matrix: int) -> Array:
        """The column offsets of a coupled matrix, without a copy; empty if there are none."""
        return self._matrix_view(lib.s3cmtf_model_view_offsets, self._matrix_number(matrix)).reshape(-1)

    def matrix_columns(self, matrix: int) -> Array:
        """The column of each row of the factor of a coupled matrix."""
        info = struct("model_matrix")
        call(lib.s3cmtf_model_get_matrix, self._use(), self._matrix_number(matrix), info)
        indices = np.empty(info.rows, np.uint64)
        arguments = (matrix, address(indices), indices.size, lib.S3CMTF_U64)
        call(lib.s3cmtf_model_copy_matrix_indices, self._use(), *arguments)
        return indices.astype(np.int64)

    def __repr__(self) -> str:
        if self.closed:
            return "Model(closed)"
        size = " x ".join(f"{dim:,}" for dim in self.shape)
        rank = " x ".join(map(str, sorted(set(self.ranks)) if self.kind == "cp" else self.ranks))
        return f"Model({self.kind} of rank {rank}, {size}, algorithm {self.options['algorithm']})"

    def _repr_html_(self) -> str:
        if self.closed:
            return "<p>Model(closed)</p>"
        names = self.modes or tuple(f"mode {mode}" for mode in range(self.order))
        sizes = [self._mode_info(mode) for mode in range(self.order)]
        rows: List[Tuple[Any, ...]] = [(name, f"{of.dim:,}", f"{of.rows:,}", of.rank) for name, of in zip(names, sizes)]
        record = self.record
        errors = {name: record.get(f"{name}_rmse", np.nan) for name in ("train", "valid", "test")}
        shown = [f"{name} RMSE {error:.4f}" for name, error in errors.items() if np.isfinite(error)]
        return html_table(" · ".join([repr(self), *shown]), ("mode", "size", "rows", "rank"), rows)


def _parsed(value: str) -> Any:
    """Returns a value of the record as a bool, a number or a string."""
    if value in ("true", "false"):
        return value == "true"
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            pass
    return value


def _unpickle(content: bytes, modes: Modes, columns: Tuple[Optional[Labels], ...]) -> Model:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.s3m")
        with open(path, "wb") as file:
            file.write(content)
        handle = create("model", lib.s3cmtf_model_load, path_bytes(path), lib.S3CMTF_OPEN_PRIVATE)
    return Model._of(handle, modes, columns)
