"""Counts of a dump while it grows."""

from __future__ import annotations

import gzip
import os
from contextlib import closing
from pathlib import Path

import pytest

from flame.core.errors import InputError
from flame.core.readers.fdump.tally import DumpCounts, Tally, is_empty_dump
from tests.support.writers.fdumpfile import DumpFile

SIZE = 1 << 16


def filled(kernels: int, ended: bool = False) -> DumpFile:
    """A dump with some kernels and half as many ranges, ten records in a chunk."""
    file = DumpFile(pid=77, rows=10)
    file.ended = ended
    for row in range(kernels):
        file.kernel("k", row, row + 1, row + 1)
        if row % 2:
            file.range(["r"], row, row + 1)
    return file


def test_counts_are_those_of_the_records(tmp_path: Path) -> None:
    file = filled(25, ended=True)
    file.launch(0, 1, 1)
    file.call(0, 1)
    file.memop(0, 1, 1)
    file.dropped, file.flags = 9, 3
    path = file.write(tmp_path / "x.fdump")
    with closing(Tally(path)) as tally:
        assert tally.update() == DumpCounts(
            pid=77,
            kernels=25,
            launches=1,
            calls=1,
            ranges=12,
            memops=1,
            bytes=path.stat().st_size,
            dropped=9,
            ended=True,
            full=True,
            stopped=True,
        )


def test_what_comes_later_is_counted_at_the_next_look(tmp_path: Path) -> None:
    path = tmp_path / "x.fdump"
    filled(3).write(path)
    with closing(Tally(path)) as tally, path.open("r+b", buffering=0) as file:
        for kernels in (3, 9, 10, 11, 40, 41):
            data = filled(kernels, ended=kernels > 40).data()
            # As the library does: into the same file, the header last.
            os.pwrite(file.fileno(), data[SIZE:], SIZE)
            os.pwrite(file.fileno(), data[:SIZE], 0)
            counts = tally.update()
            assert (counts.kernels, counts.ranges) == (kernels, kernels // 2)
            assert counts.ended == (kernels > 40)


@pytest.mark.parametrize("content", [b"", b"FLAMEDMP", b"SQLite format 3\0" * 100])
def test_what_is_no_dump_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.fdump"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"x\.fdump: "):
        Tally(path)


def test_what_another_user_may_have_packed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.fdump"
    path.write_bytes(gzip.compress(DumpFile().data()))
    Tally(path).close()
    with pytest.raises(InputError, match="packed"):
        Tally(path, foreign=True)


def test_a_dump_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        Tally(tmp_path / "x.fdump")


def test_a_dump_of_facts_alone_holds_nothing(tmp_path: Path) -> None:
    file = DumpFile()
    file.meta("process", "sh")
    assert is_empty_dump(file.write(tmp_path / "x.fdump"))
    file.open_range(["r"], 5)
    assert not is_empty_dump(file.write(tmp_path / "x.fdump"))
