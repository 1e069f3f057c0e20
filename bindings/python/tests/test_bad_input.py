"""Bad input: exceptions that say what is wrong, and never a crash of the interpreter."""

import pickle

import numpy as np
import pytest

import s3cmtf
from s3cmtf import ArgumentError, EntryError, Matrix, S3cmtfWarning, Tensor


def masked(values):
    """An array whose last value is masked."""
    return np.ma.MaskedArray(values, [False] * (len(values) - 1) + [True])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Tensor(([0, 1], [0])), "differ in length: 1, 2"),
        (lambda: Tensor(np.zeros((3, 3, 3), int)), "has 3 dimensions; give a tuple of arrays"),
        (lambda: Tensor([np.arange(600), np.arange(600)]), "has 600 columns, more than the 8 modes"),
        (lambda: Tensor((np.zeros((2, 2), int), [0, 1])), "has 2 dimensions; a one-dimensional array"),
        (lambda: Tensor(([0, 1],)), "2 to 8 modes, not 1"),
        (lambda: Tensor(([0, -1], [0, 1])), "negative index -1 at position 1; indices count from 0"),
        (lambda: Tensor(([0, 1.5], [0, 1])), "position 1 is 1.5, which is not an integer"),
        (lambda: Tensor(([0, np.nan], [0, 1])), "position 1 is missing"),
        (lambda: Tensor(([0, 1j], [0, 1])), "complex128; integers from 0 are expected"),
        (lambda: Tensor((["a", None], [0, 1])), "a missing value at position 1; remove such rows"),
        (lambda: Tensor(([0, 2**32], [0, 1])), "index 4294967296 at position 1; indices are below 4294967295"),
        (lambda: Tensor((np.array([2**32 - 1], "u4"), [0])), "size of mode 0 is 4294967296"),
        (lambda: Tensor(([0, 1], [0, 1]), [1, 2, 3]), r"values has shape \(3,\); one number for each of the 2 entries"),
        (lambda: Tensor(([0, 1], [0, 1]), ["a", "b"]), "numbers are expected"),
        (lambda: Tensor(([0, 1], [0, 1]), [1, None]), "values has a missing value at position 1; remove such rows first"),
        (lambda: Tensor(([0, 1], [0, 1]), weights=[None, None]), "weights has 2 missing values, the first at position 0"),
        (lambda: Tensor(([0, 1], [0, 1]), np.zeros(2, [("a", "f4")])), "numbers are expected"),
        (lambda: Tensor([[0, 1], [0]]), "indices cannot be read as an array"),
        (lambda: Tensor((np.array([[1], {}], object), [0, 1])), r"objects that cannot be labels \(unhashable type: 'list'\)"),
        (lambda: Tensor(({1}, {2})), "objects that cannot be labels"),
        (lambda: Tensor(([0, 1], [0, 1]), np.array([1, {}], dtype=object)), "not numbers"),
        (lambda: Tensor(([0, 1], [0, 1]), weights=[1]), r"weights has shape \(1,\)"),
        (lambda: Tensor(([0, 1], [0, 1]), shape=(2, 2, 2)), "shape has 3 sizes for 2 modes"),
        (lambda: Tensor(([0, 1], [0, 1]), shape=(0, 2)), "the size of mode 0 is 0"),
        (lambda: Tensor(([0, 1], [0, 1]), modes=["x", "x"]), "names of modes occur more than once: x, x"),
        (lambda: Tensor(([0, 1], [0, 1]), modes=["x"]), "1 names are given for 2 modes"),
        (lambda: Tensor(([0, 1], [0, 1]), labels=[["a", "a"], None]), "'a' occurs more than once"),
        (lambda: Tensor((masked([0, 1]), [0, 1])), "mode 0 of indices has a masked value at position 1; remove such entries"),
        (lambda: Tensor((masked(["a", "b"]), [0, 1])), "mode 0 of indices has a masked value at position 1"),
        (lambda: Tensor(([0, 1], [0, 1]), masked([1.0, 2.0])), "values has a masked value at position 1"),
        (lambda: Tensor(([0, 1], [0, 1]), weights=masked([1.0, 2.0])), "weights has a masked value at position 1"),
        (lambda: Tensor(np.ma.masked_equal([[0, 1], [2, 2]], 2)), "indices has 2 masked values, the first at position 2"),
        (lambda: Matrix(np.ma.masked_equal([[0.0, 1.0]], 1), 0), "a coupled matrix has a masked value at position 1"),
        (lambda: s3cmtf.S3CMTF().fit([[0, 1], [1, 0]], masked([1.0, 2.0])), "y has a masked value at position 1"),
        (lambda: Matrix([[1.0]], 1, weight=np.inf), "weight of a matrix is inf; it must be a finite number above 0"),
        (lambda: Matrix([[1.0]], 1, penalty=-1), "penalty of a matrix is -1; it must be a finite number that is not negative"),
        (lambda: Matrix([[1.0]], 1, "sampled", zeros=-1), "zeros per entry of a matrix is -1"),
        (lambda: s3cmtf.tune(Tensor(([0], [0])), trials=0), "trials is 0; it must be at least 1"),
        (lambda: s3cmtf.tune(Tensor(([0], [0])), rungs=0), "rungs is 0; it must be at least 1"),
        (lambda: s3cmtf.tune(Tensor(([0], [0])), valid_fraction=2), "valid_fraction is 2; it must be above 0 and below 1"),
        (lambda: Matrix([[1.0, 2.0]], 1, "dense"), "no kind 'dense' of matrix; kinds are auto, observed, full"),
        (lambda: Matrix([1.0, 2.0], 1), "two-dimensional array of numbers"),
        (lambda: Matrix(Tensor(([0], [0], [0])), 1), "a coupled matrix has 2 modes, not 3"),
        (lambda: Matrix([[1.0]], 1, weight=-1), "a finite number above 0"),
    ],
)
def test_data(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


@pytest.mark.parametrize("kind", [np.uint32, np.int64])
def test_index_out_of_range(kind):
    with pytest.raises(EntryError, match="mode 0 has the index 5 at position 1; its size is 5") as failure:
        Tensor((np.array([0, 5], kind), np.array([0, 1], kind)), shape=(5, 2))
    assert isinstance(failure.value, ValueError)
    assert failure.value.status == "S3CMTF_BAD_ENTRY"


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_values_that_are_not_finite(bad, kind):
    with pytest.raises(EntryError, match=r"tensor has the value .* at position 2; it must be finite. fixed\(\) removes"):
        s3cmtf.fit(Tensor(([0, 1, 2], [0, 1, 2]), np.array([1, 2, bad], kind)), rank=1)


@pytest.mark.parametrize("bad", [np.nan, -1])
def test_bad_weights(bad):
    with pytest.raises(EntryError, match=f"tensor has the weight {bad}.* at position 1; it must be finite, 0 or more"):
        s3cmtf.fit(Tensor(([0, 1], [0, 1]), [1, 2], weights=[1, bad]), rank=1)


def test_other_entries_that_are_not_finite(model, ratings):
    bad = Tensor(([0, 60], [0, 1], [0, 1]), [1.0, np.nan])
    for use, what in (
        (lambda: s3cmtf.fit(ratings, test=bad, rank=1), "test"),
        (lambda: s3cmtf.fit(ratings, Matrix(Tensor(([0, 1], [0, 1]), [1.0, np.nan]), 1, weight=1), rank=1), "a matrix"),
        (lambda: s3cmtf.tune(ratings, valid=bad, trials=1, rungs=1, rank=1), "valid"),
        (lambda: model.evaluate(bad), "entries"),
        (lambda: model.evaluate_ranking(bad, ratings, mode=1), "test"),
        (lambda: model.fold_in(0, bad, replace=True), "tensor"),
    ):
        with pytest.raises(EntryError, match=f"{what} has the value nan at position 1; it must be finite"):
            use()


def test_entries_in_messages_of_the_library(ratings):
    twice = Matrix(Tensor(([0, 0], [1, 1])), 1, "full", weight=1)
    with pytest.raises(EntryError, match=r"entry 2: .* as entry 1; .* \(entries count from 1 here\)$"):
        s3cmtf.fit(ratings, twice, rank=1)


def test_indices_changed_after_the_creation():
    user = np.arange(50, dtype=np.uint32)
    tensor = Tensor((user, user.copy()), np.ones(50, np.float32))
    user[7] = 4_000_000_000
    with pytest.raises(EntryError):
        s3cmtf.fit(tensor, rank=1)
    assert tensor.check().out_of_range == 1


def test_no_entries():
    empty = Tensor((np.empty(0, int), np.empty(0, int)), np.empty(0))
    assert empty.nnz == 0
    with pytest.raises(s3cmtf.S3cmtfError):
        s3cmtf.fit(empty)


def test_frames():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"user": ["a", None], "film": [0, 1], "stars": [1.0, np.nan]})
    with pytest.raises(ArgumentError, match="column 'user' has a missing value at position 1"):
        Tensor.from_frame(frame, value="film", modes=["user", "stars"])
    with pytest.raises(ArgumentError, match="column 'stars' has a missing value at position 1"):
        Tensor.from_frame(frame)
    with pytest.raises(ArgumentError, match="no column 'usr'; its columns are 'user', 'film', 'stars'"):
        Tensor.from_frame(frame, ["usr", "film"], "film")
    with pytest.raises(TypeError, match="frame is expected, not list"):
        Tensor.from_frame([1, 2])
    polars = pytest.importorskip("polars")
    with pytest.raises(ArgumentError, match="column 'user' has 2 missing values, the first at position 0"):
        Tensor.from_frame(polars.DataFrame({"user": [None, None, "a"], "film": [1, 2, 3], "stars": [1, 2, 3]}))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_value_columns_of_frames(library):
    make = pytest.importorskip(library).DataFrame
    ratings = {"user": [1, 2], "film": [1, 1], "rating": [3.5, 4.0], "time": [847117005, 841000000]}

    def values(columns, **options):
        return Tensor.from_frame(make(columns), **options).values.tolist()

    for name in ("rating", "VALUE", "Stars", "score", " count "):
        renamed = {name if column == "rating" else column: of for column, of in ratings.items()}
        assert values(renamed, modes=["user", "film"]) == [3.5, 4.0]
        assert values(renamed, weight="time") == [3.5, 4.0]
    # The only column that is left, or the only one with numbers.
    assert values({"user": [1, 2], "film": [1, 1], "x": [3, 4]}, modes=["user", "film"]) == [3, 4]
    assert values({"user": ["a", "b"], "x": [3, 4], "film": ["c", "d"]}) == [3, 4]
    assert values({"user": ["a", "b"], "x": [3, 4], "new": [True, False]}) == [3, 4]
    numbers = r"which column has the values\? 'user', 'film', 'x' have numbers, and none is called rating, value, stars, score or count"
    with pytest.raises(ArgumentError, match=numbers + "; name it, such as value='x'"):
        values({"user": [1, 2], "film": [1, 1], "x": [3, 4]})
    with pytest.raises(ArgumentError, match="'rating', 'score' may have them; name it, such as value='score'"):
        values({"user": ["a", "b"], "rating": [1, 1], "score": [3, 4]})
    with pytest.raises(ArgumentError, match="no column of numbers for the values; value=False"):
        values({"user": ["a", "b"], "film": ["c", "d"]})
    with pytest.raises(ArgumentError, match="'film', 'x' have numbers"):
        Matrix(make({"film": [1, 2], "genre": ["c", "d"], "x": [3, 4]}), 1)
    assert Matrix(make({"film": [1, 2], "genre": ["c", "d"], "x": [3, 4]}), 1, value="x").tensor.nnz == 2


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ((0, 1), "cells has 2 modes; 3 are expected"),
        (np.zeros((5, 2), int), "cells has 2 modes; 3 are expected"),
        (np.zeros(3, int), "1 dimensions"),
        (([0, 1], [0], [0]), "differ in length"),
        ((-1, 0, 0), "negative index"),
        ((0, "film 4", 0), "has labels, but the rows of mode 1 have none"),
        ((0, 0, np.nan), "missing"),
    ],
)
def test_cells(cells, message, model):
    with pytest.raises(ArgumentError, match=message):
        model.predict(cells)


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda of: of.predict((0, 0, 0), dtype=np.int32), "float32 or float64, not int32"),
        (lambda of: of.predict((0, 0, 0), deviation=True), "posterior samples"),
        (lambda of: of.predict((0, 0, 0), threads=-1), "threads is -1"),
        (lambda of: of.predict_cell(0, 1), "2 indices; the model has 3 modes"),
        (lambda of: of.predict_cell(0, 1, "June"), "mode 2 have no labels; 'June' is not a row number"),
        (lambda of: of.factor(3), "no mode 3; modes are 0 to 2"),
        (lambda of: of.factor("film"), "no mode 'film'; modes have no names"),
        (lambda of: of.row(0, -1), "rows count from 0"),
        (lambda of: of.row(0, 60), "no row 60; mode 0 has rows 0 to 59"),
        (lambda of: of.predict_cell(2**64, 0, 0), "row 18446744073709551616 of mode 0 is too large"),
        (lambda of: of.matrix_factor(1), "no coupled matrix 1; matrices are 0 to 0"),
        (lambda of: of.matrix_offsets(-1), "no coupled matrix -1"),
        (lambda of: of.matrix_columns(1), "no coupled matrix 1"),
        (lambda of: of.clusters(1, -1), "k is -1"),
        (lambda of: of.clusters(1, 2, seed=2**64), "seed is 18446744073709551616"),
        (lambda of: of.recommend(1, {}), "at least one other mode"),
        (lambda of: of.recommend(1, {1: 0}), "mode 1 is ranked; its row cannot be given"),
        (lambda of: of.recommend(1, {0: [0, 1000]}), "row 1000 of mode 0 is not in the model: mode 0 has rows 0 to 59"),
        (lambda of: of.recommend(1, {0: 0}, exclude=Tensor(([0], [0], [0])), exclude_mode=1), "exclude_mode is another mode"),
        (lambda of: of.recommend(1, {0: np.array([0, -1])}), "negative index -1 at position 1"),
        (lambda of: of.recommend(1, {0: 0}, top=0), "length of a list is 0"),
        (lambda of: of.recommend(1, {0: [0, 1], 2: [0, 1, 2]}), "differ in length: 2, 3"),
        (lambda of: of.recommend(1, {0: 0}, quantile=2), "the quantile is 2; it must be above 0 and below 1"),
        (lambda of: of.similar(0, 1000), "row 1000 of mode 0 is not in the model: mode 0 has rows 0 to 59"),
        (lambda of: of.concepts(1, given={1: 0}), "the concepts of mode 1 are wanted; give rows of other modes"),
        (lambda of: of.concepts(1, given={0: 60}), "row 60 of mode 0 is not in the model: mode 0 has rows 0 to 59"),
        (lambda of: of.clusters(1, space="rows"), "no space 'rows'; spaces are predictions, columns"),
        (lambda of: of.fold_in(0), "a tensor or matrices"),
        (lambda of: of.fold_in(0, matrices=Matrix([[1.0]], 0)), "1 matrices are given; mode 0 has 0 coupled"),
        (lambda of: of.recommend(1, {0: np.zeros((2, 2), int)}), "rows of mode 0 have 2 dimensions; give one row, or a list"),
        (lambda of: of.similar(1, np.zeros((2, 2), int)), "rows of mode 1 have 2 dimensions"),
        (
            lambda of: of.evaluate_ranking(Tensor(([0], [0], [0])), Tensor(([0], [0], [0])), mode=1, relevant=np.nan),
            "relevant is NaN",
        ),
        (
            lambda of: of.evaluate_ranking(Tensor(([0], [0], [0])), Tensor(([0], [0], [0])), mode=1, user_mode=1),
            "mode 1 is ranked; user_mode is another mode",
        ),
        (lambda of: of.recommend(1, {0: 0}, candidates=[3, 40]), "row 40 of mode 1 is not in the model: mode 1 has rows 0 to 39"),
        (lambda of: of.fold_in(0, Tensor(([60], [0]))), "tensor has 2 modes; the model has 3"),
        (lambda of: of.fold_in(0, Tensor(([6], [0], [0]))), "row 6 of mode 0 is in the model already; leave it out"),
        (lambda of: of.fold_in(0, Tensor(([], [], []), [])), "tensor has no entries"),
        (lambda of: of.clusters(1, 2, matrices=np.ones((30, 2))), "a matrix has 30 rows, but mode 1 has 40"),
        (lambda of: of.clusters(1, 2, matrices=[Tensor(([49], [0]))]), "a matrix has 50 rows, but mode 1 has 40"),
        (lambda of: of.evaluate(Tensor(([0], [0]))), "modes"),
    ],
)
def test_uses_of_a_model(use, message, model):
    with pytest.raises(ValueError, match=message):
        use(model)


