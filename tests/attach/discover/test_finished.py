"""Dumps that nobody writes any more: which belong together, and which are not to be believed."""

from __future__ import annotations

import gzip
import os
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from flame.attach.discover import finder as find
from flame.attach.discover.finder import ProcessFinder
from flame.attach.discover.finished import (
    MOST,
    default_dump_folder,
    read_dump_info,
    read_header,
)
from flame.attach.discover.model import Discovery, FinishedRecording
from flame.attach.watch import DumpWatch
from flame.core.errors import InputError
from tests.attach.conftest import Start, as_nobody, needs_root
from tests.attach.trees import users_folder as users_folder
from tests.support.writers.fdumpfile import UNIX, DumpFile, layouts

SECOND = 1_000_000_000
STRANGER = 1 << 20 | os.getpid()  # whose folder in /tmp no other run of the tests uses


@pytest.fixture(autouse=True)
def _with_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find, "_TIMEOUT", 60.0)


def dump(
    folder: Path, pid: int, parent: int = 1, at: int = 0, kernels: int = 1, **facts: str
) -> Path:
    """One of a process that began ``at`` seconds after the first and lived for ten."""
    file = DumpFile(pid, unix=UNIX + at * SECOND)
    file.end = 10 * SECOND
    for key, value in {"process": "python", "parent_pid": str(parent), **facts}.items():
        file.meta(key, value)
    for number in range(kernels):
        file.launch(number, number + 1, number + 1)
        file.kernel("gemm", number, number + 1, number + 1)
    return file.write(folder / f"{pid}-{file.unix:x}.fdump")


def found() -> Discovery:
    return ProcessFinder().find()


def pids() -> set[tuple[int, ...]]:
    return {one.pids for one in found().finished}


def test_one(users_folder: Path) -> None:
    path = dump(users_folder, 41, kernels=3, command="python train.py --lr 1")
    (one,) = found().finished
    assert one == FinishedRecording((path,), "train", (41,), one.age, path.stat().st_size, 3)
    assert one.age == pytest.approx(time.time() - UNIX / SECOND - 10, abs=5)


def test_the_latest_comes_first(users_folder: Path) -> None:
    for number in range(MOST + 3):
        dump(users_folder, 100 + number, at=100 * number)
    latest = [one.pids[0] for one in found().finished]
    assert latest == [100 + MOST + 2 - place for place in range(MOST)]


def test_a_process_and_its_children_are_one(users_folder: Path) -> None:
    dump(users_folder, 41)
    dump(users_folder, 42, parent=41, at=1)
    dump(users_folder, 43, parent=7, forked_from="42", at=2)
    assert pids() == {(41, 42, 43)}


def test_a_pid_that_was_given_again_is_no_parent(users_folder: Path) -> None:
    dump(users_folder, 41)
    dump(users_folder, 42, parent=41, at=60)
    assert pids() == {(41,), (42,)}


def test_ranks_are_one(users_folder: Path) -> None:
    for rank in range(3):
        dump(users_folder, 41 + rank, parent=7, rank=str(rank))
    dump(users_folder, 51, parent=8, rank="0")
    dump(users_folder, 61, parent=7)
    assert pids() == {(41, 42, 43), (51,), (61,)}


def test_what_a_process_became_is_one_with_it(users_folder: Path) -> None:
    first, second = dump(users_folder, 41), dump(users_folder, 41, at=1)
    (one,) = found().finished
    assert (one.pids, one.dumps) == ((41,), (first, second))


def test_where_nothing_was_recorded_there_is_nothing(users_folder: Path) -> None:
    dump(users_folder, 41, kernels=0)
    dump(users_folder, 42, kernels=1)
    dump(users_folder, 43, parent=42, at=1, kernels=0)
    assert pids() == {(42, 43)}


def test_what_is_not_counted_may_hold_something(users_folder: Path) -> None:
    dump(users_folder, 41)
    (one,) = ProcessFinder(count=False).find().finished
    assert one.kernels == -1


def test_other_files(users_folder: Path) -> None:
    dump(users_folder, 41)
    (users_folder / "bad.fdump").write_bytes(b"FLAMEDMP")
    (users_folder / "worse.fdump").write_bytes(bytes(100_000))
    (users_folder / "text").write_text("x")
    (users_folder / "folder.fdump").mkdir()
    os.mkfifo(users_folder / "pipe.fdump")
    assert pids() == {(41,)}


