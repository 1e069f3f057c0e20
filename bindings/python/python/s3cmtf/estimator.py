"""An estimator with the conventions of scikit-learn, which need not be installed."""

import inspect
from typing import Any, Dict, List, Optional, Sequence

import numpy as np

from ._arrays import Array, number_column, plain
from ._frames import column_names, is_frame
from .errors import ArgumentError
from .fitting import fit
from .matrix import Matrix
from .model import Model
from .options import options, options_text
from .tensor import Tensor

#: Parameters that are not options of the library.
_OWN_PARAMETERS = ("matrices", "shape", "preset", "progress")


class S3CMTF:
    """A regressor that predicts the value of a cell of a tensor from its indices.

    X has one row per entry and one column per mode: an array of integers from 0, or a frame of pandas or polars, whose strings
    and categories are labels. y has the values. Cells with indices or labels that did not occur in fit() are predicted from the
    mean row of their mode.

    Parameters, all keyword-only; None is the default of the preset:

    matrices: coupled matrices, a list of s3cmtf.Matrix
    shape: the size of each mode
    preset: the preset of options, such as "paper"
    progress: whether fit() shows a progress bar, or a function as for s3cmtf.fit()
    """

    _estimator_type = "regressor"
    model_: Model
    n_features_in_: int
    feature_names_in_: Array

    def __init__(
        self,
        *,
        matrices: Optional[Sequence[Matrix]] = None,
        shape: Optional[Sequence[int]] = None,
        preset: Optional[str] = None,
        progress: Any = False,
        **parameters: Any,
    ) -> None:
        self.matrices, self.shape, self.preset, self.progress = matrices, shape, preset, progress
        unknown = set(parameters).difference(options())
        if unknown:
            raise TypeError(f"S3CMTF has no parameter {unknown.pop()!r}; s3cmtf.options() lists the options of a fit")
        for name in options():
            setattr(self, name, parameters.get(name))

    # Parameters

    @classmethod
    def _get_param_names(cls) -> List[str]:
        return sorted((*_OWN_PARAMETERS, *options()))

    def get_params(self, deep: bool = True) -> Dict[str, Any]:
        """Returns the parameters by name."""
        return {name: getattr(self, name) for name in self._get_param_names()}

    def set_params(self, **parameters: Any) -> "S3CMTF":
        """Sets parameters by name."""
        names = self._get_param_names()
        for name, value in parameters.items():
            if name not in names:
                raise ValueError(f"Invalid parameter {name!r} for estimator {self!r}. Valid parameters are: {names!r}.")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = {"progress": False}
        given = {name: value for name, value in self.get_params().items() if value is not defaults.get(name)}
        return f"S3CMTF({', '.join(f'{name}={value!r}' for name, value in given.items())})"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, RegressorTags, Tags, TargetTags

        return Tags(
            estimator_type="regressor",
            target_tags=TargetTags(required=True),
            regressor_tags=RegressorTags(),
            input_tags=InputTags(two_d_array=True, categorical=True, string=True),
        )

    # Fit and predict

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "S3CMTF":
        """Fits the model to the values `y` of the cells `X`."""
        if y is None:
            raise ArgumentError("S3CMTF requires y to be passed, but the target y is None")
        if isinstance(X, Tensor):
            raise TypeError("X is an array or a frame; s3cmtf.fit() fits a Tensor")
        names = [str(name) for name in column_names(X)] if is_frame(X) else None
        tensor = Tensor(X, plain(y, "y").reshape(-1), shape=self.shape, weights=sample_weight, modes=names)
        chosen = {name: getattr(self, name) for name in options()}
        self.model_ = fit(tensor, self.matrices or (), preset=self.preset, progress=self.progress, **chosen)
        self.n_features_in_ = tensor.order
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self

    def _fitted(self, X: Any) -> Model:
        if not hasattr(self, "model_"):
            raise _not_fitted()
        count = len(column_names(X)) if is_frame(X) else np.ndim(X) == 2 and np.shape(X)[1]
        if count is not False and count != self.n_features_in_:
            raise ArgumentError(f"X has {count} features, but S3CMTF is expecting {self.n_features_in_} features as input")
        return self.model_

    def predict(self, X: Any) -> Array:
        """Predicts the values of cells."""
        return self._fitted(X).predict(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Returns the coefficient of determination R² of the predictions."""
        predicted = self.predict(X)
        values = number_column(plain(y, "y").reshape(-1), predicted.size, "y").astype(np.float64)
        weights = np.ones(values.size) if sample_weight is None else number_column(sample_weight, values.size, "sample_weight")
        residual = np.sum(weights * (values - predicted) ** 2)
        total = np.sum(weights * (values - np.average(values, weights=weights)) ** 2)
        return float(1 - residual / total) if total > 0 else float(residual == 0)


def _not_fitted() -> Exception:
    message = "This S3CMTF instance is not fitted yet. Call 'fit' with appropriate arguments before using this estimator."
    try:
        from sklearn.exceptions import NotFittedError
    except ImportError:
        return ArgumentError(message)
    error: Exception = NotFittedError(message)
    return error


def _signature() -> inspect.Signature:
    """Returns the signature of the constructor with all options of the library."""
    names = ["self", *_OWN_PARAMETERS, *options()]
    positional, keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    defaults = {"self": inspect.Parameter.empty, "progress": False}
    return inspect.Signature(
        [inspect.Parameter(name, positional if name == "self" else keyword, default=defaults.get(name)) for name in names]
    )


S3CMTF.__init__.__signature__ = _signature()  # type: ignore[attr-defined]
S3CMTF.__doc__ = f"{(S3CMTF.__doc__ or '').rstrip()}\n{options_text()}\n"
