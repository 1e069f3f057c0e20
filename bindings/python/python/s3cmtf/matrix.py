"""Matrices and graphs that are coupled to the modes of a tensor."""

from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np

from ._arrays import Array, plain
from ._cells import Modes
from ._frames import column_names, has_labelled_index, is_frame
from ._library import Handle, call, create, kind_of, lib, struct
from .errors import ArgumentError
from .labels import APPENDED, LEFT_OUT, Labels, Rows, match_rows
from .tensor import Tensor

_KINDS: Dict[str, int] = {
    "auto": lib.S3CMTF_MATRIX_AUTO,
    "observed": lib.S3CMTF_MATRIX_OBSERVED,
    "full": lib.S3CMTF_MATRIX_FULL,
    "sampled": lib.S3CMTF_MATRIX_SAMPLED,
    "graph": lib.S3CMTF_MATRIX_GRAPH,
}
KIND_NAMES = {number: name for name, number in _KINDS.items()}


class Matrix:
    """A matrix that is coupled to a mode of the tensor: its rows are the rows of that mode.

    `data` is a scipy.sparse matrix, a Tensor of order 2, a dense array (cells that are NaN are unknown), or a frame of
    pandas or polars with columns for row, column and, unless `value` is False, value. If its rows have labels, they are matched
    with the labels of the mode, and new labels are appended to the mode. Otherwise they are row numbers; row r then belongs to
    label r of the mode, if it has labels, with a warning.

    `kind` states what the cells are that are not listed:

    - "auto": unknown, or 0 if all listed values are equal and held-out entries are then predicted better
    - "observed": unknown
    - "full": 0; no cell is listed twice
    - "sampled": `zeros` cells per listed entry are sampled as 0, the others are unknown
    - "graph": entries are similarities between rows of the mode

    `weight` is the weight of the matrix in the loss; None is the option lambda_m, which leaves out matrices that do not help.
    `penalty` is the penalty on the factor of the columns; None is the option lambda_reg.
    """

    def __init__(
        self,
        data: Any,
        mode: Union[int, str],
        kind: str = "auto",
        *,
        weight: Optional[float] = None,
        penalty: Optional[float] = None,
        zeros: int = 0,
        value: Any = None,
    ) -> None:
        if kind not in _KINDS:
            raise ArgumentError(f"there is no kind {kind!r} of matrix; kinds are {', '.join(_KINDS)}")
        if weight is not None and not 0 < weight < np.inf:
            raise ArgumentError(f"the weight of a matrix is {weight}; it must be a finite number above 0")
        if penalty is not None and not 0 <= penalty < np.inf:
            raise ArgumentError(f"the penalty of a matrix is {penalty}; it must be a finite number that is not negative")
        if zeros < 0:
            raise ArgumentError(f"the number of zeros per entry of a matrix is {zeros}; it cannot be negative")
        self.mode, self.kind, self.weight, self.penalty, self.zeros = mode, kind, weight, penalty, zeros
        self.tensor = as_matrix(data, kind, value)

    def coupling(self) -> Any:
        """Creates the struct that describes the coupling."""
        coupling = struct("coupling", kind=_KINDS[self.kind], zeros=self.zeros, weight=self.weight or 0.0)
        if self.penalty is not None:
            coupling.penalty, coupling.has_penalty = self.penalty, 1
        return coupling

    def __repr__(self) -> str:
        weight = "" if self.weight is None else f", weight={self.weight:g}"
        return f"Matrix({self.tensor!r}, mode={self.mode!r}, kind={self.kind!r}{weight})"


def Graph(data: Any, mode: Union[int, str], *, weight: Optional[float] = None) -> Matrix:
    """Returns a graph: a square matrix of similarities between rows of a mode, whose factor rows become more alike."""
    return Matrix(data, mode, "graph", weight=weight)