def test_a_damaged_dump_is_kept_as_far_as_it_goes(users_folder: Path) -> None:
    path = dump(users_folder, 41)
    data = bytearray(path.read_bytes())
    data[1 << 16 : (1 << 16) + 4096] = os.urandom(4096)
    path.write_bytes(data)
    (one,) = found().finished
    assert one.pids == (41,)


def test_no_folder(users_folder: Path) -> None:
    users_folder.rmdir()
    assert found().finished == ()


def test_a_link_is_refused(users_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dump(users_folder, 41)
    link = users_folder.with_name("link")
    link.symlink_to(users_folder)
    monkeypatch.setenv("FLAME_DIR", str(link))
    assert found().finished == ()
    assert f"{link}: is a link: left out" in found().notes


@needs_root
def test_the_one_that_the_library_makes_instead_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = Path(f"/tmp/flame-{STRANGER}")
    private, open_to_all = usual.with_name(f"{usual.name}.bcdefg"), Path(f"{usual}.abcdef")
    monkeypatch.delenv("FLAME_DIR", raising=False)
    for folder in (usual, private, open_to_all):
        folder.mkdir(mode=0o700)
    try:
        os.chown(usual, 1, 1)
        os.chown(private, STRANGER, STRANGER)
        os.chown(open_to_all, STRANGER, STRANGER)
        open_to_all.chmod(0o777)
        assert as_nobody(lambda: str(default_dump_folder()), STRANGER) == str(private)
        private.rmdir()
        assert as_nobody(lambda: str(default_dump_folder()), STRANGER) == str(usual)
    finally:
        for folder in (usual, private, open_to_all):
            folder.rmdir() if folder.exists() else None


@needs_root
def test_the_folder_of_another_user_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = Path(f"/tmp/flame-{STRANGER}")  # Guessed, and made first.
    monkeypatch.delenv("FLAME_DIR", raising=False)
    usual.mkdir(mode=0o755)
    try:
        os.chown(usual, 1, 1)
        dump(usual, 41).chmod(0o644)
        said = as_nobody(lambda: "\n".join(found().notes), STRANGER)
        assert f"{usual}: belongs to another user: left out" in said
        os.chown(usual, STRANGER, STRANGER)
        usual.chmod(0o777)
        said = as_nobody(lambda: "\n".join(found().notes), STRANGER)
        assert "others can write to it: left out" in said
        usual.chmod(0o755)
        said = as_nobody(lambda: f"{[one.pids for one in found().finished]}", STRANGER)
        assert said == "[(41,)]"
    finally:
        for one in usual.iterdir():
            one.unlink()
        usual.rmdir()


@pytest.mark.parametrize("parent", ["9" * 5_000, "many", "\u0663", "-1"])
def test_a_parent_that_is_no_number(users_folder: Path, start: Start, parent: str) -> None:
    dump(users_folder, 41, forked_from=parent)
    assert pids() == {(41,)}
    # What is watched is this test's own: below its parent, other tests record.
    watched = start("sleep", "60").pid
    assert DumpWatch(pids=[watched], dumps=[users_folder / "none.fdump"]).new() == []


def test_records_without_times(users_folder: Path) -> None:
    known = layouts().items()
    plain = {
        key: (number, [one for one in fields if one[0] not in ("start", "end")])
        for key, (number, fields) in known
    }
    file = DumpFile(41, unix=UNIX, records=plain)
    file.ended = False
    file.record("kernel")
    file.write(users_folder / "41-1.fdump")
    (one,) = found().finished
    assert (one.pids, one.kernels) == ((41,), 1)


@pytest.mark.parametrize("read", [read_header, read_dump_info])
def test_neither_header_nor_facts_are_unpacked(
    tmp_path: Path, read: Callable[[Path], object]
) -> None:
    """Another user's process can have mapped what would fill memory."""
    path = tmp_path / "1-1.fdump"
    path.write_bytes(gzip.compress(bytes(1 << 24), 1))
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="packed"):
            read(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20


@pytest.mark.parametrize("read", [read_header, read_dump_info])
def test_no_link_is_followed_to_them(tmp_path: Path, read: Callable[[Path], object]) -> None:
    (tmp_path / "1-1.fdump").symlink_to(dump(tmp_path, 41))
    with pytest.raises(InputError, match="not a regular file"):
        read(tmp_path / "1-1.fdump")
