"""Fits: matrices, validation, checkpoints, progress, interruption."""

import json
import os
import signal
import sys
import threading
import warnings

import numpy as np
import pytest

import s3cmtf
from conftest import OPTIONS, columns


def same(a, b):
    """Whether two models have the same numbers."""
    return all(np.array_equal(x, y) for x, y in zip(a.factors, b.factors)) and np.array_equal(a.core, b.core)


def test_default_options(ratings):
    model = s3cmtf.fit(ratings)
    assert model.kind == "cp"
    assert model.evaluate(ratings).rmse < 0.2


def test_files(ratings, tmp_path):
    ratings.save(tmp_path / "ratings.coo")
    assert same(s3cmtf.fit(tmp_path / "ratings.coo", **OPTIONS), s3cmtf.fit(ratings, **OPTIONS))


def test_threads_and_views_do_not_change_the_result(ratings):
    user, film, month, stars = (of.astype(np.uint32) for of in columns())
    view = s3cmtf.Tensor((user, film, month), stars.astype(np.float32))
    assert same(s3cmtf.fit(view, threads=1, **OPTIONS), s3cmtf.fit(ratings, threads=2, **OPTIONS))


def test_weights(ratings):
    weights = np.where(ratings.indices[0] == 0, 0, 1)
    weighted = s3cmtf.fit(ratings.with_weights(weights), **OPTIONS)
    assert not same(weighted, s3cmtf.fit(ratings, **OPTIONS))


def film_data(kind):
    """Kinds of films in several forms."""
    film = np.arange(40)
    dense = np.zeros((40, 2))
    dense[film, film % 2] = 1
    if kind == "dense":
        return dense
    if kind == "scipy":
        return pytest.importorskip("scipy.sparse").csr_matrix(dense)
    if kind == "frame":
        return pytest.importorskip("pandas").DataFrame({"film": film, "kind": film % 2, "value": 1.0})
    return s3cmtf.Tensor((film, film % 2))


@pytest.mark.parametrize("form", ["dense", "scipy", "frame", "tensor"])
def test_forms_of_matrices(form, ratings, model):
    matrix = s3cmtf.Matrix(film_data(form), 1, "full")
    assert same(s3cmtf.fit(ratings, [matrix], **OPTIONS), model)


@pytest.mark.filterwarnings("ignore::s3cmtf.S3cmtfWarning")
@pytest.mark.parametrize("kind", ["auto", "observed", "full", "sampled", "graph"])
def test_kinds_of_matrices(kind, ratings):
    film = np.arange(38)
    data = s3cmtf.Tensor((film, film + 2), shape=(40, 40)) if kind == "graph" else film_data("tensor")
    matrix = s3cmtf.Matrix(data, 1, kind, weight=0.5, zeros=2 if kind == "sampled" else 0)
    model = s3cmtf.fit(ratings, matrix, **OPTIONS)
    found = model.matrices[0]
    assert (found.mode, found.weight) == (1, 0.5)
    assert found.kind == kind or kind == "auto"
    assert model.evaluate(ratings).rmse < 0.5


def test_several_matrices(ratings, kinds):
    month = np.arange(5)
    graph = s3cmtf.Graph(s3cmtf.Tensor((month, month + 1), shape=(6, 6)), 2, weight=0.1)
    users = s3cmtf.Matrix(np.arange(60.0).reshape(60, 1) % 2, 0, "observed", weight=1, penalty=0.1)
    model = s3cmtf.fit(ratings, [kinds, graph, users], **OPTIONS)
    assert [of.mode for of in model.matrices] == [1, 2, 0]
    assert model.matrix_factor(2).shape == (1, 4)
    with pytest.raises(s3cmtf.ArgumentError):
        model.matrix_factor(1)


def test_matrix_with_more_rows_than_the_mode(ratings):
    film = np.arange(45)
    model = s3cmtf.fit(ratings, s3cmtf.Matrix(s3cmtf.Tensor((film, film % 2)), 1, "full", weight=1), **OPTIONS)
    assert model.shape == (60, 45, 6)
    assert model.predict_cell(0, 44, 0) > 4 > 3 > model.predict_cell(0, 43, 0)


def test_test_and_validation_entries(ratings):
    train, test, valid = ratings.split(0.1, 0.1)
    model = s3cmtf.fit(train, test=test, valid=valid, patience=3, **OPTIONS)
    history = model.history
    assert np.isfinite(history["test_rmse"]).all()
    assert np.isfinite(history["valid_rmse"]).all()
    assert model.record["test_rmse"] == pytest.approx(model.evaluate(test).clipped_rmse)


def test_checkpoint_and_resume(ratings, tmp_path):
    path = tmp_path / "run.s3m"

    def stop(progress):
        return progress.epoch >= 1

    options = {**OPTIONS, "epochs": 3000}
    stopped = s3cmtf.fit(ratings, checkpoint=path, progress=stop, **options)
    assert stopped.record["reason"] == "cancelled"
    assert 1 <= stopped.record["epochs"] < 3000
    options["epochs"] = s3cmtf.Model.load(path).history.size + 5
    whole = s3cmtf.fit(ratings, resume=path, **options)
    assert whole.record["epochs"] == options["epochs"]


def test_init(ratings, model):
    started = s3cmtf.fit(ratings, init=model, **{**OPTIONS, "epochs": 1})
    assert started.history["train_rmse"][0] < 0.1


