"""Labels: the names or ids of the rows of a mode."""

import difflib
from typing import Any, Dict, Hashable, Iterable, Iterator, List, NamedTuple, Optional, Tuple

import numpy as np

from ._arrays import Array, is_missing, missing, plain
from .errors import ArgumentError, warn


class Labels:
    """The labels of the rows of a mode, each of which occurs once. Label i belongs to row i."""

    #: Why rows cannot be matched by these labels; empty if they can.
    fault = ""

    def __init__(self, values: Iterable[Hashable], fault: str = "") -> None:
        self._values = list(values)
        self.fault = fault
        self._rows: Dict[Hashable, int] = {label: row for row, label in enumerate(self._values)}
        if len(self._rows) != len(self._values):
            repeated = next(label for row, label in enumerate(self._values) if self._rows[label] != row)
            raise ArgumentError(f"the label {repeated!r} occurs more than once")
        for row, label in enumerate(self._values):
            self._rows.setdefault(str(label), row)

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._values)

    def __getitem__(self, row: int) -> Hashable:
        return self._values[row]

    def __contains__(self, label: object) -> bool:
        return self.find(label) is not None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Labels) and (self is other or self._values == other._values)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self._values[:3]))
        return f"Labels({len(self)}: {shown}{', ...' if len(self) > 3 else ''})"

    def same(self, other: "Labels") -> bool:
        """Whether both have the same labels, as text, in the same order."""
        return self is other or list(map(str, self._values)) == list(map(str, other._values))

    def find(self, label: Any) -> Optional[int]:
        """Returns the row of a label, by value or else by its text; None if there is none. (Labels of a file are strings.)"""
        try:
            row = self._rows.get(label)
        except TypeError:
            raise ArgumentError(f"{label!r} is not a label") from None
        return self._rows.get(str(label)) if row is None else row

    def index(self, label: Any) -> int:
        """Returns the row of a label; ArgumentError if there is none."""
        row = self.find(label)
        if row is None:
            near = difflib.get_close_matches(str(label), (str(value) for value in self._values), 3)
            hint = f"; similar labels: {', '.join(map(repr, near))}" if near else ""
            raise ArgumentError(f"no row has the label {label!r}{hint}")
        return row

    def extended(self, labels: Iterable[Hashable]) -> "Labels":
        """Returns labels that begin with these, followed by those of `labels` that are new."""
        new = [label for label in dict.fromkeys(labels) if self.find(label) is None]
        fault = self.fault or getattr(labels, "fault", "")
        return Labels(self._values + new, fault) if new or fault != self.fault else self

    def rows(self, labels: Iterable[Any], unknown: Optional[int] = None) -> Array:
        """Returns the row of each label. Labels that do not exist get the row `unknown`, or are an ArgumentError."""
        found = (self.index(label) if unknown is None else self._find_or(label, unknown) for label in labels)
        return np.fromiter(found, np.int64)

    def _find_or(self, label: Any, unknown: int) -> int:
        row = self.find(label)
        return unknown if row is None else row

    def take(self, rows: Array) -> Array:
        """Returns an array of the labels of rows; None for rows that have none."""
        # The last element is for rows without a label. Filled one by one, since a label may be a sequence.
        table = np.empty(len(self._values) + 1, dtype=object)
        for row, label in enumerate(self._values):
            table[row] = label
        is_known = (rows >= 0) & (rows < len(self._values))
        found: Array = table[np.where(is_known, rows, len(self._values))]
        return found


class Rows(NamedTuple):
    """The rows of a mode in one input."""

    #: How messages name the input.
    source: str
    labels: Optional[Labels]
    size: int


#: What becomes of rows that only a later input has.
APPENDED, UNSEEN, LEFT_OUT = "appended to the mode", "unseen: they count as the mean row", "left out"


def match_rows(known: Rows, given: Rows, title: str, fate: Optional[str]) -> Tuple[Optional[Array], Optional[Labels]]:
    """Returns the row of a mode for each row of an input, or None if both have the same numbers; and the labels of the mode,
    followed by those that only the input has.

    Rows are matched by name if both sides have labels, otherwise by number. `fate` is what becomes of rows that only the input
    has; None if all of them may be new, without a message."""
    if known.labels is None or given.labels is None:
        if known.labels is not given.labels:
            named, bare = (known, given) if given.labels is None else (given, known)
            warn(f"{title}: there are names in {named.source} and none in {bare.source}; rows are matched by number")
        return None, known.labels
    if known.labels.same(given.labels):
        return None, known.labels
    for of, labels in ((known, known.labels), (given, given.labels)):
        fault = labels.fault or (f"row {len(labels)} has no name" if len(labels) < of.size else "")
        if fault:
            raise ArgumentError(
                f"{title}: rows of {known.source} and {given.source} cannot be matched by name, because in {of.source} {fault}"
            )
    extended = known.labels.extended(given.labels)
    new = len(extended) - len(known.labels)
    both = len(given.labels) - new
    if fate is not None and new:
        example = repr(extended[len(known.labels)])
        if not both:
            raise ArgumentError(
                f"{title}: {known.source} and {given.source} have no name in common; names are such as {known.labels[0]!r} in"
                f" {known.source} and {example} in {given.source}"
            )
    if fate is not None and (new or (fate == APPENDED and both < len(known.labels))):
        rest = f" (such as {example}), {fate}" if new else ""
        warn(
            f"{title}: rows are matched by name: {both} in both {known.source} and {given.source},"
            f" {len(known.labels) - both} only in {known.source}, {new} only in {given.source}{rest}"
        )
    rows = extended.rows(given.labels)
    return (None if np.array_equal(rows, np.arange(rows.size)) else rows), extended


def encode(column: Any, name: str) -> Tuple[Array, Optional[List[Hashable]]]:
    """Returns a column as indices and labels: (indices, None) for numbers, otherwise (codes, labels by first occurrence)."""
    array = plain(column, name)
    if array.ndim != 1 or array.dtype.kind in "iufcV":
        return array, None
    if array.dtype.kind == "M":
        if np.isnat(array).any():
            raise missing(name, np.isnat(array))
        distinct, codes = np.unique(array, return_inverse=True)
        return codes.reshape(-1), list(distinct)
    absent = is_missing(array)
    if absent.any():
        raise missing(name, absent)
    rows: Dict[Hashable, int] = {}
    try:
        codes = np.fromiter((rows.setdefault(value, len(rows)) for value in array.tolist()), np.uint32, array.size)
    except TypeError as failure:
        raise no_labels(name, failure) from None
    return codes, list(rows)


def no_labels(name: str, failure: TypeError) -> ArgumentError:
    """Returns the exception for objects that cannot be labels."""
    return ArgumentError(f"{name} has objects that cannot be labels ({failure}); labels are strings, numbers or times")
