"""What works on macOS, as far as Linux can tell: all but recording and watching programs.

A process that looks like one of macOS: other names, nothing compiled, and without the functions and
folders that only Linux has (tests/support/darwin).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from flame._version import __version__
from tests.cli.job_terminal import PROMPT, Shell
from tests.support.paths import ROOT, SAMPLES
from tests.support.waiting import PATIENCE

DECODE = SAMPLES / "decode_small.sqlite"
RECORDING = SAMPLES / "six_levels"
PYTORCH = SAMPLES / "torch_small.pt.trace.json.gz"
USAGE = 2


def flame(*words: str | Path, home: Path, macos: bool = True) -> tuple[int, str, str]:
    """Run a command, in a process that looks like one of macOS; what it wrote, and how it ended."""
    beside = [str(ROOT / "tests" / "support" / "darwin")] if macos else []
    done = subprocess.run(
        [sys.executable, "-m", "flame", *map(str, words)],
        cwd=home,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "PYTHONPATH": os.pathsep.join([*beside, str(ROOT)]),
            "FLAME_NO_NATIVE": "1",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.deep
@pytest.mark.parametrize(
    "words",
    [
        ("view", "--print", DECODE),
        ("view", "--print", RECORDING),
        ("view", "--print", PYTORCH),
        ("info", "--json", RECORDING),
        ("report", DECODE),
        ("diff", DECODE, DECODE),
        ("top", PYTORCH),
        ("export", "-f", "svg", "-o", "-", DECODE),
        ("export", "-f", "folded", "-o", "-", PYTORCH),
        ("export", "-f", "speedscope", "-o", "-", DECODE),
    ],
    ids=lambda words: "-".join(str(word) for word in words if isinstance(word, str)),
)
def test_what_views_says_the_same_as_on_linux(
    words: tuple[str | Path, ...], tmp_path: Path
) -> None:
    assert flame(*words, home=tmp_path) == flame(*words, home=tmp_path, macos=False)


@pytest.mark.deep
def test_several_files_are_read_by_processes_that_look_so_too(tmp_path: Path) -> None:
    code, told, _ = flame("info", "--json", DECODE, PYTORCH, home=tmp_path)
    assert code == 0 and len(json.loads(told)["sources"]) == 2


@pytest.mark.deep
def test_what_is_built_there_is_the_wheel_without_compiled_parts(tmp_path: Path) -> None:
    build = ("-m", "build", "--no-isolation", "--wheel", "--outdir", tmp_path, ROOT)
    done = subprocess.run(
        [sys.executable, *map(str, build)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests" / "support" / "darwin")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert [path.name for path in tmp_path.iterdir()] == [
        f"flame_view-{__version__}-py3-none-any.whl"
    ]
    assert "flame will not be able to record, only to view: no library for darwin" in done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("record", "--", "true"), "recording works on Linux only"),
        (("attach", "1"), "programs can be watched on Linux only"),
        (("attach", "--list"), "programs can be watched on Linux only"),
    ],
)
def test_what_records_says_in_a_line_that_it_needs_linux(
    words: tuple[str, ...], told: str, tmp_path: Path
) -> None:
    code, output, errors = flame(*words, home=tmp_path)
    assert (code, output) == (USAGE, "")
    assert told in errors and errors.count("\n") == 1


def test_the_doctor_says_so_too(tmp_path: Path) -> None:
    _, told, errors = flame("doctor", home=tmp_path)
    assert "recording works on Linux only, this is darwin" in told
    assert "Traceback" not in errors


@pytest.mark.deep
def test_the_app_opens_and_ends(tmp_path: Path) -> None:
    with closing(Shell()) as terminal:
        beside = ROOT / "tests" / "support" / "darwin"
        words = f"PYTHONPATH={beside}:{ROOT} HOME={tmp_path} FLAME_NO_NATIVE=1"
        terminal.press(f"{words} {sys.executable} -m flame view {DECODE}\n")
        terminal.read_until("Sandwich")
        terminal.press("q")
        terminal.read_until(PROMPT)
        assert "\n0\r\n" in terminal.run("echo $?")
