"""Rows of several inputs: matched by name if both have names, otherwise by number."""

import warnings

import numpy as np
import pytest

import s3cmtf
from conftest import OPTIONS, columns
from s3cmtf import ArgumentError, Graph, Matrix, Model, S3cmtfWarning, Tensor

FILMS = [f"film {of}" for of in range(40)]
ORDER = np.random.default_rng(1).permutation(40)


def shuffled(tensor, modes=(1,)):
    """The same entries with other row numbers, and their names."""
    indices, labels = list(tensor.indices), list(tensor.labels)
    for mode in modes:
        indices[mode] = ORDER[indices[mode]].astype(np.uint32)
        labels[mode] = [labels[mode][row] for row in np.argsort(ORDER)]
    return Tensor(tuple(indices), tensor.values, shape=tensor.shape, labels=labels)


@pytest.fixture(scope="module")
def train():
    user, film, month, stars = columns()
    return Tensor((user, film, month), stars, shape=(60, 40, 6), labels=[None, FILMS, None])


@pytest.fixture(scope="module")
def held_out(train):
    return Tensor(tuple(of[::7] for of in train.indices), train.values[::7] + 0.25, shape=train.shape, labels=train.labels)


@pytest.fixture(scope="module")
def genres():
    film = np.arange(40)
    return Tensor((film, film % 2), labels=[FILMS, ["even", "odd"]])


@pytest.fixture(scope="module")
def pairs():
    return Tensor((np.arange(38), np.arange(2, 40)), shape=(40, 40), labels=[FILMS, FILMS])


def saved(tensor, folder, name):
    """The tensor, read from a file with files of names beside it."""
    tensor.save(folder / name)
    return Tensor.open(folder / name)