def as_matrix(data: Any, kind: str = "auto", value: Any = None) -> Tensor:
    """Returns data of a matrix as a tensor of order 2."""
    if isinstance(data, Tensor):
        found = data
    elif hasattr(data, "tocoo"):
        found = Tensor.from_scipy(data)
    elif is_frame(data):
        _check_columns(data, value)
        found = Tensor.from_frame(data, value=value)
    else:
        found = _dense(plain(data, "a coupled matrix"), kind)
    if found.order != 2:
        raise ArgumentError(f"a coupled matrix has 2 modes, not {found.order}")
    return found


def _check_columns(frame: Any, value: Any) -> None:
    """Raises an exception for a frame that is a table with one line per row, instead of one line per entry."""
    count = len(column_names(frame))
    if value is None and count == 2:
        raise ArgumentError("a frame has the columns row, column, value; value=False gives every entry the value 1")
    if count != (2 if value is False else 3):
        columns = "row, column" if value is False else "row, column, value"
        raise ArgumentError(
            f"a frame has the columns {columns}; give a wide table as frame.to_numpy() in the order of the rows of the mode, or"
            " stack it"
        )
    if has_labelled_index(frame):
        raise ArgumentError(
            "a frame has the columns row, column, value; the index of this frame is not read. Give a wide table as"
            " frame.to_numpy() in the order of the rows of the mode, or stack it; reset_index() makes the index a column"
        )


def _dense(array: Any, kind: str) -> Tensor:
    if array.ndim != 2 or array.dtype.kind not in "iufb":
        raise ArgumentError(f"a coupled matrix is a two-dimensional array of numbers, not {array.ndim}-dimensional {array.dtype}")
    is_known = ~np.isnan(array) if array.dtype.kind == "f" else np.ones(array.shape, bool)
    if not is_known.any():
        raise ArgumentError("the matrix has no known cell; cells that are NaN are unknown")
    listed = is_known & (array != 0) if kind in ("full", "sampled", "graph") else is_known
    rows, columns = np.nonzero(listed)
    return Tensor((rows.astype(np.uint32), columns.astype(np.uint32)), array[rows, columns], shape=array.shape)


def new_problem(tensor: Tensor, matrices: Sequence[Matrix]) -> Tuple[Handle, Modes, List[int], List[Optional[Labels]]]:
    """Creates a problem. Returns also the modes, with labels of rows that occur only in matrices, their sizes, and the labels of
    the columns of each matrix."""
    modes, order = tensor._modes, tensor.order
    labels, sizes = list(modes.labels), list(tensor.shape)
    coupled: List[Tuple[int, Tensor, Matrix]] = []
    for number, matrix in enumerate(matrices):
        if not isinstance(matrix, Matrix):
            raise TypeError(f"a matrix must be a Matrix, not {kind_of(matrix)}; make one with Matrix(data, mode)")
        mode = modes.number(matrix.mode, order)
        known = Rows("the tensor", labels[mode], sizes[mode])
        aligned, rows = aligned_rows(matrix, known, f"matrix {number}", modes.title(mode), APPENDED)
        labels[mode] = rows
        # Rows without a label do not enlarge a mode with labels.
        if not tensor._is_sized and (rows is None or aligned.labels[0] is not None):
            sides = aligned.shape if matrix.kind == "graph" else aligned.shape[:1]
            sizes[mode] = max(sizes[mode], *sides, len(rows) if rows else 0)
        coupled.append((mode, aligned, matrix))
    modes = Modes(tuple(labels), modes.names)
    coupled = [(mode, _sized(of, sizes[mode], matrix.kind, modes.title(mode)), matrix) for mode, of, matrix in coupled]
    entries = tensor._resized(sizes)
    handle = entries._use()
    problem = create("problem", lib.s3cmtf_problem_new, handle, keep=(handle, [of._use() for _, of, _ in coupled]))
    for mode, aligned, matrix in coupled:
        call(lib.s3cmtf_problem_add_matrix, problem, mode, aligned._use(), matrix.coupling())
    return problem, modes, sizes, [aligned.labels[1] for _, aligned, _ in coupled]


