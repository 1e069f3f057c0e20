"""Recommendations, similar rows, and metrics of rankings."""

from dataclasses import dataclass
from typing import Any, List, Mapping, Optional, Tuple

import numpy as np

from ._aligned import entries_explained
from ._arrays import Array, Indices, index_column, output
from ._base import Mode, ModelBase, thread_count
from ._cells import row_number
from ._library import call, ffi, interruptible, lib, struct, whole
from ._tables import html_table
from .errors import ArgumentError
from .tensor import Tensor


@dataclass(frozen=True, eq=False)
class Ranking:
    """Ranked rows of a mode, the best first. For one query the arrays have one dimension; for several queries they have one row
    per query, in which missing places have row -1 and score NaN."""

    rows: Array
    scores: Array
    #: The labels of the rows; None if the mode has no labels.
    labels: Optional[Array]

    def __len__(self) -> int:
        return len(self.rows)

    def _lines(self) -> List[Tuple[Any, ...]]:
        rows, scores = np.atleast_2d(self.rows), np.atleast_2d(self.scores)
        labels = None if self.labels is None else self.labels.reshape(rows.shape)
        lines: List[Tuple[Any, ...]] = []
        for query, place in zip(*np.nonzero(rows >= 0)):
            name = () if labels is None else (labels[query, place],)
            lines.append((int(query), int(place) + 1, int(rows[query, place]), *name, float(scores[query, place])))
        return lines

    def _head(self) -> Tuple[str, ...]:
        return ("query", "rank", "row", *(() if self.labels is None else ("label",)), "score")

    def to_pandas(self) -> Any:
        """Returns a pandas frame with one line per ranked row."""
        import pandas as pd

        return pd.DataFrame(self._lines(), columns=list(self._head()))

    def __repr__(self) -> str:
        prefix = "" if self.rows.ndim == 1 else "{0}: "
        lines = (prefix.format(line[0]) + f"{line[1]:>3}. {line[-2]}  {line[-1]:.4f}" for line in self._lines())
        return "\n".join(lines) or "Ranking without rows"

    def _repr_html_(self) -> str:
        rows = [(*line[:-1], f"{line[-1]:.4f}") for line in self._lines()]
        return html_table("Ranking", self._head(), rows)


@dataclass(frozen=True)
class RankingScores:
    """Ranking metrics: means over users. Those of `popularity` are for lists ordered by the number of training entries."""

    #: The number of users with a relevant row.
    users: int
    #: The fraction of users whose list has a relevant row.
    hit_rate: float
    #: The fraction of the relevant rows of a user that are in the list.
    recall: float
    #: Normalized discounted cumulative gain.
    ndcg: float
    popularity_hit_rate: float
    popularity_recall: float
    popularity_ndcg: float


