"""The cache finds what is kept by key, checks it, and bounds and cleans itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from flame.core.errors import CancelledError, UsageError
from flame.core.files import digest
from flame.core.files.bounds import (
    CacheBounds,
    cache_entries,
    cache_size,
    clear_cache,
    has_room,
    read_bounds,
    trim,
)
from flame.core.files.cache import Cache
from flame.core.files.cache_folder import NoCacheError, cache_path, refuse_untrusted
from flame.core.files.temporary import remove_left
from tests.support.waiting import PATIENCE

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")
OTHER, VICTIM = 64_001, 64_002
"""Users of no name."""
DAY = 86_400


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this test's own, with the usual bounds."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name in ("FLAME_CACHE_SIZE", "FLAME_CACHE_DAYS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "flame"


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


# Bounds


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


# Whom it is trusted from


def test_a_folder_that_others_may_write_to_is_not_used(home: Path) -> None:
    home.mkdir()
    home.chmod(0o770)
    with pytest.raises(NoCacheError, match=f"others may write to {home}: run: chmod 700 {home}"):
        Cache().folder()
    with pytest.raises(NoCacheError):
        refuse_untrusted()


def test_a_folder_of_a_kind_is_checked_as_well(home: Path, tmp_path: Path) -> None:
    keep("a")
    (home / "sass").symlink_to(tmp_path)
    with pytest.raises(NoCacheError, match="sass is no folder, or a link to one"):
        Cache("sass").folder()
    assert Cache().find("a", ".x")[0]


def test_without_a_home_there_is_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    with pytest.raises(NoCacheError, match="the home folder is not known"):
        cache_path()


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder as /tmp is, in which the cache is to be."""
    with TemporaryDirectory() as name:
        folder = Path(name) / "shared"
        Path(name).chmod(0o755)
        folder.mkdir()
        folder.chmod(0o1777)
        monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder


@needs_root
@pytest.mark.parametrize("kind", ["folder", "link"])
def test_what_another_user_has_prepared_is_not_used(kind: str, shared: Path) -> None:
    prepared = shared / "flame"
    if kind == "folder":
        prepared.mkdir(0o700)
    else:
        (shared.parent / "mine").mkdir(0o700)
        prepared.symlink_to(shared.parent / "mine")
    os.chown(prepared, OTHER, OTHER, follow_symlinks=False)
    with pytest.raises(NoCacheError, match=r"belongs to another user|a link to one"):
        Cache().folder()
    if kind == "link":
        assert list((shared.parent / "mine").iterdir()) == []


@needs_root
def test_a_result_that_another_user_has_made_is_not_read(home: Path) -> None:
    path = keep("a")
    os.chown(path, OTHER, OTHER)
    assert Cache().find("a", ".x") == (None, True)


@needs_root
def test_root_makes_no_cache_in_the_home_of_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who would not get into it any more, or exchange it for another."""
    (tmp_path / "home").mkdir()
    os.chown(tmp_path / "home", OTHER, OTHER)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    with pytest.raises(NoCacheError, match="home belongs to another user"):
        Cache().folder()
    assert list((tmp_path / "home").iterdir()) == []


# Other users may not even start this Python.
ATTACK = """
import os, shutil, sys
from contextlib import suppress
os.setgroups([]); os.setgid(64001); os.setuid(64001)
folder = sys.argv[1]
for attempt in (
    lambda: os.rename(folder, folder + ".old"),
    lambda: shutil.rmtree(folder),
    lambda: os.listdir(folder),
    lambda: open(folder + "/planted", "x"),
    lambda: os.symlink("/etc/passwd", folder + "/link"),
    lambda: os.chmod(folder, 0o777),
):
    with suppress(PermissionError):
        attempt()
        print("it worked")
"""


@needs_root
def test_another_user_gets_at_nothing(shared: Path) -> None:
    path = keep("a")
    command = [sys.executable, "-c", ATTACK, str(shared / "flame")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.stdout, done.stderr) == ("", "")
    assert Cache().find("a", ".x") == (path, False)


def test_it_can_be_cleared_at_any_time(home: Path) -> None:
    cache = Cache()
    with cache.lock("a", silent):
        shutil.rmtree(home)
    assert keep("a").exists()