def test_matrices_with_other_rows(ratings):
    sized = Tensor(ratings.indices, ratings.values, shape=ratings.shape)
    for tensor, matrix, message in (
        (ratings, Matrix(np.ones((30, 2)), 1), "a matrix has 30 rows, but mode 1 has 40; give it a row for each row of the mode"),
        (sized, Matrix(np.eye(50), 1, "full"), "a matrix has 50 rows, but mode 1 has 40"),
        (sized, s3cmtf.Graph(np.eye(30), 1), "a matrix has 30 rows, but mode 1 has 40"),
        (ratings, s3cmtf.Graph(np.ones((40, 30)), 1), "a graph is a square matrix; this is 40 x 30"),
    ):
        with pytest.raises(ArgumentError, match=message):
            s3cmtf.fit(tensor, matrix, rank=2, epochs=1)
    # The size of a matrix from indices is that of the mode.
    for matrix in (Matrix(Tensor(([3], [0])), 1, "full", weight=1), s3cmtf.Graph(Tensor(([3, 5], [4, 9])), 1, weight=1)):
        assert s3cmtf.fit(sized, matrix, rank=2, epochs=1).shape == ratings.shape


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_wide_frames_are_no_matrices(library):
    data_frame = pytest.importorskip(library).DataFrame
    message = (
        r"columns row, column, value; give a wide table as frame.to_numpy\(\) in the order of the rows of the mode, or stack"
    )
    for count in (1, 4, 20):
        with pytest.raises(ArgumentError, match=message):
            Matrix(data_frame({f"genre {of}": [0, 1, 0] for of in range(count)}), 1, "full")
    with pytest.raises(ArgumentError, match="columns row, column; give a wide table"):
        Matrix(data_frame({"film": [0], "genre": [1], "value": [1.0]}), 1, value=False)
    with pytest.raises(ArgumentError, match="columns row, column, value; value=False gives every entry the value 1"):
        Matrix(data_frame({"film": [0], "genre": [1]}), 1)
    assert Matrix(data_frame({"film": [0, 2], "genre": [1, 0], "value": [1.0, 2.0]}), 1).tensor.shape == (3, 2)


