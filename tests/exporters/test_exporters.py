"""The package itself: exporters are reached by name, and cost nothing until then."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest

import flame
from flame.exporters.speedscope_format import SCHEMA
from tests.exporters.profiles import Row, profile_of
from tests.support.profiles.project_tree import project_tree

LAZY = """
import sys, flame.exporters
assert "numpy" not in sys.modules
flame.exporters.folded.write
assert "flame.exporters.folded" in sys.modules
assert "flame.exporters.speedscope" not in sys.modules
"""


def test_an_exporter_is_loaded_when_it_is_named() -> None:
    done = subprocess.run([sys.executable, "-c", LAZY], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_exporters_are_reached_through_the_package() -> None:
    file = io.BytesIO()
    tree = project_tree(profile_of([Row("gemm", 1)]), metric="gpu")
    flame.exporters.speedscope.write_tree(tree, file, "trace")
    assert SCHEMA.encode() in file.getvalue()
    formats = {"chrome", "folded", "html", "pprof", "speedscope", "svg"}
    assert set(dir(flame.exporters)) == formats


def test_what_is_no_exporter_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'xlsx'"):
        _ = flame.exporters.xlsx
