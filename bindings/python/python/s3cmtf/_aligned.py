"""Entries whose rows are numbered like those of a model or of other entries."""

import contextlib
from typing import Any, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from ._cells import Modes
from ._frames import is_frame
from ._library import Handle, kind_of
from .errors import S3cmtfError
from .labels import UNSEEN, Labels, Rows, match_rows
from .tensor import Tensor, _from_arrays


@contextlib.contextmanager
def entries_explained(*named: Tuple[Optional[Tensor], str]) -> Iterator[None]:
    """If a call fails because of an entry whose value or weight is not finite, raises an exception with its position from 0."""
    try:
        yield
    except S3cmtfError as failure:
        if "entry " in str(failure):
            for entries, what in named:
                if entries is not None:
                    entries._check_numbers(what)
        raise


def not_a_tensor(given: Any, what: str, like: str = "") -> TypeError:
    """Returns the exception for an argument `what` that is not a Tensor. `like` is the value of the argument of that name with
    which one is made."""
    numbered = f", like={like}" if like else ""
    how = "Tensor.from_frame(frame, modes, value" if is_frame(given) else "Tensor(indices, values"
    return TypeError(f"{what} must be a Tensor, not {kind_of(given)}; make one with {how}{numbered})")


def aligned_entries(
    entries: Any, modes: Modes, sizes: Sequence[int], what: str, like: str, new_mode: Optional[int] = None
) -> Tuple[Handle, List[Optional[Labels]]]:
    """Returns the handle of entries, which must be a Tensor, with rows that are matched with those of modes, and the labels of
    both. Labels that are new get the next rows. All rows of `new_mode` may be new. `like` is "train" or "model"."""
    if not isinstance(entries, Tensor):
        raise not_a_tensor(entries, what, like)
    handle = entries._use()
    indices, shape = list(entries.indices), list(entries.shape)
    source, labels = "the model" if like == "model" else "the tensor", list(modes.labels)
    is_renumbered = False
    for mode, (known, found) in enumerate(zip(modes.labels, entries.labels)):
        given = Rows(what, found, int(indices[mode].max()) + 1 if found and indices[mode].size else 0)
        fate = None if mode == new_mode else UNSEEN
        rows, labels[mode] = match_rows(Rows(source, known, sizes[mode]), given, modes.title(mode), fate)
        if rows is not None:
            indices[mode] = rows.astype(np.uint32)[indices[mode]]
            shape[mode], is_renumbered = max(shape[mode], int(rows.max()) + 1), True
    return (_from_arrays(indices, entries.values, entries.weights, shape) if is_renumbered else handle), labels
