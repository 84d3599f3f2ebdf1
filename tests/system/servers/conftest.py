"""Commands of flame on real servers: run by an interpreter that knows these and nobody else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import NamedTuple

import pytest

from tests.support.paths import ROOT
from tests.support.waiting import PATIENCE

TRACE = b"main;work 12\nmain 3\n"

_LOOP = """
import contextlib, io, json, sys
from flame.cli.main import main
for line in sys.stdin:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        with contextlib.redirect_stderr(io.StringIO()) as err:
            code = main(json.loads(line))
    print(json.dumps([code, out.getvalue(), err.getvalue()]), flush=True)
"""


class Answer(NamedTuple):
    """What a command has left behind."""

    code: int
    out: str
    err: str

    def complaint(self) -> str:
        """The only line of a command that could not read its input."""
        assert (self.code, self.out) == (3, ""), self
        assert self.err.startswith("flame: ") and self.err.count("\n") == 1, self.err
        return self.err


class Machine:
    """A machine with a cache and a folder for temporary files, whose ``environment`` is given."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.cache, self.temporary = folder / "cache", folder / "tmp"
        self.temporary.mkdir()
        kept = {key: os.environ[key] for key in ("PATH",) if key in os.environ}
        self.environment = {
            **kept,
            "HOME": str(folder),
            "PYTHONPATH": str(ROOT),
            "XDG_CACHE_HOME": str(self.cache),
            "TMPDIR": str(self.temporary),
            **environment,
        }

    @contextmanager
    def commands(self) -> Iterator[Machine]:
        """Have an interpreter ready for `run`."""
        with subprocess.Popen(
            [sys.executable, "-c", _LOOP],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=self.environment,
        ) as self._loop:
            yield self
            assert self._loop.stdin
            self._loop.stdin.close()

    def run(self, *words: str) -> Answer:
        """Run a command."""
        assert self._loop.stdin and self._loop.stdout
        print(json.dumps(words), file=self._loop.stdin, flush=True)
        ended = Timer(PATIENCE, self._loop.kill)
        ended.start()
        answer = self._loop.stdout.readline()
        ended.cancel()
        assert answer, f"no answer to {words}"
        return Answer(*json.loads(answer))

    def fetched(self) -> list[Path]:
        """What lies in the cache and among temporary files."""
        folders = (self.cache, self.temporary)
        files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
        return [path for path in files if path.suffix == ".fetched" or ".flame-" in str(path)]


@pytest.fixture(scope="module")
def machine_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("machine")
