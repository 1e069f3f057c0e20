"""Files beside data and models: names of rows, of matrix columns and of modes."""

import contextlib
import hashlib
import os
import re
import stat
import uuid
from typing import Any, Dict, Hashable, Iterable, Iterator, List, Optional, Sequence, Tuple

from ._library import NULL, PathLike, call, create, ffi, lib, path_bytes, text, utf8
from .errors import ArgumentError, MissingFileError, exception, warn
from .labels import Labels

_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_TABLE = str.maketrans(_ESCAPES)
_UNESCAPES = {escape: character for character, escape in _ESCAPES.items()}
#: The beginning of the names files of this program, of its library and of the other packages.
_TITLE = b"index\tname"
#: How many bytes at each end of a model file identify it.
_END = 65536

#: The content of files by path; None for a file that must not exist.
Files = Dict[str, Optional[bytes]]


def read_labels(path: PathLike, order: int) -> Tuple[Optional[Labels], ...]:
    """Reads the names of rows from the files beside a data or model file."""
    found: List[Optional[Labels]] = []
    for mode in range(order):
        names = create("names", lib.s3cmtf_names_open_beside, path_bytes(path), mode)
        found.append(None if names.pointer == NULL else _read(names))
    return tuple(found)


def read_column_labels(path: PathLike, count: int) -> Tuple[Optional[Labels], ...]:
    """Reads the names of the columns of coupled matrices from the files beside a model file."""
    files = [_file(os.fspath(path), "matrix", matrix) for matrix in range(count)]
    return tuple(_read(create("names", lib.s3cmtf_names_open, path_bytes(of))) if os.path.exists(of) else None for of in files)


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
    first: Dict[str, int] = {"": _empty_name(names) if "" in values else -1}
    fault = ""
    for row, name in enumerate(values):
        before = first.setdefault(name, row)
        if before != row:
            fault = fault or (f"rows {before} and {row} are both called {name!r}" if name else f"row {row} has no name")
            values[row] = f"{name}#{row + 1}"
    return Labels(values, fault)


def _empty_name(names: Any) -> int:
    """Returns the row whose name is the empty string, as opposed to rows without a name; -1 if there is none."""
    row = ffi.new("uint64_t *")
    try:
        call(lib.s3cmtf_names_find, names, utf8(""), row)
    except ArgumentError:
        return -1
    return int(row[0])


def require_folder(path: PathLike) -> None:
    """Raises an exception if the folder in which a file is to be written does not exist."""
    folder = os.path.dirname(os.fspath(path))
    if folder and not os.path.isdir(folder):
        raise MissingFileError(f"{os.fspath(path)}: there is no folder {folder}")


def labels_files(stem: str, rows: Sequence[Optional[Labels]], columns: Sequence[Optional[Labels]] = ()) -> Files:
    """Returns the names files of rows, STEM.mode1.tsv and so on, and of matrix columns, STEM.matrix1.tsv and so on. Those of a
    file that is replaced are removed."""
    folder, start = os.path.split(stem)
    stem = os.path.join(folder, start)
    files: Files = {}
    for what, lists in (("mode", rows), ("matrix", columns)):
        files.update({_file(stem, what, place): _table(_TITLE.decode(), of) for place, of in enumerate(lists) if of is not None})
    is_names_file = re.compile(re.escape(start) + r"\.(mode|matrix)[0-9]+\.tsv").fullmatch
    present = os.listdir(folder or ".") if os.path.isdir(folder or ".") else []
    for name in filter(is_names_file, present):
        files.setdefault(os.path.join(folder, name), None)
    return files


def _file(stem: str, what: str, number: int) -> str:
    return f"{stem}.{what}{number + 1}.tsv"


def _table(head: str, names: Iterable[Hashable]) -> bytes:
    return "".join([f"{head}\n", *(f"{row}\t{_escaped(str(name))}\n" for row, name in enumerate(names, 1))]).encode()


def _escaped(name: str) -> str:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ArgumentError(f"the name {name!r} cannot be saved: it is not valid Unicode") from None
    if "\0" in name:
        raise ArgumentError(f"the name {name!r} cannot be saved: it contains NUL")
    return name.translate(_TABLE)