def _sized(matrix: Tensor, size: int, kind: str, title: str) -> Tensor:
    """Returns a matrix with one row, or of a graph one row and column, for each row of the mode, which has `size` rows."""
    columns = size if kind == "graph" else matrix.shape[1]
    if matrix.shape == (size, columns):
        return matrix
    if kind == "graph" and matrix._is_sized and matrix.shape[0] != matrix.shape[1]:
        raise ArgumentError(f"a graph is a square matrix; this is {matrix.shape[0]} x {matrix.shape[1]}")
    needed = max(matrix.shape) if kind == "graph" else matrix.shape[0]
    if matrix._is_sized or needed > size:
        raise ArgumentError(
            f"a matrix has {needed} rows, but {title} has {size}; give it a row for each row of the mode, or labels"
        )
    return matrix._resized((size, columns))


def label_matrix(data: Any, mode: int, rows: Rows, what: str, title: str) -> Tensor:
    """Returns a matrix that labels the rows of a mode of a model. Rows whose labels the model does not have are left out."""
    matrix = data if isinstance(data, Matrix) else Matrix(data, mode, "full")
    aligned, _ = aligned_rows(matrix, rows, what, title, LEFT_OUT)
    if aligned.labels[0] is not None:
        is_known = aligned.indices[0] < rows.size
        listed = tuple(of[is_known] for of in aligned.indices)
        shape = (rows.size, aligned.shape[1])
        aligned = Tensor._of(Tensor(listed, aligned.values[is_known], shape=shape)._use(), Modes((None, aligned.labels[1]), None))
    return _sized(aligned, rows.size, "full", title)


def aligned_rows(matrix: Matrix, known: Rows, what: str, title: str, fate: Optional[str]) -> Tuple[Tensor, Optional[Labels]]:
    """Returns a matrix whose rows are matched with those of a mode, and the labels of both. Messages call the matrix `what`."""
    tensor, columns = matrix.tensor, matrix.tensor.labels[1]
    sides = [0, 1] if matrix.kind == "graph" else [0]
    found = [tensor.labels[side] for side in sides]
    if len({of is None for of in found}) > 1:
        raise ArgumentError("a graph has labels for its rows or its columns only; give both, or row numbers")
    names = None if found[0] is None else found[0].extended(found[-1] or ())
    used = max((int(tensor.indices[side].max()) + 1 for side in sides if tensor.nnz), default=0)
    rows, labels = match_rows(known, Rows(what, names, used), title, fate)
    if names is None:
        return tensor, labels
    for side, of in zip(sides, found):
        tensor = _renumbered(tensor, side, None if of is None or of.same(names) else names.rows(of))
        tensor = _renumbered(tensor, side, rows)
    # Labels of a matrix that is matched by number are dropped.
    return Tensor._of(tensor._use(), Modes((labels, labels if matrix.kind == "graph" else columns), None)), labels


def aligned_columns(matrix: Tensor, columns: Optional[Labels], what: str) -> Tensor:
    """Returns a matrix whose columns are numbered like those of a matrix of a model. New columns get the next numbers."""
    known, given = Rows("the model", columns, 0), Rows("the new matrix", matrix.labels[1], 0)
    return _renumbered(matrix, 1, match_rows(known, given, f"columns of {what}", None)[0])


def _renumbered(matrix: Tensor, mode: int, numbers: Optional[Array]) -> Tensor:
    """Returns a matrix with the same entries and new numbers of the rows of a mode, or the same matrix if there are none."""
    if numbers is None or not numbers.size:
        return matrix
    indices, shape = list(matrix.indices), list(matrix.shape)
    indices[mode], shape[mode] = numbers[indices[mode]], int(numbers.max()) + 1
    return Tensor(tuple(indices), matrix.values, weights=matrix.weights, shape=shape)
