"""A stand-in for the ``nsys`` program that converts nothing, slowly: loads to stop half-way."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from flame.core.readers.signs.nsys import MAGIC
from tests.support.waiting import PATIENCE

OF_A_READER = 3
"""Processes: it, its nsys, and the shell that ends that if the reader is killed."""


def slow_nsys(folder: Path) -> dict[str, str]:
    """Put an ``nsys`` that never ends into ``folder``; the environment in which it is found."""
    program = folder / "bin" / "nsys"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexec sleep 1000\n")
    program.chmod(0o755)
    return {"PATH": f"{program.parent}:{os.environ['PATH']}", "XDG_CACHE_HOME": str(folder / "own")}


def report(path: Path) -> Path:
    """A file that only ``nsys`` can read."""
    path.write_bytes(MAGIC + path.name.encode())
    return path


def descendants(pid: int | None = None) -> list[psutil.Process]:
    """All processes below ``pid`` (or this process), zombies among them."""
    found: list[psutil.Process] = psutil.Process(pid).children(recursive=True)
    return found


def until(condition: Callable[[], object]) -> None:
    """Wait for ``condition``."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)
