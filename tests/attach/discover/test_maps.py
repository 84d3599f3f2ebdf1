"""A dump is found by what a process has mapped, whatever has come to stand in its place since."""

from __future__ import annotations

import gzip
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import pytest

from flame.attach.discover.dump_counts import DumpCounter
from flame.attach.discover.jobs import Jobs
from flame.attach.discover.maps import MappedDump, mappings_of, path_of
from flame.attach.discover.process_table import ProcessTable
from tests.attach.conftest import Start, needs_root
from tests.inject.conftest import small_file_system

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="mappings are listed in /proc")

HOLD = """
import mmap, sys, time
maps = []
for path in sys.argv[1:]:
    with open(path, "r+b") as file:
        maps.append(mmap.mmap(file.fileno(), 0))
print("ready", flush=True)
time.sleep(600)
"""

Holding = Callable[..., int]


@pytest.fixture
def holding(start: Start) -> Holding:
    """Starts a program that has some files mapped; its pid."""

    def begin(*paths: Path) -> int:
        process = start(sys.executable, "-c", HOLD, *map(str, paths), stdout=subprocess.PIPE)
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        return process.pid

    return begin


def dump_at(folder: Path) -> Path:
    path = folder / "1-1.fdump"
    path.write_bytes(b"FLAMEDMP")
    return path


def only_dump(pid: int) -> MappedDump:
    (dump,) = mappings_of(pid).dumps
    return dump


def test_it_is_found_by_its_name(holding: Holding, tmp_path: Path) -> None:
    path = dump_at(tmp_path)
    pid = holding(path)
    assert path_of(only_dump(pid), pid) == path


def test_one_that_was_replaced_is_not(holding: Holding, tmp_path: Path) -> None:
    path = dump_at(tmp_path)
    pid = holding(path)
    dump = only_dump(pid)
    path.rename(tmp_path / "moved")
    dump_at(tmp_path)
    assert path_of(dump, pid) is None


def test_a_link_in_its_place_is_not_followed(holding: Holding, tmp_path: Path) -> None:
    path = dump_at(tmp_path)
    pid = holding(path)
    dump = only_dump(pid)
    path.rename(tmp_path / "moved")
    path.symlink_to("moved")
    assert path_of(dump, pid) is None


@needs_root
def test_one_of_the_same_number_on_another_device_is_not(holding: Holding, tmp_path: Path) -> None:
    with small_file_system(tmp_path / "a", 1) as folder:
        path = dump_at(folder)
        pid = holding(path)
        dump = only_dump(pid)
        number = path.stat().st_ino
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], check=True)
        try:
            assert dump_at(folder).stat().st_ino == number
            other = path.stat().st_dev
            found = path_of(dump, pid)
            assert found != path
            assert found and found.read_bytes() == b"FLAMEDMP" and found.stat().st_dev != other
        finally:
            # At once: another test's flame may look at the dump.
            subprocess.run(["umount", "-l", folder], check=True)
        assert path_of(dump, pid) == path


@needs_root
def test_two_of_the_same_number_are_two(holding: Holding, tmp_path: Path) -> None:
    with small_file_system(tmp_path / "a", 1) as a, small_file_system(tmp_path / "b", 1) as b:
        one, other = dump_at(a), dump_at(b)
        assert one.stat().st_ino == other.stat().st_ino
        pid = holding(one, other)
        processes = ProcessTable()
        processes.update()
        # Of whichever process: another test's flame may have one of them mapped as well.
        dumps = chain.from_iterable(processes.dumps().values())
        found = {path_of(dump, pid) for dump in dumps}
        assert {path for path in found if path and tmp_path in path.parents} == {one, other}


@pytest.mark.deep
def test_what_is_listed_is_not_unpacked(
    holding: Holding, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user can have root list what would fill its memory."""
    path = tmp_path / "1-1.fdump"
    path.write_bytes(gzip.compress(bytes(1 << 26)))
    pid = holding(path)
    processes = ProcessTable()
    processes.update()
    listed = {pid: processes.dumps()[pid]}  # and not what other tests record at the moment
    monkeypatch.setattr(processes, "dumps", lambda: listed)
    tracemalloc.start()
    try:
        jobs = Jobs(processes, DumpCounter())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert jobs.stopped[pid] == (path,) and pid not in jobs.dumps
    assert peak < 1 << 24
