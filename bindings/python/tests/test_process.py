"""Threads, forks and interpreters."""

import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import s3cmtf
from conftest import OPTIONS


def in_child(work):
    """Forks, and returns what work() returns or raises in the child."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            result = work()
        except BaseException as failure:
            result = failure
        os.write(writer, pickle.dumps(result))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        content = stream.read()
    assert os.waitpid(child, 0)[1] == 0
    return pickle.loads(content)


forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")


@forks
def test_a_child_uses_objects_made_before_the_fork(model, ratings):
    assert in_child(lambda: model.evaluate(ratings)) == model.evaluate(ratings)
    assert (
        in_child(lambda: s3cmtf.fit(ratings, **OPTIONS).factor(0).tolist()) == s3cmtf.fit(ratings, **OPTIONS).factor(0).tolist()
    )


@forks
def test_fork_during_a_fit(model, ratings):
    started = threading.Event()
    stop = threading.Event()

    def progress(_):
        started.set()
        return stop.is_set()

    thread = threading.Thread(target=s3cmtf.fit, args=(ratings,), kwargs={"epochs": 1000000, "progress": progress})
    thread.start()
    try:
        assert started.wait(60)
        for use in (lambda: model.evaluate(ratings), lambda: s3cmtf.fit(ratings)):
            failure = in_child(use)
            assert isinstance(failure, s3cmtf.ForkError)
            assert "spawn" in str(failure)
    finally:
        stop.set()
        thread.join()
    assert in_child(lambda: model.evaluate(ratings)) == model.evaluate(ratings)


def test_threads_share_a_model(model, ratings):
    expected = model.predict(ratings)
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: model.predict(ratings), range(64)):
            assert np.array_equal(found, expected)


def test_fits_in_several_threads(ratings):
    with ThreadPoolExecutor(4) as pool:
        models = list(pool.map(lambda _: s3cmtf.fit(ratings, **OPTIONS), range(8)))
    assert all(np.array_equal(of.factor(0), models[0].factor(0)) for of in models)


def test_close_while_other_threads_predict(ratings):
    cells = np.zeros((50_000, 3), np.uint32)
    model = s3cmtf.fit(ratings, rank=2, epochs=2)

    def predict(_):
        try:
            return model.predict(cells, threads=1).size
        except s3cmtf.ClosedError:
            return 0

    with ThreadPoolExecutor(4) as pool:
        found = [pool.submit(predict, place) for place in range(40)]
        found[3].result()
        model.close()
        assert {of.result() for of in found} <= {0, 50_000}


def test_errors_belong_to_their_thread(ratings):
    def fail(name):
        with pytest.raises(s3cmtf.ArgumentError, match=name):
            s3cmtf.fit(ratings, **{name: 1})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(fail, [f"wrong_{place}" for place in range(64)]))


def run(code, **environment):
    """Runs a program in another interpreter."""
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, timeout=60
    )


def test_exit_during_a_fit():
    code = (
        "import numpy, s3cmtf, sys, threading; t = s3cmtf.Tensor((numpy.arange(99), numpy.arange(99)))\n"
        "threading.Thread(target=s3cmtf.fit, args=(t,), kwargs=dict(epochs=10**6), daemon=True).start(); sys.exit(3)"
    )
    assert run(code).returncode == 3


def test_another_library():
    wrong = run("import s3cmtf", S3CMTF_LIBRARY="/nonexistent/libs3cmtf.so")
    assert "/nonexistent/libs3cmtf.so" in wrong.stderr
    native = os.path.join(os.path.dirname(s3cmtf.__file__), "_native")
    library = next(name for name in os.listdir(native) if name.endswith((".so", ".dylib", ".dll")))
    right = run("import s3cmtf; print(s3cmtf.__version__)", S3CMTF_LIBRARY=os.path.join(native, library))
    assert right.stdout.strip() == s3cmtf.__version__


def test_import_is_light():
    heavy = ("pandas", "polars", "scipy", "sklearn", "matplotlib", "tqdm")
    code = f"import s3cmtf, sys; print([of for of in {heavy} if of in sys.modules])"
    assert run(code).stdout.strip() == "[]"
