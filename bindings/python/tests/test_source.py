"""The source: types, the oldest Python, and the declarations of the header."""

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import s3cmtf
from s3cmtf._library import ffi, lib

PACKAGE = Path(__file__).resolve().parents[1]
SOURCES = sorted((PACKAGE / "python" / "s3cmtf").glob("*.py"))
HEADER = PACKAGE.parents[1] / "include" / "s3cmtf.h"


def test_types():
    pytest.importorskip("mypy")
    found = subprocess.run([sys.executable, "-m", "mypy"], cwd=PACKAGE, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr


def test_source_distribution_is_refused(monkeypatch, tmp_path):
    pytest.importorskip("maturin")
    monkeypatch.syspath_prepend(str(PACKAGE))
    backend = importlib.import_module("build_backend")
    with pytest.raises(backend.UnsupportedOperation, match=r"`pip wheel ./bindings/python`"):
        backend.build_sdist(str(tmp_path))
    assert not list(tmp_path.iterdir())


def test_package_is_typed():
    assert (Path(s3cmtf.__file__).parent / "py.typed").exists()


@pytest.mark.parametrize("path", SOURCES, ids=lambda of: of.name)
def test_syntax_of_python_3_9(path):
    ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 9))


def functions():
    """The names of all functions of the header."""
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(encoding="utf-8"), flags=re.DOTALL)
    return set(re.findall(r"\b(s3cmtf_\w+)\(", text)) - {"s3cmtf_progress_callback", "s3cmtf_trial_callback"}


def test_all_functions_of_the_header_are_declared():
    assert len(functions()) > 100
    for name in functions():
        assert ffi.typeof(getattr(lib, name)).kind == "function"


#: Functions whose work is done by others: tensors refer to arrays of NumPy, fit() uses the background fit, options are set
#: as text, numbers are views, and a call returns its status.
NOT_USED = """
cancel_requested cancel_reset coo_new error_status fit_entries fit_file fit_run fit_set_callback
model_copy_biases model_copy_core model_copy_factor model_copy_matrix model_copy_offsets
options_parse options_set_bool options_set_integer options_set_ranks options_set_real
"""


def test_functions_that_the_package_does_not_use():
    used = "".join(path.read_text(encoding="utf-8") for path in SOURCES)
    unused = {name for name in functions() if not re.search(rf"\b{name}\b", used) and not name.endswith("_free")}
    assert unused == {f"s3cmtf_{name}" for name in NOT_USED.split()}


def test_everything_public_is_documented():
    for name in s3cmtf.__all__:
        item = getattr(s3cmtf, name)
        if name != "__version__":
            assert item.__doc__, name
