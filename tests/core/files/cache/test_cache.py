"""The cache finds what is kept by key or name, and checks it; one at a time makes it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from flame.core.errors import CancelledError
from flame.core.files import digest
from flame.core.files.bounds import cache_entries, clear_cache
from flame.core.files.cache import Cache
from flame.core.files.temporary import remove_left
from tests.core.files.cache.kept_results import OTHER, held, keep, needs_root, silent
from tests.support.waiting import PATIENCE


def test_what_is_kept_is_found_and_for_this_user_alone(home: Path) -> None:
    path = keep("a")
    assert Cache().find("a", ".x") == (path, False)
    assert Cache().find("b", ".x") == (None, False)
    assert (home.stat().st_mode & 0o777, path.stat().st_mode & 0o777) == (0o700, 0o600)
    assert list(home.iterdir()) == [path]


def test_a_later_result_of_the_key_replaces_the_earlier(home: Path) -> None:
    keep("a", b"1")
    newer = keep("a", b"2")
    assert Cache().find("a", ".x") == (newer, False)
    assert list(home.iterdir()) == [newer]


@pytest.mark.parametrize("data", [b"", b"dat", b"date", b"datadata"])
def test_what_is_damaged_is_removed_and_told(data: bytes, home: Path) -> None:
    keep("a").write_bytes(data)
    assert Cache().find("a", ".x") == (None, True)
    assert Cache().find("a", ".x") == (None, False)
    assert held(home) == set()


@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
def test_what_is_no_file_is_not_read(kind: str, home: Path, tmp_path: Path) -> None:
    path = keep("a")
    moved = path.rename(tmp_path / "elsewhere")
    if kind == "link":
        path.symlink_to(moved)
    elif kind == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)
    assert Cache().find("a", ".x") == (None, True)


def test_what_is_large_is_checked_by_pieces(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digest, "_MOST_PIECES", 4)
    cache = Cache()
    with cache.workspace() as folder:
        with (folder / "made").open("wb") as file:
            file.write(b"begin")
            file.truncate((10 << 20) + 7)
        path = cache.keep(folder / "made", "a", ".x")
    assert cache.find("a", ".x") == (path, False)
    with path.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"!")
    assert cache.find("a", ".x") == (None, True)


# Locks


def test_a_key_is_made_by_one_at_a_time(home: Path) -> None:
    inside: list[int] = []

    def work() -> None:
        with Cache().lock("a", silent):
            inside.append(1)
            assert len(inside) == 1
            inside.pop()

    threads = [threading.Thread(target=work) for _ in range(8)]
    with Cache().lock("a", silent):
        for thread in threads:
            thread.start()
        with Cache().lock("b", silent):
            assert all(thread.is_alive() for thread in threads)
    for thread in threads:
        thread.join(PATIENCE)
    assert list(home.iterdir()) == []


def test_who_waits_can_give_up(home: Path) -> None:
    def give_up() -> None:
        raise CancelledError("stopped")

    cache = Cache()
    with cache.lock("a", silent):
        with pytest.raises(CancelledError), cache.lock("a", give_up):
            pass
        assert len(list(home.iterdir())) == 1


def test_the_lock_of_a_killed_process_is_free(home: Path) -> None:
    code = (
        "import os; from flame.core.files.cache import Cache\n"
        "with Cache().lock('a', print): os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code], timeout=PATIENCE, check=False)
    [left] = home.iterdir()
    with Cache().lock("b", silent):
        pass
    assert left.exists()
    os.utime(left, (0, 0))
    remove_left(home)
    assert not left.exists()
    with Cache().lock("a", silent):
        pass


# Results that are found by name


def keep_named(name: str, data: bytes = b"data", stale: str = "") -> Path:
    cache = Cache("named")
    with cache.workspace() as folder:
        (folder / "made").write_bytes(data)
        return cache.keep_named(folder / "made", name, lambda other: other == stale)


def read_named(name: str) -> bytes | None:
    file = Cache("named").find_named(name)
    if file is None:
        return None
    with file:
        return file.read()


def test_a_result_is_found_by_its_name_and_counts_as_used(home: Path) -> None:
    path = keep_named("a.x")
    os.utime(path, (0, 0))
    assert read_named("a.x") == b"data"
    assert path.stat().st_mtime > 0
    assert read_named("b.x") is None
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_result_of_a_name_replaces_the_earlier_and_what_is_stale() -> None:
    keep_named("a.x", b"1")
    keep_named("b.x", b"1")
    keep_named("c.x", b"1")
    keep_named("a.x", b"2", stale="b.x")
    assert [read_named(name) for name in ("a.x", "b.x", "c.x")] == [b"2", None, b"1"]


@pytest.mark.parametrize("mode", [0o660, 0o606])
def test_a_named_result_that_others_may_write_to_is_not_used(mode: int) -> None:
    keep_named("a.x").chmod(mode)
    assert read_named("a.x") is None


@needs_root
def test_a_named_result_of_another_user_is_not_used() -> None:
    os.chown(keep_named("a.x"), OTHER, OTHER)
    assert read_named("a.x") is None


def test_all_is_listed_and_cleared(home: Path) -> None:
    older, newer = keep("a", used_days_ago=2), keep_named(f"{'0f' * 8}-1.profile")
    assert [entry.path for entry in cache_entries()] == [newer, older]
    assert {entry.size for entry in cache_entries()} == {4}
    assert [entry.path for entry in clear_cache()] == [newer]
    assert [entry.path for entry in cache_entries()] == [older], "it has a name of its own"
    assert clear_cache() == []


def test_it_can_be_cleared_at_any_time(home: Path) -> None:
    cache = Cache()
    with cache.lock("a", silent):
        shutil.rmtree(home)
    assert keep("a").exists()
