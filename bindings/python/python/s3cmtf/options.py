"""Options of a fit, from the option table of the library."""

import functools
import numbers
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Tuple

import numpy as np

from ._library import Handle, call, create, ffi, lib, string, struct, text, utf8
from ._tables import html_table
from .errors import ArgumentError

_TYPES = {
    lib.S3CMTF_OPTION_BOOL: "bool",
    lib.S3CMTF_OPTION_INTEGER: "int",
    lib.S3CMTF_OPTION_REAL: "float",
    lib.S3CMTF_OPTION_CHOICE: "choice",
    lib.S3CMTF_OPTION_INTEGER_LIST: "int or list of int",
    lib.S3CMTF_OPTION_REAL_LIST: "float or list of float",
}


@dataclass(frozen=True)
class Option:
    """The description of an option."""

    name: str
    #: "bool", "int", "float", "choice", "int or list of int" or "float or list of float".
    type: str
    #: The default; "auto" is resolved by the fit from the data.
    default: Any
    help: str
    #: The smallest and the largest number; None if the option is not a number.
    min: Optional[float]
    max: Optional[float]
    #: The words of a choice.
    choices: Tuple[str, ...]

    @property
    def values(self) -> str:
        """The values that the option may have, in words."""
        if self.type == "choice":
            return ", ".join(self.choices)
        if self.type == "bool":
            return "True or False" + (', or "auto"' if self.default == "auto" else "")
        bounds = "" if self.min is None or self.max is None else f", {self.min:g} to {self.max:,.10g}"
        if self.max is not None and self.max > 1e15:
            bounds = f", {self.min:g} or more"
        return self.type + bounds + (', or "auto"' if self.default == "auto" else "")


class Options(Dict[str, Option]):
    """All options by name."""

    def __repr__(self) -> str:
        width = max(map(len, self), default=0)
        return "\n".join(f"{name:<{width}}  {of.help} ({of.values}; default {of.default})" for name, of in self.items())

    def _repr_html_(self) -> str:
        rows = [(of.name, of.values, of.default, of.help) for of in self.values()]
        return html_table("Options of a fit", ("name", "values", "default", "meaning"), rows)


@functools.cache
def options() -> Options:
    """Returns the options of a fit: names, types, ranges, defaults and help, from the option table of the library."""
    found = Options()
    for index in range(lib.s3cmtf_option_count()):
        info = struct("option_info")
        call(lib.s3cmtf_option_get_info, index, info)
        name, kind, words = text(info.name), _TYPES.get(info.type, "text"), text(info.choices)
        found[name] = Option(
            name=name,
            type=kind,
            default=parse(text(info.default_value), kind),
            help=text(info.help),
            min=_bound(info.min),
            max=_bound(info.max),
            choices=tuple(words.split(",")) if words else (),
        )
    return found


@functools.cache
def presets() -> Tuple[str, ...]:
    """Returns the names of the presets of options."""
    names: List[str] = []
    pointer = ffi.new("char **")
    while True:
        try:
            call(lib.s3cmtf_preset_name, len(names), pointer)
        except ArgumentError:
            return tuple(names)
        names.append(text(pointer[0]))


def kernels() -> Tuple[str, ...]:
    """Returns the names of the instruction sets of this machine, values of the option kernel, the fastest first."""
    found = []
    name, available = ffi.new("char **"), ffi.new("int32_t *")
    for kernel in range(lib.s3cmtf_kernel_best(), -1, -1):
        call(lib.s3cmtf_kernel_available, kernel, available)
        if available[0]:
            call(lib.s3cmtf_kernel_name, kernel, name)
            found.append(text(name[0]))
    return tuple(found)


def build_info() -> str:
    """Returns version, target architecture, operating system and build profile of the library."""
    return text(lib.s3cmtf_build_info())


def _bound(pointer: Any) -> Optional[float]:
    number = text(pointer)
    return float(number) if number else None


def parse(value: str, kind: str) -> Any:
    """Returns the text of an option as a Python object."""
    if value == "auto" or kind in ("choice", "text"):
        return value
    if kind == "bool":
        return value == "true"
    convert = int if kind.startswith("int") else float
    found = [convert(part) for part in value.split(",")]
    return found[0] if len(found) == 1 else found


def option_text(value: Any) -> str:
    """Returns the value of an option as the library parses it."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        return repr(float(value))
    if isinstance(value, (list, tuple, np.ndarray)):
        return ",".join(map(option_text, value))
    if isinstance(value, str):
        return value
    raise TypeError(f"an option is a bool, a number, a string or a list of numbers, not {type(value).__name__}")


def new_options(preset: Optional[str], values: Mapping[str, Any]) -> Handle:
    """Creates options of the library. Values of None are left at their default."""
    handle = create("options", lib.s3cmtf_options_new, utf8(preset or "default"))
    for name, value in values.items():
        if value is not None:
            call(lib.s3cmtf_options_set, handle, utf8(name), utf8(option_text(value)))
    return handle


def read_options(handle: Handle) -> Dict[str, Any]:
    """Returns the values of options of the library."""
    return {name: parse(string(lib.s3cmtf_options_get, handle, utf8(name)), of.type) for name, of in options().items()}


def options_text() -> str:
    """Returns a list of the options for docstrings."""
    return "\n".join(f"    {name}: {of.help} ({of.values}; default {of.default})" for name, of in options().items())
