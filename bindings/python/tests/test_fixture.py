"""The same fit gives the same bits from C and from Python."""

import os

import numpy as np
import pytest

import s3cmtf
from conftest import OPTIONS


def bits(array):
    return np.ascontiguousarray(array, np.float32).view(np.uint32).reshape(-1)


def test_fixture_equals_that_of_c(ratings, kinds):
    path = os.environ.get("S3CMTF_FIXTURE")
    if path is None:
        print("S3CMTF_FIXTURE is not set: factors are not compared with those from C")
        pytest.skip("S3CMTF_FIXTURE is not set")
    model = s3cmtf.fit(ratings, kinds, **OPTIONS)
    found = {f"factor {mode}": bits(model.factor(mode)) for mode in range(3)}
    found["core"] = bits(model.core)
    with open(path, encoding="ascii") as file:
        for line in file:
            words = line.split()
            name = " ".join(words[:2]) if words[0] == "factor" else words[0]
            numbers = words[2:] if words[0] == "factor" else words[1:]
            assert np.array_equal([int(of, 16) for of in numbers], found.pop(name)), name
    assert not found
