"""Labels of rows, and data frames."""

import numpy as np
import pytest

import s3cmtf
from conftest import OPTIONS, columns, named


def test_strings_are_labels():
    tensor = s3cmtf.Tensor((["b", "a", "b"], np.array(["x", "y", "x"], dtype=object)), [1, 2, 3])
    assert [list(of) for of in tensor.labels] == [["b", "a"], ["x", "y"]]
    assert tensor.indices[0].tolist() == [0, 1, 0]


def test_times_are_sorted_labels():
    days = np.array(["2024-03-02", "2024-03-01", "2024-03-02"], dtype="datetime64[D]")
    tensor = s3cmtf.Tensor((days, [0, 1, 2]))
    assert tensor.indices[0].tolist() == [1, 0, 1]
    assert str(tensor.labels[0][0]) == "2024-03-01"


def test_like_keeps_rows():
    first = s3cmtf.Tensor((["a", "b"], [0, 1]))
    second = s3cmtf.Tensor((["c", "b"], [0, 1]), like=first)
    assert second.indices[0].tolist() == [2, 1]
    assert list(second.labels[0]) == ["a", "b", "c"]


def test_new_labels_do_not_get_rows_without_labels():
    first = s3cmtf.Tensor(([0, 1], [0, 1]), labels=[["a", "b"], None], shape=(9, 2))
    assert s3cmtf.Tensor((["b"], [1]), like=first).indices[0].tolist() == [1]
    with pytest.raises(s3cmtf.ArgumentError, match="9 rows, of which 2 have labels; the new label 'c' has no row of its own"):
        s3cmtf.Tensor((["c"], [1]), like=first)


def test_labels():
    labels = s3cmtf.Labels(["anna", "ben", 7])
    assert (len(labels), labels[1], labels.index("ben"), labels.find(7), labels.find("8")) == (3, "ben", 1, 2, None)
    assert "ben" in labels
    assert labels == s3cmtf.Labels(["anna", "ben", 7])
    assert s3cmtf.Labels(["7"]).index(7) == 0
    with pytest.raises(s3cmtf.ArgumentError, match="no row has the label 'anne'; similar labels: 'anna'"):
        labels.index("anne")
    with pytest.raises(s3cmtf.ArgumentError, match="'x' occurs more than once"):
        s3cmtf.Labels(["x", "x"])


def make_frame(library):
    return pytest.importorskip(library).DataFrame(named())


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(library):
    user, film, month, stars = columns()
    tensor = s3cmtf.Tensor.from_frame(make_frame(library))
    assert tensor.modes == ("user", "film", "month")
    assert tensor.labels[0][0] == "user 0"
    assert tensor.labels[2] is None
    assert np.array_equal([int(str(tensor.labels[1][row]).split()[1]) for row in tensor.indices[1]], film)
    assert np.array_equal(tensor.indices[0], user)
    assert np.array_equal(tensor.indices[2], month)
    assert np.array_equal(tensor.values, stars)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_of_frames(library):
    frame = make_frame(library)
    weighted = s3cmtf.Tensor.from_frame(frame, ["film", "user"], weight="stars", value="month")
    assert weighted.order == 2
    assert np.array_equal(weighted.weights, columns()[3])
    ones = s3cmtf.Tensor.from_frame(frame[["user", "film"]], value=False)
    assert ones.order == 2
    assert set(ones.values) == {1}


def test_categories_keep_unused_levels():
    pandas = pytest.importorskip("pandas")
    film = pandas.Categorical(["x", "z", "x"], categories=["x", "y", "z"])
    tensor = s3cmtf.Tensor.from_frame(pandas.DataFrame({"user": [0, 1, 2], "film": film, "stars": [1.0, 2.0, 3.0]}))
    assert list(tensor.labels[1]) == ["x", "y", "z"]
    assert tensor.shape == (3, 3)
    model = s3cmtf.fit(tensor, rank=1, epochs=3)
    assert np.isfinite(model.predict_cell(0, "y"))


def test_kinds_of_pandas_columns():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "a": pandas.array([1, 2], dtype="Int64"),
            "b": pandas.to_datetime(["2024-03-02", "2024-03-01"]),
            "c": pandas.array(["x", "y"], dtype="string"),
            "d": [True, False],
            "value": pandas.array([1.5, 2.5], dtype="Float64"),
        }
    )
    tensor = s3cmtf.Tensor.from_frame(frame)
    assert [of.tolist() for of in tensor.indices] == [[1, 2], [1, 0], [0, 1], [0, 1]]
    assert tensor.values.tolist() == [1.5, 2.5]