class Rankings(ModelBase):
    """Methods of a model that rank rows."""

    def recommend(
        self,
        mode: Mode,
        given: Mapping[Mode, Any],
        *,
        top: int = 10,
        exclude: Optional[Tensor] = None,
        exclude_mode: Optional[Mode] = None,
        candidates: Any = None,
        exclude_rows: Any = None,
        quantile: Optional[float] = None,
        threads: int = 0,
    ) -> Ranking:
        """Ranks the rows of a mode by their predictions, which are not clipped.

        given: the row of other modes, by mode: {"user": 17} for one list, {"user": [17, 18]} for several. Modes that are not
            given are averaged over.
        top: the length of each list, at most the size of the mode.
        exclude: entries; rows that have one with the query's row of `exclude_mode` (by default the first mode of `given`) are
            left out.
        candidates: the only rows to rank. exclude_rows: rows to leave out.
        quantile: rank by this quantile instead, which needs a model with posterior samples.
        """
        target = self._number(mode)
        if not given:
            raise ArgumentError("give the row of at least one other mode")
        rows = {of: self._rows(of, values) for of, values in self._given(given).items()}
        if target in rows:
            raise ArgumentError(f"{self._modes.title(target)} is ranked; its row cannot be given")
        is_single = all(np.ndim(values) == 0 or isinstance(values, str) for values in given.values())
        lengths = {array.size for array in rows.values() if array.size != 1} or {1}
        if len(lengths) > 1:
            raise ArgumentError(f"the arrays of given rows differ in length: {', '.join(map(str, sorted(lengths)))}")
        count = lengths.pop()
        columns = [np.resize(rows[of], count) if of in rows else None for of in range(self.order)]
        indices = Indices(columns)
        top = min(_length(top), self.shape[target])
        request = struct("recommend_request", mode=target, top=top, threads=thread_count(threads))
        indices.fill(request.queries)
        keep = [indices, *(self._row_list(request, name, of, target) for name, of in _lists(candidates, exclude_rows))]
        request.quantile = _quantile(quantile)
        excluded = None if exclude is None else self._entries(exclude, "exclude")
        if excluded is not None:
            request.exclude = excluded.pointer
            request.exclude_mode = next(iter(rows)) if exclude_mode is None else self._number(exclude_mode)
            if request.exclude_mode == target:
                raise ArgumentError(f"{self._modes.title(target)} is ranked; exclude_mode is another mode")
        with self._rows_explained(rows):
            found = self._ranked(lib.s3cmtf_model_recommend, request, target, count, top, is_single)
        del keep, excluded
        return found

    def similar(self, mode: Mode, rows: Any, *, top: int = 10, threads: int = 0) -> Ranking:
        """Lists the rows of a mode with the most similar predictions: the largest cosine over all cells, without mean and biases.
        `rows` is one row or several, by number or label."""
        target = self._number(mode)
        array = self._rows(target, rows)
        top = min(_length(top), self.shape[target])
        request = struct("similar_request", mode=target, top=top, threads=thread_count(threads))
        request.rows, request.row_count = output(array, "uint64_t"), array.size
        is_single = np.ndim(rows) == 0 or isinstance(rows, str)
        with self._rows_explained({target: array}):
            return self._ranked(lib.s3cmtf_model_similar, request, target, array.size, top, is_single)

    def evaluate_ranking(
        self,
        test: Tensor,
        train: Tensor,
        *,
        mode: Mode,
        user_mode: Mode = 0,
        length: int = 10,
        relevant: Optional[float] = None,
        quantile: Optional[float] = None,
        threads: int = 0,
    ) -> RankingScores:
        """Computes ranking metrics on test entries. The list of a user (a row of `user_mode`) has the `length` best rows of
        `mode` that the user has no entry with in `train`. Test entries of at least the value `relevant` are relevant;
        None: all."""
        request = struct("ranking_request", mode=self._number(mode), user_mode=self._number(user_mode))
        if request.mode == request.user_mode:
            raise ArgumentError(f"{self._modes.title(request.mode)} is ranked; user_mode is another mode")
        request.length = min(_length(length), self.shape[request.mode])
        request.threads, request.quantile = thread_count(threads), _quantile(quantile)
        if relevant is not None:
            if relevant != relevant:
                raise ArgumentError("relevant is NaN; it must be a number")
            request.min_relevant_value, request.has_min_relevant_value = relevant, 1
        scores, model = struct("ranking"), self._use()
        entries = (self._entries(test, "test"), self._entries(train, "train"))

        def work(cancel: Any) -> None:
            request.cancel = cancel
            call(lib.s3cmtf_model_evaluate_ranking, model, *entries, request, scores)

        with entries_explained((test, "test"), (train, "train")):
            interruptible(work)
        return RankingScores(**{name: getattr(scores, name) for name in RankingScores.__annotations__})

    def _rows(self, mode: int, rows: Any) -> Array:
        """Returns rows that are given by number or label."""
        labels, title = self.labels[mode], self._modes.title(mode)
        if isinstance(rows, np.ndarray) and rows.ndim == 1 and rows.dtype.kind in "iu":
            return index_column(rows, f"the rows of {title}").astype(np.uint64)
        if np.ndim(rows) > 1:
            raise ArgumentError(f"the rows of {title} have {np.ndim(rows)} dimensions; give one row, or a list of rows")
        listed = [rows] if isinstance(rows, str) or np.ndim(rows) == 0 else list(rows)
        return np.array([row_number(row, labels, title) for row in listed], np.uint64)

    def _row_list(self, request: Any, name: str, rows: Any, mode: int) -> Array:
        array = self._rows(mode, rows)
        size = self.shape[mode]
        if name == "candidates" and array.size and array.max() >= size:
            title = self._modes.title(mode)
            raise ArgumentError(f"row {array.max()} of {title} is not in the model: {title} has rows 0 to {size - 1}")
        setattr(request, name, output(array, "uint64_t"))
        setattr(request, "candidate_count" if name == "candidates" else "exclude_row_count", array.size)
        return array

    def _ranked(self, function: Any, request: Any, mode: int, count: int, top: int, is_single: bool) -> Ranking:
        rows = np.full((count, top), -1, np.int64)
        scores = np.full((count, top), np.nan)
        counts = ffi.new("uint64_t[]", count)
        model = self._use()
        arguments = (request, output(rows, "uint64_t"), output(scores, "double"), rows.size, counts)

        def work(cancel: Any) -> None:
            request.cancel = cancel
            call(function, model, *arguments)

        interruptible(work)
        if is_single:
            rows, scores = rows[0, : counts[0]], scores[0, : counts[0]]
        labels = self.labels[mode]
        return Ranking(rows, scores, None if labels is None else labels.take(rows))


def _length(top: int) -> int:
    if whole(top, "the length of a list") < 1:
        raise ArgumentError(f"the length of a list is {top}; it must be at least 1")
    return top


def _quantile(quantile: Optional[float]) -> float:
    """Returns the quantile by which rows are ranked; 0 for the prediction."""
    if quantile is not None and not 0 < quantile < 1:
        raise ArgumentError(f"the quantile is {quantile}; it must be above 0 and below 1")
    return quantile or 0.0


def _lists(candidates: Any, exclude_rows: Any) -> List[Tuple[str, Any]]:
    named = (("candidates", candidates), ("exclude_rows", exclude_rows))
    return [(name, rows) for name, rows in named if rows is not None]
