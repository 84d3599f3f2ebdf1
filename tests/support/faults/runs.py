"""Run something with every call failing in turn; see ``failing_calls.c`` and ``driver.py``."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.support.paths import ROOT
from tests.support.waiting import PATIENCE

CALLS = (
    "open",
    "read",
    "write",
    "sync",
    "link",
    "rename",
    "mkdir",
    "chmod",
    "truncate",
    "lock",
    "mmap",
)
ERRORS = (errno.ENOSPC, errno.EIO, errno.EROFS, errno.EDQUOT)
_SOURCE = Path(__file__).with_name("failing_calls.c")
_BUILT = ROOT / "build" / "native"


def build_shim() -> Path:
    """Compile ``failing_calls.c``, once for all tests; skip where that cannot be done."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if sys.platform != "linux" or not compiler:
        pytest.skip("calls can be made to fail on Linux with a C compiler only")
    path = _BUILT / f"failing_calls-{sha256(_SOURCE.read_bytes()).hexdigest()[:16]}.so"
    _BUILT.mkdir(parents=True, exist_ok=True)
    with (_BUILT / ".failing_calls.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            made = path.with_suffix(".new")
            command = [compiler, "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
            subprocess.run([*command, "-o", made, _SOURCE, "-ldl", "-lpthread"], check=True)
            made.rename(path)
    return path


@dataclass(frozen=True)
class Outcome:
    """What a run did in which a call failed: the ``number``-th of that kind, with ``error``."""

    call: str
    number: int
    error: int
    always: bool
    failed: int
    code: int
    lines: list[str]
    files: dict[str, str]

    @property
    def left(self) -> dict[str, str]:
        """What is in the folder; without what could not be cleaned up as it could not be opened."""
        if self.call != "read":
            return self.files
        return {name: text for name, text in self.files.items() if ".flame-" not in name}


@dataclass(frozen=True)
class FaultRuns:
    """Runs of ``work`` (``module:function``, and its arguments) in ``folder``.

    Before each the folder holds what it holds at first. Calls fail that concern what is below
    ``under``: the folder, or another one.
    """

    folder: Path
    work: str
    words: Sequence[str] = ()
    under: Path | None = None

    def run(
        self, calls: Sequence[str], errors: Sequence[int], always: Sequence[bool]
    ) -> tuple[Outcome, list[Outcome]]:
        """Return the outcome without a failure, and those with each."""
        pristine = self.folder.with_name(f"{self.folder.name}.pristine")
        shutil.copytree(self.folder, pristine, symlinks=True)
        asked: dict[str, Any] = {"work": self.work, "words": list(self.words)}
        asked |= {"folder": str(self.folder), "pristine": str(pristine)}
        asked |= {"under": str(self.under or self.folder)}
        asked |= {"calls": list(calls), "errors": list(errors), "always": list(always)}
        first, *rest = self._outcomes(asked)
        return first, rest

    def _outcomes(self, asked: dict[str, Any]) -> Iterator[Outcome]:
        command = [sys.executable, "-m", "tests.support.faults.driver", json.dumps(asked)]
        environment = {**os.environ, "LD_PRELOAD": str(build_shim()), "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            timeout=10 * PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        for line in done.stdout.splitlines():
            yield Outcome(**json.loads(line))
