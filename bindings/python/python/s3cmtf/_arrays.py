"""NumPy arrays for the library, and arrays that refer to memory of the library."""

from typing import Any, List, Optional, Sequence, Tuple

import numpy as np
import numpy.typing as npt

from ._library import NULL, Handle, ffi, lib
from .errors import ArgumentError

Array = npt.NDArray[Any]
#: The largest number of modes of a tensor, and the largest size of a mode.
MAX_ORDER, MAX_DIM = 8, 2**32 - 1


def plain(array: Any, name: str) -> Array:
    """Returns an array. Masked values are an ArgumentError."""
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        places = np.flatnonzero(np.ma.getmaskarray(array))
        noun = "a masked value" if places.size == 1 else f"{places.size} masked values, the first"
        raise ArgumentError(f"{name} has {noun} at position {places[0]}; remove such entries first")
    try:
        return np.asarray(array)
    except ValueError as failure:
        raise ArgumentError(f"{name} cannot be read as an array: {failure}") from None


def is_missing(array: Array) -> Array:
    """Returns which elements of an array of objects are None, NaN or NA."""
    return np.fromiter((value is None or not _equals_itself(value) for value in array.tolist()), bool, array.size)


def _equals_itself(value: Any) -> bool:
    try:
        return bool(value == value)
    except (TypeError, ValueError):
        # NA of pandas has no truth value; the comparison of a sequence may have several.
        return hasattr(value, "__len__")


def missing(name: str, places: Array) -> ArgumentError:
    """Returns the exception for missing labels or numbers."""
    count, first = int(places.sum()), int(np.argmax(places))
    noun = "a missing value" if count == 1 else f"{count} missing values, the first"
    return ArgumentError(f"{name} has {noun} at position {first}; remove such rows first")


def index_column(array: Any, name: str) -> Array:
    """Returns a column of indices below MAX_DIM as uint32 or uint64, without a copy where the type allows it."""
    column = plain(array, name)
    if column.ndim != 1:
        raise ArgumentError(f"{name} has {column.ndim} dimensions; a one-dimensional array is expected")
    kind = column.dtype.kind
    if kind == "f":
        column = _integers_of_floats(column, name)
    elif kind not in "iu":
        raise ArgumentError(f"{name} has type {column.dtype}; integers from 0 are expected")
    signed = column
    unsigned = np.dtype(np.uint64 if column.dtype.itemsize == 8 else np.uint32)
    if column.dtype.itemsize == unsigned.itemsize and column.dtype.isnative:
        column = column.view(unsigned)
    else:
        column = column.astype(unsigned)
    # A negative index is a very large one without its sign.
    if (signed.dtype.kind == "i" or unsigned == np.uint64) and column.size and column.max() >= _limit(signed):
        place = int(np.argmax(column >= _limit(signed)))
        if signed[place] < 0:
            raise ArgumentError(f"{name} has the negative index {signed[place]} at position {place}; indices count from 0")
        raise ArgumentError(f"{name} has the index {signed[place]} at position {place}; indices are below {MAX_DIM}")
    return column


def _limit(column: Array) -> int:
    """Returns the number from which indices of this type, read as unsigned numbers, are out of range."""
    return min(MAX_DIM, 2**31) if column.dtype.kind == "i" and column.dtype.itemsize < 8 else MAX_DIM


def stored_column(column: Array) -> Array:
    """Returns indices as the library stores them: contiguous and of type uint32."""
    return np.require(column, np.uint32, ("A", "C"))


def _integers_of_floats(column: Array, name: str) -> Array:
    """Returns floats as integers if all of them are integers."""
    with np.errstate(invalid="ignore"):
        integers = column.astype(np.int64)
    is_integer = integers == column
    if not is_integer.all():
        place = int(np.argmin(is_integer))
        what = "missing" if np.isnan(column[place]) else f"{column[place]}, which is not an integer"
        raise ArgumentError(f"{name}: the index at position {place} is {what}")
    return integers


def columns_of(cells: Any, what: str = "cells") -> List[Any]:
    """Returns the columns of cells: of a tuple of one array per mode, or of an array with one row per cell."""
    if isinstance(cells, tuple):
        columns = list(cells)
        lengths = {len(column) for column in columns if np.ndim(column)}
        if len(lengths) > 1:
            raise ArgumentError(f"the arrays of {what} differ in length: {', '.join(map(str, sorted(lengths)))}")
        count = lengths.pop() if lengths else 1
        return [column if np.ndim(column) else np.full(count, column) for column in columns]
    array = plain(cells, what)
    if array.ndim != 2:
        raise ArgumentError(
            f"{what} has {array.ndim} dimensions; give a tuple of arrays, one per mode, or an array with one row per cell"
            " and one column per mode"
        )
    if array.shape[1] > MAX_ORDER:
        raise ArgumentError(
            f"{what} has {array.shape[1]} columns, more than the {MAX_ORDER} modes that a tensor can have; arrays of"
            " separate modes are given as a tuple"
        )
    return [array[:, mode] for mode in range(array.shape[1])]


