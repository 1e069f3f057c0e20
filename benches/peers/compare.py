#!/usr/bin/env python3
"""Fits s3cmtf and other programs to the same training file and compares their errors on the same test file."""

import argparse
import contextlib
import dataclasses
import importlib.metadata
import itertools
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score

HOLDOUT = 0.1  # Fraction of the training entries that selects a setting.
# SMURFF: sweeps whose predictions are averaged, fewer on large data; half as many burn-in sweeps precede them.
MAX_SAMPLES, MIN_SAMPLES, SAMPLED_ENTRIES = 200, 20, 40_000_000
# SMURFF: with more features than this the link matrix is sampled by conjugate gradients, not a Cholesky factor.
DIRECT_FEATURES = 1000

Setting = dict[str, Any]
Result = dict[str, Any]


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


@dataclasses.dataclass
class Program:
    predict: Callable[[Data, Entries, Setting, argparse.Namespace], np.ndarray]
    grid: dict[str, tuple]
    side_grid: dict[str, tuple] = dataclasses.field(default_factory=dict)  # added where there are matrices
    matrices_only: bool = True
    predicts_values: bool = True

    def settings(self, data: Data) -> list[Setting]:
        grid = self.grid | (self.side_grid if data.features else {})
        return [dict(zip(grid, point)) for point in itertools.product(*grid.values())]


def read_tns(path: str) -> Entries:
    table = pd.read_csv(path, sep=r"\s+", comment="#", header=None, dtype=np.float64).to_numpy()
    return Entries(table[:, :-1].astype(np.int64) - 1, table[:, -1])


def read_data(train: Entries, test: Entries, matrices: list[str]) -> Data:
    dims = np.maximum(train.rows.max(axis=0), test.rows.max(axis=0)) + 1
    cells = []
    for text in matrices:
        mode, path = text.split(":", 1)
        cells.append((int(mode) - 1, read_tns(path)))
    for mode, matrix in cells:
        dims[mode] = max(dims[mode], matrix.rows[:, 0].max() + 1)
    parts: dict[int, list] = {}
    for mode, matrix in cells:
        shape = (dims[mode], matrix.rows[:, 1].max() + 1)
        parts.setdefault(mode, []).append(sp.csr_matrix((matrix.values, matrix.rows.T), shape=shape))
    return Data(train, dims.tolist(), {mode: sp.hstack(p, format="csr") for mode, p in parts.items()})


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Discards what libraries print, those written in C included."""
    with open(os.devnull, "w") as null:
        saved = [os.dup(1), os.dup(2)]
        sys.stdout.flush()
        os.dup2(null.fileno(), 1)
        os.dup2(null.fileno(), 2)
        try:
            yield
        finally:
            sys.stdout.flush()
            for descriptor, copy in zip((1, 2), saved):
                os.dup2(copy, descriptor)
                os.close(copy)


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
    cells, which, counts = np.unique(data.train.rows[:, :2], axis=0, return_inverse=True, return_counts=True)
    means = np.bincount(which.ravel(), weights=data.train.values) / counts
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
        raise ValueError("not applicable: it ranks items by lists of ones, and there are other values than 0 and 1")
    ones = data.train.part(data.train.values > 0)
    cells = sp.csr_matrix((np.ones(len(ones.values), dtype=np.float32), ones.rows[:, :2].T), shape=data.dims[:2])
    model = AlternatingLeastSquares(
        factors=setting["rank"], regularization=setting["penalty"], num_threads=options.threads,
        random_state=options.seed)
    model.fit(cells, show_progress=False)
    users, items = model.user_factors, model.item_factors
    return np.einsum("ij,ij->i", users[test.rows[:, 0]], items[test.rows[:, 1]])


# The last parameters of a grid vary first, and the limit of time ends a grid early: likely values stand first.
PROGRAMS = {
    # Precision of the noise in units of the reciprocal variance of the training values.
    "smurff": Program(smurff, {"rank": (16, 32, 8), "precision": (1.5, "sampled", 2.0, 1.2)}, matrices_only=False),
    "cmfrec": Program(cmfrec, {"rank": (8, 4, 16, 32, 2), "penalty": (10.0, 7.0, 15.0, 3.0, 25.0, 1.0)},
                      {"side_weight": (1.0, 0.1, 10.0)}),
    "libmf": Program(libmf, {"rank": (16, 32, 8, 64), "penalty": (0.1, 0.06, 0.15, 0.03, 0.2)}),
    "implicit": Program(implicit, {"rank": (16, 32, 8, 64), "penalty": (0.1, 1.0, 10.0)}, predicts_values=False),
}


def scores(train: Entries, test: Entries, predictions: np.ndarray, predicts_values: bool) -> Result:
    """Returns RMSE and AUC, where each is defined."""
    result = {}
    if predicts_values:
        limited = np.clip(predictions, train.values.min(), train.values.max())
        result["rmse"] = float(np.sqrt(np.mean((limited - test.values) ** 2)))
    levels = np.unique(train.values)
    if len(levels) == 2 and len(np.unique(test.values)) == 2:
        result["auc"] = float(roc_auc_score(test.values == levels[1], predictions))
    return result


def select_and_fit(name: str, data: Data, test: Entries, options: argparse.Namespace) -> Result:
    """Chooses the setting with the lowest held-out error, and fits it to all training entries."""
    program = PROGRAMS[name]

    def attempt(train: Entries, test: Entries, setting: Setting) -> Result:
        start = time.monotonic()
        with quiet():
            predictions = program.predict(dataclasses.replace(data, train=train), test, setting, options)
        seconds = time.monotonic() - start
        return {"setting": setting, **scores(train, test, predictions, program.predicts_values), "seconds": seconds}

    held_out = np.random.default_rng(0).random(len(data.train.values)) < HOLDOUT
    settings = program.settings(data)
    trials: list[Result] = []
    begin = time.monotonic()
    for setting in settings:
        longest = max((t["seconds"] for t in trials), default=0.0)
        if time.monotonic() - begin + longest > options.limit / 2:
            break
        trials.append(attempt(data.train.part(~held_out), data.train.part(held_out), setting))
    selection_seconds = time.monotonic() - begin
    best = min(trials, key=lambda t: t["rmse"] if program.predicts_values else -t["auc"])
    notes = [f"{len(trials)} of {len(settings)} settings"]
    if program.matrices_only and data.train.order > 2:
        notes.append("modes 1 and 2 only")
    return {"program": name, "version": importlib.metadata.version(name),
            **attempt(data.train, test, best["setting"]), "selection_seconds": selection_seconds,
            "note": ", ".join(notes), "trials": trials}


def send_result(connection: Connection, *arguments: Any) -> None:
    try:
        connection.send(select_and_fit(*arguments))
    except Exception as error:
        connection.send(error)


def run_peer(name: str, data: Data, test: Entries, options: argparse.Namespace) -> Result:
    """Runs a program in a process of its own, which may crash or run out of time."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=send_result, args=(sender, name, data, test, options))
    process.start()
    sender.close()
    try:
        if not receiver.poll(options.limit):
            raise TimeoutError(f"stopped after {options.limit:.0f} s")
        result = receiver.recv()
    except EOFError:
        process.join()
        raise RuntimeError(f"process ended with exit code {process.exitcode}") from None
    finally:
        process.kill()
        process.join()
    if isinstance(result, Exception):
        raise result
    return result


