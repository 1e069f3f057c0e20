"""Plots."""

import numpy as np
import pytest

import s3cmtf

matplotlib = pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def close_figures():
    import matplotlib.pyplot as plt

    plt.switch_backend("Agg")
    yield
    plt.close("all")


def test_convergence(ratings):
    from s3cmtf import plot

    train, test = ratings.split(0.1)
    axes = plot.convergence(s3cmtf.fit(train, test=test, rank=2, epochs=5))
    assert [line.get_label() for line in axes.lines] == ["training", "test"]


def test_clusters(model, kinds):
    from s3cmtf import plot

    clusters = model.clusters(1, max_k=4, matrices=[kinds])
    assert plot.gap(clusters).get_ylabel() == "gap"
    assert [of.get_text() for of in plot.cluster_sizes(clusters).get_yticklabels()]
    with pytest.raises(ValueError, match="no gap curve"):
        plot.gap(model.clusters(1, 2))


def test_factor(named_model):
    from s3cmtf import plot

    axes = plot.factor(named_model, "film", names=3)
    texts = [of.get_text() for of in axes.texts]
    assert len(set(texts)) == 3
    assert all(text.startswith("film ") for text in texts)
    assert np.array_equal(axes.collections[0].get_offsets(), named_model.factor("film")[:, :2])
    coloured = plot.factor(named_model, 1, (1, 2), clusters=named_model.clusters(1, 2), ax=axes.figure.add_subplot())
    assert len(coloured.collections) == 2
    with pytest.raises(ValueError, match="columns 0 to 3"):
        plot.factor(named_model, 1, (0, 4))
