"""Entries whose rows are numbered like those of a model or of other entries."""

from typing import Any, Sequence

import numpy as np

from ._cells import Modes
from ._library import Handle
from .errors import ArgumentError
from .tensor import Tensor, _from_arrays


def aligned_entries(entries: Any, modes: Modes, sizes: Sequence[int], what: str) -> Handle:
    """Returns the handle of entries, which must be a Tensor, with rows that are matched by label. Labels that are new get rows
    beyond `sizes`, the sizes of the modes."""
    if not isinstance(entries, Tensor):
        raise TypeError(f"{what} is a Tensor, not {type(entries).__name__}")
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
                " with like=..., so that labels keep their rows"
            )
        rows = known.rows(found, -1)
        is_new = rows < 0
        first = max(sizes[mode], len(known))
        rows[is_new] = first + np.arange(is_new.sum())
        indices[mode] = rows.astype(np.uint32)[indices[mode]]
        shape[mode] = first + int(is_new.sum())
        is_renumbered = True
    return _from_arrays(indices, entries.values, entries.weights, shape) if is_renumbered else handle
