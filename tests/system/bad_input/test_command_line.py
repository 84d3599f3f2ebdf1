"""Bad and odd input on the command line: one line of complaint, or an output without controls."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from flame.cli.main import main
from tests.support.hostile.bad_files import KERNEL, REFUSED, remade
from tests.support.hostile.odd_files import ACCEPTED, HOSTILE_TEXTS
from tests.support.paths import ROOT
from tests.support.tiers import deep_except
from tests.system.bad_input.conftest import LONGEST, untouched


def run_flame(*arguments: str | Path, stdin: int = subprocess.DEVNULL) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of the command line."""
    command = [sys.executable, "-m", "flame", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, stdin=stdin, capture_output=True, timeout=LONGEST, env=environment
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


COMMANDS = {
    "info": ["info", "PATH"],
    "info --json": ["info", "PATH", "--json"],
    "export": ["export", "PATH", "-f", "folded", "-o", "-"],
    "view": ["view", "PATH", "--print"],
}


def _arguments(command: str, path: Path) -> list[str]:
    return [str(path) if word == "PATH" else word for word in COMMANDS[command]]


@pytest.mark.parametrize(
    ("command", "case"),
    [
        ("info", "missing"),
        ("export", "directory"),
        ("view", "dangling link"),
        ("info --json", "link to itself"),
        ("export", "empty"),
        ("view", "random bytes"),
        ("info", "picture"),
        ("info --json", "header of a database"),
        ("export", "another program's database"),
        ("view", "schema that is no text"),
        ("info", "unmerged write-ahead log"),
        ("export", "hot journal"),
        ("view", "centuries of kernels"),
    ],
)
def test_the_command_line_complains_in_one_line(command: str, case: str, tmp_path: Path) -> None:
    path = REFUSED[case][0](tmp_path)
    with untouched(tmp_path):
        code, out, complaint = run_flame(*_arguments(command, path))
    assert (code, out) == (3, "")
    assert re.fullmatch(r"flame: [^\n]+\n", complaint)
    assert "internal error" not in complaint


def test_a_device_is_refused(tmp_path: Path) -> None:
    code, out, complaint = run_flame("info", "/dev/zero")
    assert (code, out) == (3, "")
    assert complaint == "flame: /dev/zero: not a regular file; copy it to one first\n"


@pytest.mark.deep
def test_a_view_that_takes_years_can_be_interrupted(tmp_path: Path) -> None:
    wide = ", ".join(f"old AS o{number}" for number in range(9))
    none = "o0.start + o8.start < -1"  # of rows there would soon be too many
    view = f"CREATE VIEW {KERNEL} AS SELECT o1.start, o2.end FROM {wide} WHERE {none}"
    path = remade(view)(tmp_path)
    command = [sys.executable, "-m", "flame", "info", str(path)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(3)
        process.send_signal(signal.SIGINT)
        _, complaint = process.communicate(timeout=LONGEST // 2)
    finally:
        process.kill()
    assert (process.returncode, complaint) == (130, "")


ODD = [*HOSTILE_TEXTS, "no names", "no rows", "absurd calls", "deep ranges"]


@pytest.mark.parametrize("case", deep_except({*ODD} - {"names of a million characters"}, ODD))
@pytest.mark.parametrize("command", deep_except(["info"], COMMANDS))
def test_the_command_line_survives_odd_files(
    command: str, case: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = ACCEPTED[case](tmp_path)
    with untouched(tmp_path):
        code = main(_arguments(command, path))
    out, complaints = capfd.readouterr()
    assert code == (4 if (command, case) == ("export", "no rows") else 0)
    assert all(line.startswith("flame: ") for line in complaints.splitlines())
    assert command == "export" or not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e]", out)