def test_frames_with_an_index_are_no_matrices():
    pandas = pytest.importorskip("pandas")
    numbers = {"action": [0, 1, 0], "comedy": [1, 0, 0], "drama": [0, 0, 1]}
    for index in (["a", "b", "c"], pandas.Index([7, 8, 9], name="film")):
        wide = pandas.DataFrame(numbers, index=index)
        with pytest.raises(ArgumentError, match=r"index of this frame is not read. Give a wide table as frame.to_numpy\(\)"):
            Matrix(wide, 1, "full")
        assert Matrix(wide.stack().rename("value").reset_index(), 1).tensor.nnz == 9
    assert Matrix(pandas.DataFrame(numbers)[1:], 1, value="drama").tensor.nnz == 2


def test_unlabelled_matrices_do_not_enlarge_a_mode_with_labels(frame):
    ratings = Tensor.from_frame(frame)
    by_number = r"mode 1 \(film\): there are names in the tensor and none in matrix 0; rows are matched by number"
    for matrix, rows in (
        (Matrix(np.ones((45, 2)), "film", "full"), 45),
        (Matrix(Tensor(([41], [0])), "film", "full"), 42),
        (s3cmtf.Graph(Tensor(([1], [50])), "film"), 51),
    ):
        message = rf"a matrix has {rows} rows, but mode 1 \(film\) has 40; give it a row for each row of the mode, or labels"
        with pytest.raises(ArgumentError, match=message), pytest.warns(S3cmtfWarning, match=by_number):
            s3cmtf.fit(ratings, matrix, rank=2, epochs=1)
    more = Matrix(Tensor((["film 0", "new"], [0, 1])), "film", "full", weight=1)
    with pytest.warns(S3cmtfWarning, match=by_number):
        model = s3cmtf.fit(ratings, [Matrix(np.eye(41), "film", "full", weight=1), more], rank=2, epochs=1)
    assert model.shape == (60, 41, 6)


