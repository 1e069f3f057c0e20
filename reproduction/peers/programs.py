"""The other programs: how each is fitted, and the settings it is selected from."""

import argparse
import dataclasses
import itertools
import math
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from data import Data, Entries

# SMURFF: sweeps whose predictions are averaged, fewer on large data; half as many burn-in sweeps precede them.
MAX_SAMPLES, MIN_SAMPLES, SAMPLED_ENTRIES = 200, 20, 40_000_000
# SMURFF: with more features than this the link matrix is sampled by conjugate gradients, not a Cholesky factor.
DIRECT_FEATURES = 1000
# tensorly: iterations of a fit, and the fraction of the time limit after which it stops, which leaves time for all ranks.
MAX_ITERATIONS, FIT_FRACTION = 100, 0.1

Setting = dict[str, Any]


class NotSupported(Exception):
    """The program does not have what the data needs."""


@dataclasses.dataclass
class Program:
    title: str
    predict: Callable[[Data, Entries, Setting, argparse.Namespace], np.ndarray]
    grid: dict[str, tuple]
    side_grid: dict[str, tuple] = dataclasses.field(default_factory=dict)  # added where there are matrices
    factorizes_tensors: bool = False  # otherwise it has modes 1 and 2
    uses_matrices: bool = False  # as side information
    predicts_values: bool = True
    ended_by: str = "iterations"

    def settings(self, data: Data) -> list[Setting]:
        grid = self.grid | (self.side_grid if data.features else {})
        return [dict(zip(grid, point)) for point in itertools.product(*grid.values())]


