"""Files that tests write, and what stands in their folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from flame.core.files.atomic import atomic_output

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")


def put(path: str | Path, data: bytes = b"new") -> None:
    with atomic_output(str(path)) as file:
        file.write(data)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def occupy(path: Path, kind: str) -> None:
    if kind == "file":
        path.write_text("old")
    elif kind == "folder":
        path.mkdir()
    elif kind == "link":
        path.symlink_to("nowhere")
    else:
        os.mkfifo(path)


def umask() -> int:
    now = os.umask(0)
    os.umask(now)
    return now


WRITE = """
import sys
from flame.core.files.atomic import OccupiedError, atomic_output, private_output
with atomic_output(sys.argv[1]) as file:
    file.write(b"new")
"""
