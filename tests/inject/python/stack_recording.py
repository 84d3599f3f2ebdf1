"""What the cases of ``python_cases.py`` said in some version of Python, and the dumps of them."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.tiers import deep_except
from tests.support.waiting import PATIENCE
from tests.support.writers import fdumprecords

MAX_DEPTH = 250

WALKED = (11, 12, 13, 14)
"""Minor versions whose frames are read without the GIL."""

EACH = deep_except([sys.version_info[1]], WALKED)
"""The quick tier has only the interpreter of the tests: another has to be started."""

Place = tuple[str, str, int]


@functools.cache
def python(minor: int) -> str:
    """A Python 3.``minor`` on this machine, or a skip."""
    known = (Path.home() / ".pyenv" / "versions").glob(f"3.{minor}.*/bin/python")
    here = [sys.executable] if sys.version_info[1] == minor else []
    for name in [*here, *map(str, known), shutil.which(f"python3.{minor}") or ""]:
        script = "import sys, ctypes; print(sys.version_info[1])"
        if name and run([name, "-c", script], {}).stdout.strip() == str(minor):
            return name
    pytest.skip(f"there is no Python 3.{minor} here")


def run(command: list[str], env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env=os.environ | env,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
    )


@dataclass
class Recording:
    """What a run of the cases said, and its dumps by process."""

    says: dict[str, list[dict[str, Any]]]
    dumps: dict[int, Path]
    pid: int
    output: str
    read: dict[int, dict[str, Any]] = field(default_factory=dict)
    stacks: dict[tuple[int, int], list[Place]] = field(default_factory=dict)

    def stack(self, node: int, pid: int | None = None) -> list[Place]:
        key = pid or self.pid, node
        if key not in self.stacks:
            self.stacks[key] = fdumprecords.stack(self.records(key[0]), node)
        return self.stacks[key]

    def records(self, pid: int) -> dict[str, Any]:
        if pid not in self.read:
            self.read[pid] = fdumprecords.records(self.dumps[pid])
        return self.read[pid]

    def meta(self) -> dict[str, list[str]]:
        return fdumprecords.meta(self.dumps[self.pid])


Record = Callable[..., Recording]


def lines_of(output: str) -> Iterator[str]:
    return (line for line in output.splitlines() if line.startswith("{"))


def differences(recording: Recording, case: str, ways: tuple[str, ...]) -> Iterator[Any]:
    """(what Python says, what the dump says) where that is not the same."""
    assert recording.says[case]
    for said in recording.says[case]:
        expected = [place(*each) for each in said["expected"]]
        if "whole" in said:
            got = recording.stack(said["whole"])
            if got != expected:
                yield expected, got
            continue
        for way in ways:  # on top is the function that captures
            got = recording.stack(said[way], said.get("pid"))[:-1]
            if got != expected[-(MAX_DEPTH - 1) :]:
                yield expected, got


def place(function: str, file: str, line: int) -> Place:
    return function, file.replace("\udc80", "\ufffd")[: 4096 - 3], line