@contextlib.contextmanager
def written(files: Files) -> Iterator[None]:
    """Writes files beside a data or model file, which the body of the `with` statement writes. They are complete before, and get
    their names after the body; if it fails, nothing is changed."""
    staged: Dict[str, str] = {}
    try:
        for path, content in files.items():
            if content is not None:
                staged[path] = f"{path}.{uuid.uuid4().hex}.tmp"
                with _failures(path), open(staged[path], "xb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
        yield
        for path in files:
            with _failures(path):
                if path in staged:
                    if not _is_own(path):
                        _set_aside(path)
                    os.replace(staged[path], path)
                else:
                    _remove(path)
    finally:
        for temporary in staged.values():
            with contextlib.suppress(OSError):
                os.remove(temporary)


def _is_names_file(path: str) -> bool:
    """Returns whether a file, or the file that a link leads to, begins as names files of this program do."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return False
        with open(path, "rb") as file:
            return file.read(len(_TITLE)) == _TITLE
    except OSError:
        return False


def _is_own(path: str) -> bool:
    """Returns whether a file was written by this program. A link was not, whatever it leads to."""
    return not os.path.islink(path) and _is_names_file(path)


def _remove(path: str) -> None:
    """Removes a names file of a file that was replaced. What this program did not write is renamed if it would be read as names,
    and stays if it is a file of another format: that is what a user calls the rows."""
    if _is_own(path):
        os.remove(path)
    elif _is_names_file(path) or path.endswith(".modes.tsv"):
        _set_aside(path)


def _set_aside(path: str) -> None:
    """Renames what is at a path, if anything is, to its name followed by `.old`, or `.old2` and so on. A link is renamed itself."""
    if not os.path.lexists(path):
        return
    old, number = f"{path}.old", 2
    while os.path.lexists(old):
        old, number = f"{path}.old{number}", number + 1
    os.rename(path, old)
    warn(f"a names file that does not belong to the new file is now called {old}")


@contextlib.contextmanager
def _failures(path: str) -> Iterator[None]:
    """Raises exceptions of the operating system with the path of the file."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as failure:
        raise exception("S3CMTF_SYSTEM", f"{path}: {failure.strerror or failure}") from None


# Names of modes: PATH.modes.tsv beside the model PATH. The third field of its header is a digest of the model, because another
# program may replace the model without this file.


def write_mode_names(path: PathLike, names: Optional[Sequence[str]]) -> None:
    """Writes the names of the modes of a model file, or removes those of a model that it replaced."""
    content = None if names is None else _table(f"{_TITLE.decode()}\t{_digest(path)}", names)
    with written({_modes_file(path): content}):
        pass


def check_mode_names(names: Optional[Sequence[str]]) -> None:
    """Raises an exception if names of modes cannot be saved."""
    _table("", names or ())


def read_mode_names(path: PathLike, order: int) -> Optional[Tuple[str, ...]]:
    """Reads the names of the modes of a model file, if they were saved with it."""
    file = _modes_file(path)
    try:
        with open(file, encoding="utf-8", newline="\n") as lines:
            head, *rows = (line.split("\t") for line in lines.read().rstrip("\n").split("\n"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as failure:
        head, rows, fault = [], [], str(failure)
    else:
        fault = "it was saved with another model" if head[2:] != [_digest(path)] else ""
    if not fault and len(rows) != order:
        fault = f"it has {len(rows)} names for {order} modes"
    if fault:
        warn(f"the names of modes in {file} are ignored: {fault}")
        return None
    return tuple(re.sub(r"\\.", lambda found: _UNESCAPES.get(found[0], found[0]), row[-1]) for row in rows)


def _modes_file(path: PathLike) -> str:
    return f"{os.fspath(path)}.modes.tsv"


def _digest(path: PathLike) -> str:
    """Returns the SHA-256 of the first and the last 64 KiB of a file."""
    with open(path, "rb") as file:
        digest = hashlib.sha256(file.read(_END))
        file.seek(max(0, os.path.getsize(path) - _END))
        digest.update(file.read(_END))
    return digest.hexdigest()
