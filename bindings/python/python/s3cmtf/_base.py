"""What all methods of a model use: its handle, its modes and their labels."""

import contextlib
from typing import Any, Dict, Iterator, Mapping, Optional, Tuple, Union

import numpy as np

from ._aligned import aligned_entries
from ._arrays import Array, address
from ._cells import HasModes
from ._library import Handle, call, lib, struct, whole
from .errors import ArgumentError
from .labels import Labels

Mode = Union[int, str]


class ModelBase(HasModes):
    """The handle and the modes of a model."""

    #: The labels of the columns of each coupled matrix.
    _columns: Tuple[Optional[Labels], ...]

    def __init__(self) -> None:
        raise TypeError("models are created by s3cmtf.fit() and Model.load()")

    def _number(self, mode: Mode) -> int:
        return self._modes.number(mode, self.order)

    def _given(self, given: Mapping[Mode, Any]) -> Dict[int, Any]:
        """Returns rows that are given by mode, with numbers of modes."""
        if not isinstance(given, Mapping):
            raise TypeError(f"given is a mapping from modes to rows, such as {{0: 17}}, not {type(given).__name__}")
        return {self._number(mode): row for mode, row in given.items()}

    def _entries(self, entries: Any, what: str) -> Handle:
        """Returns the handle of entries, which must be a Tensor, with rows that are numbered like those of the model."""
        return aligned_entries(entries, self._modes, self.shape, what, "model")[0]

    @contextlib.contextmanager
    def _rows_explained(self, rows: Mapping[int, Any]) -> Iterator[None]:
        """If a call fails because a row is not in the model, raises an exception with its number from 0. `rows` are those of
        each mode."""
        try:
            yield
        except ArgumentError:
            for mode, given in rows.items():
                absent = np.setdiff1d(given, self.rows(mode))
                if absent.size:
                    title, size = self._modes.title(mode), self.shape[mode]
                    why = f"{title} has rows 0 to {size - 1}" if absent[-1] >= size else "no entry of the fit has it"
                    raise ArgumentError(f"row {absent[-1]} of {title} is not in the model: {why}") from None
            raise

    def rows(self, mode: Mode) -> Array:
        """The index of each row of the factor of a mode, ascending: those that occurred in the data."""
        number = self._number(mode)
        indices = np.empty(self._mode_info(number).rows, np.uint64)
        arguments = (number, address(indices), indices.size, lib.S3CMTF_U64)
        call(lib.s3cmtf_model_copy_row_indices, self._use(), *arguments)
        return indices.astype(np.int64)

    def _info(self) -> Any:
        info = struct("model_info")
        call(lib.s3cmtf_model_get_info, self._use(), info)
        return info

    def _mode_info(self, mode: int) -> Any:
        info = struct("model_mode")
        call(lib.s3cmtf_model_get_mode, self._use(), mode, info)
        return info

    @property
    def order(self) -> int:
        """The number of modes."""
        return int(self._info().order)

    @property
    def shape(self) -> Tuple[int, ...]:
        """The size of each mode."""
        return tuple(int(self._mode_info(mode).dim) for mode in range(self.order))


def thread_count(threads: int) -> int:
    """Returns a number of threads after a check; 0 means all CPUs."""
    if not 0 <= whole(threads, "threads") <= 4096:
        raise ArgumentError(f"the number of threads is {threads}; it must be 1 to 4096, or 0 for all CPUs")
    return threads
