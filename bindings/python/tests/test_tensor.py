"""Tensors from arrays, sparse matrices and files."""

import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import s3cmtf
from conftest import columns


def test_arrays_of_modes(ratings):
    user, film, month, stars = columns()
    assert ratings.shape == (60, 40, 6)
    assert ratings.order == 3
    assert ratings.nnz == len(ratings) == 600
    for found, given in zip(ratings.indices, (user, film, month)):
        assert np.array_equal(found, given)
    assert np.array_equal(ratings.values, stars)
    assert ratings.weights is None
    assert repr(ratings) == "Tensor(60 x 40 x 6, 600 entries, float32)"
    assert "<table>" in ratings._repr_html_()


@pytest.mark.parametrize("kind", ["i1", "u2", "i4", "u4", "i8", "u8", "f8", ">i4", ">u8"])
def test_types_of_indices(kind, ratings):
    user, film, month, stars = columns()
    tensor = s3cmtf.Tensor(tuple(of.astype(kind) for of in (user, film, month)), stars)
    assert all(np.array_equal(a, b) for a, b in zip(tensor.indices, ratings.indices))


@pytest.mark.parametrize("kind", ["f2", "f4", "f8", "i4", "u1", "?", ">f4"])
def test_types_of_values(kind):
    tensor = s3cmtf.Tensor(([0, 1, 2], [0, 1, 0]), np.array([0, 1, 1]).astype(kind))
    assert tensor.values.tolist() == [0, 1, 1]
    assert tensor.values.dtype == (np.float32 if kind in ("f2", "f4", ">f4") else np.float64)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", ["u4", "i8"])
def test_array_with_one_row_per_entry(order, kind, ratings):
    user, film, month, stars = columns()
    array = np.stack([user, film, month], axis=1).astype(kind, order=order)
    tensor = s3cmtf.Tensor(array, stars)
    assert all(np.array_equal(a, b) for a, b in zip(tensor.indices, ratings.indices))
    assert np.array_equal(s3cmtf.Tensor(array[::-1], stars[::-1]).values, stars[::-1])


def test_arrays_are_used_in_place():
    indices = tuple(np.arange(5, dtype=kind) for kind in (np.uint32, np.int32))
    for kind in (np.float32, np.float64):
        values = np.arange(5, dtype=kind)
        tensor = s3cmtf.Tensor(indices, values, weights=values)
        assert np.shares_memory(tensor.values, values)
        assert np.shares_memory(tensor.weights, values)
        assert all(np.shares_memory(a, b) for a, b in zip(tensor.indices, indices))
        copied = s3cmtf.Tensor(indices, values, copy=True)
        assert not np.shares_memory(copied.values, values)


def test_arrays_of_a_tensor_keep_it_alive():
    values = s3cmtf.Tensor((np.arange(5), np.arange(5)), np.arange(5.0)).values
    assert values.tolist() == [0, 1, 2, 3, 4]
    assert not values.flags.writeable


def test_default_value_shape_and_weights():
    tensor = s3cmtf.Tensor(([0, 3], [1, 0]), shape=(10, 4), weights=[1, 2])
    assert tensor.shape == (10, 4)
    assert tensor.values.tolist() == [1, 1]
    assert tensor.weights.tolist() == [1, 2]
    assert tensor.with_weights([3, 4]).weights.tolist() == [3, 4]


def test_check_and_summary(ratings):
    assert ratings.check() == s3cmtf.Faults(0, 0, 0, 0, 0)
    summary = ratings.summary()
    assert (summary.min, summary.max, summary.mean, summary.rows_used) == (2, 5, 3.5, (60, 40, 6))
    repeated = s3cmtf.Tensor(([0, 0, 1], [1, 1, 1]), [1.0, np.nan, 2.0]).check()
    assert (repeated.not_finite, repeated.duplicate_cells, repeated.surplus_entries) == (1, 1, 1)


def test_fixed():
    tensor = s3cmtf.Tensor(([0, 0, 1, 2], [1, 1, 1, 0]), [1.0, 3.0, np.nan, 4.0], shape=(5, 3))
    for keep, value in (("mean", 2), ("first", 1), ("last", 3)):
        fixed = tensor.fixed(keep)
        assert sorted(fixed.values) == [value, 4]
        assert fixed.shape == (5, 3)


def test_weights_from_a_tensor():
    tensor = s3cmtf.Tensor(([0, 1], [0, 1]), [1.0, 2.0])
    assert tensor.with_weights(s3cmtf.Tensor(([0, 1], [0, 1]), [3.0, 4.0])).weights.tolist() == [3, 4]
    with pytest.raises(s3cmtf.EntryError):
        tensor.with_weights(s3cmtf.Tensor(([0, 1], [1, 1]), [3.0, 4.0]))


def test_split(ratings):
    train, test, valid = ratings.split(0.2, 0.1, seed=3)
    assert [of.nnz for of in (train, test, valid)] == [420, 120, 60]
    assert train.shape == test.shape == valid.shape == ratings.shape
    assert np.array_equal(ratings.split(0.2, 0.1, seed=3)[1].indices[0], test.indices[0])
    assert len(ratings.split(0.5)) == 2
    train, test = ratings.split(0.1, latest_per=0, by=2)
    for user in range(60):
        assert train.indices[2][train.indices[0] == user].max() <= test.indices[2][test.indices[0] == user].min()


