"""Importing costs nothing that is not used: read from the module table of a fresh interpreter."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.paths import ROOT
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
    heavy = {"argparse", "dask", "msgspec", "numpy", "psutil", "rich", "sqlite3", "textual"}
    assert "flame" in modules
    assert modules & heavy == set()


def test_core_and_exporters_leave_the_terminal_out() -> None:
    modules = imported(IMPORT_EVERY_MODULE.format(packages=["flame.core", "flame.exporters"]))
    assert {"flame.core.errors", "flame.exporters"} <= modules
    assert modules & {"argparse", "rich", "textual"} == set()


HEAVY = {
    *("asyncio", "dask", "distributed", "msgspec", "multiprocessing", "numpy", "psutil", "regex"),
    *("rich", "sqlite3", "subprocess", "tempfile", "textual", "tomllib", "unittest"),
}
TYPES = {"ast", "dataclasses", "inspect", "typing"}
"""What takes long to import and serves those who read code."""

NOT_OF_A_START = {
    "--version": HEAVY | TYPES | {"argparse", "gettext", "json", "pathlib", "shutil", "traceback"},
    "--help": HEAVY | TYPES | {"json", "pathlib", "traceback", "flame.options.selection"},
    "record --help": HEAVY | {"flame.options.selection"},
    "view --help": HEAVY,
    "attach --help": HEAVY,
    "export --help": HEAVY,
    "info --help": HEAVY,
    "ranks --help": HEAVY,
    "doctor --help": HEAVY,
}
COMMANDS = {"record", "view", "attach", "export", "info", "ranks", "doctor"}


@pytest.mark.parametrize("words", NOT_OF_A_START)
def test_asking_the_command_about_itself_is_cheap(words: str) -> None:
    modules = imported(RUN_COMMAND, *words.split())
    others = {f"flame.cli.{name}" for name in COMMANDS - {*words.split()}}
    assert "flame.cli.main" in modules
    assert modules & (NOT_OF_A_START[words] | others) == set()


def test_sections_of_a_report_are_imported_when_they_are_asked_for() -> None:
    modules = imported("import flame.core.report.report")
    assert {name for name in modules if name.startswith("flame.core.report.sections")} == set()


FOLDED = "main;work 5\nmain;rest 3\n"
SPEEDSCOPE = {
    "$schema": "https://www.speedscope.app/file-format-schema.json",
    "shared": {"frames": [{"name": "main"}]},
    "profiles": [
        {
            "type": "sampled",
            "name": "x",
            "unit": "none",
            "startValue": 0,
            "endValue": 3,
            "samples": [[0]],
            "weights": [3],
        }
    ],
}
PROTON = [
    {"children": [], "frame": {"name": "kernel", "type": "function"}, "metrics": {"time (ns)": 5}}
]
FILES = {
    "run.folded": FOLDED,
    "run.speedscope.json": json.dumps(SPEEDSCOPE),
    "run.hatchet": json.dumps(PROTON),
}
READERS = "flame.core.readers."
ALWAYS = {"formats", "shared", "fdump.folder", "signs.fdump", "signs.nsys"}
ALWAYS |= {f"signs.{name}" for name in ("kineto", "ncu", "stacks")}
"""What tells formats apart."""

OF_FORMAT = {
    "decode_small.sqlite": {"nsys", "sqlite"},
    "torch_small.pt.trace.json.gz": {"kineto"},
    "six_levels": {"fdump"},
    "run.folded": {"stacks"},
    "run.speedscope.json": {"stacks"},
    "run.hatchet": {"stacks"},
}
"""The packages that read a file."""

ALSO = {"six_levels": {"numpy.ma", "shutil", "subprocess", "tempfile"}}
"""What PC samples bring, whose instructions may have to be asked of nvdisasm."""

LATER = {
    *("asyncio", "multiprocessing", "numpy.ma", "psutil", "regex", "rich", "subprocess"),
    *("shutil", "tempfile", "textual", "tomllib", "unittest", "numpy.ctypeslib", "numpy.typing"),
    *("flame.attach", "flame.console.info", "flame.core.attribution.joins.collectives"),
    *("flame.core.live", "flame.core.loading.merge.profiles", "flame.core.loading.parallel"),
    *("flame.doctor", "flame.exporters", "flame.record", "flame.tui"),
    *("flame.core.analysis.waiting.table", "flame.core.timeline.exposure"),
}


@pytest.mark.parametrize("name", OF_FORMAT)
def test_a_printed_view_imports_the_reader_of_the_format_and_no_other(
    name: str, tmp_path: Path
) -> None:
    trace = ROOT / "samples" / name
    if name in FILES:
        trace = tmp_path / name
        trace.write_text(FILES[name])
    modules = imported(RUN_COMMAND, "view", "--print", str(trace))
    readers = {each.removeprefix(READERS) for each in modules if each.startswith(READERS)}
    packages = {each.partition(".")[0] for each in readers - ALWAYS if "." in each}
    assert packages - {"shared"} == OF_FORMAT[name]
    assert modules & (LATER - ALSO.get(name, set())) == set()


def test_an_nsys_trace_needs_neither_json_nor_converters() -> None:
    modules = imported(RUN_COMMAND, "view", "--print", str(ROOT / "samples/decode_small.sqlite"))
    needless = {"json", "msgspec", "flame.core.readers.shared.converter", "flame.core.files.cache"}
    assert modules & needless == set()


def test_the_first_picture_of_the_app_comes_before_its_screens() -> None:
    before = ("flame.cli.app_start", "flame.core.loading.inputs", "flame.options.preferences")
    modules = imported(f"import {', '.join(before)}, flame.tui.main.app, flame.tui.shell.start")
    later = {"flame.core.loading.many", "flame.tui.main.screen", "flame.tui.session.session"}
    assert "textual.app" in modules
    assert modules & {*later, "msgspec", "numpy", "secrets", "sqlite3"} == set()


def test_dialogs_are_imported_when_they_open() -> None:
    modules = imported("import flame.tui.main.screen")
    dialogs = {"filters", "levels", "metrics", "steps", "export", "write_files"}
    assert "flame.tui.main.layout" in modules
    assert modules & {f"flame.tui.dialogs.{name}" for name in dialogs} == set()


def modules_with(word: str) -> Iterator[tuple[Path, ast.Module]]:
    """The modules of flame in whose source ``word`` stands."""
    for path in sorted((ROOT / "flame").rglob("*.py")):
        if word in (source := path.read_text("utf-8")):
            yield path.relative_to(ROOT), ast.parse(source)


def run_at_import(tree: ast.AST) -> Iterator[ast.AST]:
    """What runs when a module is imported: all but the insides of functions."""
    for node in ast.iter_child_nodes(tree):
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from run_at_import(node)


def test_no_module_compiles_regular_expressions_when_it_is_imported() -> None:
    compiled = [
        f"{path}:{node.lineno}"
        for path, tree in modules_with("re.compile")
        for node in run_at_import(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "re.compile"
    ]
    assert compiled == []


EAGER = {"core/lazy_dataclass.py", "tui/session/tree_view.py"}
"""That has an InitVar, which is not for lazy ones."""


def test_dataclasses_are_lazy_where_they_can_be() -> None:
    eager = {
        str(path.relative_to("flame"))
        for path, tree in modules_with("from dataclasses import")
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and node.module == "dataclasses"
        and any(each.name == "dataclass" for each in node.names)
    }
    assert eager == EAGER
