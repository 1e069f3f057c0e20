"""Models: numbers, files, pickles, predictions, rankings, discovery."""

import copy
import gc
import pickle

import numpy as np
import pytest

import s3cmtf
from conftest import columns


def test_size(model):
    assert (model.kind, model.order, model.shape, model.ranks, model.samples) == ("tucker", 3, (60, 40, 6), (4, 4, 4), 0)
    assert model.mean == 3.5
    assert model.value_range == (2, 5)
    assert model.options["epochs"] == 20
    assert model.record["reason"] == "epochs"
    assert model.notes
    assert repr(model) == "Model(tucker of rank 4 x 4 x 4, 60 x 40 x 6, algorithm blocked)"
    assert "train RMSE" in model._repr_html_()
    assert model.history["epoch"].tolist() == list(range(1, 21))


def test_numbers_reproduce_predictions(model):
    user, film, month, _ = columns()
    rows = [np.searchsorted(model.rows(mode), of) for mode, of in enumerate((user, film, month))]
    factors = [model.factor(mode)[row].astype(float) for mode, row in enumerate(rows)]
    sums = np.einsum("pqr,np,nq,nr->n", model.core.astype(float), *factors)
    biases = sum(model.biases(mode)[row] for mode, row in enumerate(rows))
    assert np.allclose(model.mean + biases + sums, model.predict((user, film, month), clip=False), atol=1e-4)


def test_matrix_numbers(model):
    shown = model.factor(1) @ model.matrix_factor(0).T + model.matrix_offsets(0)
    assert np.allclose(shown[4], [1, 0], atol=0.2)
    assert model.matrix_columns(0).tolist() == [0, 1]
    assert model.matrices[0] == s3cmtf.CoupledMatrix(1, "full", model.matrices[0].weight, 2, None)


def test_core_of_cp(ratings):
    model = s3cmtf.fit(ratings, model="cp", rank=3, epochs=3)
    assert model.core.shape == (3,)
    assert "cp of rank 3" in repr(model)


def test_core_of_different_ranks(ratings):
    model = s3cmtf.fit(ratings, rank=[2, 3, 4], epochs=3)
    assert model.core.shape == (2, 3, 4)
    cell = np.einsum("pqr,p,q,r->", model.core, model.row(0, 5), model.row(1, 6), model.row(2, 1))
    biases = model.biases(0)[5] + model.biases(1)[6] + model.biases(2)[1]
    assert model.predict((5, 6, 1), clip=False)[0] == pytest.approx(model.mean + biases + cell, abs=1e-4)


def test_arrays_keep_the_model_alive(ratings):
    model = s3cmtf.fit(ratings, rank=2, epochs=2)
    factor, core = model.factor(0), model.core
    expected = factor.copy(), core.copy()
    model.close()
    del model
    gc.collect()
    assert np.array_equal(factor, expected[0])
    assert np.array_equal(core, expected[1])
    with pytest.raises(ValueError, match="read-only"):
        factor[0, 0] = 1


def test_save_and_load(named_model, tmp_path):
    path = tmp_path / "model.s3m"
    named_model.save(path)
    for mapped in (True, False):
        loaded = s3cmtf.Model.load(path, mapped=mapped, modes=["user", "film", "month"])
        assert list(loaded.labels[1]) == list(named_model.labels[1])
        assert loaded.predict_cell("user 1", "film 2", 3) == named_model.predict_cell("user 1", "film 2", 3)
        assert loaded.recommend("film", {"user": "user 1"}).labels.tolist()
    # Names do not outlive the model that they belong to.
    s3cmtf.fit(s3cmtf.Tensor(([0, 1, 2], [0, 1, 0]), [1.0, 2.0, 3.0]), rank=1, epochs=1).save(path)
    assert s3cmtf.Model.load(path).labels == (None, None)
    named_model.export(tmp_path / "numbers")
    assert any((tmp_path / "numbers").iterdir())