def test_kinds_of_polars_columns():
    polars = pytest.importorskip("polars")
    from datetime import date

    frame = polars.DataFrame(
        {
            "a": polars.Series(["x", "y"]).cast(polars.Categorical),
            "b": [date(2024, 3, 2), date(2024, 3, 1)],
            "c": polars.Series(["q", "p"]).cast(polars.Enum(["p", "q", "r"])),
            "d": [True, False],
            "value": [1, 2],
        }
    )
    tensor = s3cmtf.Tensor.from_frame(frame)
    assert [of.tolist() for of in tensor.indices] == [[0, 1], [1, 0], [1, 0], [0, 1]]
    assert tensor.shape == (2, 2, 3, 2)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_predict_frames(library, named_model):
    frame = make_frame(library)
    expected = named_model.predict(s3cmtf.Tensor.from_frame(frame))
    assert np.array_equal(named_model.predict(frame), expected)
    assert np.array_equal(named_model.predict(frame[["month", "film", "user"]]), expected)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_without_a_column_of_a_mode(library, named_model):
    frame = make_frame(library)[["film", "user", "month"]].rename(
        {"user": "person"}, **({"axis": 1} if library == "pandas" else {})
    )
    for use in (named_model.predict, lambda of: s3cmtf.Tensor.from_frame(of, like=named_model)):
        with pytest.raises(
            s3cmtf.ArgumentError, match="no column 'user' for the mode of that name; its columns are 'film', 'person'"
        ):
            use(frame)


def test_frames_like_a_model_are_read_by_name(named_model, frame):
    shuffled = frame[["month", "stars", "film", "user"]]
    assert named_model.evaluate(s3cmtf.Tensor.from_frame(shuffled, like=named_model)).rmse < 0.1


def test_frames_of_which_no_label_occurs(frame):
    users, films = frame["user"].tolist(), frame["film"].tolist()
    model = s3cmtf.fit(s3cmtf.Tensor((users, films), frame["stars"].to_numpy()), rank=2, epochs=3)
    with pytest.raises(s3cmtf.ArgumentError, match="mode 0: the model and column 'film' have no name in common"):
        model.predict(frame[["film", "user"]])
    assert model.predict(frame[["user", "film"]]).shape == (600,)
    assert model.predict((["nobody"], ["film 1"])).shape == (1,)


def test_names_in_predictions(named_model, frame):
    one = named_model.predict_cell("user 3", "film 4", 2)
    assert one == named_model.predict((["user 3"], ["film 4"], [2]))[0]
    new = named_model.predict((["nobody"], ["film 4"], 2))
    assert new == named_model.predict((1000, named_model.labels[1].index("film 4"), 2))


def test_new_labels_of_a_mode_with_unlabelled_rows():
    tensor = s3cmtf.Tensor(([0, 1, 2], [0, 1, 2]), [1.0, 2.0, 3.0], shape=(9, 3), labels=[["a", "b"], None])
    model = s3cmtf.fit(tensor, rank=1)
    assert model.predict((["c"], [1])) == model.predict((1000, 1))


def test_rows_by_label_equal_rows_by_number(named_model, frame):
    ratings = s3cmtf.Tensor.from_frame(frame)
    by_label = named_model.recommend("film", {"user": "user 3"}, exclude=ratings)
    by_number = named_model.recommend(1, {0: 3}, exclude=ratings)
    assert list(by_label.labels) == list(by_number.labels)
    assert by_label.labels[0].startswith("film ")
    by_row = named_model.similar(1, named_model.labels[1].index("film 4"))
    assert named_model.similar("film", "film 4").labels.tolist() == by_row.labels.tolist()


def test_matrix_rows_are_matched_by_label(frame):
    pandas = pytest.importorskip("pandas")
    ratings = s3cmtf.Tensor.from_frame(frame)
    films = [f"film {of}" for of in reversed(range(41))]
    kinds = pandas.DataFrame({"film": films, "kind": ["even" if int(of.split()[1]) % 2 == 0 else "odd" for of in films]})
    matrix = s3cmtf.Matrix(kinds, "film", "full", value=False, weight=1)
    model = s3cmtf.fit(ratings, matrix, **OPTIONS)
    assert model.labels[1][40] == "film 40"
    assert list(model.matrices[0].labels) == ["even", "odd"]
    # Film 40 has no ratings: its kind determines the prediction.
    assert model.predict_cell("user 0", "film 40", 0) > 4
    assert model.predict_cell("user 1", "film 40", 0) < 3


def kinds_of_films(names):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame({"film": names, "kind": ["odd" if int(of.split()[1]) % 2 else "even" for of in names]})


