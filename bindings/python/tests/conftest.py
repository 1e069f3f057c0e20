"""Data of the tests: ten ratings by each of 60 users, who like either the even or the odd films."""

import sys
from pathlib import Path

import numpy as np
import pytest

import s3cmtf

sys.path.insert(0, str(Path(__file__).parent))

OPTIONS = {"rank": 4, "epochs": 20, "model": "tucker", "seed": 7}


def columns():
    """The indices of users, films and months, and the values."""
    i = np.arange(600)
    user = i // 10
    film = (3 * i + user // 2) % 40
    month = i % 6
    return user, film, month, np.where((user + film) % 2, 2, 5).astype(np.float32)


@pytest.fixture(scope="session")
def ratings():
    user, film, month, stars = columns()
    return s3cmtf.Tensor((user, film, month), stars)


@pytest.fixture(scope="session")
def kinds():
    film = np.arange(40, dtype=np.uint32)
    return s3cmtf.Matrix(s3cmtf.Tensor((film, film % 2)), 1, "full")


@pytest.fixture(scope="session")
def model(ratings, kinds):
    return s3cmtf.fit(ratings, kinds, **OPTIONS)


@pytest.fixture(scope="session")
def gibbs(ratings):
    return s3cmtf.fit(ratings, algorithm="gibbs", rank=3, samples=10)


def named():
    """The same ratings with names of users and films, as columns of a frame."""
    user, film, month, stars = columns()
    return {
        "user": [f"user {of}" for of in user],
        "film": [f"film {of}" for of in film],
        "month": month,
        "stars": stars,
    }


@pytest.fixture(scope="session")
def frame():
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(named())


@pytest.fixture(scope="session")
def named_model(frame):
    return s3cmtf.fit(s3cmtf.Tensor.from_frame(frame), **OPTIONS)