@pytest.mark.parametrize("clone", [lambda of: pickle.loads(pickle.dumps(of)), copy.deepcopy, copy.copy])
def test_pickle(clone, named_model, gibbs):
    again = clone(named_model)
    assert np.array_equal(again.factor(0), named_model.factor(0))
    assert again.modes == named_model.modes
    assert list(again.labels[0]) == list(named_model.labels[0])
    assert clone(gibbs).samples == gibbs.samples > 0


def test_predictions(model, ratings):
    user, film, month, stars = columns()
    whole = model.predict((user, film, month))
    assert whole.dtype == np.float64
    assert np.sqrt(np.mean((whole - stars) ** 2)) < 0.1
    assert np.array_equal(model.predict(np.stack([user, film, month], 1)), whole)
    assert np.array_equal(model.predict(ratings), whole)
    assert np.allclose(model.predict(ratings, dtype=np.float32), whole, atol=1e-6)
    assert np.array_equal(model.predict((user.astype("u4"), film.astype("i8"), month.astype("i1"))), whole)
    assert model.predict_cell(0, 4, 1) == model.predict((0, 4, 1))[0] == model.predict_cell((0, 4, 1))
    assert model.predict((0, np.arange(40), 1)).shape == (40,)
    assert model.predict(ratings, clip=False).max() > 5 >= whole.max()
    assert model.predict((1000, 4, 1))[0] == model.predict((2**31, 4, 1))[0]
    assert model.predict(np.empty((0, 3), int)).shape == (0,)


def test_many_predictions(model):
    cells = np.stack([np.arange(200_000) % of for of in model.shape], 1)
    whole = model.predict(cells)
    assert np.array_equal(whole[:1000], model.predict(cells[:1000]))
    assert np.array_equal(whole, model.predict(cells, threads=1))


def test_intervals(gibbs, ratings):
    values, deviations, quantiles = gibbs.predict(ratings, deviation=True, quantiles=(0.05, 0.95))
    assert np.array_equal(values, gibbs.predict(ratings))
    assert (deviations > 0).all()
    assert quantiles.shape == (600, 2)
    assert (quantiles[:, 0] <= quantiles[:, 1]).all()
    only = gibbs.predict(ratings, deviation=True)
    assert only.quantiles is None


def test_evaluation(model, gibbs, ratings):
    found = model.evaluate(ratings)
    assert (found.entries, found.clipped_rmse <= found.rmse) == (600, True)
    binary = model.evaluate_binary(ratings)
    assert (binary.low, binary.high, binary.auc) == (2, 5, 1)
    assert gibbs.evaluate_distributions(ratings).levels == 2
    ranking = model.evaluate_ranking(ratings, s3cmtf.Tensor(([0], [0], [0])), mode=1, length=5, relevant=4)
    assert ranking.users == 60
    assert ranking.recall > ranking.popularity_recall


def test_recommendations(model, ratings):
    one = model.recommend(1, {0: 0}, top=3, exclude=ratings)
    assert one.rows.shape == (3,)
    assert (one.rows % 2 == 0).all()
    assert (np.diff(one.scores) <= 0).all()
    assert one.labels is None
    assert not set(one.rows) & set(ratings.indices[1][ratings.indices[0] == 0])
    several = model.recommend(1, {0: [0, 1], 2: 3}, top=40, exclude_rows=[0, 1, 2])
    assert several.rows.shape == (2, 40)
    assert (several.rows[:, 37:] == -1).all()
    assert np.isnan(several.scores[:, 37:]).all()
    assert set(model.recommend(1, {0: 0}, candidates=[1, 2, 3]).rows) == {1, 2, 3}
    by_array = model.recommend(1, {0: np.arange(2)}, candidates=np.array([1, 2, 3], np.uint8)).rows
    assert set(by_array.reshape(-1)) == {-1, 1, 2, 3}
    assert 2 not in model.recommend(1, {0: 0}, top=40, exclude_rows=[2]).rows
    assert len(one.to_pandas()) == 3
    assert "<table>" in several._repr_html_()
    assert repr(one).startswith("  1. ")


