#!/usr/bin/env python3
"""Where the programs are that flame is compared to; installs those that pip has.

    python benchmarks/support/peers.py

Each has an environment of its own in FLAME_BENCH_PEERS, by default `~/.cache/flame-bench`. A
benchmark uses what is there, and names what is not; none installs anything.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
FOLDER = Path(os.environ.get("FLAME_BENCH_PEERS", CACHE / "flame-bench"))
REPORT = "reports/nvtx_kern_sum.py"


class Peer(NamedTuple):
    """A program, how it is found, and how to get it."""

    name: str
    find: Callable[[], Path | None]
    tell_version: Callable[[Path], str]
    how: str

    def found(self) -> Path | None:
        """Its program, or its folder of scripts."""
        return self.find()

    def version(self) -> str:
        """Its version, "" where it is absent or tells none."""
        path = self.found()
        return self.tell_version(path) if path else ""


def of_pip(requirement: str, program: str) -> Peer:
    """A package with a program, in an environment named after what is asked for."""
    name, _, version = requirement.partition("==")

    def find() -> Path | None:
        path = FOLDER / requirement / "bin" / program
        return path if path.exists() else None

    return Peer(name, find, lambda path: version, "`python benchmarks/support/peers.py`")


def _nsys_reports() -> Path | None:
    """The folder `reports` of Nsight Systems: beside the program, or of the target beside it."""
    places = [FOLDER / "nsys"]
    if nsys := shutil.which("nsys"):
        here = Path(nsys).resolve().parent
        places += [here, *sorted(here.parent.glob("target-*"))]
    return next((place / "reports" for place in places if (place / REPORT).exists()), None)


def _nsys_version(reports: Path) -> str:
    told = reports.parent / "version"
    if told.exists():
        return told.read_text("utf-8").strip()
    nsys = shutil.which("nsys")
    return _said(nsys, "--version") if nsys else ""


def _nsys2json() -> Path | None:
    path = FOLDER / "nsys2json.py"
    return path if path.exists() else None


def _sqlite3() -> Path | None:
    program = shutil.which("sqlite3")
    return Path(program) if program else None


def _said(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip().partition("\n")[0]


FLAMESHOW = of_pip("flameshow==1.1.5", "flameshow")
NSYS_AI = of_pip("nsys-ai==0.3.0", "nsys-ai")
HTA = of_pip("HolisticTraceAnalysis==0.5.0", "python")
NSYS = Peer(
    "NVIDIA's reports",
    _nsys_reports,
    _nsys_version,
    "Nsight Systems, `nsys` on the PATH; or its `reports`, `python` and `libsqlite3.so.0` in"
    " FLAME_BENCH_PEERS/nsys",
)
NSYS2JSON = Peer(
    "nsys2json",
    _nsys2json,
    lambda path: "",
    "`nsys2json.py` of github.com/chenyu-jiang/nsys2json, in FLAME_BENCH_PEERS",
)
SQLITE3 = Peer(
    "sqlite3",
    _sqlite3,
    lambda path: _said(str(path), "--version").partition(" ")[0],
    "the package `sqlite3` of the system; without it Python's module stands in",
)
PEERS = (SQLITE3, NSYS, NSYS2JSON, NSYS_AI, HTA, FLAMESHOW)
PYTHON_OF_DUCKDB = "import duckdb_extensions; duckdb_extensions.import_extension('sqlite_scanner')"
OF_PIP = {
    "flameshow==1.1.5": (),
    # A part of DuckDB that it would fetch when it is first used; it is kept in ~/.duckdb.
    "nsys-ai==0.3.0": ("duckdb-extensions", "duckdb-extension-sqlite-scanner"),
    "HolisticTraceAnalysis==0.5.0": (),
}
"""What pip is asked for, and what else it needs."""


def install() -> int:
    """Installs what is missing; the exit code is 1 where something cannot be had."""
    failed = 0
    for requirement, more in OF_PIP.items():
        folder = FOLDER / requirement
        if folder.exists():
            continue
        try:
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
            pip = [str(folder / "bin" / "pip"), "install", "--quiet", requirement, *more]
            subprocess.run(pip, check=True)
            if more:
                subprocess.run([str(folder / "bin" / "python"), "-c", PYTHON_OF_DUCKDB], check=True)
        except subprocess.CalledProcessError:
            shutil.rmtree(folder, ignore_errors=True)
            failed = 1
    for peer in PEERS:
        print(f"{peer.name}: {peer.found() or 'absent: ' + peer.how}")
    return failed


if __name__ == "__main__":
    sys.exit(install())