class Indices:
    """The struct s3cmtf_indices of columns of type uint32 or uint64. A column may be None (a NULL pointer)."""

    def __init__(self, columns: Sequence[Optional[Array]]) -> None:
        present = [column for column in columns if column is not None]
        wide = any(column.dtype == np.uint64 for column in present)
        kind = np.dtype(np.uint64 if wide else np.uint32)
        arrays = [None if column is None else column.astype(kind, copy=False) for column in columns]
        strides = {array.strides[0] for array in arrays if array is not None}
        stride = strides.pop() if len(strides) == 1 else 0
        if stride <= 0 or stride % kind.itemsize or not all(array is None or array.flags.aligned for array in arrays):
            stride = kind.itemsize
            arrays = [None if array is None else np.require(array, requirements=("A", "C")) for array in arrays]
        self.count = len(present[0]) if present else 0
        self.columns = arrays
        self.is_wide = wide
        self.stride = stride // kind.itemsize
        self._pointers = ffi.new("void *[]", [NULL if array is None else address(array) for array in arrays])

    def fill(self, indices: Any) -> None:
        """Fills the fields of a struct."""
        indices.modes = self._pointers
        indices.count = self.count
        indices.stride = self.stride
        indices.type = lib.S3CMTF_U64 if self.is_wide else lib.S3CMTF_U32
        indices.base = 0

    def struct(self) -> Any:
        """Creates a struct, which is valid as long as this object."""
        result = ffi.new("s3cmtf_indices *")
        self.fill(result)
        return result


def number_column(array: Any, count: int, name: str) -> Array:
    """Returns values or weights as a contiguous float32 or float64 array, without a copy where the type allows it."""
    column = plain(array, name)
    if column.shape != (count,):
        raise ArgumentError(f"{name} has shape {column.shape}; one number for each of the {count} entries is expected")
    if column.dtype.kind == "O":
        # NaN is a fault of the data that check() counts.
        is_none = is_missing(column) & ~np.fromiter((isinstance(value, float) for value in column.tolist()), bool, count)
        if is_none.any():
            raise missing(name, is_none)
        try:
            column = column.astype(np.float64)
        except (TypeError, ValueError):
            raise ArgumentError(f"{name} has elements that are not numbers") from None
    if column.dtype.kind not in "iufb":
        raise ArgumentError(f"{name} has type {column.dtype}; numbers are expected")
    kind = np.float32 if column.dtype.kind == "f" and column.dtype.itemsize <= 4 else np.float64
    return np.require(column, dtype=kind, requirements=("A", "C"))


def number_type(dtype: "np.dtype[Any]") -> int:
    """Returns S3CMTF_F32 or S3CMTF_F64."""
    if dtype == np.float32:
        return int(lib.S3CMTF_F32)
    if dtype == np.float64:
        return int(lib.S3CMTF_F64)
    raise ArgumentError(f"the type of numbers is float32 or float64, not {dtype}")


def address(array: Array) -> Any:
    """Returns the address of the first element. The array must be referenced as long as the address is used."""
    return ffi.cast("void *", array.ctypes.data)


def output(array: Array, element: str) -> Any:
    """Returns a pointer to elements of an output array."""
    return ffi.cast(f"{element} *", array.ctypes.data)


class _Memory:
    """Memory of a handle, for NumPy. The array keeps this object, and this object the handle."""

    def __init__(self, handle: Handle, interface: Any) -> None:
        self.handle = handle
        self.__array_interface__ = interface


def view(handle: Handle, pointer: Any, shape: Tuple[int, ...], dtype: Any, strides: Optional[Tuple[int, ...]] = None) -> Array:
    """Returns a read-only array that refers to memory of a handle and keeps the handle alive."""
    if pointer == NULL or 0 in shape:
        empty = np.empty(shape, dtype)
        empty.flags.writeable = False
        return empty
    location = (int(ffi.cast("uintptr_t", pointer)), True)
    kind = np.dtype(dtype)
    interface = {"version": 3, "shape": shape, "typestr": kind.str, "data": location, "strides": strides}
    return np.asarray(_Memory(handle, interface))