def test_quantile_recommendations(gibbs):
    assert gibbs.recommend(1, {0: 0}, quantile=0.1).scores[0] < gibbs.recommend(1, {0: 0}).scores[0]


def test_similar(model):
    found = model.similar(1, [4, 5], top=3)
    assert (found.rows % 2 == [[0], [1]]).all()
    assert (found.scores > 0.9).all()
    assert model.similar(1, 4, top=3).rows.tolist() == found.rows[0].tolist()


def test_concepts(model):
    concepts = model.concepts(1, top=3, given={0: 0})
    assert len(concepts) == 4
    assert concepts[0].strength >= concepts[1].strength
    assert concepts[0].largest.rows.shape == (3,)
    assert {of.column for of in concepts[0].largest.columns} <= {0, 1}
    assert concepts.profile.shape == (4, 4)
    assert concepts.profile_mode == 2
    assert model.concepts(1).profile is None
    assert "<table>" in concepts._repr_html_()
    assert repr(concepts).splitlines()[0] == "4 concepts"
    assert repr(concepts).splitlines()[1].split() == ["column", "strength", "effect", "largest", "smallest"]
    assert len(str(concepts).splitlines()) == 6


def test_clusters(model, kinds):
    clusters = model.clusters(1, max_k=4, matrices=[kinds])
    assert [of.size for of in clusters] == [20, 20]
    assert (clusters.assignment[clusters.rows % 2 == 0] == clusters.assignment[0]).all()
    assert clusters.gap["clusters"].tolist() == [1, 2, 3, 4]
    assert (clusters.gap_choice, clusters.information[0]) == (2, pytest.approx(1))
    assert clusters[0].labels[0].lift == 2
    assert clusters[0].centre.shape == (4,)
    assert clusters[0].members.shape == (10,)
    assert "<table>" in clusters._repr_html_()
    assert repr(clusters).startswith("2 clusters, ")
    assert [len(of) < 100 for of in repr(clusters).splitlines()] == [True] * 4
    fixed = model.clusters(0, 3, space="columns")
    assert len(fixed) == 3
    assert fixed.gap.size == 0


def test_fold_in(model):
    film = np.arange(8)
    new = s3cmtf.Tensor((np.full(8, 70), film, film % 6), np.where(film % 2, 5.0, 2.0))
    folded = model.fold_in(0, new)
    assert folded.shape == (71, 40, 6)
    assert folded.predict_cell(70, 21, 0) > 4
    assert folded.predict_cell(0, 4, 1) == model.predict_cell(0, 4, 1)
    with pytest.raises(s3cmtf.ArgumentError, match="in the model already"):
        folded.fold_in(0, new)
    assert folded.fold_in(0, new, replace=True).shape == (71, 40, 6)


def test_fold_in_by_name(named_model):
    rows = s3cmtf.Tensor((["nina"] * 4, [f"film {of}" for of in range(4)], [0, 1, 2, 3]), [5, 2, 5, 2], like=named_model)
    folded = named_model.fold_in("user", rows)
    assert folded.labels[0].index("nina") == 60
    assert folded.predict_cell("nina", "film 6", 1) > 4
    assert len(folded.recommend("film", {"user": "nina"}, exclude=rows).labels) == 10


def test_fold_in_by_matrix(model):
    new = s3cmtf.Matrix(s3cmtf.Tensor(([40, 41], [0, 1])), 1)
    folded = model.fold_in(1, matrices=new)
    assert folded.predict_cell(0, 40, 0) > 4 > 3 > folded.predict_cell(0, 41, 0)


def test_close(ratings):
    with s3cmtf.fit(ratings, rank=2, epochs=2) as model:
        assert not model.closed
    for use in (model.evaluate, model.predict):
        with pytest.raises(s3cmtf.ClosedError, match="the model has been closed"):
            use(ratings)
    assert repr(model) == "Model(closed)"
    with pytest.raises(s3cmtf.ClosedError):
        pickle.dumps(model)
