"""Checks that generated data follows from the planted model written beside it.

    numpy_truth.py FOLDER
"""

import json
import sys

import numpy as np

from numpy_format import read

folder = sys.argv[1]
truth = json.load(open(f"{folder}/truth/truth.json"))


def load(name):
    return np.load(f"{folder}/truth/{name}.npy").astype(float)


dims, index, values, _, _ = read(f"{folder}/tensor.train.coo")
assert dims.tolist() == truth["dims"]
assert len(set(zip(*(column.tolist() for column in index)))) == len(values), "a cell twice"
fit = load("core")
if truth["model"] == "cp":
    # The diagonal alone is stored.
    diagonal, fit = fit, np.zeros(truth["ranks"])
    fit[(np.arange(len(diagonal)),) * len(dims)] = diagonal
for n in reversed(range(len(dims))):
    # Contracts the last mode: entries stay in front once there.
    rows = load(f"factor{n + 1}")[index[n]]
    fit = np.einsum("ej,...j->e...", rows, fit) if n == len(dims) - 1 else np.einsum("ej,e...j->e...", rows, fit)
assert abs(values - truth["offset"] - fit).max() < 1e-4
assert abs(values.std() - truth["signal_sd"]) < 0.2 * truth["signal_sd"]

for m, matrix in enumerate(truth["matrices"], 1):
    _, index, values, _, _ = read(f"{folder}/matrix{m}.coo")
    rows = load(f"factor{matrix['mode']}")[index[0]]
    columns = load(f"matrix{m}")
    assert columns.shape[0] == matrix["columns"]
    assert abs(values - (rows * columns[index[1]]).sum(1)).max() < 1e-4
    assert abs(values.std() - 1) < 0.2
