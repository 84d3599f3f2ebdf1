"""Runs the scenes of the C++ test program of dump/ and process/, and reads what they recorded."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from inject import build
from tests.inject.conftest import NATIVE, built
from tests.support.waiting import PATIENCE
from tests.support.writers.fdumprecords import records, text

PROGRAM = ("writer_test.cpp", "life_scenes.cpp", "bus_error_scenes.cpp", "fork_scenes.cpp")
BASE = ("system", "dump", "process")
SOURCES = [
    *(NATIVE / name for name in PROGRAM),
    *(file for folder in BASE for file in sorted((build.HERE / folder).glob("*.cpp"))),
]
TIMEOUT_S = 2 * PATIENCE
RUNNING, ENDED = 0, 1  # states of a dump
FULL, STOPPED = 1, 2  # flags


def program(*flags: str) -> Path:
    """The test program, compiled with these flags."""
    return built("writer_test", SOURCES, *(flags or build.OPTIMIZED))


@dataclass
class Bench:
    """Runs scenes of the test program, each process's dump into ``folder``."""

    program: Path
    folder: Path

    def env(self, **more: str | int) -> dict[str, str]:
        ours = ("FLAME_", "RANK", "WORLD_SIZE", "OMPI_", "PMI_", "SLURM_")
        env = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        return env | {"FLAME_DIR": str(self.folder)} | {k: str(v) for k, v in more.items()}

    def run(self, scene: str, **more: str | int) -> str:
        command = [str(self.program), scene]
        done = subprocess.run(
            command, env=self.env(**more), capture_output=True, text=True, timeout=TIMEOUT_S
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return done.stdout.strip()

    def dumps(self) -> list[Path]:
        return sorted(self.folder.glob("*.fdump"))

    def dump(self) -> Path:
        (path,) = self.dumps()
        return path


def numbers(path: Path, key: str = "launch") -> dict[int, list[int]]:
    """The numbers that every writer wrote, sorted; no record may be torn."""
    rows = records(path)[key]
    assert (rows["end"] == ~rows["start"]).all()
    return {
        int(writer): sorted(rows["start"][rows["tid"] == writer].tolist())
        for writer in np.unique(rows["tid"])
    }


def assert_consecutive(found: dict[int, list[int]], counts: dict[int, int]) -> None:
    assert found == {writer: list(range(count)) for writer, count in counts.items()}


def assert_references(path: Path) -> None:
    """Every id that a record names has been written, with what the writer meant."""
    of = records(path)
    for row in of["launch"][:: max(1, len(of["launch"]) // 2000)]:
        assert text(of, int(row["python"])) == f"sum {row['start'] % 100}"
    names = {int(row["id"]): text(of, int(row["text"])) for row in of["range_name"]}
    for row in of["range"][:: max(1, len(of["range"]) // 2000)]:
        assert names[int(row["name"])] == f"range {row['start'] % 1000}"
    lines = {int(row["id"]): int(row["line"]) for row in of["frame"]}
    items = {int(row["id"]): int(row["item"]) for row in of["node"]}
    parents = {int(row["id"]): int(row["parent"]) for row in of["node"]}
    for row in of["kernel"][:: max(1, len(of["kernel"]) // 2000)]:
        leaf = int(row["python"])
        assert lines[items[leaf]] == row["start"] % 50
        assert lines[items[parents[leaf]]] == 1
        assert parents[parents[leaf]] == 0


def lost(path: Path) -> dict[tuple[int, int], int]:
    """Records that Drop records count, by cause and type."""
    found: dict[tuple[int, int], int] = {}
    for row in records(path)["drop"]:
        key = int(row["cause"]), int(row["type"])
        found[key] = found.get(key, 0) + int(row["count"])
    return found
