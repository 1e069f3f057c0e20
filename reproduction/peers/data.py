"""Entries, and matrices that describe the rows of modes."""

import dataclasses

import numpy as np
import pandas as pd
import scipy.sparse as sp


@dataclasses.dataclass
class Entries:
    rows: np.ndarray  # one row per entry, one column per mode, from 0
    values: np.ndarray

    @property
    def order(self) -> int:
        return self.rows.shape[1]

    def part(self, which: np.ndarray) -> "Entries":
        return Entries(self.rows[which], self.values[which])


@dataclasses.dataclass
class Data:
    train: Entries
    dims: list[int]
    features: dict[int, sp.csr_matrix]  # of the rows of a mode, from 0: its matrices side by side


class BadInput(Exception):
    """A file cannot be read, or an argument does not name a matrix of a mode."""


def read_tns(path: str) -> Entries:
    try:
        table = pd.read_csv(path, sep=r"\s+", comment="#", header=None, dtype=np.float64).to_numpy()
    except OSError as error:
        raise BadInput(f"cannot open {path}: {error.strerror or error}") from None
    except ValueError as error:
        raise BadInput(f"{path} is not a table of numbers: {error}") from None
    return Entries(table[:, :-1].astype(np.int64) - 1, table[:, -1])


def read_data(train: Entries, test: Entries, matrices: list[str]) -> Data:
    dims = np.maximum(train.rows.max(axis=0), test.rows.max(axis=0)) + 1
    cells = []
    for text in matrices:
        mode, _, path = text.partition(":")
        if not mode.isdigit() or not 1 <= int(mode) <= len(dims) or not path:
            raise BadInput(f"--matrix {text}: it must be MODE:FILE with a mode from 1 to {len(dims)}")
        matrix = read_tns(path)
        if matrix.order != 2:
            raise BadInput(f"{path} has {matrix.order} modes, a matrix has 2")
        cells.append((int(mode) - 1, matrix))
    for mode, matrix in cells:
        dims[mode] = max(dims[mode], matrix.rows[:, 0].max() + 1)
    parts: dict[int, list] = {}
    for mode, matrix in cells:
        shape = (dims[mode], matrix.rows[:, 1].max() + 1)
        parts.setdefault(mode, []).append(sp.csr_matrix((matrix.values, matrix.rows.T), shape=shape))
    return Data(train, dims.tolist(), {mode: sp.hstack(p, format="csr") for mode, p in parts.items()})
