"""The README and the tutorial are executed."""

import contextlib
import io
import re
import runpy
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1]


def test_readme(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (PACKAGE / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```(python|text)\n(.*?)```", text, flags=re.DOTALL)
    names = {"__name__": "readme"}
    printed = ""
    for kind, block in blocks:
        if kind == "text":
            assert printed == block
        else:
            with contextlib.redirect_stdout(io.StringIO()) as output:
                exec(compile(block, "README.md", "exec"), names)
            printed = output.getvalue()


def test_tutorial(tmp_path, monkeypatch):
    for module in ("matplotlib", "pandas", "scipy"):
        pytest.importorskip(module)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    with contextlib.redirect_stdout(io.StringIO()) as output:
        runpy.run_path(str(PACKAGE / "examples" / "tutorial.py"))
    assert "90% intervals" in output.getvalue()
    assert len(list(tmp_path.glob("*.png"))) == 4
