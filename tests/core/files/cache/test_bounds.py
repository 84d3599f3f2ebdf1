"""The cache bounds and cleans itself."""

from __future__ import annotations

import os
import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from flame.core.errors import UsageError
from flame.core.files.bounds import (
    CacheBounds,
    cache_size,
    clear_cache,
    has_room,
    read_bounds,
    trim,
)
from flame.core.files.cache import Cache
from tests.core.files.cache.kept_results import held, keep


def test_what_was_not_used_for_longest_goes_first(home: Path) -> None:
    for number in range(5):
        keep(str(number), bytes(100), used_days_ago=9 - number)
    Cache().find("0", ".x")
    last = keep("5", bytes(100), kind="sass")
    trim(CacheBounds(size=300), last)
    assert held(home) == {"0", "4", "5"}
    assert cache_size() == 300


def test_what_is_old_goes(home: Path) -> None:
    keep("old", used_days_ago=31)
    keep("young", used_days_ago=29)
    keep("new")
    assert held(home) == {"young", "new"}


def test_the_newest_stays_whatever_its_size(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLAME_CACHE_SIZE", "0.5kB")
    monkeypatch.setenv("FLAME_CACHE_DAYS", "0")
    keep("a", bytes(1000), kind="sass")
    keep("b", bytes(1000))
    assert held(home) == {"b"}


_Disk = namedtuple("_Disk", "total used free")


def have_disk(monkeypatch: pytest.MonkeyPatch, total: int, free: int) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: _Disk(total, total - free, free))


@pytest.mark.parametrize(("disk", "most"), [(10**12, 10**10), (5 * 10**10, 5 * 10**9)])
def test_the_cache_keeps_ten_gigabytes_or_a_tenth_of_the_disk(
    disk: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    have_disk(monkeypatch, disk, 0)
    assert read_bounds() == CacheBounds(most, 30)


@pytest.mark.parametrize(
    ("total", "free", "size"), [(10**12, 7 * 10**9, 2 * 10**9), (10**10, 3 * 10**9, 2 * 10**9)]
)
def test_room_is_what_leaves_five_gigabytes_or_a_tenth_of_the_disk(
    total: int, free: int, size: int, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    have_disk(monkeypatch, total, free)
    assert has_room(size)
    assert not has_room(size + 1)
    assert not home.exists(), "to look is not to make it"


def test_bounds_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLAME_CACHE_SIZE", "20GiB")
    monkeypatch.setenv("FLAME_CACHE_DAYS", "90")
    assert read_bounds() == CacheBounds(20 << 30, 90)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FLAME_CACHE_SIZE", "much"),
        ("FLAME_CACHE_SIZE", "-5GB"),
        ("FLAME_CACHE_DAYS", "-1"),
        ("FLAME_CACHE_DAYS", "1.5"),
        ("FLAME_CACHE_DAYS", "²"),
        ("FLAME_CACHE_DAYS", "9" * 5000),
    ],
)
def test_what_is_no_bound_is_refused(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match=f"^{name}: "):
        read_bounds()


def test_what_is_being_made_counts_for_nothing_and_stays(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLAME_CACHE_SIZE", "1kB")
    monkeypatch.setenv("FLAME_CACHE_DAYS", "0")
    with Cache().workspace() as busy:
        (busy / "export.sqlite").write_bytes(bytes(5000))
        os.utime(busy / "export.sqlite", (0, 0))
        keep("a", kind="profiles")
        assert (busy / "export.sqlite").exists()
        assert cache_size() == 4
        clear_cache()
        assert (busy / "export.sqlite").exists()


def left_behind(folder: Path) -> Path:
    """Leave in ``folder`` what a killed conversion of yesterday does."""
    left = folder / ".flame-0123456789abcdef.tmp"
    left.mkdir(parents=True)
    (left / "export.sqlite").write_bytes(b"x")
    for path in (left / "export.sqlite", left):
        os.utime(path, (0, 0))
    return left


@pytest.mark.parametrize("kind", ["", "sass"])
def test_what_killed_processes_have_left_goes_whatever_is_kept(kind: str, home: Path) -> None:
    keep("a", kind="profiles")
    left = left_behind(home / kind)
    keep("b", kind="profiles")
    assert not left.exists()


@pytest.mark.parametrize("kind", ["", "sass"])
def test_what_killed_processes_have_left_goes_when_all_is_cleared(kind: str, home: Path) -> None:
    Cache().folder()
    left = left_behind(home / kind)
    assert clear_cache() == []
    assert not left.exists()
