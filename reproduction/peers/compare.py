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
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

import reproduction
from data import BadInput, Data, Entries, read_data, read_tns
from programs import PROGRAMS, NotSupported, Setting

HOLDOUT = 0.1  # Fraction of the training entries that selects a setting.

Result = dict[str, Any]


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
    # Some settings diverge.
    best = min(trials, key=lambda t: np.nan_to_num(t["rmse"] if program.predicts_values else -t["auc"], nan=np.inf))
    fitted = attempt(data.train, test, best["setting"])
    if not np.isfinite(fitted.get("rmse", 0.0)):
        raise ArithmeticError("predictions are not finite")
    notes = [f"{len(trials)} of {len(settings)} settings"]
    if not program.factorizes_tensors and data.train.order > 2:
        notes.append("modes 1 and 2 only")
    if not program.uses_matrices and data.features:
        notes.append("no matrices")
    return {**fitted, "selection_seconds": selection_seconds,
            "peak_memory_bytes": peak_memory(), "note": ", ".join(notes), "trials": trials}


def peak_memory() -> int | None:
    """Returns the peak memory of this process in bytes, where the system reports it."""
    try:
        with open("/proc/self/status", encoding="ascii") as file:
            return next((int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM:")), None)
    except OSError:
        return None


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
        process.join(10)  # Libraries release their semaphores.
    except EOFError:
        process.join()
        if process.exitcode == -signal.SIGKILL:
            raise MemoryError("the system killed the process") from None
        raise RuntimeError(f"process ended with exit code {process.exitcode}") from None
    finally:
        process.kill()
        process.join()
    if isinstance(result, Exception):
        raise result
    return result


def run(name: str, data: Data, test: Entries, options: argparse.Namespace) -> Result:
    """Runs s3cmtf or another program. What has no result has a status and a reason."""
    if name not in PROGRAMS:
        head = {"program": f"s3cmtf {name}"}
    else:
        head = {"program": name, "version": version(name)}
    try:
        result = run_peer(name, data, test, options) if name in PROGRAMS else run_s3cmtf(name, data, options)
        return {**head, "status": reproduction.OK, **result}
    except NotSupported as error:
        return {**head, "status": reproduction.NOT_SUPPORTED, "message": str(error)}
    except MemoryError as error:
        return {**head, "status": reproduction.OUT_OF_MEMORY, "message": str(error)}
    except TimeoutError as error:
        return {**head, "status": reproduction.OUT_OF_TIME, "message": str(error)}
    except Exception as error:
        return {**head, "status": reproduction.FAILED, "message": f"{type(error).__name__}: {error}"}


def version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def run_s3cmtf(algorithm: str, data: Data, options: argparse.Namespace) -> Result:
    def call(*arguments: str) -> str:
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
        call(*fit, "-o", model)
        seconds = time.monotonic() - start
        errors = json.loads(call("eval", model, options.test, "--json").splitlines()[0])
    result = {"version": call("--version").split()[-1], "command": fit,
              "rmse": errors["clipped_rmse"] if errors["clipped"] else errors["rmse"], "seconds": seconds}
    if "binary" in errors:
        result["auc"] = errors["binary"]["auc"]
    return result


def setting_text(result: Result) -> str:
    return ", ".join(f"{name} {value}" for name, value in result.get("setting", {}).items())


def print_row(result: Result) -> None:
    def number(name: str, digits: int) -> str:
        return f"{result[name]:.{digits}f}" if name in result else "-"

    about = filter(None, [result.get("version"), setting_text(result), result.get("note")])
    if result["status"] != reproduction.OK:
        about = [f"{result['status']}: {result['message']}"]
    print(f"{result['program']:13} {number('rmse', 4):>7} {number('auc', 4):>7} {number('seconds', 1):>8} "
          f"{number('selection_seconds', 1):>8}  {'; '.join(about)}", flush=True)


def measurement(name: str, result: Result, options: argparse.Namespace) -> reproduction.Measurement:
    """Returns what results.json has about another program."""
    command = reproduction.recorded_command(name, options)
    fields = {"status": result["status"], "version": result["version"], "command": command,
              "limit_seconds": options.limit, "threads": options.threads}
    if result["status"] != reproduction.OK:
        return fields | {"message": result["message"]}
    remarks = [PROGRAMS[name].ended_by, f"version {result['version']}", result["note"]]
    if "auc" in result:
        remarks.append(f"AUC {result['auc']:.4f}")
    return fields | {
        "test_rmse": result.get("rmse"), "auc": result.get("auc"), "seconds": result["seconds"],
        "selection_seconds": result["selection_seconds"], "peak_memory_bytes": result["peak_memory_bytes"],
        "trials": len(result["trials"]), "options": setting_text(result),
        "reason": "; ".join(remarks)}


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
    parser.add_argument("--append", metavar="FILE", help="results.json of s3cmtf-reproduction, to add the other programs to")
    parser.add_argument("--data-name", metavar="NAME", help="the data set in that file")
    options = parser.parse_args()
    if (options.append is None) != (options.data_name is None):
        parser.error("--append and --data-name belong together")
    names = options.programs.split(",")
    for name in names:
        if name not in ("fit", "gibbs", *PROGRAMS):
            parser.error(f"unknown program {name}; there are fit, gibbs, {', '.join(PROGRAMS)}")
    if options.append:
        try:
            reproduction.load(options.append, options.data_name)
            lock = reproduction.lock(options.append)
        except reproduction.NotResults as error:
            parser.error(str(error))
    try:
        train, test = read_tns(options.train), read_tns(options.test)
        if train.order != test.order:
            parser.error(f"{options.test} has {test.order} modes, {options.train} has {train.order}")
        data = read_data(train, test, options.matrix)
    except BadInput as error:
        parser.error(str(error))
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # The programs have threads of their own.
    os.environ["OMP_WAIT_POLICY"] = "passive"  # Barriers that spin take many times as long on a busy machine.

    results = []
    print(f"{'program':13} {'RMSE':>7} {'AUC':>7} {'seconds':>8} {'selected':>8}  version, setting")
    for name in names:
        result = run(name, data, test, options)
        results.append(result)
        print_row(result)
        if options.append and name in PROGRAMS:
            row = measurement(name, result, options)
            try:
                reproduction.append(options.append, options.data_name, PROGRAMS[name].title, row)
            except reproduction.NotResults as error:
                parser.error(str(error))
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            json.dump({"options": vars(options), "results": results}, file, indent=1)
    if options.append:
        lock.close()


if __name__ == "__main__":
    main()
