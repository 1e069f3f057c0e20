"""New rows without a new fit."""

from typing import Any, List, Optional, Sequence, TypeVar, Union

from ._base import Mode, ModelBase, thread_count
from ._cells import Modes
from ._library import NULL, Handle, call, ffi, interruptible, lib, struct
from .errors import ArgumentError
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

        tensor: all entries of the new rows. With labels, create it with like=model, so that rows keep their numbers.
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
                raise TypeError(f"tensor is a Tensor, not {type(tensor).__name__}")
            self._modes.check(tensor._modes, "tensor")
            entries = tensor._use()
            given = tensor.labels[number]
            rows = given if rows is not None and given is not None and len(given) > len(rows) else rows
            request.tensor = entries.pointer
            keep.append(entries)
        handles: List[Handle] = []
        numbers = self._matrix_numbers(number, len(listed))
        for matrix, place in zip(listed, numbers):
            aligned, rows = aligned_rows(matrix, rows, self._modes.title(number))
            handles.append(aligned_columns(aligned, self._columns[place])._use())
        keep += [handles, ffi.new("s3cmtf_coo *[]", [of.pointer for of in handles]), ffi.new("uint64_t[]", numbers)]
        request.matrix_count, request.matrices, request.matrix_numbers = len(listed), keep[-2], keep[-1]
        model, out = self._use(), ffi.new("s3cmtf_model **")

        def work(cancel: Any) -> None:
            request.cancel = cancel
            call(lib.s3cmtf_model_fold_in, model, number, request, out, NULL, NULL)

        interruptible(work)
        folded = type(self).__new__(type(self))
        folded._handle = Handle(out[0], lib.s3cmtf_model_free)
        labels = [rows if of == number else known for of, known in enumerate(self.labels)]
        folded._modes, folded._columns = Modes(tuple(labels), self.modes), self._columns
        return folded

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
