"""The shared library: loading, calls, handles, cancellation and forks."""

import importlib
import operator
import os
import threading
from typing import Any, Callable, List, Optional, Set, TypeVar, Union

from .errors import ArgumentError, ClosedError, ForkError, exception

T = TypeVar("T")
PathLike = Union[str, "os.PathLike[str]"]

_native = importlib.import_module("s3cmtf._native")
ffi: Any = _native.ffi
NULL: Any = ffi.NULL


def _load() -> Any:
    path = os.environ.get("S3CMTF_LIBRARY")
    library = ffi.dlopen(path) if path else _native.lib
    major, minor = library.S3CMTF_VERSION_MAJOR, library.S3CMTF_VERSION_MINOR
    found = library.s3cmtf_version_number()
    # While the major number is 0, libraries with the same minor number are compatible.
    step = 10000 if major else 100
    lowest = major * 10000 + minor * 100 + library.S3CMTF_VERSION_PATCH
    if found // step != lowest // step or found < lowest:
        text = ffi.string(library.s3cmtf_version()).decode()
        raise ImportError(f"the library has version {text}; this package needs {major}.{minor} or a later compatible one")
    return library


lib: Any = _load()

#: Version of the library.
VERSION: str = ffi.string(lib.s3cmtf_version()).decode()

# Calls and background fits that have threads. After a fork the child has a copy of this set but not the threads.
_running: Set[object] = set()
_is_broken = False


def _after_fork_in_child() -> None:
    global _is_broken
    _is_broken = _is_broken or bool(_running)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def _check_fork() -> None:
    if _is_broken:
        raise ForkError(
            "the process was forked while a fit or another call of s3cmtf was running in a thread; use the start method"
            ' "spawn" or "forkserver" of multiprocessing, or fork when no call is running'
        )


class Running:
    """Context in which the library has threads."""

    def __enter__(self) -> None:
        _running.add(self)

    def __exit__(self, *_: object) -> None:
        _running.discard(self)


class _ThreadErrors(threading.local):
    """One error handle per thread."""

    def __init__(self) -> None:
        out = ffi.new("s3cmtf_error **")
        if lib.s3cmtf_error_new(out):
            raise MemoryError
        self.handle = Handle(out[0], lib.s3cmtf_error_free)


def kind_of(given: object) -> str:
    """Returns the type of an object as messages name it: "a list", "an int"."""
    name = type(given).__name__
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"


def text(pointer: Any) -> str:
    """Returns a C string."""
    return str(ffi.string(pointer).decode("utf-8", "replace"))


def call(function: Any, *arguments: Any) -> None:
    """Calls a function of the library that returns a status and has an error as its last parameter. Arguments may be handles,
    which exist until the call returns."""
    _check_fork()
    error = _errors.handle.pointer
    try:
        status = function(*(of.pointer if isinstance(of, Handle) else of for of in arguments), error)
    except OverflowError as failure:
        raise ArgumentError(f"a number is out of range: {failure}") from None
    if status:
        raise exception(text(lib.s3cmtf_status_name(status)), text(lib.s3cmtf_error_message(error)))


class Handle:
    """An object of the library. It is freed with the last reference, so a call on another thread may still use it after
    close(). `keep` holds what the object refers to."""

    __slots__ = ("__weakref__", "_free", "_keep", "pointer")

    def __init__(self, pointer: Any, free: Callable[[Any], None], *keep: object) -> None:
        self.pointer = pointer
        self._free = free
        self._keep = keep

    def __del__(self) -> None:
        if not _is_broken:
            self._free(self.pointer)

    def __reduce__(self) -> Any:
        raise TypeError("a handle of the library cannot be pickled")


_errors = _ThreadErrors()


def create(kind: str, function: Any, *arguments: Any, keep: Any = ()) -> Handle:
    """Calls a function that returns an object s3cmtf_`kind` through its last parameter but one."""
    out = ffi.new(f"s3cmtf_{kind} **")
    call(function, *arguments, out)
    return Handle(out[0], getattr(lib, f"s3cmtf_{kind}_free"), *keep)


def struct(name: str, **fields: Any) -> Any:
    """Creates a struct that begins with its size."""
    result = ffi.new(f"s3cmtf_{name} *")
    result.size = ffi.sizeof(f"s3cmtf_{name}")
    for field, value in fields.items():
        try:
            setattr(result, field, value)
        except OverflowError as failure:
            raise ArgumentError(f"{field} is {value}: {failure}") from None
        except TypeError as failure:
            raise TypeError(f"{field} is {value!r}: {failure}") from None
    return result


def whole(value: Any, name: str) -> int:
    """Returns a whole number; TypeError for anything else."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}; a whole number is expected") from None


def string(function: Any, *arguments: Any) -> str:
    """Calls a function that writes a string: its parameters end with a buffer, a capacity and the size needed."""
    needed = ffi.new("uint64_t *")
    call(function, *arguments, NULL, 0, needed)
    buffer = ffi.new("char[]", needed[0])
    call(function, *arguments, buffer, needed[0], NULL)
    return text(buffer)


def path_bytes(path: PathLike) -> Any:
    """Returns a path as a C string."""
    encoded = os.fsencode(path)
    if b"\0" in encoded:
        raise ValueError("a path cannot contain NUL")
    return ffi.new("char[]", encoded)


def utf8(value: str) -> Any:
    """Returns a string as a C string."""
    if not isinstance(value, str):
        raise TypeError(f"a string is expected, not {value!r}")
    if "\0" in value:
        raise ValueError("a string cannot contain NUL")
    return ffi.new("char[]", value.encode())


def cancel_token() -> Handle:
    """Creates a cancellation token."""
    return create("cancel", lib.s3cmtf_cancel_new)


def interruptible(work: Callable[[Any], T], poll: Optional[Callable[[Any], None]] = None) -> T:
    """Returns work(cancel), where `cancel` is a token. On the main thread the work runs in another thread, so that Ctrl-C
    cancels it; the exception KeyboardInterrupt is raised when it has ended. Meanwhile this thread calls poll(cancel) from time
    to time."""
    if poll is None and threading.current_thread() is not threading.main_thread():
        with Running():
            return work(NULL)
    token = cancel_token()
    results: List[T] = []
    failures: List[BaseException] = []
    running = Running()
    done = threading.Lock()
    done.acquire()

    def run() -> None:
        try:
            results.append(work(token.pointer))
        except BaseException as failure:
            failures.append(failure)
        finally:
            running.__exit__()
            done.release()

    running.__enter__()
    thread = threading.Thread(target=run, name="s3cmtf-call", daemon=True)
    thread.start()
    try:
        while not done.acquire(timeout=0.05):
            if poll is not None:
                poll(token.pointer)
        if poll is not None:
            poll(token.pointer)
    except BaseException:
        lib.s3cmtf_cancel_request(token.pointer)
        thread.join()
        raise
    if failures:
        raise failures[0]
    return results[0]


class Closeable:
    """An object with a handle, which close() or the end of a `with` block gives up."""

    _handle: Optional[Handle] = None

    def _use(self) -> Handle:
        handle = self._handle
        if handle is None:
            raise ClosedError(f"the {type(self).__name__.lower()} has been closed")
        return handle

    @property
    def closed(self) -> bool:
        """Whether close() was called."""
        return self._handle is None

    def close(self) -> None:
        """Releases the memory, as soon as no array that refers to it and no running call needs it. Closing twice is
        allowed; any other use afterwards raises ClosedError."""
        self._handle = None

    def __enter__(self: T) -> T:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
