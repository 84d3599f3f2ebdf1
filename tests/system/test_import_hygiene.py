"""Importing costs nothing that is not used: read from the module table of a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.waiting import PATIENCE

# Printed at exit, so that a command that ends by SystemExit is seen as well.
REPORT = """
import atexit, sys
atexit.register(lambda: print("imported:", *sys.modules, file=sys.stderr))
"""

RUN_COMMAND = """
import runpy
sys.argv[0] = "flame"
runpy.run_module("flame", run_name="__main__", alter_sys=True)
"""

IMPORT_EVERY_MODULE = """
import importlib, pkgutil
for name in {packages}:
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, name + "."):
        importlib.import_module(module.name)
"""


def imported(code: str, *args: str) -> set[str]:
    """Names of all modules that a fresh interpreter has loaded at the end of this code."""
    command = [sys.executable, "-c", REPORT + code, *args]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.rpartition("imported:")[2].split())


def test_an_import_is_seen() -> None:
    assert {"textual.app", "rich", "json"} <= imported("import json, textual.app")


def test_flame_itself_loads_nothing_heavy() -> None:
    modules = imported("import flame")
    heavy = {"argparse", "msgspec", "numpy", "psutil", "rich", "sqlite3", "textual"}
    assert "flame" in modules
    assert not modules & heavy


def test_core_and_exporters_leave_the_terminal_out() -> None:
    modules = imported(IMPORT_EVERY_MODULE.format(packages=["flame.core", "flame.exporters"]))
    assert {"flame.core.errors", "flame.exporters"} <= modules
    assert not modules & {"argparse", "rich", "textual"}


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_asking_the_command_about_itself_is_cheap(option: str) -> None:
    modules = imported(RUN_COMMAND, option)
    assert "flame.cli.main" in modules
    assert not modules & {"msgspec", "numpy", "psutil", "rich", "sqlite3", "textual"}
