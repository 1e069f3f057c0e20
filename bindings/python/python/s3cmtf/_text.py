"""Text files."""

import contextlib
import os
import tempfile
from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Tuple

import numpy as np

from ._library import PathLike, call, create, interruptible, lib, path_bytes, utf8
from ._names import read_labels
from .errors import ArgumentError, FileError, MissingFileError
from .labels import Labels

_MAGIC = b"\x89S3COO\r\n"
#: Options that may be given several times, as a list.
_REPEATABLE = ("names", "time", "bin", "split", "rows_of")

LabelReader = Callable[[int], Tuple[Optional[Labels], ...]]


def convert(source: PathLike, target: PathLike, **text_options: Any) -> None:
    """Converts a text file (.tns, .mtx, .csv, .tsv, also gzipped) to a binary COO file, with a file of names beside it for each
    mode whose ids are strings; or a binary COO file to text if `target` ends in .tns. Memory use does not grow with the file.
    Options are those of Tensor.open() for text, and values="f64": the stored type of values, "f32" (the default) or "f64"."""
    require_file(source)
    options = create("text", lib.s3cmtf_text_new)
    for name, value in text_options.items():
        for one in value if name in _REPEATABLE and isinstance(value, (list, tuple)) else [value]:
            call(lib.s3cmtf_text_set, options, utf8("from" if name == "format" else name), utf8(_option_text(one)))
    names = (path_bytes(source), path_bytes(target))
    interruptible(lambda cancel: call(lib.s3cmtf_coo_convert, *names, options, cancel))


def _option_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return os.fsdecode(value) if isinstance(value, os.PathLike) else str(value)


def require_file(path: PathLike) -> None:
    """Raises an exception if a file does not exist. (A number is not a path, though Python opens it as a file descriptor.)"""
    name = os.fspath(path)
    if not os.path.exists(name):
        raise MissingFileError(f"{name}: no such file")
    if os.path.isdir(name):
        raise FileError(f"{name}: a folder; a file is expected")


@contextlib.contextmanager
def binary(
    path: PathLike, text_options: Mapping[str, Any], kind: Optional["np.dtype[Any]"]
) -> Iterator[Tuple[PathLike, LabelReader]]:
    """Yields the path of a binary COO file with the entries of `path`, and a function that reads the labels of its modes. `kind`
    is the type of the values of text."""
    require_file(path)
    with open(path, "rb") as file:
        is_binary = file.read(len(_MAGIC)) == _MAGIC
    if is_binary:
        if text_options:
            raise ArgumentError(f"{os.fspath(path)} is a binary file; it has no option {next(iter(text_options))!r}")
        if kind is not None:
            raise ArgumentError(f"{os.fspath(path)} is a binary file, which has its own type of values; dtype is for text")
        yield path, lambda order: read_labels(path, order)
        return
    with tempfile.TemporaryDirectory() as folder:
        converted = os.path.join(folder, "text.coo")
        convert(path, converted, **{"values": "f32" if kind == np.float32 else "f64", **text_options})
        # Read now: the folder does not exist any more when the function is called.
        labels: Dict[int, Optional[Labels]] = dict(enumerate(read_labels(converted, 8)))
        yield converted, lambda order: tuple(labels[mode] for mode in range(order))
