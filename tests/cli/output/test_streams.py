"""Terminals, pipes and full disks, and names that would like to harm them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Flame, in_terminal, spawn
from tests.support.waiting import PATIENCE
from tests.support.writers.nsysfile import NsysFile

HOSTILE = "evil\x1b[31m;red\nline\u202e"


def test_a_name_cannot_speak_to_the_terminal(flame: Flame, folder: Path) -> None:
    path = folder / "hostile\x1b[2J.sqlite"
    with NsysFile(path) as file:
        file.gpu(0, HOSTILE)
        file.process(100, HOSTILE)
        file.nvtx(HOSTILE, 0, 100)
        file.api("cudaLaunchKernel_v7000", 20, 25)
        file.kernel(HOSTILE, 1_000, 1_100)
    for command in (["view"], ["info"]):
        result = flame(*command, path)
        assert result.code == 0
        assert r"evil\x1b[31m;red\nline\u202e" in result.out
        assert not set(result.out) & set("\x1b\u202e")
    assert json.loads(flame("info", path, "--json").out)["devices"][0]["name"] == HOSTILE
    assert "\x1b" not in flame(f"{path}.gone").complaint()


def test_text_outside_utf8_is_no_obstacle(folder: Path) -> None:
    name = os.fsdecode(b"caf\xe9.sqlite")
    with NsysFile(folder / name) as file:
        file.kernel(b"na\xefve", 0, 10)
    for command in (["view", name], ["info", name], ["info", "--json", name]):
        done = spawn(*command)
        assert done.returncode == 0, done.stderr
    done = spawn("export", name, "-f", "folded", "-o", "-", encoding="utf-8")
    assert done.stdout == "[no launch recorded];na\ufffdve 10\n"


def test_ascii_locale(trace: Path) -> None:
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = spawn("view", trace, env=env)
    assert done.returncode == 0
    assert "softmax" in done.stdout


@pytest.mark.parametrize(
    "command",
    ["--help", "info {}", "info --json {}", "view {}", "export -f folded -o - {}"],
)
def test_a_closed_pipe_is_quiet(command: str, trace: Path) -> None:
    """The reading end is closed before anything is written: what ``| head`` does, only surer."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = spawn(
            *command.format(trace).split(),
            capture_output=False,
            stdout=writer,
            stderr=subprocess.PIPE,
        )
    finally:
        os.close(writer)
    assert done.returncode == 0
    noise = [line for line in done.stderr.splitlines() if not line.startswith("flame: note:")]
    assert noise == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
@pytest.mark.parametrize("command", ["info {}", "view {}", "export -f folded -o - {}"])
def test_a_full_disk_is_told(command: str, trace: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = spawn(
            *command.format(trace).split(),
            capture_output=False,
            stdout=full,
            stderr=subprocess.PIPE,
        )
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert "No space left" in done.stderr


def test_the_app_refuses_a_dumb_terminal(trace: Path) -> None:
    code, said = in_terminal("view", trace, term="dumb")
    assert code == 2
    assert said.startswith("flame: ")
    assert "--print" in said


def test_print_prints_on_a_terminal(trace: Path) -> None:
    code, said = in_terminal("view", trace, "--print")
    assert code == 0
    assert "softmax" in said
    assert "\x1b" not in said


HOSTILE_NAME = "evil\x1b[31m\x07\x9b2J\u202e\u2066name"


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A trace that would colour, ring, clear and turn the terminal that shows its names."""
    path = tmp_path / "hostile.folded"
    path.write_text(f"main;{HOSTILE_NAME} 7\n", "utf-8")
    return path


@pytest.mark.parametrize(
    "command",
    [
        "export -f folded -o - {}",
        "export -f folded -o /dev/tty {}",
        "export -f speedscope -o - {}",
        "view --print {}",
        "info {}",
        "info --json {}",
    ],
)
def test_a_terminal_obeys_no_name(hostile: Path, command: str) -> None:
    code, received = in_terminal(*command.format(hostile).split())
    assert code == 0
    *_, said = received.rpartition("\x1b[K")  # What comes before is flame's own progress.
    assert "\r\n" in said or command.startswith("info --json")
    assert [c for c in said.replace("\r\n", "") if not c.isprintable()] == []


def test_speedscope_on_a_terminal_means_the_same(hostile: Path) -> None:
    code, received = in_terminal("export", hostile, "-f", "speedscope", "-o", "-")
    assert code == 0
    text = next(part for part in re.split(r"\r\n|\r", received) if "$schema" in part)
    found = json.loads(text[text.index("{") : text.rindex("}") + 1])
    assert HOSTILE_NAME in [frame["name"] for frame in found["shared"]["frames"]]


def test_a_pipe_gets_names_as_they_are(hostile: Path) -> None:
    done = spawn("export", "-f", "folded", "-o", "-", hostile)
    assert HOSTILE_NAME in done.stdout


def test_static_view_needs_no_terminal_library(trace: Path) -> None:
    report = "import atexit,sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr))"
    code = f"{report}; from flame.cli.main import main; main(['view', {str(trace)!r}])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    loaded = set(done.stderr.split())
    assert "numpy" in loaded
    assert not loaded & {"textual", "rich"}


@pytest.mark.deep
def test_exports_to_a_terminal_are_text_that_it_cannot_obey(folder: Path) -> None:
    path = folder / "x.sqlite"
    with NsysFile(path) as file:
        file.kernel(HOSTILE, 1_000, 1_100)
    for command in (["top", "--csv"], ["top", "--json"], ["top"], ["top", "--md"]):
        code, said = in_terminal(*command, path)
        assert code == 0 and "evil" in said
        assert not set(said) & set("\x1b\u202e")
    for name in ("svg", "html", "csv", "json", "chrome"):
        code, said = in_terminal("export", path, "-f", name, "-o", "-")
        assert code == 0 and "evil" in said
        assert not set(said) & set("\x1b\u202e")
    for name in ("pprof", "parquet"):
        code, said = in_terminal("export", path, "-f", name, "-o", "-")
        assert code == 2
        assert said.startswith(f"flame: -f {name} is no text: name a file with -o")


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("ranks", "-o", "-"), "a summary is no text: name a file with -o"),
        (("diff", "--keep-base", "-"), "a kept base is no text: name a file with --keep-base"),
    ],
    ids=["ranks", "diff"],
)
def test_binary_files_are_not_written_to_a_terminal(
    command: tuple[str, ...], told: str, trace: Path
) -> None:
    assert in_terminal(command[0], trace, *command[1:]) == (2, f"flame: {told}, or use a pipe\r\n")
