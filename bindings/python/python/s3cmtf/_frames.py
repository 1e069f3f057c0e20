"""Columns of pandas and polars frames as indices with labels."""

from numbers import Number
from typing import Any, Hashable, List, Optional, Sequence, Tuple

import numpy as np

from ._arrays import Array, missing
from .errors import ArgumentError
from .labels import encode, no_labels


def is_frame(data: Any) -> bool:
    """Whether `data` is a data frame of pandas or polars."""
    if type(data).__module__.partition(".")[0] not in ("pandas", "polars"):
        return False
    if hasattr(data, "collect"):
        raise TypeError(f"a {type(data).__name__} has no rows yet; give the frame that its method collect() returns")
    return hasattr(data, "columns")


def has_labelled_index(frame: Any) -> bool:
    """Whether a frame of pandas has an index that names its lines: one of strings, or one with a name."""
    index = getattr(frame, "index", None)
    if index is None:
        return False
    return any(name is not None for name in index.names) or index.inferred_type in ("string", "categorical", "mixed")


def column_names(frame: Any) -> List[Any]:
    """Returns the names of the columns."""
    return list(frame.columns)


def column(frame: Any, name: Any) -> Any:
    """Returns a column; ArgumentError if it does not exist or is not unique."""
    names = column_names(frame)
    if names.count(name) != 1:
        what = "more than one column" if name in names else "no column"
        raise ArgumentError(f"the frame has {what} {name!r}; its columns are {', '.join(map(repr, names))}")
    return frame[name]


#: Names of the columns of values, in lower case, as in text files.
_VALUE_NAMES = ("rating", "value", "stars", "score", "count")


def value_column(frame: Any, others: Sequence[Any]) -> Any:
    """Returns the column of values among `others`, which are neither modes nor weights: the only one; else the one with a usual
    name; else the only one with numbers."""
    if not others:
        raise ArgumentError("the frame has no column for the values; value=False gives every entry the value 1")
    named = [name for name in others if str(name).strip().lower() in _VALUE_NAMES]
    if len(others) == 1 or len(named) == 1:
        return (named or others)[0]
    numeric = [name for name in others if _is_numeric(column(frame, name))]
    if len(numeric) == 1:
        return numeric[0]
    if not numeric:
        raise ArgumentError("the frame has no column of numbers for the values; value=False gives every entry the value 1")
    candidates = ", ".join(map(repr, named or numeric))
    why = "may have them" if named else f"have numbers, and none is called {', '.join(_VALUE_NAMES[:-1])} or {_VALUE_NAMES[-1]}"
    raise ArgumentError(
        f"which column has the values? {candidates} {why}; name it, such as value={(named or numeric)[-1]!r} (and the index columns"
        " with modes)"
    )


def _is_numeric(series: Any) -> bool:
    """Whether the values of a column are numbers, or all missing."""
    if hasattr(series.dtype, "is_numeric"):
        return bool(series.dtype.is_numeric())
    known = series.dropna()
    if series.dtype == object:
        return len(known) == 0 or (isinstance(known.iloc[0], Number) and not isinstance(known.iloc[0], bool))
    import pandas as pd

    return pd.api.types.is_numeric_dtype(series.dtype) and not pd.api.types.is_bool_dtype(series.dtype)


def numbers(series: Any, name: str) -> Array:
    """Returns a column of numbers. Missing values are an ArgumentError."""
    is_null = _is_null(series)
    if is_null.any():
        raise missing(name, is_null)
    array = np.asarray(series.to_numpy())
    try:
        return array.astype(np.float64) if array.dtype == object else array
    except (TypeError, ValueError):
        raise ArgumentError(f"{name} has type {series.dtype}; numbers are expected") from None


def encode_series(series: Any, name: str) -> Tuple[Array, Optional[List[Hashable]]]:
    """Returns a column as indices and labels: (indices, None) for numbers, otherwise (codes, labels). Labels are the
    categories of a categorical column, otherwise the values by first occurrence."""
    is_null = _is_null(series)
    if is_null.any():
        raise missing(name, is_null)
    if type(series).__module__.partition(".")[0] == "polars":
        return _encode_polars(series, name)
    return _encode_pandas(series, name)


def _is_null(series: Any) -> Array:
    nulls = series.is_null() if hasattr(series, "is_null") else series.isna()
    return np.asarray(nulls.to_numpy(), dtype=bool)


def _encode_pandas(series: Any, name: str) -> Tuple[Array, Optional[List[Hashable]]]:
    import pandas as pd

    if isinstance(series.dtype, pd.CategoricalDtype):
        return np.asarray(series.cat.codes).astype(np.uint32), list(series.cat.categories)
    if pd.api.types.is_bool_dtype(series.dtype) or not pd.api.types.is_numeric_dtype(series.dtype):
        is_time = pd.api.types.is_datetime64_any_dtype(series.dtype) or isinstance(series.dtype, pd.PeriodDtype)
        try:
            codes, labels = pd.factorize(series, sort=is_time)
        except TypeError as failure:
            raise no_labels(name, failure) from None
        return np.asarray(codes).astype(np.uint32), list(labels)
    if pd.api.types.is_extension_array_dtype(series.dtype):
        series = series.to_numpy(dtype=np.int64 if pd.api.types.is_integer_dtype(series.dtype) else np.float64)
    return np.asarray(series), None


def _encode_polars(series: Any, name: str) -> Tuple[Array, Optional[List[Hashable]]]:
    import polars as pl

    if series.dtype.is_numeric():
        # NumPy has neither decimals nor integers of 128 bits.
        is_native = not series.dtype.is_decimal() and series.dtype not in (pl.Int128, getattr(pl, "UInt128", pl.Int128))
        return (series if is_native else series.cast(pl.Float64)).to_numpy(), None
    if series.dtype == pl.Categorical:
        series = series.cast(pl.String)
    if series.dtype == pl.Enum:
        return series.to_physical().to_numpy().astype(np.uint32), series.dtype.categories.to_list()
    if series.dtype == pl.String:
        labels = series.unique(maintain_order=True)
        return series.cast(pl.Enum(labels)).to_physical().to_numpy().astype(np.uint32), labels.to_list()
    if series.dtype.is_temporal():
        labels = series.unique().sort()
        places = pl.Series(np.arange(len(labels), dtype=np.uint32))
        return series.replace_strict(labels, places).to_numpy(), labels.to_list()
    return encode(series.to_list(), name)
