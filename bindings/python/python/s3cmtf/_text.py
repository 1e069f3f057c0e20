"""Text files, and files with the names of rows."""

import contextlib
import os
import tempfile
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ._library import NULL, PathLike, call, create, ffi, interruptible, lib, path_bytes, text, utf8
from .errors import ArgumentError, FileError, MissingFileError
from .labels import Labels

_MAGIC = b"\x89S3COO\r\n"
#: Options that may be given several times, as a list.
_REPEATABLE = ("names", "time", "bin", "split", "rows_of")

LabelReader = Callable[[int], Tuple[Optional[Labels], ...]]


def convert(source: PathLike, target: PathLike, **text_options: Any) -> None:
    """Converts a text file (.tns, .mtx, .csv, .tsv, also gzipped) to a binary COO file, with a file of names beside it for each
    mode whose ids are strings; or a binary COO file to text if `target` ends in .tns. Memory use does not grow with the file.
    Options are those of s3cmtf_text_set() in the C header."""
    require_file(source)
    options = create("text", lib.s3cmtf_text_new)
    for name, value in text_options.items():
        for one in value if name in _REPEATABLE and isinstance(value, (list, tuple)) else [value]:
            call(lib.s3cmtf_text_set, options, utf8(name), utf8(_option_text(one)))
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
def binary(path: PathLike, text_options: Mapping[str, Any]) -> Iterator[Tuple[PathLike, LabelReader]]:
    """Yields the path of a binary COO file with the entries of `path`, and a function that reads the labels of its modes."""
    require_file(path)
    with open(path, "rb") as file:
        is_binary = file.read(len(_MAGIC)) == _MAGIC
    if is_binary:
        if text_options:
            raise ArgumentError(f"{os.fspath(path)} is a binary file; it has no option {next(iter(text_options))!r}")
        yield path, lambda order: read_labels(path, order)
        return
    with tempfile.TemporaryDirectory() as folder:
        converted = os.path.join(folder, "text.coo")
        convert(path, converted, **text_options)
        # Read now: the folder does not exist any more when the function is called.
        labels: Dict[int, Optional[Labels]] = dict(enumerate(read_labels(converted, 8)))
        yield converted, lambda order: tuple(labels[mode] for mode in range(order))


def read_labels(path: PathLike, order: int) -> Tuple[Optional[Labels], ...]:
    """Reads the names of rows from the files beside a data or model file."""
    found: List[Optional[Labels]] = []
    for mode in range(order):
        names = create("names", lib.s3cmtf_names_open_beside, path_bytes(path), mode)
        found.append(None if names.pointer == NULL else _read(names))
    return tuple(found)


def _read(names: Any) -> Labels:
    count, needed = ffi.new("uint64_t *"), ffi.new("uint64_t *")
    call(lib.s3cmtf_names_get_count, names, count)
    capacity = 4096
    buffer = ffi.new("char[]", capacity)
    values: List[str] = []
    for row in range(count[0]):
        call(lib.s3cmtf_names_get, names, row, NULL, 0, needed)
        if needed[0] > capacity:
            capacity = 2 * needed[0]
            buffer = ffi.new("char[]", capacity)
        call(lib.s3cmtf_names_get, names, row, buffer, capacity, NULL)
        values.append(text(buffer))
    # A row without a name of its own gets its number, from 1 as in the file.
    first: Dict[str, int] = {}
    for row, name in enumerate(values):
        if not name or first.setdefault(name, row) != row:
            values[row] = f"{name}#{row + 1}"
    return Labels(values)


def read_column_labels(path: PathLike, count: int) -> Tuple[Optional[Labels], ...]:
    """Reads the names of the columns of coupled matrices from the files beside a model file."""
    files = [names_file(os.fspath(path), "matrix", matrix) for matrix in range(count)]
    return tuple(_read(create("names", lib.s3cmtf_names_open, path_bytes(of))) if os.path.exists(of) else None for of in files)


def names_file(stem: str, what: str, number: int) -> str:
    return f"{stem}.{what}{number + 1}.tsv"


def remove_labels(path: PathLike, labels: Sequence[Optional[Labels]], what: str) -> None:
    """Removes the names files that an earlier model left beside a model file, where this one has no labels."""
    for number, of in enumerate(labels):
        file = names_file(os.fspath(path), what, number)
        if of is None and os.path.exists(file):
            os.remove(file)


def write_labels(stem: str, labels: Sequence[Optional[Labels]], what: str = "mode") -> None:
    """Writes the names files of labels, STEM.mode1.tsv and so on."""
    escapes = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
    for mode, of in enumerate(labels):
        if of is not None:
            with open(names_file(stem, what, mode), "w", encoding="utf-8", newline="\n") as file:
                file.write("index\tname\n")
                file.writelines(f"{row}\t{str(label).translate(escapes)}\n" for row, label in enumerate(of, 1))
