"""Files that do not replace what is there without being told to."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from flame.core.files.atomic import OccupiedError, atomic_output
from tests.core.files.written_files import names, occupy, umask
from tests.support.waiting import PATIENCE


def put_new(path: Path) -> None:
    with atomic_output(str(path), replace=False) as file:
        file.write(b"new")


def test_without_replacing_a_file_is_written_as_any(tmp_path: Path) -> None:
    put_new(tmp_path / "out")
    (tmp_path / "any").touch()
    assert names(tmp_path) == ["any", "out"]
    assert (tmp_path / "out").stat().st_mode == (tmp_path / "any").stat().st_mode
    assert (tmp_path / "out").read_bytes() == b"new"


@pytest.mark.parametrize("kind", ["file", "folder", "link", "pipe"])
def test_what_is_there_is_not_replaced(kind: str, tmp_path: Path) -> None:
    occupy(tmp_path / "out", kind)
    before = (tmp_path / "out").lstat()
    with pytest.raises(OccupiedError, match="out: is there already"):
        put_new(tmp_path / "out")
    assert (tmp_path / "out").lstat() == before
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("kind", ["file", "folder", "link", "pipe"])
def test_what_appears_meanwhile_is_not_replaced(
    kind: str, links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not links:
        without_links(monkeypatch)
    with (
        pytest.raises(OccupiedError, match="out: is there already"),
        atomic_output(str(tmp_path / "out"), replace=False) as file,
    ):
        file.write(b"new")
        occupy(tmp_path / "out", kind)
        before = (tmp_path / "out").lstat()
    assert (tmp_path / "out").lstat() == before
    assert names(tmp_path) == ["out"]


def without_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the file system be one that has no hard links, as vfat."""

    def link(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", link)


def test_a_file_system_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_links(monkeypatch)
    put_new(tmp_path / "out")
    assert names(tmp_path) == ["out"]
    assert (tmp_path / "out").read_bytes() == b"new"
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o666 & ~umask()


def test_of_several_at_once_one_wins(tmp_path: Path) -> None:
    together, outcomes = threading.Barrier(8), []

    def write(number: int) -> None:
        try:
            with atomic_output(str(tmp_path / "out"), replace=False) as file:
                file.write(b"%d" % number)
                together.wait(PATIENCE)
            outcomes.append(number)
        except OccupiedError:
            outcomes.append(-1)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    [winner] = [number for number in outcomes if number >= 0]
    assert len(outcomes) == 8
    assert (tmp_path / "out").read_text() == str(winner)
    assert names(tmp_path) == ["out"]
