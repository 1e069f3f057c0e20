"""Times of the package, for ../bench.sh: the fastest of several repetitions, in seconds. ../fixture/bench.c describes the data.

predict_1m         predicts 1,000,000 cells
problem_10m        creates a tensor from 10,000,000 entries, with a copy of the arrays as in C, and a problem
problem_10m_view   the same without a copy, the default
problem_10m_int64  the same from arrays of int64, the default type of NumPy
"""

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


def main():
    small, large = np.array([10000, 5000, 50], np.uint64), np.array([1000000, 100000, 100], np.uint64)
    cells, stars = entries(1_000_000, small)
    training = s3cmtf.Tensor(tuple(of[:200_000] for of in cells), stars[:200_000], shape=small)
    model = s3cmtf.fit(training, model="cp", rank=16, epochs=2, seed=7)
    print(f"predict_1m {fastest(lambda: model.predict(cells), 30):.6f}")

    columns, values = entries(10_000_000, large)
    wide = tuple(of.astype(np.int64) for of in columns)

    def problem(indices, copy):
        return new_problem(s3cmtf.Tensor(indices, values, shape=large, copy=copy), ())

    print(f"problem_10m {fastest(lambda: problem(columns, True), 4):.6f}")
    print(f"problem_10m_view {fastest(lambda: problem(columns, False), 4):.6f}")
    print(f"problem_10m_int64 {fastest(lambda: problem(wide, False), 4):.6f}")


if __name__ == "__main__":
    main()
