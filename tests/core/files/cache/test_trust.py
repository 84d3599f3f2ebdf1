"""Whom the cache trusts: no folder or result of another user is used."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from flame.core.files.cache import Cache
from flame.core.files.cache_folder import NoCacheError, cache_path, refuse_untrusted
from tests.core.files.cache.kept_results import OTHER, keep, needs_root
from tests.support.waiting import PATIENCE


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
