"""Entries whose rows are numbered like those of a model or of other entries."""

import contextlib
from typing import Any, Iterator, Optional, Sequence, Tuple

import numpy as np

from ._cells import Modes
from ._frames import is_frame
from ._library import Handle, kind_of
from .errors import ArgumentError, S3cmtfError
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


def aligned_entries(entries: Any, modes: Modes, sizes: Sequence[int], what: str, like: str) -> Handle:
    """Returns the handle of entries, which must be a Tensor, with rows that are matched by label. Labels that are new get rows
    beyond `sizes`, the sizes of the modes. `like` is what messages name as the origin of the labels."""
    if not isinstance(entries, Tensor):
        raise not_a_tensor(entries, what, like)
    handle = entries._use()
    indices, shape = list(entries.indices), list(entries.shape)
    is_renumbered = False
    for mode, (known, found) in enumerate(zip(modes.labels, entries.labels)):
        if found is None:
            continue
        if known is None:
            raise ArgumentError(f"{what} has labels, but the rows of {modes.title(mode)} have none; give row numbers")
        if known.agrees(found):
            continue
        if indices[mode].size and indices[mode].max() >= len(found):
            raise ArgumentError(
                f"the rows of {modes.title(mode)} are numbered differently in {what}, and some of them have no label; create it"
                f" with like={like}, so that labels keep their rows"
            )
        rows = known.rows(found, -1)
        is_new = rows < 0
        first = max(sizes[mode], len(known))
        rows[is_new] = first + np.arange(is_new.sum())
        indices[mode] = rows.astype(np.uint32)[indices[mode]]
        shape[mode] = first + int(is_new.sum())
        is_renumbered = True
    return _from_arrays(indices, entries.values, entries.weights, shape) if is_renumbered else handle
