"""The results of `s3cmtf-reproduction`: rows of other programs are added to results.json."""

import argparse
import fcntl
import itertools
import json
import os
import shlex
import tempfile
from typing import IO, Any

FIGURE = "accuracy"
FIGURES = (FIGURE, "sals", "iteration-time", "dimensionality", "entries", "cores", "gap")

OK, OUT_OF_MEMORY, OUT_OF_TIME, NOT_SUPPORTED, FAILED = "ok", "O.O.M.", "O.O.T.", "not supported", "failed"

Measurement = dict[str, Any]


class NotResults(Exception):
    """The file cannot be read or written, is not one of `s3cmtf-reproduction`, or does not have the data set."""


def load(path: str, data_name: str) -> dict[str, Any]:
    """Reads results.json, which must have measurements of the data set."""
    try:
        with open(path, encoding="utf-8") as file:
            results = json.load(file)
    except OSError as error:
        raise NotResults(f"cannot open {path}: {error.strerror}; s3cmtf-reproduction {FIGURE} makes it") from None
    except ValueError as error:
        raise NotResults(f"{path} is not a file of results: {error}") from None
    if not isinstance(results, dict) or not isinstance(results.get("measurements"), list):
        raise NotResults(f"{path} is not a file of results: it has no list of measurements")
    for number, measurement in enumerate(results["measurements"], start=1):
        fault = fault_of(measurement)
        if fault:
            raise NotResults(f"{path} is not a file of results: measurement {number} {fault}")
    names = list(dict.fromkeys(m["data"] for m in results["measurements"] if m["figure"] == FIGURE))
    if data_name not in names:
        known = f"it has {', '.join(names)}" if names else f"s3cmtf-reproduction {FIGURE} makes them"
        raise NotResults(f"{path} has no measurements of {FIGURE} on the data set {data_name}; {known}")
    return results


def fault_of(measurement: Any) -> str | None:
    """Says what is wrong with a measurement."""
    if not isinstance(measurement, dict):
        return "is not an object"
    for name in ("figure", "data", "method", "status"):
        if not isinstance(measurement.get(name), str):
            return f"has no {name}"
    if measurement["figure"] not in FIGURES:
        return f"has the unknown figure {measurement['figure']}"
    return None


def lock(path: str) -> IO[str]:
    """Locks the folder of results.json as `s3cmtf-reproduction` does, until the file that it returns is closed."""
    name = os.path.join(os.path.dirname(os.path.abspath(path)), "results.lock")
    try:
        file = open(name, "a", encoding="utf-8")
    except OSError as error:
        raise NotResults(f"cannot write {name}: {error.strerror}") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise NotResults(f"another process writes to {path}; wait for it") from None
    except OSError:
        pass  # Some file systems have no locks.
    return file


def append(path: str, data_name: str, method: str, fields: Measurement) -> None:
    """Adds a measurement, or replaces the earlier one of the same method and data set."""
    results = load(path, data_name)
    key = {"figure": FIGURE, "data": data_name, "method": method}
    rows = results["measurements"]
    place = next((k for k, m in enumerate(rows) if m.items() >= key.items()), len(rows))
    rows[place:place + 1] = [key | fields]
    try:
        write_atomically(path, json.dumps(results, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    except OSError as error:
        raise NotResults(f"cannot write {path}: {error.strerror}") from None


def recorded_command(name: str, options: argparse.Namespace) -> str:
    """Returns the command that runs a program on a data set. Files are in a folder with the name of the data set, as in the commands
    of `s3cmtf-reproduction`, so that results have no paths of the machine."""
    def relative(path: str) -> str:
        return f"{options.data_name}/{os.path.basename(path)}"

    def matrix(argument: str) -> str:
        mode, _, path = argument.partition(":")
        return f"{mode}:{relative(path)}"

    return shlex.join([
        "python3", "reproduction/peers/compare.py", "--train", relative(options.train), "--test", relative(options.test),
        *itertools.chain(*(("--matrix", matrix(m)) for m in options.matrix)), "--programs", name,
        "--threads", str(options.threads), "--seed", str(options.seed), "--limit", f"{options.limit:g}"])


def write_atomically(path: str, text: str) -> None:
    """Writes another file and renames it, so that an interruption leaves the old file or the new one."""
    path = os.path.realpath(path)
    mode = os.stat(path).st_mode & 0o777
    descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".results.")
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            os.fchmod(file.fileno(), mode)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