def errors(*arguments, **named):
    """The errors of a fit, without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        record = s3cmtf.fit(*arguments, **{**OPTIONS, "algorithm": "blocked"}, **named).record
    return [record[name] for name in ("train_rmse", "valid_rmse", "test_rmse")]


def test_the_order_of_names_does_not_matter(train, held_out, genres, pairs, tmp_path):
    coupled = [Matrix(genres, 1, "full", weight=1), Graph(pairs, 1, weight=0.1)]
    expected = errors(train, coupled, test=held_out, valid=held_out)
    assert np.isfinite(expected).all()
    other = [saved(shuffled(of), tmp_path, f"{place}.coo") for place, of in enumerate((held_out, held_out))]
    mixed = [
        Matrix(saved(shuffled(genres, (0,)), tmp_path, "kinds.coo"), 1, "full", weight=1),
        Graph(saved(shuffled(pairs, (0, 1)), tmp_path, "pairs.coo"), 1, weight=0.1),
    ]
    assert errors(train, [mixed[0], coupled[1]], test=held_out, valid=held_out) == pytest.approx(expected, rel=1e-6)
    assert errors(train, [coupled[0], mixed[1]], test=held_out, valid=held_out) == pytest.approx(expected, rel=1e-6)
    assert errors(train, coupled, test=other[0], valid=held_out) == expected
    assert errors(train, coupled, test=held_out, valid=other[1]) == expected
    # One side of a graph.
    assert errors(train, [coupled[0], Graph(shuffled(pairs), 1, weight=0.1)], test=held_out, valid=held_out) == pytest.approx(
        expected
    )


def test_the_order_of_names_does_not_matter_to_a_model(train, held_out, genres, tmp_path):
    s3cmtf.fit(train, Matrix(genres, 1, "full", weight=1), **OPTIONS).save(tmp_path / "model.s3m")
    model, other = Model.load(tmp_path / "model.s3m"), shuffled(held_out)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(model.predict(other), model.predict(held_out))
        assert model.evaluate(other) == model.evaluate(held_out)
        assert model.evaluate_binary(other) == model.evaluate_binary(held_out)
        ranking = {"mode": 1, "user_mode": 0}
        assert model.evaluate_ranking(other, shuffled(train), **ranking) == model.evaluate_ranking(held_out, train, **ranking)
        lists = [model.recommend(1, {0: 3}, exclude=of).rows.tolist() for of in (train, shuffled(train))]
        assert lists[0] == lists[1]
        new = [
            Tensor((np.full(9, 60), *(of[:9] for of in tensor.indices[1:])), tensor.values[:9], labels=tensor.labels)
            for tensor in (held_out, other)
        ]
        folded = [model.fold_in(0, of).factor(0) for of in new]
        assert np.array_equal(*folded)
        clusters = [model.clusters(1, 2, matrices=of).information for of in (genres, shuffled(genres, (0,)))]
        assert np.array_equal(*clusters)
        film = [model.fold_in(1, matrices=Matrix(Tensor((["new"], [1]), labels=[["new"], of]), 1)) for of in (["even", "odd"],)]
        assert film[0].labels[1][40] == "new"


def test_rows_that_only_a_matrix_has(train):
    matrix = Matrix(Tensor((["new", "film 7", "film 3"], ["even", "odd", "odd"])), 1, "full", weight=1)
    unsized = Tensor(train.indices, train.values, labels=train.labels)
    with pytest.warns(S3cmtfWarning) as found:
        model = s3cmtf.fit(unsized, matrix, rank=2, epochs=2)
    assert [str(of.message) for of in found] == [
        "mode 1: rows are matched by name: 2 in both the tensor and matrix 0, 38 only in the tensor, 1 only in matrix 0 (such as"
        " 'new'), appended to the mode"
    ]
    assert found[0].filename == __file__
    assert (model.shape, model.labels[1][40], 40 in model.rows(1)) == ((60, 41, 6), "new", True)
    with pytest.raises(ArgumentError, match="a matrix has 41 rows, but mode 1 has 40"), pytest.warns(S3cmtfWarning):
        s3cmtf.fit(train, matrix, rank=2, epochs=2)


def test_rows_that_only_entries_have(train, named_model, frame):
    test = Tensor(([0, 1], ["film 3", "new"], [0, 1]), [1.0, 2.0])
    report = r"1 in both .*, 39 only in the \w+, 1 only in \w+ \(such as 'new'\), unseen: they count as the mean row"
    with pytest.warns(S3cmtfWarning, match=report):
        model = s3cmtf.fit(train, test=test, **OPTIONS)
    with pytest.warns(S3cmtfWarning, match=report):
        predicted = model.predict(test)
    assert predicted[1] == model.predict((1, 1000, 1))[0]
    assert model.shape == train.shape
    with pytest.warns(S3cmtfWarning, match="such as 'new user'"):
        named_model.predict(frame.iloc[:2].assign(user=["user 1", "new user"]))


def test_no_name_in_common(train, model):
    other = Tensor(([0, 1], ["x", "y"], [0, 1]), [1.0, 2.0])
    named = s3cmtf.fit(train, rank=2, epochs=2)
    message = "mode 1: the {0} and {1} have no name in common; names are such as 'film 0' in the {0} and 'x' in {1}"
    matrix = Tensor((["x", "y"], [0, 1]))
    graph = Graph(Tensor((["x", "y"], ["y", "x"])), 1)
    for known, what, use in (
        ("tensor", "matrix 0", lambda: s3cmtf.fit(train, Matrix(matrix, 1))),
        ("tensor", "matrix 0", lambda: s3cmtf.fit(train, graph)),
        ("tensor", "test", lambda: s3cmtf.fit(train, test=other)),
        ("tensor", "valid", lambda: s3cmtf.fit(train, valid=other)),
        ("tensor", "valid", lambda: s3cmtf.tune(train, valid=other)),
        ("model", "cells", lambda: named.predict(other)),
        ("model", "entries", lambda: named.evaluate(other)),
        ("model", "exclude", lambda: named.recommend(1, {0: 0}, exclude=other)),
        ("model", "train", lambda: named.evaluate_ranking(train, other, mode=1)),
        ("model", "tensor", lambda: named.fold_in(0, other)),
        ("model", "matrix 0", lambda: named.clusters(1, 2, matrices=matrix)),
    ):
        with pytest.raises(ArgumentError) as failure:
            use()
        assert str(failure.value) == message.format(known, what)


def test_names_on_one_side(train, held_out, genres, model):
    bare = Tensor(train.indices, train.values, shape=train.shape)
    message = "mode 1: there are names in {} and none in {}; rows are matched by number"
    named, numbers = s3cmtf.fit(train, rank=2, epochs=2), Matrix(Tensor(genres.indices), 1, "full", weight=1)
    for with_names, without, use in (
        ("the tensor", "matrix 0", lambda: s3cmtf.fit(train, numbers, rank=2, epochs=2)),
        ("matrix 0", "the tensor", lambda: s3cmtf.fit(bare, Matrix(genres, 1, "full", weight=1), rank=2, epochs=2)),
        ("the tensor", "test", lambda: s3cmtf.fit(train, test=bare, rank=2, epochs=2)),
        ("valid", "the tensor", lambda: s3cmtf.fit(bare, valid=train, rank=2, epochs=2)),
        ("the tensor", "init", lambda: s3cmtf.fit(train, init=s3cmtf.fit(bare, rank=2, epochs=2), rank=2, epochs=2)),
        ("the model", "cells", lambda: named.predict(bare)),
        ("entries", "the model", lambda: model.evaluate(train)),
    ):
        with pytest.warns(S3cmtfWarning) as found:
            use()
        assert [str(of.message) for of in found] == [message.format(with_names, without)]
    with pytest.warns(S3cmtfWarning):
        by_number = [
            s3cmtf.fit(train, numbers, **OPTIONS),
            s3cmtf.fit(bare, Matrix(shuffled(genres, (0,)), 1, "full", weight=1), **OPTIONS),
        ]
    assert np.array_equal(by_number[0].factor(1), s3cmtf.fit(bare, numbers, **OPTIONS).factor(1))
    assert by_number[1].labels[1] is None


def test_no_names(train):
    sized = Tensor(train.indices, train.values, shape=train.shape)
    with pytest.raises(ArgumentError, match="a matrix has 50 rows, but mode 1 has 40"):
        s3cmtf.fit(sized, Matrix(np.eye(50), 1, "full"), rank=2, epochs=1)


def test_names_of_two_rows(train, tmp_path):
    names = [*FILMS[:5], "film 2", *FILMS[6:]]
    same = []
    for name, order in (("a.coo", names), ("b.coo", names), ("c.coo", names[::-1])):
        train.save(tmp_path / name)
        lines = [f"{row}\t{of}\n" for row, of in enumerate(order, 1)]
        (tmp_path / name).with_suffix(".mode2.tsv").write_text("".join(["index\tname\n", *lines]))
        same.append(Tensor.open(tmp_path / name))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = s3cmtf.fit(same[0], test=same[1], rank=2, epochs=2)
    message = "mode 1: rows of the tensor and test cannot be matched by name, because in {} rows 2 and 5 are both called 'film 2'"
    for data, test, source in ((same[0], same[2], "the tensor"), (train, same[0], "test")):
        with pytest.raises(ArgumentError) as failure:
            s3cmtf.fit(data, test=test, rank=2, epochs=2)
        assert str(failure.value) == message.format(source)
    with pytest.raises(ArgumentError, match="in the model rows 2 and 5 are both called"):
        model.evaluate(train)
    graph = Tensor((np.arange(40), np.arange(40)), labels=[same[0].labels[1], FILMS])
    with pytest.raises(ArgumentError, match="in matrix 0 rows 2 and 5 are both called"):
        s3cmtf.fit(train, Graph(graph, 1))


def test_labels_that_are_not_strings():
    known = s3cmtf.Labels([7, 8])
    assert (known.find("8"), known.same(s3cmtf.Labels(["7", "8"]))) == (1, True)
