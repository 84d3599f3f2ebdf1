"""Results that tests keep in the cache."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from flame.core.files.cache import Cache

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")
OTHER, VICTIM = 64_001, 64_002
"""Users of no name."""
DAY = 86_400


def silent() -> None:
    pass


def keep(key: str, data: bytes = b"data", kind: str = "", used_days_ago: float = 0) -> Path:
    cache = Cache(kind)
    with cache.workspace() as folder:
        (folder / "made").write_bytes(data)
        path = cache.keep(folder / "made", key, ".x")
    when = path.stat().st_mtime - used_days_ago * DAY
    os.utime(path, (when, when))
    return path


def held(home: Path) -> set[str]:
    return {path.name.partition(".")[0] for path in home.rglob("*") if path.is_file()}