@pytest.mark.parametrize("kind", ["auto", "observed", "full", "graph"])
def test_matrices_without_a_known_cell(kind):
    with pytest.raises(ArgumentError, match="the matrix has no known cell; cells that are NaN are unknown"):
        Matrix(np.full((3, 3), np.nan), 1, kind)
    assert Matrix([[np.nan, 1.0]], 1, kind).tensor.nnz == 1


def test_rows_that_a_model_does_not_have(model, named_model):
    with pytest.warns(S3cmtfWarning, match="in 2 entries of tensor the row of mode 1 is not in the model and counts as the mean"):
        assert model.fold_in(0, Tensor(([60, 60, 60], [40, 3, 50], [0, 1, 2]))).shape == (61, 40, 6)
    with pytest.raises(ArgumentError, match=r"row 70 of mode 0 \(user\) has no label, but the rows of the model have"):
        with pytest.warns(S3cmtfWarning, match="names in the model and none in tensor"):
            named_model.fold_in("user", Tensor(([70], [0], [0])))
    some = Tensor((["film 1", "film 3", "unknown"], ["odd", "odd", "even"]))
    with pytest.warns(S3cmtfWarning, match=r"mode 1 \(film\): .* 1 only in matrix 0 \(such as 'unknown'\), left out"):
        assert named_model.clusters("film", 2, matrices=some).information.shape == (1,)
    with pytest.raises(ArgumentError, match="the model and matrix 0 have no name in common; .* 'x' in matrix 0"):
        named_model.clusters("film", 2, matrices=[Tensor((["x", "y"], [0, 1]))])


