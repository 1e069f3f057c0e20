"""The option table."""

import inspect

import numpy as np
import pytest

import s3cmtf


def test_table():
    table = s3cmtf.options()
    assert table["epochs"] == s3cmtf.Option("epochs", "int", 30, table["epochs"].help, 0, 1000000, ())
    assert table["algorithm"].choices[0] == "blocked"
    assert table["rank"].default == "auto"
    assert table["mean"].default is True
    assert "epochs" in repr(table)
    assert "<table>" in table._repr_html_()
    assert "paper" in s3cmtf.presets()


def test_kernels():
    assert {"scalar", "wide"} <= set(s3cmtf.kernels()) <= set(s3cmtf.options()["kernel"].choices)
    assert s3cmtf.__version__ in s3cmtf.build_info()


def test_documentation_has_all_options():
    for name, option in s3cmtf.options().items():
        assert f"{name}: {option.help}" in s3cmtf.fit.__doc__
        assert name in inspect.signature(s3cmtf.S3CMTF).parameters


def test_values(ratings):
    given = dict(rank=np.array([2, 3, 2]), epochs=np.int32(3), eta=np.float64(0.01), biases=False, model="tucker", clip=None)
    found = s3cmtf.fit(ratings, **given).options
    assert (found["rank"], found["epochs"], found["eta"], found["biases"]) == ([2, 3, 2], 3, 0.01, False)


def test_presets(ratings):
    model = s3cmtf.fit(ratings, preset="paper", rank=2, epochs=2)
    assert model.options["mean"] is False
    assert model.biases(0).size == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rnak": 4}, "rnak"),
        ({"rank": 0}, "rank"),
        ({"epochs": -1}, "epochs"),
        ({"epochs": "many"}, "many"),
        ({"algorithm": "magic"}, "magic"),
        ({"eta": float("nan")}, "eta"),
        ({"preset": "none"}, "none"),
        ({"rank": [2, 2]}, "rank"),
    ],
)
def test_bad_options(options, message, ratings):
    with pytest.raises(s3cmtf.ArgumentError, match=message) as failure:
        s3cmtf.fit(ratings, **options)
    assert isinstance(failure.value, ValueError)
    assert failure.value.status == "S3CMTF_BAD_ARGUMENT"


def test_option_of_another_type(ratings):
    with pytest.raises(TypeError, match="not dict"):
        s3cmtf.fit(ratings, rank={})
