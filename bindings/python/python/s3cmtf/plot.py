"""Plots with matplotlib, which is an optional dependency: pip install s3cmtf[plot]."""

from typing import Any, List, Optional, Tuple

import numpy as np

from ._arrays import Array
from ._base import Mode
from .discovery import Clusters
from .errors import ArgumentError
from .model import Model

_ERRORS = (("train_rmse", "training"), ("valid_rmse", "validation"), ("test_rmse", "test"))


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("plots need matplotlib: pip install s3cmtf[plot]") from None
    return plt.subplots(figsize=(6, 4), layout="constrained")[1]


def convergence(model: Model, ax: Any = None) -> Any:
    """Plots the RMSE of each epoch of the fit. Returns the axes, here and below."""
    ax, history = _axes(ax), model.history
    for field, name in _ERRORS:
        is_measured = np.isfinite(history[field])
        if is_measured.any():
            ax.plot(history["epoch"][is_measured], history[field][is_measured], label=name)
    ax.set(xlabel="epoch", ylabel="RMSE", title="Convergence")
    ax.legend()
    return ax


def gap(clusters: Clusters, ax: Any = None) -> Any:
    """Plots the gap curve of clusters, with standard errors and the choice of the rule."""
    if clusters.gap.size == 0:
        raise ArgumentError("the clusters have no gap curve; leave out k, or set max_k")
    ax, curve = _axes(ax), clusters.gap
    ax.errorbar(curve["clusters"], curve["gap"], yerr=curve["standard_error"], marker="o", capsize=3)
    ax.axvline(len(clusters), color="0.5", linestyle="--", label=f"{len(clusters)} clusters")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set(xlabel="number of clusters", ylabel="gap", title="Gap statistic")
    ax.legend()
    return ax


def factor(
    model: Model,
    mode: Mode,
    columns: Tuple[int, int] = (0, 1),
    *,
    clusters: Optional[Clusters] = None,
    names: int = 0,
    ax: Any = None,
) -> Any:
    """Plots the rows of a factor by two of its columns, coloured by cluster if clusters of the mode are given. `names` rows
    that are far from each other are labelled."""
    ax, rows = _axes(ax), model.factor(mode)
    if max(columns) >= rows.shape[1] or min(columns) < 0:
        raise ArgumentError(f"columns are {columns}; the factor has columns 0 to {rows.shape[1] - 1}")
    points = rows[:, list(columns)]
    indices = model.rows(mode)
    if clusters is None:
        ax.scatter(points[:, 0], points[:, 1], s=12)
    else:
        for number in range(len(clusters)):
            chosen = np.isin(indices, clusters.rows[clusters.assignment == number])
            ax.scatter(points[chosen, 0], points[chosen, 1], s=12, label=f"cluster {number}")
        ax.legend()
    labels = model.labels[model._number(mode)]
    for place in _spread(points, names):
        row = int(indices[place])
        text = row if labels is None or row >= len(labels) else labels[row]
        ax.annotate(str(text), points[place], textcoords="offset points", xytext=(4, 2), fontsize="small")
    name = mode if isinstance(mode, str) else f"mode {mode}"
    ax.set(xlabel=f"column {columns[0]}", ylabel=f"column {columns[1]}", title=f"Factor of {name}")
    return ax


def _spread(points: Array, count: int) -> List[int]:
    """Returns points that are far from each other: first the one farthest from the mean, then each time the one farthest
    from those chosen."""
    chosen: List[int] = []
    distances = np.linalg.norm(points - points.mean(axis=0), axis=1)
    for _ in range(min(count, len(points))):
        chosen.append(int(np.argmax(distances)))
        nearest = np.linalg.norm(points - points[chosen[-1]], axis=1)
        distances = nearest if len(chosen) == 1 else np.minimum(distances, nearest)
    return chosen


def cluster_sizes(clusters: Clusters, ax: Any = None) -> Any:
    """Plots the number of rows of each cluster, with its first labels."""
    ax = _axes(ax)
    titles = []
    for number, cluster in enumerate(clusters):
        found = [str(of.column if of.label is None else of.label) for of in cluster.labels[:2]]
        titles.append(f"{number}: {', '.join(found)}" if found else str(number))
    ax.barh(titles, [cluster.size for cluster in clusters])
    ax.invert_yaxis()
    ax.set(xlabel="rows", title=f"{len(clusters)} clusters")
    return ax