def run_s3cmtf(algorithm: str, data: Data, options: argparse.Namespace) -> Result:
    def run(*arguments: str) -> str:
        done = subprocess.run([options.s3cmtf, *arguments], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())
        return done.stdout

    fit = ["fit", "--tensor", options.train, "--dims", ",".join(map(str, data.dims)),
           *itertools.chain(*(("--matrix", m) for m in options.matrix)),
           "--seed", str(options.seed), "--threads", str(options.threads)]
    if algorithm == "gibbs":
        fit += ["--algorithm", "gibbs"]
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "model.s3m")
        start = time.monotonic()
        run(*fit, "-o", model)
        seconds = time.monotonic() - start
        errors = json.loads(run("eval", model, options.test, "--json").splitlines()[0])
    result = {"program": f"s3cmtf {algorithm}", "version": run("--version").split()[-1], "command": fit,
              "rmse": errors["clipped_rmse"] if errors["clipped"] else errors["rmse"], "seconds": seconds}
    if "binary" in errors:
        result["auc"] = errors["binary"]["auc"]
    return result


def print_row(result: Result) -> None:
    if "error" in result:
        print(f"{result['program']:13} {'-':>7} {'-':>7} {'-':>8} {'-':>8}  {result['error']}", flush=True)
        return
    rmse, auc = (f"{result[k]:.4f}" if k in result else "-" for k in ("rmse", "auc"))
    selection = f"{result['selection_seconds']:.1f}" if "selection_seconds" in result else "-"
    setting = ", ".join(f"{k} {v}" for k, v in result.get("setting", {}).items())
    about = "; ".join(filter(None, [result["version"], setting, result.get("note")]))
    print(f"{result['program']:13} {rmse:>7} {auc:>7} {result['seconds']:8.1f} {selection:>8}  {about}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--train", required=True, help="training entries, .tns or .tns.gz")
    parser.add_argument("--test", required=True, help="test entries")
    parser.add_argument("--matrix", action="append", default=[], metavar="MODE:FILE",
                        help="matrix whose rows are those of a mode, counted from 1; may be repeated")
    parser.add_argument("--programs", default="fit,gibbs," + ",".join(PROGRAMS), help="default: %(default)s")
    parser.add_argument("--s3cmtf", default="target/release/s3cmtf", help="the program, default: %(default)s")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    parser.add_argument("--limit", type=float, default=600, metavar="SECONDS",
                        help="time of each other program; its selection takes at most half; default: %(default)s")
    parser.add_argument("-o", "--output", help="file for all results, JSON")
    options = parser.parse_args()
    names = options.programs.split(",")
    for name in names:
        if name not in ("fit", "gibbs", *PROGRAMS):
            parser.error(f"unknown program {name}; there are fit, gibbs, {', '.join(PROGRAMS)}")
    train, test = read_tns(options.train), read_tns(options.test)
    if train.order != test.order:
        parser.error(f"{options.test} has {test.order} modes, {options.train} has {train.order}")
    data = read_data(train, test, options.matrix)
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # The programs have threads of their own.
    os.environ["OMP_WAIT_POLICY"] = "passive"  # Barriers that spin take many times as long on a busy machine.

    results = []
    print(f"{'program':13} {'RMSE':>7} {'AUC':>7} {'seconds':>8} {'selected':>8}  version, setting")
    for name in names:
        try:
            result = run_peer(name, data, test, options) if name in PROGRAMS else run_s3cmtf(name, data, options)
        except Exception as error:  # The reason is a row of the table.
            result = {"program": name, "error": f"{type(error).__name__}: {error}"}
        results.append(result)
        print_row(result)
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            json.dump({"options": vars(options), "results": results}, file, indent=1)


if __name__ == "__main__":
    main()
