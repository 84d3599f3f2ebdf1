"""Copies of dumps: the same bytes, in a folder that is there whole or not at all."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pytest

from flame.core.errors import CancelledError, InputError
from flame.core.live.decode.growing import GrowingDump
from flame.core.loading.many import load
from flame.core.options import LoadOptions
from flame.core.readers.fdump.chunks import DumpBytes, prefix_errors
from flame.core.readers.fdump.context import SharedTables
from flame.core.readers.fdump.layout import DumpHeader, parse_header
from flame.exporters.dumps import copy_dumps
from tests.support.writers.fdumpfile import SIZE, DumpFile


class Dump:
    """A dump that is written in ``pieces`` parts."""

    def __init__(self, data: bytes, pieces: int = 3, path: str = "nowhere/1-1.fdump") -> None:
        self.data = data
        self.path = path
        self.header: DumpHeader = parse_header(data)
        self._pieces = pieces

    def copy_to(self, file: BinaryIO) -> None:
        each = len(self.data) // self._pieces + 1
        for at in range(0, len(self.data), each):
            file.write(self.data[at : at + each])


def dump(pid: int, kernels: int = 5, start: int = 1_760_000_000_000_000_000) -> Dump:
    made = DumpFile(pid, unix=start)
    for number in range(1, kernels + 1):
        made.launch(number * 100, number * 100 + 10, number, tid=pid)
        made.kernel("gemm", number * 100 + 20, number * 100 + 90, number, tid=pid)
    return Dump(made.data())


def silent(copied: int) -> None:
    pass


def left_in(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


def test_a_copy_has_the_same_bytes_and_the_librarys_name(tmp_path: Path) -> None:
    one, two = dump(7), dump(8, start=1_760_000_000_000_000_255)
    total = copy_dumps([one, two], str(tmp_path / "run.flame"), silent)
    assert total == len(one.data) + len(two.data)
    assert left_in(tmp_path) == ["run.flame"]
    names = ["7-186cc6acd4b00000.fdump", "8-186cc6acd4b000ff.fdump"]
    assert left_in(tmp_path / "run.flame") == names
    copies = [(tmp_path / "run.flame" / name).read_bytes() for name in names]
    assert copies == [one.data, two.data]


def test_a_copy_opens_with_the_same_sums(tmp_path: Path) -> None:
    copy_dumps([dump(7, 5), dump(8, 3)], str(tmp_path / "run.flame"), silent)
    assert load(tmp_path / "run.flame").gpu_time == 8 * 70


def test_a_dump_that_grows_and_is_gone_is_copied_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "7-a.fdump"
    path.write_bytes(dump(7, 2).data)
    growing = GrowingDump(DumpBytes(path), str(path), 0, SharedTables(), LoadOptions())
    path.write_bytes(dump(7, 5).data)
    path.unlink()
    copy_dumps([growing], str(tmp_path / "run.flame"), silent)
    growing.close()
    assert load(tmp_path / "run.flame").gpu_time == 5 * 70


def test_only_the_owner_can_read_a_copy(tmp_path: Path) -> None:
    copy_dumps([dump(7)], str(tmp_path / "run.flame"), silent)
    (copied,) = (tmp_path / "run.flame").iterdir()
    assert (tmp_path / "run.flame").stat().st_mode & 0o777 == 0o700
    assert copied.stat().st_mode & 0o777 == 0o600


def test_dumps_that_say_the_same_of_themselves_are_kept_apart(tmp_path: Path) -> None:
    copy_dumps([dump(7, 1), dump(7, 2)], str(tmp_path / "run.flame"), silent)
    assert len(left_in(tmp_path / "run.flame")) == 2
    assert load(tmp_path / "run.flame").gpu_time == 3 * 70


def test_how_much_is_written_is_told_on_the_way(tmp_path: Path) -> None:
    heard: list[int] = []
    one, two = dump(7), dump(8)
    total = copy_dumps([one, two], str(tmp_path / "run.flame"), heard.append)
    assert heard == sorted(heard) and heard[-1] == total
    assert len(heard) >= 2 and heard[0] < total


@pytest.mark.parametrize("there", ["file", "folder", "link"])
def test_nothing_is_replaced(tmp_path: Path, there: str) -> None:
    target = tmp_path / "run.flame"
    if there == "file":
        target.write_text("mine")
    elif there == "folder":
        target.mkdir()
    else:
        target.symlink_to("nowhere")
    before = target.lstat()
    with pytest.raises(InputError, match=r"run\.flame: is there already: name a new folder"):
        copy_dumps([dump(7)], str(target), silent)
    assert target.lstat() == before
    assert left_in(tmp_path) == ["run.flame"]


@pytest.mark.parametrize("empty", [True, False])
def test_what_somebody_puts_there_meanwhile_stays(empty: bool, tmp_path: Path) -> None:
    def put(copied: int) -> None:
        (tmp_path / "run.flame").mkdir(exist_ok=True)
        if not empty:
            (tmp_path / "run.flame" / "mine").write_text("mine")

    with pytest.raises(InputError, match=r"run\.flame: is there already: name a new folder"):
        copy_dumps([dump(7)], str(tmp_path / "run.flame"), put)
    assert left_in(tmp_path / "run.flame") == [] if empty else ["mine"]
    assert left_in(tmp_path) == ["run.flame"]


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


class Named(Dump):
    """A dump that says of every error that it is its own."""

    def copy_to(self, file: BinaryIO) -> None:
        with prefix_errors("7.fdump"):
            super().copy_to(file)


@pytest.mark.parametrize("kind", [Dump, Named])
def test_without_room_there_is_one_line_and_no_half_file(tmp_path: Path, kind: type[Dump]) -> None:
    sources = [kind(dump(pid).data) for pid in (7, 8)]
    line = r"run\.flame: cannot be written: File too large$"
    with files_of_at_most(SIZE), pytest.raises(InputError, match=line) as said:
        copy_dumps(sources, str(tmp_path / "run.flame"), silent)
    assert "\n" not in str(said.value)
    assert left_in(tmp_path) == []


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file or directory"):
        copy_dumps([dump(7)], str(tmp_path / "nowhere" / "run.flame"), silent)


def test_who_listens_can_stop_it(tmp_path: Path) -> None:
    def stop(copied: int) -> None:
        raise CancelledError("stopped")

    with pytest.raises(CancelledError):
        copy_dumps([dump(7)], str(tmp_path / "run.flame"), stop)
    assert left_in(tmp_path) == []


def test_a_source_that_cannot_be_read_says_so_itself(tmp_path: Path) -> None:
    class Gone(Dump):
        def copy_to(self, file: BinaryIO) -> None:
            raise InputError("7.fdump: is shorter than it was")

    with pytest.raises(InputError, match=r"^7\.fdump: is shorter than it was$"):
        copy_dumps([Gone(dump(7).data)], str(tmp_path / "run.flame"), silent)
    assert left_in(tmp_path) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_read_only_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "shut").mkdir(0o500)
    with pytest.raises(InputError, match="Permission denied"):
        copy_dumps([dump(7)], str(tmp_path / "shut" / "run.flame"), silent)


def test_the_code_of_kernels_comes_with_the_dumps(tmp_path: Path) -> None:
    cubins = tmp_path / "live" / "cubins"
    cubins.mkdir(parents=True)
    names = [f"{0xAB:016x}.cubin", f"{0xAB:016x}.sass"]
    for name in (*names, ".hidden", "other.cubin"):
        (cubins / name).write_bytes(name.encode())
    (cubins / f"{0xCD:016x}.cubin").symlink_to("/etc/hostname")
    one, two = dump(7), dump(8)
    one.path, two.path = (str(tmp_path / "live" / f"{pid}-1.fdump") for pid in (7, 8))
    copy_dumps([one, two], str(tmp_path / "run.flame"), silent)
    copied = tmp_path / "run.flame" / "cubins"
    assert left_in(copied) == sorted(names)
    assert all((copied / name).read_bytes() == name.encode() for name in names)
    assert all((copied / name).stat().st_mode & 0o777 == 0o600 for name in names)


def test_without_code_there_is_no_folder_for_it(tmp_path: Path) -> None:
    copy_dumps([dump(7)], str(tmp_path / "run.flame"), silent)
    assert not (tmp_path / "run.flame" / "cubins").exists()
