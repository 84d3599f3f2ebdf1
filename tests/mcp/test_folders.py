"""Only what is in the named folders can be read, whatever a path says."""

from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path

import pytest

from flame.core.errors import InputError, UsageError
from flame.mcp.folders import Folders
from tests.support.paths import SAMPLES
from tests.support.writers.pproffile import PprofFile


def one_sample() -> bytes:
    file = PprofFile(("cpu", "nanoseconds"))
    file.sample([file.place(("main", "main.go", 1))], 5)
    return file.data()


PPROF = gzip.compress(one_sample())


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    inside = tmp_path / "inside"
    (inside / "deep").mkdir(parents=True)
    (inside / "a.sqlite").write_bytes((SAMPLES / "decode_small.sqlite").read_bytes())
    (inside / "deep" / "b.pb.gz").write_bytes(PPROF)
    (inside / "run.flame").mkdir()
    shutil.copy(SAMPLES / "six_levels" / "tiny_llm.fdump", inside / "run.flame" / "1.fdump")
    (inside / "notes.md").write_text("no trace")
    shutil.copy(SAMPLES / "decode_small.sqlite", tmp_path / "secret.sqlite")
    (tmp_path / "inside-too.sqlite").write_text("a name that begins like the folder's")
    (inside / "link.sqlite").symlink_to(tmp_path / "secret.sqlite")
    (inside / "out").symlink_to(tmp_path)
    (inside / "loop").symlink_to(inside / "loop")
    return Folders([str(inside)])


@pytest.mark.parametrize("name", ["a.sqlite", "deep/b.pb.gz", "run.flame", "./deep/../a.sqlite"])
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
    os.utime(tmp_path / "inside" / "run.flame" / "1.fdump", (2, 2))
    found, more = folders.traces(10)
    assert [(one.paths[0].name, one.format) for one in found] == [
        ("b.pb.gz", "pprof"),
        ("run.flame", "flame recording"),
        ("a.sqlite", "nsys export"),
    ]
    assert not more
    newest, more = folders.traces(1)
    assert newest == found[:1] and more


def test_folders_within_others_are_listed_once(folders: Folders, tmp_path: Path) -> None:
    both = Folders([str(tmp_path / "inside"), str(tmp_path / "inside" / "deep")])
    assert len(both.traces(10).traces) == 3


def test_a_folder_is_no_trace(folders: Folders) -> None:
    for name in (".", "deep"):
        with pytest.raises(InputError, match="is a folder with no dump"):
            folders.find(name)


def test_links_of_a_recording_do_not_lead_out(folders: Folders, tmp_path: Path) -> None:
    recording = tmp_path / "inside" / "run.flame"
    (recording / "2.fdump").symlink_to("1.fdump")
    assert folders.find("run.flame") == recording
    shutil.copy(recording / "1.fdump", tmp_path / "secret.fdump")
    (recording / "3.fdump").symlink_to(tmp_path / "secret.fdump")
    with pytest.raises(InputError, match=r"3\.fdump: is a link that leads out"):
        folders.find("run.flame")


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("file", "gone"):
        with pytest.raises(UsageError, match=name):
            Folders([str(tmp_path / name)])
