"""Predictions, and errors on given entries."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Optional, Sequence, Type, TypeVar, Union, overload

import numpy as np

from ._aligned import entries_explained
from ._arrays import Array, Indices, address, number_type
from ._base import ModelBase, thread_count
from ._cells import encode_columns, row_number
from ._library import NULL, call, ffi, interruptible, lib, struct
from .errors import ArgumentError
from .tensor import Tensor

T = TypeVar("T")

#: From this number of cells on, a prediction runs in another thread, so that Ctrl-C ends it.
_LONG = 100_000


class Predictions(NamedTuple):
    """Predictions with their uncertainty."""

    #: The prediction for each cell.
    values: Array
    #: The predictive standard deviation of each cell; None unless it was wanted.
    deviations: Optional[Array]
    #: One row per cell and one column per quantile; None unless quantiles were wanted.
    quantiles: Optional[Array]


@dataclass(frozen=True)
class Evaluation:
    """Errors on entries, of predictions as they are and clipped to the range of the training values."""

    entries: int
    rmse: float
    mae: float
    clipped_rmse: float
    clipped_mae: float


@dataclass(frozen=True)
class BinaryScores:
    """Scores on entries with two values, low and high. Entries count by weight."""

    entries: int
    low: float
    high: float
    #: The fraction of the entries with the high value.
    high_fraction: float
    #: The area under the ROC curve.
    auc: float
    #: The mean of -ln p, with p the predicted probability of the value.
    log_loss: float


@dataclass(frozen=True)
class DistributionScores:
    """Scores of predictive distributions."""

    entries: int
    #: The number of levels of discrete values; 0 if the values are continuous.
    levels: int
    #: The mean of -ln p, with p the predictive density of the value or the probability of its level.
    log_score: float
    #: The mean continuous ranked probability score.
    crps: float
    #: The fraction of the values inside their central 50% and 90% intervals.
    coverage_50: float
    coverage_90: float
    #: The mean width of the central 90% intervals.
    width_90: float


class Prediction(ModelBase):
    """Methods of a model that predict cells."""

    @overload
    def predict(self, cells: Any, *, clip: Optional[bool] = ..., dtype: Any = ..., threads: int = ...) -> Array: ...

    @overload
    def predict(
        self,
        cells: Any,
        *,
        deviation: bool = ...,
        quantiles: Sequence[float],
        clip: Optional[bool] = ...,
        dtype: Any = ...,
        threads: int = ...,
    ) -> Predictions: ...

    @overload
    def predict(
        self,
        cells: Any,
        *,
        deviation: Literal[True],
        quantiles: Optional[Sequence[float]] = ...,
        clip: Optional[bool] = ...,
        dtype: Any = ...,
        threads: int = ...,
    ) -> Predictions: ...

    def predict(
        self,
        cells: Any,
        *,
        deviation: bool = False,
        quantiles: Optional[Sequence[float]] = None,
        clip: Optional[bool] = None,
        dtype: Any = np.float64,
        threads: int = 0,
    ) -> Union[Array, Predictions]:
        """Predicts cells. Returns an array; with `deviation` or `quantiles` a tuple (values, deviations, quantiles).

        cells: a tuple of arrays, one per mode (numbers are repeated); an array with one row per cell; a frame with a column
            for each mode, of its name, or in the order of the modes if they have no names; or a Tensor, whose values are
            ignored. Labels and indices that did not occur in the training data are predicted from the mean row of their mode.
        deviation: also predict the standard deviation, from posterior and noise. This and quantiles need a model with
            posterior samples (algorithm="gibbs").
        quantiles: probabilities of the quantiles of the value to predict: (0.05, 0.95) bound a 90% interval.
        clip: whether to clip predictions to the range of the training values; None: as the option clip of the fit.
        dtype: float64 or float32.
        threads: the number of threads; 0: all CPUs. Results do not depend on it.
        """
        kind = np.dtype(dtype)
        number = number_type(kind)
        entries = self._entries(cells, "cells") if isinstance(cells, Tensor) else None
        indices = None if entries is not None else self._cells(cells)
        count = cells.nnz if indices is None else indices.count
        values = np.empty(count, kind)
        request = struct("predict_request", threads=thread_count(threads))
        request.clip = lib.S3CMTF_CLIP_DEFAULT if clip is None else lib.S3CMTF_CLIP_ON if clip else lib.S3CMTF_CLIP_OFF
        deviations = np.empty(count, kind) if deviation else None
        if deviations is not None:
            request.deviations = address(deviations)
        found = None
        if quantiles is not None:
            if np.ndim(quantiles) != 1:
                raise TypeError(f"quantiles is a sequence of probabilities, such as (0.05, 0.95), not {quantiles!r}")
            probabilities = ffi.new("double[]", [float(of) for of in quantiles])
            found = np.empty((count, len(probabilities)), kind)
            request.quantiles, request.quantile_count = probabilities, len(probabilities)
            request.quantile_values = address(found)
        arguments = (address(values), count, number, request)
        model = self._use()

        def work(cancel: Any) -> None:
            request.cancel = cancel
            if indices is None:
                call(lib.s3cmtf_model_predict_coo, model, entries, *arguments)
            else:
                call(lib.s3cmtf_model_predict, model, indices.struct(), *arguments)

        if count < _LONG:
            work(NULL)
        else:
            interruptible(work)
        return values if deviations is None and found is None else Predictions(values, deviations, found)

    def predict_cell(self, *cell: Any) -> float:
        """Predicts one cell, given by one index or label per mode."""
        if len(cell) == 1 and isinstance(cell[0], (tuple, list)):
            cell = tuple(cell[0])
        if len(cell) != self.order:
            raise ArgumentError(f"the cell has {len(cell)} indices; the model has {self.order} modes")
        rows = [row_number(row, of, self._modes.title(mode)) for mode, (row, of) in enumerate(zip(cell, self.labels))]
        prediction = ffi.new("double *")
        call(lib.s3cmtf_model_predict_cell, self._use(), ffi.new("uint64_t[]", rows), prediction)
        return float(prediction[0])

    def _cells(self, cells: Any) -> Indices:
        """Returns cells as index arrays. New labels have a number beyond the size of the mode."""
        columns, _ = encode_columns(cells, "cells", None, self._modes, self.shape)
        return Indices(columns)

    def evaluate(self, entries: Tensor, *, threads: int = 0) -> Evaluation:
        """Predicts every entry and returns the errors."""
        return self._score(lib.s3cmtf_model_evaluate, "evaluation", Evaluation, entries, threads)

    def evaluate_binary(self, entries: Tensor, *, threads: int = 0) -> BinaryScores:
        """Predicts every entry and returns AUC and log loss. The entries must have exactly two values."""
        return self._score(lib.s3cmtf_model_evaluate_binary, "binary_scores", BinaryScores, entries, threads)

    def evaluate_distributions(self, entries: Tensor, *, threads: int = 0) -> DistributionScores:
        """Predicts the distribution of every entry and returns scores. The model must have posterior samples."""
        function = lib.s3cmtf_model_evaluate_distributions
        return self._score(function, "distribution_scores", DistributionScores, entries, threads)

    def _score(self, function: Any, name: str, result: Type[T], entries: Tensor, threads: int) -> T:
        scores, model, coo = struct(name), self._use(), self._entries(entries, "entries")
        count = thread_count(threads)
        with entries_explained((entries, "entries")):
            interruptible(lambda cancel: call(function, model, coo, count, cancel, scores))
        return result(**{field: getattr(scores, field) for field in result.__annotations__})