def test_rows_without_entries():
    model = s3cmtf.fit(Tensor(([0, 1, 3], [0, 1, 2]), [1.0, 2.0, 3.0], shape=(5, 3)), rank=1)
    assert model.row(0, 2).shape == (1,)
    for use in (lambda: model.similar(0, 2), lambda: model.recommend(1, {0: 2}), lambda: model.concepts(1, given={0: 2})):
        with pytest.raises(ArgumentError, match="row 2 of mode 0 is not in the model: no entry of the fit has it"):
            use()


@pytest.mark.parametrize(
    "use",
    [
        lambda of, ratings: s3cmtf.fit([1, 2]),
        lambda of, ratings: s3cmtf.fit(ratings, [ratings]),
        lambda of, ratings: s3cmtf.fit(ratings, test=[1]),
        lambda of, ratings: s3cmtf.fit(ratings, init="model.s3m"),
        lambda of, ratings: s3cmtf.fit(ratings, None),
        lambda of, ratings: s3cmtf.fit(ratings, preset=3),
        lambda of, ratings: s3cmtf.fit(ratings, rank=1, progress="yes"),
        lambda of, ratings: s3cmtf.tune(ratings, trials=1.5),
        lambda of, ratings: s3cmtf.tune(ratings, ranges=[1]),
        lambda of, ratings: of.predict((0, 0, 0), threads=1.5),
        lambda of, ratings: of.predict((0, 0, 0), threads=None),
        lambda of, ratings: of.recommend(1, {0: 1}, top="3"),
        lambda of, ratings: of.clusters(1, 2.5),
        lambda of, ratings: Tensor(([0], [0]), shape=3),
        lambda of, ratings: Tensor(([0], [0]), shape="ab"),
        lambda of, ratings: Tensor(([0], [0]), shape=(2.5, 2)),
        lambda of, ratings: Tensor(([0], [0]), modes="ab"),
        lambda of, ratings: of.evaluate([1, 2]),
        lambda of, ratings: of.predict((0, 0, 0), quantiles=0.5),
        lambda of, ratings: of.factor(1.5),
        lambda of, ratings: of.recommend(1, [0]),
        lambda of, ratings: of.concepts(1, given=[0]),
        lambda of, ratings: Tensor.from_scipy([1]),
        lambda of, ratings: Tensor.open(1),
        lambda of, ratings: Tensor(([0], [0]), like=[1]),
        lambda of, ratings: s3cmtf.Model(),
        lambda of, ratings: s3cmtf.S3CMTF(rnak=3),
        lambda of, ratings: pickle.dumps(of._use()),
    ],
)
def test_wrong_types(use, model, ratings):
    with pytest.raises(TypeError):
        use(model, ratings)


