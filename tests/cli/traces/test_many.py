"""Several traces on one command line."""

from __future__ import annotations

import json
import os
import pty
import select
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Flame, folded, interrupt
from tests.support.writers.fake_nsys import (
    OF_A_READER,
    descendants,
    report,
    slow_nsys,
    until,
)
from tests.support.writers.nsysfile import NsysFile

pytestmark = pytest.mark.deep


@pytest.fixture
def ranks(folder: Path) -> list[Path]:
    """Three traces of one kernel each, of 10, 20 and 30 ns."""
    paths = [folder / f"rank{number}.sqlite" for number in range(3)]
    for number, path in enumerate(paths):
        with NsysFile(path) as file:
            file.gpu(0, "NVIDIA Test")
            file.process(100, "trainer")
            file.api("cudaLaunchKernel_v7000", 10, 20, corr=1)
            file.kernel("gemm", 30, 40 + 10 * number, corr=1)
    return paths


def test_view_shows_all_by_rank(flame: Flame, ranks: list[Path]) -> None:
    result = flame("view", *ranks)
    assert result.code == 0
    head = "3 traces: rank0…rank2 · 3 × NVIDIA Test · 30 ns · busy 100.0 % · idle 0 ns"
    head += " · GPU time 60 ns · 3 activities"
    assert result.lines[0] == head
    assert "by rank, python, native, launch, nvtx, kernel" in result.lines[1]
    words = [line.split()[-1] for line in result.lines if line]
    assert [word for word in words if word.startswith("rank")][:3] == ["rank2", "rank1", "rank0"]


def test_view_is_the_usual_command_for_several_too(flame: Flame, ranks: list[Path]) -> None:
    assert flame(*ranks).out == flame("view", *ranks).out


def test_export_writes_all(flame: Flame, ranks: list[Path]) -> None:
    result = flame("export", *ranks, "-f", "folded", "--levels", "rank,kernel", "-o", "-")
    assert folded(result) == {"rank0;gemm": 10, "rank1;gemm": 20, "rank2;gemm": 30}


def test_export_names_its_file_after_the_first(flame: Flame, ranks: list[Path]) -> None:
    assert flame("export", *ranks, "-f", "speedscope").code == 0
    file = json.loads(Path("rank0-and-2-more.speedscope.json").read_text())
    assert file["name"] == "3 traces: rank0…rank2"


def test_no_export_goes_over_any_of_the_traces(flame: Flame, ranks: list[Path]) -> None:
    before = ranks[2].read_bytes()
    result = flame("export", *ranks, "-f", "folded", "-o", ranks[2])
    assert result.complaint() == f"-o {ranks[2]}: is the trace itself"
    assert ranks[2].read_bytes() == before


def test_info_tells_what_each_has(flame: Flame, ranks: list[Path]) -> None:
    lines = flame("info", *ranks).lines
    assert lines[0] == "3 traces: rank0…rank2"
    assert [line.split() for line in lines[2:5]] == [
        [f"rank{number}", f"{10 + 10 * number}", "ns", "1", str(path)]
        for number, path in enumerate(ranks)
    ]
    assert "GPUs        GPU 0  NVIDIA Test  rank0" in lines
    assert "GPU time    60 ns" in lines
    assert "note: times are not aligned, each trace begins at 0" in "\n".join(lines)


def test_info_json_lists_the_sources(flame: Flame, ranks: list[Path]) -> None:
    told = json.loads(flame("info", "--json", *ranks).out)
    assert told["path"] is None
    assert told["gpu_time_ns"] == 60
    assert [(one["label"], one["path"], one["gpu_time_ns"]) for one in told["sources"]] == [
        (path.stem, str(path), 10 + 10 * number) for number, path in enumerate(ranks)
    ]
    assert [one["source"] for one in told["devices"]] == [0, 1, 2]
    assert [one["source"] for one in told["processes"]] == [0, 1, 2]


def test_times_of_day_align_the_ranks(flame: Flame, ranks: list[Path]) -> None:
    for number, path in enumerate(ranks):
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INT)")
            start = (10**18 + 5 * number,)
            db.execute("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (?)", start)
        db.close()
    told = json.loads(flame("info", "--json", *ranks).out)
    assert told["duration_ns"] == 60
    assert not any("aligned" in warning for warning in told["warnings"])


@pytest.mark.parametrize("command", [["view"], ["info"], ["export", "-f", "folded"]])
def test_one_that_is_damaged_is_named_in_one_line(
    command: list[str], flame: Flame, ranks: list[Path]
) -> None:
    ranks[1].write_bytes(b"SQLite format 3\0 and no more")
    result = flame(*command, *ranks)
    assert result.code == 3
    assert result.complaint().startswith(f"{ranks[1]}: ")


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["rank0.sqlite", "rank0.sqlite"], 2, "rank0.sqlite: is named twice"),
        (["rank0.sqlite", "rank9.sqlite"], 3, "rank9.sqlite: no such file"),
        (["none*.json"], 3, "none*.json: no file here matches that pattern"),
    ],
)
def test_what_cannot_be_opened_together(
    args: list[str], code: int, said: str, flame: Flame, ranks: list[Path]
) -> None:
    result = flame("info", *args)
    assert (result.code, result.complaint()) == (code, said)


# Stopping


def _reports(folder: Path) -> tuple[list[Path], dict[str, str]]:
    environment = {**os.environ, **slow_nsys(folder), "TERM": "xterm-256color"}
    return [report(folder / f"{name}.nsys-rep") for name in "ab"], environment


def test_an_interrupt_ends_all_processes(folder: Path) -> None:
    paths, environment = _reports(folder)
    command = [sys.executable, "-m", "flame", "info", *map(str, paths)]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        until(lambda: len(descendants(process.pid)) == 2 * OF_A_READER)
        below = descendants(process.pid)
        assert interrupt(process) == (130, b"", b"")
    until(lambda: not any(one.is_running() for one in below))
    assert list((folder / "own" / "flame").iterdir()) == []


@pytest.mark.parametrize("key", [b"\x03", b"q"])
def test_leaving_the_app_while_it_loads_ends_all_processes(folder: Path, key: bytes) -> None:
    paths, environment = _reports(folder)
    end, other = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "flame", *map(str, paths)],
        stdin=other,
        stdout=other,
        stderr=other,
        env=environment,
    )
    os.close(other)
    shown = _Reader(end)
    try:
        shown.until(b"converting with nsys")
        assert b"2 traces: a, b" in shown.output
        until(lambda: len(descendants(process.pid)) == 2 * OF_A_READER)
        below = descendants(process.pid)
        os.write(end, key)
        shown.drain(process)
        assert process.wait(10) == (0 if key == b"\x03" else 130)
    finally:
        process.kill()
        process.wait()
        os.close(end)
    until(lambda: not any(one.is_running() for one in below))


class _Reader:
    """Reads what a process writes to a terminal."""

    def __init__(self, end: int) -> None:
        self._end = end
        self.output = b""

    def _read(self) -> bool:
        if not select.select([self._end], [], [], 0.1)[0]:
            return False
        try:
            self.output += os.read(self._end, 1 << 16)
        except OSError:  # what Linux says of a terminal that nobody has open
            return False
        return True

    def until(self, text: bytes) -> None:
        def there() -> bool:
            self._read()
            return text in self.output

        until(there)

    def drain(self, process: subprocess.Popen[bytes]) -> None:
        def ended() -> bool:
            self._read()
            return process.poll() is not None

        until(ended)
