"""Build backend: maturin, with the declarations of the checked-in C header.

maturin compiles the declarations of the file header.h in cargo's target folder for cffi. This module writes that file from
include/s3cmtf.h, so there is no second list of declarations.
"""

import json
import re
import subprocess
from pathlib import Path

import maturin
from maturin import (  # noqa: F401 (hooks that need no declarations)
    get_requires_for_build_editable,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

ROOT = Path(__file__).resolve().parents[2]


def declarations(header):
    """Returns the declarations of a header without what cffi does not parse: comments, conditions, attributes."""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    text = re.sub(r"^#if(?:def __cplusplus| defined).*?^#endif", "", text, flags=re.DOTALL | re.MULTILINE)
    text = text.replace("S3CMTF_CHECK_STATUS ", "")
    lines = (line for line in text.splitlines() if line.strip())
    return "\n".join(line for line in lines if line[0] != "#" or re.fullmatch(r"#define \w+ -?\d+", line)) + "\n"


def write_declarations():
    """Writes the declarations to the place where maturin expects them."""
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--manifest-path", str(ROOT / "Cargo.toml")]
    metadata = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    target = Path(metadata["target_directory"])
    target.mkdir(parents=True, exist_ok=True)
    header = (ROOT / "include" / "s3cmtf.h").read_text(encoding="utf-8")
    (target / "header.h").write_text(declarations(header), encoding="utf-8")


class UnsupportedOperation(Exception):
    """The exception of PEP 517 for a hook that is not supported."""


def build_sdist(sdist_directory, config_settings=None):
    """Refuses a source distribution: the sources of the library are outside the folder of the package."""
    raise UnsupportedOperation(
        "there is no source distribution of s3cmtf, because the sources of its library are outside the folder of the package."
        " Build a wheel from a checkout of the repository: `pip wheel ./bindings/python` or"
        " `python -m build --wheel bindings/python`"
    )


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Builds a wheel."""
    write_declarations()
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """Builds an editable wheel."""
    write_declarations()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)