def test_frames_in_place_of_tensors(model, ratings, frame):
    made = r"must be a Tensor, not a DataFrame; make one with Tensor.from_frame\(frame, modes, value"
    for use, message in (
        (lambda: s3cmtf.fit(frame), rf"tensor {made}\)"),
        (lambda: s3cmtf.fit(ratings, test=frame), rf"test {made}, like=train\)"),
        (lambda: s3cmtf.tune(ratings, valid=frame), rf"valid {made}, like=train\)"),
        (lambda: model.evaluate(frame), rf"entries {made}, like=model\)"),
        (lambda: model.fold_in(0, frame), rf"tensor {made}, like=model\)"),
        (
            lambda: model.evaluate([1]),
            r"must be a Tensor, not a list; make one with Tensor\(indices, values, like=model\)",
        ),
        (lambda: s3cmtf.fit(ratings, [frame]), r"a matrix must be a Matrix, not a DataFrame; make one with Matrix\(data, mode\)"),
        (lambda: s3cmtf.fit(ratings, init=3), r"init must be a Model, not an int"),
    ):
        with pytest.raises(TypeError, match=message):
            use()


def test_lists_are_not_longer_than_the_mode(model):
    assert model.recommend(1, {0: [0, 1]}, top=2**62).rows.shape == (2, 40)
    assert len(model.similar(1, 0, top=2**62)) == 39
    with pytest.raises(TypeError, match="the length of a list is 2.5; a whole number is expected"):
        model.similar(1, 0, top=2.5)