def cell_means(rows: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the cells that occur, and the mean of the entries of each."""
    cells, which, counts = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    return cells, np.bincount(which.ravel(), weights=values) / counts


def smurff(data: Data, test: Entries, setting: Setting, options: argparse.Namespace) -> np.ndarray:
    import smurff as library

    mean, deviation = data.train.values.mean(), data.train.values.std()

    def tensor(entries: Entries) -> Any:
        values = (entries.values - mean) / deviation
        columns = [np.ascontiguousarray(c) for c in entries.rows.T]
        if entries.order == 2:
            return sp.coo_matrix((values, columns), shape=data.dims)
        return library.SparseTensor((values, columns), shape=data.dims)

    samples = int(np.clip(SAMPLED_ENTRIES // len(data.train.values), MIN_SAMPLES, MAX_SAMPLES))
    session = library.TrainSession(
        priors=["macau" if n in data.features else "normal" for n in range(data.train.order)],
        num_latent=setting["rank"], burnin=samples // 2, nsamples=samples, num_threads=options.threads,
        seed=options.seed, verbose=0)
    precision = setting["precision"]
    noise = library.SampledNoise(1.0) if precision == "sampled" else library.FixedNoise(precision)
    session.addTrainAndTest(tensor(data.train), tensor(test), noise)
    for mode, features in data.features.items():
        session.addSideInfo(mode, features, direct=features.shape[1] <= DIRECT_FEATURES)
    session.init()
    while session.step():
        pass
    predicted = {tuple(p.coords): p.pred_avg for p in session.getTestPredictions()}
    return np.array([predicted[tuple(row)] for row in test.rows.tolist()]) * deviation + mean


def cmfrec(data: Data, test: Entries, setting: Setting, options: argparse.Namespace) -> np.ndarray:
    import cmfrec as library

    # Entries that differ in other modes only: their mean. With weights, fits with sparse matrices fail to predict.
    cells, means = cell_means(data.train.rows[:, :2], data.train.values)
    users, items = (data.features[n].tocoo() if n in data.features else None for n in (0, 1))
    side = setting.get("side_weight", 1.0)
    model = library.CMF(
        k=setting["rank"], lambda_=setting["penalty"], w_user=side, w_item=side, niter=30, use_cg=False,
        NA_as_zero_user=True, NA_as_zero_item=True, center_U=False, center_I=False,
        nthreads=options.threads, random_state=options.seed + 1, verbose=False)
    model.fit(X=sp.coo_matrix((means, cells.T), shape=data.dims[:2]), U=users, I=items)
    # Without a matrix of their mode, rows without entries keep an initial bias of 1.
    for mode, biases, factors in (0, model.user_bias_, model.A_), (1, model.item_bias_, model.B_):
        if mode not in data.features:
            unseen = np.setdiff1d(np.arange(len(biases)), cells[:, mode])
            biases[unseen] = factors[unseen] = 0
    predictions = model.predict(test.rows[:, 0], test.rows[:, 1])
    return np.where(np.isfinite(predictions), predictions, data.train.values.mean())


def libmf(data: Data, test: Entries, setting: Setting, options: argparse.Namespace) -> np.ndarray:
    from libmf import mf

    model = mf.MF(
        k=setting["rank"], nr_iters=50, nr_threads=options.threads, lambda_p1=0, lambda_q1=0,
        lambda_p2=setting["penalty"], lambda_q2=setting["penalty"], quiet=True)
    entries = np.column_stack([data.train.rows[:, :2], data.train.values])
    model.fit(np.ascontiguousarray(entries, dtype=np.float32))
    # MF.predict expects columns one after the other, unlike MF.fit, so the factors are multiplied here.
    fitted = model.model
    users = np.ctypeslib.as_array(fitted.P, shape=(fitted.m, fitted.k))
    items = np.ctypeslib.as_array(fitted.Q, shape=(fitted.n, fitted.k))
    u, i = test.rows[:, 0], test.rows[:, 1]
    known = (u < fitted.m) & (i < fitted.n)
    predictions = np.full(len(test.values), np.nan)
    predictions[known] = np.einsum("ij,ij->i", users[u[known]], items[i[known]])
    return np.where(np.isfinite(predictions), predictions, data.train.values.mean())


def implicit(data: Data, test: Entries, setting: Setting, options: argparse.Namespace) -> np.ndarray:
    from implicit.als import AlternatingLeastSquares

    if set(np.unique(data.train.values)) != {0.0, 1.0}:
        raise NotSupported("it ranks items by lists of ones, and there are other values than 0 and 1")
    ones = data.train.part(data.train.values > 0)
    cells = sp.csr_matrix((np.ones(len(ones.values), dtype=np.float32), ones.rows[:, :2].T), shape=data.dims[:2])
    model = AlternatingLeastSquares(
        factors=setting["rank"], regularization=setting["penalty"], num_threads=options.threads,
        random_state=options.seed)
    model.fit(cells, show_progress=False)
    users, items = model.user_factors, model.item_factors
    return np.einsum("ij,ij->i", users[test.rows[:, 0]], items[test.rows[:, 1]])


def available_memory() -> int:
    """Returns the bytes that can be allocated without swapping; where the system does not say, all physical memory."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def dense_bytes(dims: list[int], rank: int) -> int:
    """Returns the memory of a masked fit of tensorly: imputation has seven arrays of the size of the tensor at a time, a
    factor update three and the Khatri-Rao product of the other factors twice. The numbers are those of measured peaks."""
    copies = max(7, 3 + 2 * rank / min(dims))
    return int(8 * math.prod(dims) * copies)


def tensorly(data: Data, test: Entries, setting: Setting, options: argparse.Namespace) -> np.ndarray:
    needed, available = dense_bytes(data.dims, setting["rank"]), available_memory()
    if needed > available:
        raise MemoryError(f"dense arrays of {'x'.join(map(str, data.dims))} cells need {needed / 2**30:,.1f} GiB of memory, "
                          f"{available / 2**30:,.1f} GiB are available")

    from tensorly.decomposition import parafac
    from threadpoolctl import threadpool_limits

    mean = data.train.values.mean()
    cells, values = cell_means(data.train.rows, data.train.values - mean)
    tensor, mask = np.zeros(data.dims), np.zeros(data.dims, dtype=bool)
    tensor[tuple(cells.T)], mask[tuple(cells.T)] = values, True
    end = time.monotonic() + FIT_FRACTION * options.limit
    with threadpool_limits(options.threads):
        weights, factors = parafac(
            tensor, setting["rank"], n_iter_max=MAX_ITERATIONS, init="random", mask=mask, random_state=options.seed,
            callback=lambda *_: time.monotonic() > end)
    return np.prod([factor[rows] for factor, rows in zip(factors, test.rows.T)], axis=0) @ weights + mean


# The last parameters of a grid vary first, and the limit of time ends a grid early: likely values stand first.
PROGRAMS = {
    # Precision of the noise in units of the reciprocal variance of the training values.
    "smurff": Program("SMURFF", smurff, {"rank": (16, 32, 8), "precision": (1.5, "sampled", 2.0, 1.2)},
                      factorizes_tensors=True, uses_matrices=True, ended_by="sweeps"),
    "cmfrec": Program("cmfrec", cmfrec, {"rank": (8, 4, 16, 32, 2), "penalty": (10.0, 7.0, 15.0, 3.0, 25.0, 1.0)},
                      side_grid={"side_weight": (1.0, 0.1, 10.0)}, uses_matrices=True),
    "libmf": Program("LIBMF", libmf, {"rank": (16, 32, 8, 64), "penalty": (0.1, 0.06, 0.15, 0.03, 0.2)}),
    "implicit": Program("implicit", implicit, {"rank": (16, 32, 8, 64), "penalty": (0.1, 1.0, 10.0)}, predicts_values=False),
    "tensorly": Program("tensorly", tensorly, {"rank": (16, 8, 4, 2)}, factorizes_tensors=True, ended_by="iterations or time"),
}
