"""Where profiles are kept, from whom they are taken, and what becomes of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest

from flame.core.files.cache import Cache
from flame.core.loading.file import load_file
from flame.core.options import LoadOptions, silent
from flame.core.reopening import profile_cache
from tests.core.reopening.conftest import any_size, find, keep, kept_file, written
from tests.support.waiting import PATIENCE

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")
OTHER = 64_001
"""A user of no name."""


def test_profiles_are_for_this_user_alone(trace: Path, home: Path) -> None:
    keep(trace)
    assert home.stat().st_mode & 0o777 == 0o700
    assert kept_file(home).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_profile_that_others_may_write_to_is_not_used(mode: int, trace: Path, home: Path) -> None:
    keep(trace)
    kept_file(home).chmod(mode)
    assert find(trace) is None
    keep(trace)
    assert find(trace) is not None


@needs_root
def test_a_profile_of_another_user_is_not_used(trace: Path, home: Path) -> None:
    keep(trace)
    os.chown(kept_file(home), OTHER, OTHER)
    assert find(trace) is None


@needs_root
def test_a_folder_of_another_user_is_not_used(trace: Path, home: Path) -> None:
    keep(trace)
    os.chown(home, OTHER, OTHER)
    assert find(trace) is None
    assert any_size().open(trace, LoadOptions(), load_file, silent).gpu_time
    keep(trace)


@pytest.mark.parametrize("what", ["link", "folder", "pipe"])
def test_what_is_no_file_is_not_used(what: str, trace: Path, home: Path) -> None:
    keep(trace)
    path = kept_file(home)
    moved = path.rename(trace.parent / "moved")
    if what == "link":
        path.symlink_to(moved)
    elif what == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)
    assert find(trace) is None


def test_without_a_folder_traces_open_all_the_same(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    keep(trace)
    assert find(trace) is None


_Usage = namedtuple("_Usage", "total used free")


@pytest.mark.parametrize(
    ("total", "free", "kept"),
    [(10**12, 5 * 10**9, False), (10**12, 6 * 10**9, True), (10**10, 10**9, False)],
)
def test_nothing_is_kept_on_a_disk_that_is_nearly_full(
    total: int, free: int, kept: bool, trace: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = _Usage(total, total - free, free)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    keep(trace)
    assert home.exists() is kept


def test_a_full_disk_leaves_nothing_behind(
    trace: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(profile_cache, "write_columns", fill)
    keep(trace)
    assert not list(home.iterdir())


def test_a_later_profile_takes_the_place_of_what_was_not_used_for_longest(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [written(tmp_path / f"{number}.sqlite") for number in range(3)]
    keep(paths[0])
    size = kept_file(home).stat().st_size
    monkeypatch.setenv("FLAME_CACHE_SIZE", f"{5 * size // 2000}kB")
    keep(paths[1])
    for path in home.iterdir():
        os.utime(path, (0, path.stat().st_mtime - 100))
    find(paths[0])
    keep(paths[2])
    assert [find(path) is not None for path in paths] == [True, False, True]


def test_two_processes_that_keep_it_at_once_both_keep_it(trace: Path, home: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tests.core.reopening.conftest import keep\n"
        f"for _ in range(15): keep(Path({str(trace)!r}))"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    found = 0
    while any(writer.poll() is None for writer in writers):
        profile = find(trace)
        if profile is not None:
            found += 1
            assert profile.activities.start.sum() == profile.activities.start.sum()
    assert [writer.wait(PATIENCE) for writer in writers] == [0, 0]
    assert found and find(trace) is not None
    assert len(list(home.iterdir())) == 1


def test_a_profile_that_is_removed_while_it_is_used_goes_on(trace: Path, home: Path) -> None:
    loaded = keep(trace)
    found = find(trace)
    assert found is not None
    Cache("profiles").drop(kept_file(home))
    np.testing.assert_array_equal(found.activities.start, loaded.activities.start)
