"""Times of the package, for comparison with those of ../fixture/bench.c: the fastest of several repetitions, in seconds.

predict_1m         predicts 1,000,000 cells of a CP model of rank 16 and shape 10,000 x 5,000 x 50
problem_10m        creates a tensor from 10,000,000 entries in arrays of shape 1,000,000 x 100,000 x 100, and a problem
problem_10m_copy   the same with a copy of the arrays, as bench.c does
problem_10m_int64  the same from arrays of int64, the default type of NumPy

With an argument, that program is run as well (cc -O2 ../fixture/bench.c), in turn with this one, and ratios are printed.
"""

import subprocess
import sys
import time

import numpy as np

import s3cmtf
from s3cmtf.matrix import new_problem


def entries(count, shape):
    """The arrays of bench.c."""
    i = np.arange(count, dtype=np.uint64)
    columns = (i * np.uint64(7919) % shape[0], i * np.uint64(104729) % shape[1], i % shape[2])
    return tuple(column.astype(np.uint32) for column in columns), (i % 5 + 1).astype(np.float32)


def fastest(work, repeats):
    """The smallest time of a function."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - start)
        del result
    return min(times)


def measure():
    """The times by name."""
    small, large = np.array([10000, 5000, 50], np.uint64), np.array([1000000, 100000, 100], np.uint64)
    cells, stars = entries(1_000_000, small)
    training = s3cmtf.Tensor(tuple(of[:200_000] for of in cells), stars[:200_000], shape=small)
    model = s3cmtf.fit(training, model="cp", rank=16, epochs=2, seed=7)
    found = {"predict_1m": fastest(lambda: model.predict(cells), 7)}
    columns, values = entries(10_000_000, large)
    wide = tuple(of.astype(np.int64) for of in columns)

    def problem(indices, copy):
        return new_problem(s3cmtf.Tensor(indices, values, shape=large, copy=copy), ())

    found["problem_10m"] = fastest(lambda: problem(columns, False), 4)
    found["problem_10m_copy"] = fastest(lambda: problem(columns, True), 4)
    found["problem_10m_int64"] = fastest(lambda: problem(wide, False), 4)
    return found


def reference(program):
    """The times of bench.c by name."""
    lines = subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    return {name: float(seconds) for name, seconds in (line.split() for line in lines)}


def main():
    if len(sys.argv) < 2:
        for name, seconds in measure().items():
            print(f"{name} {seconds:.6f}")
        return
    rounds = [(measure(), reference(sys.argv[1])) for _ in range(3)]
    for name in rounds[0][0]:
        here = min(of[name] for of, _ in rounds)
        there = min(of["predict_1m" if name == "predict_1m" else "problem_10m"] for _, of in rounds)
        print(f"{name} {here:.6f}, from C {there:.6f}, ratio {here / there:.2f}")


if __name__ == "__main__":
    main()
