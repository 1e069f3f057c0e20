"""Cells that users give, as arrays of row numbers with the labels of each mode."""

from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from ._arrays import MAX_DIM, Array, columns_of, index_column
from ._frames import column, column_names, encode_series, is_frame
from ._library import Closeable
from .errors import ArgumentError
from .labels import UNSEEN, Labels, Rows, encode, match_rows


class Modes(NamedTuple):
    """The labels and the names of modes; either may be unknown."""

    labels: Tuple[Optional[Labels], ...]
    names: Optional[Tuple[str, ...]]

    def number(self, mode: Any, order: int) -> int:
        """Returns the number of a mode that is given by number or name."""
        if isinstance(mode, str):
            if self.names is None or mode not in self.names:
                known = "modes have no names" if self.names is None else f"modes are {', '.join(map(repr, self.names))}"
                raise ArgumentError(f"there is no mode {mode!r}; {known}")
            return self.names.index(mode)
        try:
            number = mode.__index__()
        except AttributeError:
            raise TypeError(f"a mode is a number or a name, not {type(mode).__name__}") from None
        if not 0 <= number < order:
            raise ArgumentError(f"there is no mode {number}; modes are 0 to {order - 1}")
        return int(number)

    def check(self, given: "Modes", what: str) -> None:
        """Raises an exception if rows of `given` are numbered differently: one list of labels must begin with the other."""
        for mode, (known, found) in enumerate(zip(self.labels, given.labels)):
            rows, _ = match_rows(Rows("the tensor", known, 0), Rows(what, found, 0), self.title(mode), None)
            if rows is not None:
                raise ArgumentError(
                    f"the rows of {self.title(mode)} are numbered differently in {what}; create the tensor with like={what},"
                    " so that labels keep their rows"
                )

    def title(self, mode: int) -> str:
        """Returns how messages name a mode."""
        return f"mode {mode}" if self.names is None else f"mode {mode} ({self.names[mode]})"


class HasModes(Closeable):
    """An object whose rows and modes may have labels and names."""

    _modes: Modes

    @property
    def labels(self) -> Tuple[Optional[Labels], ...]:
        """The labels of the rows of each mode; None for modes without labels."""
        return self._modes.labels

    @property
    def modes(self) -> Optional[Tuple[str, ...]]:
        """The names of the modes, if they have names."""
        return self._modes.names


def unlabelled(order: int) -> Modes:
    """Returns modes without labels and names."""
    return Modes((None,) * order, None)


def encode_columns(
    data: Any,
    what: str,
    names: Optional[Sequence[Any]] = None,
    known: Optional[Modes] = None,
    unknown: Optional[Sequence[int]] = None,
) -> Tuple[List[Array], Modes]:
    """Returns the row numbers of cells, and their modes with labels. `data` is a frame, of which `names` are the columns, or a
    tuple of arrays, or an array with one row per cell. `known` has labels whose rows are fixed, and names of columns. New labels
    get the next rows; or, if `unknown` has the sizes of a model, rows of a frame are matched with those of the model and new
    labels of arrays get the first row beyond them."""
    if isinstance(names, str):
        raise TypeError(f"modes are a sequence of names, not the string {names!r}")
    in_frame = is_frame(data)
    if in_frame:
        if names is None and known is not None:
            names = frame_columns(data, known)
        chosen = list(names) if names is not None else column_names(data)
        columns = [column(data, name) for name in chosen]
        titles = [f"column {name!r}" for name in chosen]
    else:
        columns = columns_of(data, what)
        chosen = list(names) if names is not None else []
        titles = [f"mode {mode} of {what}" for mode in range(len(columns))]
        if names is not None and len(chosen) != len(columns):
            raise ArgumentError(f"{len(chosen)} names are given for {len(columns)} modes")
    if known is not None and len(columns) != len(known.labels):
        raise ArgumentError(f"{what} has {len(columns)} modes; {len(known.labels)} are expected")
    indices: List[Array] = []
    labels: List[Optional[Labels]] = []
    for mode, (values, title) in enumerate(zip(columns, titles)):
        rows = known.labels[mode] if known else None
        numbers, found = _encode(values, title, in_frame, rows is not None)
        if in_frame and known is not None and unknown is not None:
            given = Rows(title, None if found is None else Labels(found), 0)
            places, _ = match_rows(Rows("the model", rows, unknown[mode]), given, known.title(mode), UNSEEN)
            numbers = numbers if places is None else places[numbers]
        elif found is not None:
            if known is not None and rows is None:
                raise ArgumentError(f"{title} has labels, but the rows of {known.title(mode)} have none; give row numbers")
            if rows is None:
                rows = Labels(found)
            elif unknown is None:
                rows = rows.extended(found)
                numbers = rows.rows(found)[numbers]
            else:
                numbers = rows.rows(found, unknown[mode])[numbers]
        indices.append(index_column(numbers, title))
        labels.append(rows)
    if len(set(map(str, chosen))) != len(chosen):
        raise ArgumentError(f"names of modes occur more than once: {', '.join(map(str, chosen))}")
    if known is not None and known.names is not None:
        chosen = list(known.names)
    return indices, Modes(tuple(labels), tuple(map(str, chosen)) if chosen else None)


def _encode(values: Any, title: str, in_frame: bool, is_labelled: bool) -> Tuple[Array, Optional[List[Any]]]:
    """Returns indices and labels. Numbers in a frame are labels if the mode has labels, otherwise row numbers."""
    numbers, found = encode_series(values, title) if in_frame else encode(values, title)
    if in_frame and is_labelled and found is None:
        distinct, numbers = np.unique(numbers, return_inverse=True)
        return numbers.reshape(-1), distinct.tolist()
    return numbers, found


def frame_columns(frame: Any, modes: Modes) -> Optional[List[Any]]:
    """Returns the columns of a frame that are named like the modes; None if the modes have no names."""
    if modes.names is None:
        return None
    by_text = {str(name): name for name in column_names(frame)}
    for name in modes.names:
        if name not in by_text:
            raise ArgumentError(
                f"the frame has no column {name!r} for the mode of that name; its columns are {', '.join(map(repr, by_text))}"
            )
    return [by_text[name] for name in modes.names]


def row_number(row: Any, labels: Optional[Labels], title: str) -> int:
    """Returns a row that is given by number, or by label if the mode has labels. With labels a string is always a label."""
    if labels is not None and (isinstance(row, str) or not hasattr(row, "__index__")):
        return labels.index(row)
    try:
        number = row.__index__()
    except AttributeError:
        raise ArgumentError(f"the rows of {title} have no labels; {row!r} is not a row number") from None
    if number < 0:
        raise ArgumentError(f"row {number} of {title} is negative; rows count from 0")
    if number > MAX_DIM:
        raise ArgumentError(f"row {number} of {title} is too large; rows are below {MAX_DIM}")
    return int(number)