def test_a_fit_follows_a_plan(ratings, kinds, model):
    plan = s3cmtf.plan(ratings, kinds, **OPTIONS)
    assert plan == model.plan and plan["ranks"] == [4, 4, 4] and plan["options"]["algorithm"] == "blocked"
    assert [matrix["mode"] for matrix in plan["matrices"]] == [2]
    assert all({"question", "answer", "evidence"} == set(choice) for choice in plan["choices"])
    for given in (plan, json.dumps(plan)):
        repeated = s3cmtf.fit(ratings, kinds, plan=given)
        assert same(repeated, model) and repeated.plan == plan
    assert same(s3cmtf.fit(ratings, kinds, plan=plan, **OPTIONS), model)


def test_a_plan_of_samples_and_validation_entries(ratings):
    train, valid = ratings.split(0.2)
    arguments = {"valid": valid, "algorithm": "gibbs", "rank": 3, "samples": 5}
    plan = s3cmtf.plan(train, **arguments)
    fitted = s3cmtf.fit(train, **arguments)
    assert plan["noise"]["likelihood"] in ("gaussian", "probit") and plan["data"]["valid"]["entries"] == 120
    assert same(s3cmtf.fit(train, valid=valid, plan=plan), fitted)
    with pytest.raises(s3cmtf.ArgumentError, match="validation entries"):
        s3cmtf.fit(train, plan=plan)
    with pytest.raises(s3cmtf.ArgumentError, match="other data"):
        s3cmtf.fit(valid, valid=valid, plan=plan)


def test_wrong_plans(ratings, kinds):
    plan = s3cmtf.plan(ratings, kinds, **OPTIONS)
    with pytest.raises(s3cmtf.ArgumentError, match="there are 0"):
        s3cmtf.fit(ratings, plan=plan)
    with pytest.raises(s3cmtf.ArgumentError, match="epochs is 3 here and 20 in the plan"):
        s3cmtf.fit(ratings, kinds, plan=plan, epochs=3)
    with pytest.raises(s3cmtf.ArgumentError, match="not JSON"):
        s3cmtf.fit(ratings, plan="rank=3")
    with pytest.raises(s3cmtf.ArgumentError, match="plan.s3cmtf_plan is missing"):
        s3cmtf.fit(ratings, plan={})
    with pytest.raises(TypeError, match="plan is a dictionary"):
        s3cmtf.fit(ratings, plan=7)
    with pytest.raises(s3cmtf.ArgumentError, match="checkpoint"):
        s3cmtf.plan(ratings, checkpoint="run.s3m")


def test_progress_function(ratings):
    seen = []
    s3cmtf.fit(ratings, progress=seen.append, **{**OPTIONS, "epochs": 500})
    epochs = [of.epoch for of in seen]
    assert epochs == sorted(set(epochs))
    assert epochs[-1] == seen[-1].epochs == 500


def test_exception_in_the_progress_function(ratings):
    def fail(progress):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        s3cmtf.fit(ratings, progress=fail, **{**OPTIONS, "epochs": 1000000})


def test_progress_bar(ratings, capsys):
    s3cmtf.fit(ratings, progress=True, **OPTIONS)
    assert "train RMSE" in capsys.readouterr().err


def test_progress_bar_without_tqdm(ratings, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    s3cmtf.fit(ratings, progress=True, **OPTIONS)
    assert "epoch 20 of 20: train RMSE" in capsys.readouterr().err


def test_warnings_of_the_fit(ratings):
    ones = s3cmtf.Matrix(film_data("tensor"), 1, "observed", weight=1)
    with pytest.warns(s3cmtf.S3cmtfWarning, match="same value"):
        s3cmtf.fit(ratings, ones, **OPTIONS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        s3cmtf.fit(ratings, **OPTIONS)


def press_ctrl_c():
    """Sends SIGINT to this process, which ignores it when it was started in the background of a shell."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_ends_a_fit(ratings):
    press_ctrl_c()
    with pytest.raises(KeyboardInterrupt):
        s3cmtf.fit(ratings, rank=8, epochs=1000000, time_limit=60)


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_ends_a_search(ratings):
    press_ctrl_c()
    with pytest.raises(KeyboardInterrupt):
        s3cmtf.tune(ratings, trials=100, rank=4, epochs=1000000, time_limit=60)


def test_tune(ratings):
    seen = []
    trials = s3cmtf.tune(ratings, trials=5, ranges={"rank": [2, 3], "eta": "0.01..0.1"}, epochs=5, progress=seen.append)
    assert len(trials) == 5
    assert trials[0].valid_rmse == min(of.valid_rmse for of in trials)
    assert all(of.options["rank"] in (2, 3) for of in trials if of.number)
    assert "rank=" in trials[0].config
    assert seen[0].total == 5
    assert "<table>" in trials._repr_html_()
    assert repr(trials).splitlines()[0] == f"{len(trials)} trials"
    assert len(repr(trials).splitlines()) == len(trials) + 2
    assert s3cmtf.fit(ratings, **trials.best_options).options["rank"] == trials[0].options["rank"]


def test_tune_stops_by_progress(ratings, tmp_path):
    valid = ratings.split(0.1)[1]
    state = tmp_path / "search"
    trials = s3cmtf.tune(ratings, trials=50, valid=valid, epochs=5, checkpoint=state, progress=lambda of: True)
    assert 1 <= len(trials)
    assert state.exists()
