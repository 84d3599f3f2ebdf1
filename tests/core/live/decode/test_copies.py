"""Copies of a dump that grows are the dump, without what is not committed."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

from flame.core.live.decode.growing import GrowingDump
from flame.core.options import LoadOptions
from flame.core.readers.fdump.chunks import DumpBytes
from flame.core.readers.fdump.context import SharedTables
from tests.core.live.decode.growing_dumps import Film, open_ranges
from tests.core.live.decode.viewed_dumps import viewed
from tests.support.writers.fdumpfile import SIZE
from tests.support.writers.fdumpscripts import recorded


def test_a_copy_is_the_dump(film: Film) -> None:
    recorded([("push", 100, "step", 0), ("launch", 100, "gemm", 3, False, True)] * 4, film)
    for ended in (False, True):
        film.ended = ended
        with viewed(film.data()) as viewer:
            viewer.path.unlink()
            copy = io.BytesIO()
            viewer.dump.copy_to(copy)
            assert copy.getvalue() == film.data()


def test_a_copy_has_no_room_made_ahead_and_nothing_that_is_not_committed(film: Film) -> None:
    film.kernel("k", 0, 5, 0)
    data = film.data()
    with viewed(data + bytes(20 * SIZE)) as viewer:
        with viewer.path.open("r+b") as file:
            file.seek(len(data) - 100)
            file.write(b"half a record")
        copy = io.BytesIO()
        viewer.dump.copy_to(copy)
        assert copy.getvalue() == data


class Rewritten(DumpBytes):
    """A dump that changes after some accesses."""

    def __init__(self, path: Path, before: bytes, after: bytes, count: int) -> None:
        path.write_bytes(before)
        super().__init__(path)
        self._next, self._left = after, count

    def read(self, offset: int, size: int) -> bytes:
        self._left -= 1
        if self._left == 0:
            with os.fdopen(os.open(f"/proc/self/fd/{self._file}", os.O_RDWR), "wb") as file:
                file.write(self._next)
        return super().read(offset, size)


def test_a_copy_knows_what_its_open_ranges_are_called(film: Film, tmp_path: Path) -> None:
    before = open_ranges(film, ("step", 1)).data()
    after = open_ranges(film, ("evaluation", 6)).data()
    found: set[tuple[Any, ...]] = set()
    for count in range(100):
        data = Rewritten(tmp_path / "x.fdump", before, after, count)
        dump = GrowingDump(data, "x.fdump", 0, SharedTables(), LoadOptions())
        copy = io.BytesIO()
        dump.copy_to(copy)
        dump.close()
        with viewed(copy.getvalue()) as viewer:
            viewer.read()
            found.add(*viewer.seen.open())
    assert found == {(1, 100, ("step",)), (6, 100, ("evaluation",))}


def test_damage_stays_in_a_copy(film: Film) -> None:
    film.kernel("k", 0, 5, 0)
    film.ended = True
    data = bytearray(film.data())
    data[SIZE : SIZE + 2] = b"XX"
    with viewed(bytes(data)) as viewer:
        copy = io.BytesIO()
        viewer.dump.copy_to(copy)
        assert copy.getvalue() == bytes(data)
