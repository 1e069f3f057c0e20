"""Exceptions. Each status of the library has a class, which also derives from the builtin exception of its kind."""

import re
import sys
import warnings
from typing import Dict, Type

__all__ = [
    "ArgumentError",
    "CancelledError",
    "ClosedError",
    "EntryError",
    "FileError",
    "ForkError",
    "InternalError",
    "MissingFileError",
    "OutOfMemoryError",
    "S3cmtfError",
    "S3cmtfWarning",
    "StateError",
    "SystemCallError",
]


class S3cmtfError(Exception):
    """Base class of all exceptions of this package."""

    #: The status of the library, such as "S3CMTF_BAD_ARGUMENT".
    status: str = ""


class CancelledError(S3cmtfError):
    """The call was cancelled before it had a result."""


class ArgumentError(S3cmtfError, ValueError):
    """An argument is out of range, or inconsistent with another argument or the data."""


class StateError(S3cmtfError, RuntimeError):
    """The object is in the wrong state for the call."""


class ClosedError(StateError):
    """The object has been closed."""


class ForkError(StateError):
    """The process was forked while the library was running; the child cannot use it."""


class FileError(S3cmtfError, OSError):
    """A file is missing, damaged or of the wrong kind."""


class MissingFileError(FileError, FileNotFoundError):
    """A file does not exist."""


class EntryError(S3cmtfError, ValueError):
    """An entry is out of range or not finite."""


class SystemCallError(S3cmtfError, OSError):
    """The operating system reported an error, such as missing permission or a full disk."""


class OutOfMemoryError(S3cmtfError, MemoryError):
    """There is not enough memory for the entries or rows."""


class InternalError(S3cmtfError, RuntimeError):
    """A bug in the library."""


class S3cmtfWarning(UserWarning):
    """A warning about data, options or files."""


def warn(message: str) -> None:
    """Issues a warning at the line that called this package."""
    depth, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals["__name__"].partition(".")[0] in (__package__, "contextlib"):
        depth, frame = depth + 1, frame.f_back
    warnings.warn(message, S3cmtfWarning, stacklevel=depth)


_BY_STATUS: Dict[str, Type[S3cmtfError]] = {
    "S3CMTF_CANCELLED": CancelledError,
    "S3CMTF_NULL_ARGUMENT": ArgumentError,
    "S3CMTF_BAD_ARGUMENT": ArgumentError,
    "S3CMTF_BUFFER_TOO_SMALL": ArgumentError,
    "S3CMTF_BAD_STATE": StateError,
    "S3CMTF_BAD_FILE": FileError,
    "S3CMTF_BAD_ENTRY": EntryError,
    "S3CMTF_SYSTEM": SystemCallError,
    "S3CMTF_OUT_OF_MEMORY": OutOfMemoryError,
    "S3CMTF_INTERNAL": InternalError,
}


def exception(status: str, message: str) -> S3cmtfError:
    """Returns the exception of a status. Messages of the library count entries from 1."""
    if re.search(r"\bentry [0-9]", message):
        message = f"{message} (entries count from 1 here)"
    error = _BY_STATUS.get(status, S3cmtfError)(message)
    error.status = status
    return error
