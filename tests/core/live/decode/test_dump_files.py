"""Files of dumps that grow: which are refused, and what is read of damaged ones."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from flame.core.errors import InputError
from flame.core.live.decode.growing import GrowingDump
from flame.core.options import LoadOptions
from flame.core.readers.fdump.chunks import DumpBytes
from flame.core.readers.fdump.context import SharedTables
from tests.core.live.decode.growing_dumps import Film, filmed
from tests.core.live.decode.viewed_dumps import Viewer, viewed
from tests.support.tiers import deep_except
from tests.support.writers.fdumpfile import SIZE, START, DumpFile


def test_a_descriptor_is_enough(film: Film, tmp_path: Path) -> None:
    film.kernel("k", 0, 5, 0)
    path = film.write(tmp_path / "x.fdump")
    descriptor = os.open(path, os.O_RDONLY)
    data = DumpBytes(path, descriptor)
    os.close(descriptor)
    path.unlink()
    dump = GrowingDump(data, str(path), 0, SharedTables(), LoadOptions())
    assert len(dump.read().work) == 1
    dump.close()


@pytest.mark.parametrize("content", [b"", b"FLAMEDMP", b"SQLite format 3\0" * 100])
def test_what_is_no_dump_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.fdump"
    path.write_bytes(content)
    data, shared = DumpBytes(path), SharedTables()
    with pytest.raises(InputError, match=r"x\.fdump: "):
        GrowingDump(data, str(path), 0, shared, LoadOptions())
    assert shared.processes == []
    with pytest.raises(OSError, match="Bad file descriptor"):
        data.size()


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.fdump")
    with pytest.raises(InputError, match="not a regular file"):
        DumpBytes(tmp_path / "x.fdump")


def test_a_dump_written_over_by_another_is_refused(film: Film) -> None:
    film.kernel("k", 0, 5, 0)
    with viewed(film.data()) as viewer:
        viewer.read()
        other = DumpFile(101, start=START + 5)
        viewer.path.write_bytes(other.data())
        with pytest.raises(InputError, match="another dump has been written over it"):
            viewer.read()


def test_a_dump_that_is_cut_off_is_told_so(film: Film) -> None:
    film.kernel("k", 0, 5, 0)
    with viewed(film.data()) as viewer:
        viewer.read()
        film.kernel("k", 5, 7, 0)
        size = len(film.data()) - SIZE
        viewer.write(film.data())
        os.truncate(viewer.path, size)
        assert viewer.read().empty
        assert [one for one in viewer.dump.warnings() if one.startswith("cut off: ")]
        os.truncate(viewer.path, 10)
        with pytest.raises(InputError, match="cut off within its header"):
            viewer.read()


@pytest.mark.parametrize("seed", deep_except([0], range(4)))
def test_whatever_bits_flip_while_it_grows_it_is_read_or_refused(tmp_path: Path, seed: int) -> None:
    choose = np.random.default_rng(seed)
    film = filmed([("launch", 100, "gemm", 3, False, True), ("capture", 100, 2, 2)] * 6, 3)
    for number in range(30):
        viewer = Viewer(tmp_path / f"{number}.fdump", film.after(20))
        viewer.read(100)
        data = bytearray(film.after(len(film.puts)))
        ends = [at + more for at in range(SIZE, len(data), SIZE) for more in range(64 + 96)]
        places = choose.choice([*range(12, 80), *ends], size=choose.integers(1, 20))
        for place in places.tolist():
            data[place] ^= 1 << int(choose.integers(8))
        viewer.write(bytes(data))
        try:
            viewer.read(100, last=True)
        except InputError as error:
            assert "\n" not in str(error)
        viewer.dump.close()


def test_a_file_of_endless_nothing_is_soon_read(film: Film) -> None:
    film.kernel("k", 0, 5, 0)
    film.ended = True
    with viewed(film.data()) as viewer:
        os.truncate(viewer.path, 1 << 42)
        viewer.read()
        assert len(viewer.seen.work()) == 1
