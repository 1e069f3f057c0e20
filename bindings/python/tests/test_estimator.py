"""The estimator, and scikit-learn's tools with it."""

import pickle

import numpy as np
import pytest

import s3cmtf
from conftest import columns, named
from s3cmtf import S3CMTF


@pytest.fixture(scope="module")
def data():
    user, film, month, stars = columns()
    return np.stack([user, film, month], 1), stars


def test_fit_predict_score(data):
    X, y = data
    estimator = S3CMTF(rank=4, epochs=20, seed=7)
    assert estimator.fit(X, y) is estimator
    assert estimator.predict(X).shape == y.shape
    assert estimator.score(X, y) > 0.99
    assert estimator.n_features_in_ == 3
    assert isinstance(estimator.model_, s3cmtf.Model)
    assert estimator.score(X, y, sample_weight=np.arange(600)) > 0.99


def test_parameters(data):
    estimator = S3CMTF(rank=4)
    parameters = estimator.get_params()
    assert parameters["rank"] == 4
    assert parameters["epochs"] is None
    assert set(s3cmtf.options()) < set(parameters)
    assert estimator.set_params(rank=2, epochs=3) is estimator
    assert estimator.fit(*data).model_.ranks == (2, 2, 2)
    assert repr(estimator) == "S3CMTF(epochs=3, rank=2)"
    with pytest.raises(ValueError, match="Invalid parameter 'rnak'"):
        estimator.set_params(rnak=1)
    with pytest.raises(TypeError, match="no parameter 'rnak'"):
        S3CMTF(rnak=1)


def test_bad_parameters_are_found_by_fit(data):
    with pytest.raises(ValueError, match="rank"):
        S3CMTF(rank=-1).fit(*data)


def test_equal_fits(data):
    X, y = data
    first, second = (S3CMTF(rank=2, epochs=3, seed=1).fit(X, y) for _ in range(2))
    assert np.array_equal(first.predict(X), second.predict(X))
    assert np.array_equal(first.predict(X), first.predict(X.tolist()))
    assert np.array_equal(first.predict(X), first.predict(X.astype(float)))
    assert np.array_equal(first.predict(X)[::-1], first.predict(X[::-1]))


def test_input_is_not_changed(data):
    X, y = (of.copy() for of in data)
    weights = np.ones(600)
    S3CMTF(rank=2, epochs=2).fit(X, y, sample_weight=weights).predict(X)
    assert np.array_equal(X, data[0])
    assert np.array_equal(y, data[1])
    assert (weights == 1).all()


def test_weights_equal_repeated_rows(data):
    X, y = data
    twice = np.concatenate([X, X[:100]]), np.concatenate([y, y[:100]])
    weights = np.where(np.arange(600) < 100, 2.0, 1.0)
    options = dict(algorithm="als", rank=2, epochs=5, start="paper", lambda_reg=0.1, lambda_bias=1, penalty_per="row")
    first = S3CMTF(**options).fit(X, y, sample_weight=weights)
    second = S3CMTF(**options).fit(*twice)
    assert np.allclose(first.predict(X), second.predict(X), atol=0.05)


def test_pickle(data):
    X, y = data
    estimator = S3CMTF(rank=2, epochs=2).fit(X, y)
    again = pickle.loads(pickle.dumps(estimator))
    assert np.array_equal(again.predict(X), estimator.predict(X))
    assert again.get_params() == estimator.get_params()


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(library):
    frame = pytest.importorskip(library).DataFrame(named())
    X, y = frame[["user", "film", "month"]], frame["stars"]
    estimator = S3CMTF(rank=4, epochs=20).fit(X, y)
    assert estimator.feature_names_in_.tolist() == ["user", "film", "month"]
    assert estimator.score(X, y) > 0.99
    assert estimator.model_.recommend("film", {"user": "user 0"}).labels[0].startswith("film")


def test_matrices(data, kinds):
    estimator = S3CMTF(rank=4, matrices=[kinds], shape=(60, 40, 6)).fit(*data)
    assert len(estimator.model_.matrices) == 1


def test_bad_input(data):
    X, y = data
    with pytest.raises(ValueError, match="not fitted"):
        S3CMTF().predict(X)
    with pytest.raises(ValueError, match="y is None"):
        S3CMTF().fit(X, None)
    with pytest.raises(ValueError, match="one number for each of the 600 entries"):
        S3CMTF().fit(X, y[:-1])
    with pytest.raises(ValueError, match="the value nan at position 0; it must be finite"):
        S3CMTF(rank=2).fit(X, np.where(np.arange(600) == 0, np.nan, y))
    fitted = S3CMTF(rank=2, epochs=2).fit(X, y)
    with pytest.raises(ValueError, match="X has 2 features, but S3CMTF is expecting 3"):
        fitted.predict(X[:, :2])
    with pytest.raises(ValueError, match="dimensions"):
        fitted.predict(X[:, 0])
    with pytest.raises(ValueError, match="not an integer"):
        fitted.predict(X + 0.5)


def test_scikit_learn(data):
    sklearn = pytest.importorskip("sklearn")
    from sklearn.base import clone, is_regressor
    from sklearn.exceptions import NotFittedError
    from sklearn.metrics import r2_score
    from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.utils.validation import check_is_fitted

    assert sklearn
    X, y = data
    estimator = S3CMTF(rank=2, epochs=5)
    again = clone(estimator)
    assert again is not estimator
    assert again.get_params() == estimator.get_params()
    assert is_regressor(estimator)
    with pytest.raises(NotFittedError):
        estimator.predict(X)
    with pytest.raises(NotFittedError):
        check_is_fitted(estimator)
    folds = KFold(3, shuffle=True, random_state=0)
    assert (cross_val_score(estimator, X, y, cv=folds) > 0.5).all()
    search = GridSearchCV(estimator, {"rank": [1, 2]}, cv=folds).fit(X, y)
    assert search.best_params_["rank"] in (1, 2)
    pipeline = make_pipeline(estimator).fit(X, y)
    assert pipeline.predict(X).shape == y.shape
    check_is_fitted(estimator)
    assert estimator.score(X, y) == pytest.approx(r2_score(y, estimator.predict(X)))


def test_scikit_learn_clones_matrices(data, kinds):
    base = pytest.importorskip("sklearn.base")
    estimator = S3CMTF(rank=4, seed=3, matrices=[kinds])
    again = base.clone(estimator)
    X, y = data
    assert np.array_equal(again.fit(X, y).predict(X), estimator.fit(X, y).predict(X))


def test_checks_of_scikit_learn():
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    for name in (
        "check_no_attributes_set_in_init",
        "check_parameters_default_constructible",
        "check_get_params_invariance",
        "check_set_params",
        "check_estimators_unfitted",
        "check_estimator_repr",
        "check_estimator_tags_renamed",
        "check_valid_tag_types",
        "check_estimator_cloneable",
    ):
        if hasattr(checks, name):
            getattr(checks, name)("S3CMTF", S3CMTF())