def test_arrays_of_every_layout():
    expected = [[0, 2, 4], [5, 3, 1]]
    read_only = np.array([0, 2, 4], np.uint32)
    read_only.flags.writeable = False
    for first in (read_only, np.arange(6)[::2], np.array([0, 2, 4], ">i8"), np.asfortranarray([[0, 1], [2, 3], [4, 5]])[:, 0]):
        for second in (np.arange(6, dtype=np.int32)[::-2], np.array([5, 3, 1], ">u4"), np.array([5, 3, 1], object).astype("i2")):
            for values in (np.arange(1.0, 7)[::-2], np.array([6, 4, 2], ">f4"), np.array([6, 4, 2], np.float16)):
                tensor = Tensor((first, second), values, weights=np.broadcast_to(np.float32(2), 3))
                assert [of.tolist() for of in tensor.indices] == expected
                assert tensor.values.tolist() == [6, 4, 2] and tensor.weights.tolist() == [2, 2, 2]


def test_columns_of_frames():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    for frame, message in (
        (pandas.DataFrame({"a": [0, 1], "b": [0, 1], "value": ["x", "y"]}), "column 'value' has type .*; numbers are expected"),
        (
            pandas.DataFrame({"a": [0, 1], "b": [0, 1], "value": pandas.Categorical(["x", "y"])}),
            "column 'value' has type category; numbers",
        ),
        (pandas.DataFrame({"a": [[0], [1]], "b": [0, 1], "value": [1.0, 2.0]}), "column 'a' has objects that cannot be labels"),
        (
            pandas.DataFrame({"a": pandas.array([0, None], "Int64"), "b": [0, 1], "value": [1, 2]}),
            "'a' has a missing value at position 1",
        ),
        (polars.DataFrame({"a": [0, None], "b": [0, 1], "value": [1.0, 2.0]}), "column 'a' has a missing value at position 1"),
        (
            polars.DataFrame({"a": [{"x": 1}, {"x": 2}], "b": [0, 1], "value": [1.0, 2.0]}),
            "column 'a' has objects that cannot be labels",
        ),
        (polars.DataFrame({"a": [0, 1], "b": [0, 1], "value": ["x", "y"]}), "column 'value' has type String; numbers are expected"),
    ):
        with pytest.raises(ArgumentError, match=message):
            Tensor.from_frame(frame)
    with pytest.raises(ArgumentError, match="a missing value at position 1"):
        Tensor((np.array(["a", pandas.NA], object), [0, 1]))
    with pytest.raises(TypeError, match=r"a LazyFrame has no rows yet; give the frame that its method collect\(\) returns"):
        Tensor.from_frame(polars.LazyFrame({"a": [0], "b": [0], "value": [1.0]}))
    wide = polars.DataFrame({"a": polars.Series([0, 1], dtype=polars.Int128), "b": [0, 1], "value": [1.0, 2.0]})
    assert Tensor.from_frame(wide).indices[0].tolist() == [0, 1]