def test_scipy_sparse():
    sparse = pytest.importorskip("scipy.sparse")
    dense = np.array([[0, 1.5, 0], [2, 0, 3]])
    for make in (sparse.coo_matrix, sparse.csr_matrix, sparse.csc_matrix, sparse.coo_array, sparse.csr_array):
        tensor = s3cmtf.Tensor.from_scipy(make(dense))
        assert tensor.shape == (2, 3)
        found = np.zeros((2, 3))
        found[tensor.indices] = tensor.values
        assert np.array_equal(found, dense)
    summed = s3cmtf.Tensor.from_scipy(sparse.coo_matrix(([1.0, 2.0], ([0, 0], [1, 1])), shape=(2, 2)))
    assert summed.values.tolist() == [3]


def test_files(ratings, tmp_path):
    path = tmp_path / "ratings.coo"
    ratings.save(path)
    for mapped in (True, False):
        opened = s3cmtf.Tensor.open(path, mapped=mapped, modes=["user", "film", "month"])
        assert opened.shape == ratings.shape
        assert opened.modes == ("user", "film", "month")
        assert np.array_equal(opened.values, ratings.values)
    text = tmp_path / "ratings.tns"
    s3cmtf.convert(path, text)
    assert np.array_equal(s3cmtf.Tensor.open(text).indices[1], ratings.indices[1])


def test_values_of_text_are_doubles(tmp_path):
    path = tmp_path / "x.data"
    path.write_text("user,film,stars\n1,1,4.1\n2,2,16777217\n")
    assert s3cmtf.Tensor.open(path, format="csv").values.tolist() == [4.1, 16777217]
    single = s3cmtf.Tensor.open(path, format="csv", dtype=np.float32)
    assert single.values.dtype == np.float32
    with pytest.raises(s3cmtf.ArgumentError, match="float32 or float64, not int32"):
        s3cmtf.Tensor.open(path, dtype="i4")
    single.save(tmp_path / "x.coo")
    with pytest.raises(s3cmtf.ArgumentError, match="binary file, which has its own type of values; dtype is for text"):
        s3cmtf.Tensor.open(tmp_path / "x.coo", dtype=np.float64)


def test_options_for_text_are_documented():
    header = (Path(__file__).resolve().parents[3] / "include" / "s3cmtf.h").read_text(encoding="utf-8")
    listed = header[header.index("/** Sets an option. S3CMTF_BAD_ARGUMENT") : header.index("int32_t s3cmtf_text_set(")]
    names = set(re.findall(r'"(\w+)"', " ".join(re.findall(r'- ("[^:]*"):', listed)))) - {"from", "values"}
    assert len(names) > 15
    assert not [name for name in names if not re.search(rf"^ *- .*\b{name}\b", s3cmtf.Tensor.open.__doc__, re.MULTILINE)]


def test_text_with_names(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text("guest,place,day,stars\nanna,Fork,2024-03-01,5\nben,Mill,2024-03-12,4\n")
    visits = s3cmtf.Tensor.open(path, columns=["guest", "place", "day"], value="stars", time="day:week")
    assert list(visits.labels[0]) == ["anna", "ben"]
    assert list(visits.labels[2]) == ["2024-W09", "2024-W10", "2024-W11"]
    visits.save(tmp_path / "visits.coo")
    assert list(s3cmtf.Tensor.open(tmp_path / "visits.coo").labels[1]) == ["Fork", "Mill"]


def test_labels_survive_files(tmp_path):
    labels = ["a\tb", "c\\d", "e\nf", "ü"]
    tensor = s3cmtf.Tensor(([0, 1, 2, 3], [0, 1, 0, 1]), labels=[labels, None])
    tensor.save(tmp_path / "odd.coo")
    assert list(s3cmtf.Tensor.open(tmp_path / "odd.coo").labels[0]) == labels


def test_entries_as_a_frame():
    pytest.importorskip("pandas")
    frame = s3cmtf.Tensor((["a", "b"], [0, 1]), [1.0, 2.0], weights=[3, 4]).to_pandas()
    assert frame.to_dict("list") == {"mode 0": ["a", "b"], "mode 1": [0, 1], "value": [1, 2], "weight": [3, 4]}


def test_pickle(ratings):
    weighted = s3cmtf.Tensor((["a", "b"], [0, 1]), [1.0, 2.0], weights=[3, 4], modes=["x", "y"])
    copy = pickle.loads(pickle.dumps(weighted))
    assert (copy.shape, copy.modes, list(copy.labels[0])) == (weighted.shape, ("x", "y"), ["a", "b"])
    assert copy.weights.tolist() == [3, 4]
    assert np.array_equal(pickle.loads(pickle.dumps(ratings)).indices[1], ratings.indices[1])


def test_close():
    with s3cmtf.Tensor(([0, 1], [0, 1])) as tensor:
        values = tensor.values
    tensor.close()
    assert tensor.closed
    assert values.tolist() == [1, 1]
    assert repr(tensor) == "Tensor(closed)"
    with pytest.raises(s3cmtf.ClosedError, match="the tensor has been closed"):
        len(tensor)
