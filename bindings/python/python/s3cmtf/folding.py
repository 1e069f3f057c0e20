"""New rows without a new fit."""

from typing import Any, List, Optional, Sequence, TypeVar, Union

import numpy as np

from ._aligned import aligned_entries, entries_explained, not_a_tensor
from ._base import Mode, ModelBase, thread_count
from ._cells import Modes, unlabelled
from ._library import NULL, Handle, call, ffi, interruptible, lib, struct
from .errors import ArgumentError, warn
from .labels import Labels, Rows
from .matrix import Matrix, aligned_columns, aligned_rows
from .tensor import Tensor

M = TypeVar("M", bound="Folding")


class Folding(ModelBase):
    """Methods of a model that add rows."""

    def fold_in(
        self: M,
        mode: Mode,
        tensor: Optional[Tensor] = None,
        matrices: Union[Matrix, Sequence[Matrix]] = (),
        *,
        replace: bool = False,
        threads: int = 0,
    ) -> M:
        """Returns a model that also has the rows of `mode` with entries in `tensor` or `matrices`, such as new users. Rows
        are solved by least squares with the rest of the model fixed, or sampled once per posterior sample.

        tensor: all entries of the new rows. Rows with labels are matched by name; new labels get the next rows. Rows of other
            modes that the model does not have count as the mean row of their mode, with a warning.
        matrices: entries of the rows in coupled matrices of the mode, in the order of the fit; kinds are those of the fit.
        replace: replace rows of the model that have tensor entries, instead of an exception.
        """
        number = self._number(mode)
        listed = [matrices] if isinstance(matrices, Matrix) else list(matrices)
        if tensor is None and not listed:
            raise ArgumentError("give entries of the new rows: a tensor or matrices")
        request = struct("fold_in_request", replace=int(replace), threads=thread_count(threads))
        rows = self.labels[number]
        keep: List[Any] = []
        if tensor is not None:
            if not isinstance(tensor, Tensor):
                raise not_a_tensor(tensor, "tensor", "model")
            if tensor.order != self.order:
                raise ArgumentError(f"tensor has {tensor.order} modes; the model has {self.order}")
            entries, labels = aligned_entries(tensor, self._modes, self.shape, "tensor", "model", number)
            rows, named = labels[number], [None not in pair for pair in zip(tensor.labels, self.labels)]
            tensor = Tensor._of(entries, unlabelled(self.order))
            self._check_rows(tensor, number, rows, named)
            request.tensor = entries.pointer
            keep.append(entries)
        handles: List[Handle] = []
        numbers = self._matrix_numbers(number, len(listed))
        for matrix, place in zip(listed, numbers):
            known, what = Rows("the model", rows, self.shape[number]), f"matrix {place}"
            aligned, rows = aligned_rows(matrix, known, what, self._modes.title(number), None)
            handles.append(aligned_columns(aligned, self._columns[place], what)._use())
        keep += [handles, ffi.new("s3cmtf_coo *[]", [of.pointer for of in handles]), ffi.new("uint64_t[]", numbers)]
        request.matrix_count, request.matrices, request.matrix_numbers = len(listed), keep[-2], keep[-1]
        model, out = self._use(), ffi.new("s3cmtf_model **")

        def work(cancel: Any) -> None:
            request.cancel = cancel
            call(lib.s3cmtf_model_fold_in, model, number, request, out, NULL, NULL)

        try:
            with entries_explained((tensor, "tensor"), *((of.tensor, "a matrix") for of in listed)):
                interruptible(work)
        except ArgumentError:
            present = None if tensor is None or replace else np.intersect1d(tensor.indices[number], self.rows(number))
            if present is not None and present.size:
                where = f"row {present[0]} of {self._modes.title(number)} is in the model already"
                raise ArgumentError(f"{where}; leave it out, or give all its entries and replace=True") from None
            raise
        folded = type(self).__new__(type(self))
        folded._handle = Handle(out[0], lib.s3cmtf_model_free)
        folded._modes, folded._columns = self._labelled(number, rows), self._columns
        return folded

    def _labelled(self, mode: int, rows: Optional[Labels]) -> Modes:
        """Returns the modes with other labels of one mode."""
        return Modes(tuple(rows if of == mode else known for of, known in enumerate(self.labels)), self.modes)

    def _check_rows(self, tensor: Tensor, new: int, rows: Optional[Labels], named: Sequence[bool]) -> None:
        """Raises an exception for new rows of a mode with labels `rows` that have no label. Issues a warning for rows of other
        modes, unless they are `named`, that the model does not have."""
        if not tensor.nnz:
            raise ArgumentError("tensor has no entries; give all entries of the new rows")
        for mode, (found, size) in enumerate(zip(tensor.indices, self.shape)):
            title = self._modes.title(mode)
            if mode != new:
                count = 0 if named[mode] else int((found >= size).sum())
                if count:
                    noun = "1 entry" if count == 1 else f"{count} entries"
                    message = f"in {noun} of tensor the row of {title} is not in the model and counts as the mean row"
                    warn(message)
            elif rows is not None and found.max() >= max(size, len(rows)):
                raise ArgumentError(f"row {found.max()} of {title} has no label, but the rows of the model have; give labels")

    def _matrix_numbers(self, mode: int, count: int) -> List[int]:
        """Returns the numbers of the first coupled matrices of a mode."""
        info = struct("model_matrix")
        of_mode = []
        for matrix in range(self._info().matrices):
            call(lib.s3cmtf_model_get_matrix, self._use(), matrix, info)
            if info.mode == mode and info.kind != lib.S3CMTF_MATRIX_GRAPH:
                of_mode.append(matrix)
        if count > len(of_mode):
            raise ArgumentError(f"{count} matrices are given; {self._modes.title(mode)} has {len(of_mode)} coupled matrices")
        return of_mode[:count]