def test_files(tmp_path, ratings):
    with pytest.raises(FileNotFoundError, match="no such file"):
        Tensor.open(tmp_path / "none.coo")
    with pytest.raises(s3cmtf.FileError, match="a folder"):
        s3cmtf.Model.load(tmp_path)
    text = tmp_path / "bad.tns"
    text.write_text("1 1 1\n1 x 1\n")
    with pytest.raises(s3cmtf.FileError, match="line 2"):
        Tensor.open(text)
    path = tmp_path / "ratings.coo"
    ratings.save(path)
    with pytest.raises(ArgumentError, match="binary file; it has no option 'value'"):
        Tensor.open(path, value="stars")
    with pytest.raises(ArgumentError, match="colums"):
        Tensor.open(text, colums=[1])
    damaged = bytearray(path.read_bytes())
    damaged[-1] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(OSError):
        Tensor.open(path)
    assert Tensor.open(path, verify=False).check().damaged_sections == 1
    with pytest.raises(s3cmtf.FileError):
        s3cmtf.Model.load(path)
    with pytest.raises(OSError):
        ratings.save(tmp_path / "missing" / "ratings.coo")
    with pytest.raises(ValueError, match="NUL"):
        ratings.save("a\0b")


def test_damaged_pickle(model):
    content = bytearray(pickle.dumps(model))
    content[len(content) // 2] ^= 255
    try:
        pickle.loads(bytes(content))
    except Exception as failure:
        assert isinstance(failure, (s3cmtf.S3cmtfError, pickle.UnpicklingError, ValueError, KeyError))


def test_status_classes():
    from s3cmtf.errors import exception

    assert isinstance(exception("S3CMTF_OUT_OF_MEMORY", "x"), MemoryError)
    assert isinstance(exception("S3CMTF_SYSTEM", "x"), OSError)
    assert isinstance(exception("S3CMTF_BAD_STATE", "x"), RuntimeError)
    assert str(exception("S3CMTF_BAD_FILE", "line 3: x")) == "line 3: x"
    assert exception("S3CMTF_RESERVED", "x").status == "S3CMTF_RESERVED"
