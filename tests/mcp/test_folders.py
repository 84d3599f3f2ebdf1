"""Only what is in the named folders can be read, whatever a path says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from flame.core.errors import InputError, UsageError
from flame.mcp.folders import Folders


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    inside = tmp_path / "inside"
    (inside / "deep").mkdir(parents=True)
    (inside / "a.sqlite").write_text("a")
    (inside / "deep" / "b.json.gz").write_text("bb")
    (inside / "notes.md").write_text("no trace")
    (tmp_path / "secret.sqlite").write_text("secret")
    (tmp_path / "inside-too.sqlite").write_text("a name that begins like the folder's")
    (inside / "link.sqlite").symlink_to(tmp_path / "secret.sqlite")
    (inside / "out").symlink_to(tmp_path)
    (inside / "loop").symlink_to(inside / "loop")
    return Folders([str(inside)])


@pytest.mark.parametrize("name", ["a.sqlite", "deep/b.json.gz", "deep", "./deep/../a.sqlite", "."])
def test_what_is_inside_is_found(name: str, folders: Folders, tmp_path: Path) -> None:
    assert folders.find(name) == (tmp_path / "inside" / name).resolve()
    absolute = tmp_path / "inside" / name
    assert folders.find(str(absolute)) == absolute.resolve()


@pytest.mark.parametrize(
    "name",
    [
        *("../secret.sqlite", "link.sqlite", "out/secret.sqlite", "loop", "gone.sqlite", "a\0b"),
        *("/etc/passwd", "../inside-too.sqlite", "deep/../../secret.sqlite", "..", "x" * 5_000),
    ],
)
def test_what_is_outside_is_not_there(name: str, folders: Folders) -> None:
    with pytest.raises(InputError, match="no such file in"):
        folders.find(name)


def test_a_pipe_is_no_trace(folders: Folders, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "inside" / "pipe.sqlite")
    with pytest.raises(InputError):
        folders.find("pipe.sqlite")


def test_traces_are_listed_newest_first(folders: Folders, tmp_path: Path) -> None:
    os.utime(tmp_path / "inside" / "a.sqlite", (1, 1))
    found = folders.traces(10)
    assert [(Path(one.path).name, one.size) for one in found] == [("b.json.gz", 2), ("a.sqlite", 1)]
    assert len(folders.traces(1)) == 1


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("file", "gone"):
        with pytest.raises(UsageError, match=name):
            Folders([str(tmp_path / name)])
