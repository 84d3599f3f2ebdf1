"""Files that flame keeps for a user: nobody else's are read, however they got there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from flame.core.files.private import read_private, refuse_untrusted_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "flame"
    folder.mkdir(0o700)
    return folder


def test_a_file_of_ones_own_is_read(folder: Path) -> None:
    (folder / "x").write_bytes(b"abc")
    assert read_private(folder / "x", 3) == b"abc"


def test_one_that_is_too_large_is_not(folder: Path) -> None:
    (folder / "x").write_bytes(b"abcd")
    with pytest.raises(OSError, match="File too large"):
        read_private(folder / "x", 3)


def test_what_is_not_there_is_an_error_but_no_untrusted_folder(tmp_path: Path) -> None:
    refuse_untrusted_folder(tmp_path / "none")
    with pytest.raises(FileNotFoundError):
        read_private(tmp_path / "none" / "x", 3)


@pytest.mark.parametrize("mode", [0o720, 0o702])
def test_a_folder_that_others_may_write_to(folder: Path, mode: int) -> None:
    (folder / "x").write_bytes(b"abc")
    folder.chmod(mode)
    with pytest.raises(PermissionError, match="others may write to"):
        read_private(folder / "x", 3)


def test_a_folder_in_one_that_everybody_may_write_to(folder: Path) -> None:
    folder.parent.chmod(0o777)
    with pytest.raises(PermissionError, match="everybody may write to"):
        refuse_untrusted_folder(folder)
    folder.parent.chmod(0o1777)
    refuse_untrusted_folder(folder)


def test_links(folder: Path, tmp_path: Path) -> None:
    (folder / "x").write_bytes(b"abc")
    (folder / "link").symlink_to(folder / "x")
    with pytest.raises(OSError, match="symbolic link"):
        read_private(folder / "link", 3)
    other = tmp_path / "other"
    other.symlink_to(folder)
    with pytest.raises(PermissionError, match="or a link to one"):
        read_private(other / "x", 3)


def test_what_is_no_file(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(OSError):
            read_private(folder / name, 3)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_another_users(folder: Path) -> None:
    (folder / "x").write_bytes(b"abc")
    os.chown(folder / "x", 65534, 65534)
    with pytest.raises(PermissionError, match="no file of this user"):
        read_private(folder / "x", 3)
    os.chown(folder, 65534, 65534)
    with pytest.raises(PermissionError, match="belongs to another user"):
        refuse_untrusted_folder(folder)