def test_columns_of_matrices_are_matched_by_label(frame, tmp_path):
    ratings = s3cmtf.Tensor.from_frame(frame)
    names = [f"film {of}" for of in range(40)]
    model = s3cmtf.fit(ratings, s3cmtf.Matrix(kinds_of_films(names), "film", "full", value=False, weight=1), **OPTIONS)
    model.save(tmp_path / "model.s3m")
    loaded = s3cmtf.Model.load(tmp_path / "model.s3m", modes=["user", "film", "month"])
    assert list(loaded.matrices[0].labels) == ["even", "odd"]
    new = kinds_of_films(["film 41", "film 42", "film 43"])
    for of in (model, loaded):
        folded = of.fold_in("film", matrices=s3cmtf.Matrix(new, "film", value=False))
        assert folded.predict_cell("user 0", "film 42", 0) > 4 > 3 > folded.predict_cell("user 0", "film 41", 0)


def test_labels_of_clusters_are_matched_by_label(named_model):
    shuffled = kinds_of_films([f"film {(7 * of) % 40}" for of in range(40)])
    clusters = named_model.clusters("film", 2, matrices=[s3cmtf.Matrix(shuffled, "film", value=False)])
    assert clusters.information[0] == pytest.approx(1)
    assert {of.labels[0].label for of in clusters} == {"even", "odd"}


def test_names_that_occur_twice(tmp_path):
    s3cmtf.Tensor(([0, 1, 2], [0, 1, 0]), labels=[["a", "b", "c"], None]).save(tmp_path / "x.coo")
    (tmp_path / "x.mode1.tsv").write_text("index\tname\n1\ta\n3\ta\n")
    assert list(s3cmtf.Tensor.open(tmp_path / "x.coo").labels[0]) == ["a", "#2", "a#3"]


def test_entries_are_matched_by_label(named_model, frame):
    other = s3cmtf.Tensor.from_frame(frame.iloc[::-1])
    same = s3cmtf.Tensor.from_frame(frame.iloc[::-1], like=named_model)
    assert named_model.evaluate(other) == named_model.evaluate(same)
    assert named_model.evaluate(same).rmse < 0.1
    assert np.array_equal(named_model.predict(other), named_model.predict(same))
    best = named_model.recommend("film", {"user": "user 3"}, exclude=other, top=40)
    assert not set(best.labels) & set(frame["film"][frame["user"] == "user 3"])


def test_rows_that_cannot_be_matched_are_refused(named_model, frame):
    other = s3cmtf.Tensor(([0, 1, 5], [0, 0, 0], [0, 1, 2]), labels=[["user 9", "user 8"], None, None])
    for use, what in ((named_model.evaluate, "entries"), (lambda of: named_model.fold_in("user", of), "tensor")):
        with pytest.raises(s3cmtf.ArgumentError, match=f"cannot be matched by name, because in {what} row 2 has no name"):
            use(other)


def test_new_rows_are_matched_by_label(named_model, frame):
    new = frame[frame["user"].isin(["user 2", "user 5"])].assign(user=lambda of: "new " + of["user"]).iloc[::-1]
    same = named_model.fold_in("user", s3cmtf.Tensor.from_frame(new, like=named_model))
    found = named_model.fold_in("user", s3cmtf.Tensor.from_frame(new))
    assert list(found.labels[0])[60:] == list(same.labels[0])[60:] == ["new user 5", "new user 2"]
    assert found.labels[1] == named_model.labels[1]
    assert np.array_equal(found.factor("user"), same.factor("user"))
    with pytest.raises(s3cmtf.ArgumentError, match="row 59 of mode 0|row 0 of mode 0"):
        named_model.fold_in("user", s3cmtf.Tensor.from_frame(frame.iloc[::-1]))


def test_held_out_entries_with_new_labels_beside_a_matrix_with_new_labels(frame):
    train = s3cmtf.Tensor.from_frame(frame)
    matrix = s3cmtf.Matrix(kinds_of_films([f"film {of}" for of in range(50)]), "film", "full", value=False, weight=1)
    held_out = frame.iloc[:20].copy()
    held_out.loc[:4, "film"] = ["film 48", "film 49", "film 97", "film 98", "film 99"]
    test = s3cmtf.Tensor.from_frame(held_out, like=train)
    model = s3cmtf.fit(train, matrix, test=test, valid=s3cmtf.Tensor.from_frame(held_out), **OPTIONS)
    assert model.record["test_rmse"] == model.record["valid_rmse"]
    direct = held_out["stars"].to_numpy() - model.predict(held_out, clip=False)
    assert model.evaluate(test).rmse == pytest.approx(np.sqrt((direct**2).mean()), rel=1e-5)
    found = s3cmtf.tune(train, matrix, valid=test, trials=1, rungs=1, rank=2, epochs=2)
    assert np.isfinite(found[0].valid_rmse)
