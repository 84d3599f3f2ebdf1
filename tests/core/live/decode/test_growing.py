"""Dumps read while they grow: however their growth is cut, the same rows come, each one once."""

from __future__ import annotations

import itertools
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.live.decode import growing
from flame.core.live.decode.growing import GrowingDump
from flame.core.loading.many import load
from flame.core.options import LoadOptions
from flame.core.readers.fdump.chunks import DumpBytes
from flame.core.readers.fdump.context import SharedTables
from flame.core.readers.fdump.layout import RUNNING
from tests.core.live.decode.growing_dumps import Film, cuts, filmed
from tests.core.live.decode.viewed_dumps import (
    Seen,
    assert_work_follows_its_calls,
    expected_calls,
    expected_ranges,
    viewed,
)
from tests.core.readers.fdump.test_oracle import rows_of
from tests.support.oracles.naive_fdump import Dump
from tests.support.tiers import examples
from tests.support.writers.fdumpfile import DumpFile
from tests.support.writers.fdumpscripts import Step, scripts


@examples(0.8)
@given(
    scripts, st.sampled_from([None, 1, 3]), cuts, st.lists(st.booleans()), st.sampled_from([1, 700])
)
def test_however_growth_is_cut_the_rows_are_those_of_the_plain_reading(
    script: list[Step], rows: int | None, cuts: list[float], late: list[bool], most: int
) -> None:
    film = filmed(script, rows, late)
    places = sorted(int(cut * len(film.puts)) for cut in cuts)
    with viewed(film.after(0)) as viewer:
        for place in places:
            viewer.write(film.after(place))
            viewer.read(most)
        viewer.write(film.after(len(film.puts), ended=True))
        viewer.read(most)
        assert viewer.seen.work() == sorted(Dump(viewer.path).rows())
        assert viewer.seen.work() == sorted(rows_of(load(viewer.path)))
        assert viewer.seen.calls() == expected_calls(viewer.path)
        assert viewer.seen.others() == expected_calls(viewer.path, "call")
        assert viewer.seen.ended() == expected_ranges(viewer.path, "range")
        assert viewer.seen.open() == expected_ranges(viewer.path, "open_range")
        assert viewer.dump.warnings() == load(viewer.path).warnings[: len(viewer.dump.warnings())]


@examples(0.6)
@given(scripts, cuts, st.lists(st.booleans()), st.sampled_from([1, 300]))
def test_work_never_comes_before_its_call(
    script: list[Step], cuts: list[float], late: list[bool], most: int
) -> None:
    film = filmed(script, 2, late)
    places = sorted(int(cut * len(film.puts)) for cut in cuts)
    with viewed(film.after(0)) as viewer:
        for place in places:
            viewer.write(film.after(place))
            viewer.read(most)
        viewer.write(film.after(len(film.puts), ended=True))
        viewer.read(most)
        assert_work_follows_its_calls(viewer.seen, viewer.path)


class Racing(DumpBytes):
    """A dump that goes on growing while it is read, by some records with every access."""

    def __init__(self, film: Film, path: Path, speed: int) -> None:
        super().__init__(film.write(path))
        self._film, self._speed, self._count = film, speed, 0
        self._states: dict[int, bytes] = {}

    def size(self) -> int:
        return len(self._now())

    def read(self, offset: int, size: int) -> bytes:
        data = self._now()[offset : offset + size]
        self._count += self._speed
        return data

    def _now(self) -> bytes:
        count = min(self._count // 4, len(self._film.puts))
        if count not in self._states:
            self._states = {count: self._film.after(count, ended=self.over)}
        return self._states[count]

    @property
    def over(self) -> bool:
        return self._count // 4 >= len(self._film.puts)


@examples(0.6)
@given(
    scripts,
    st.sampled_from([None, 1, 3]),
    st.integers(1, 12),
    st.sampled_from([1, 300, 1 << 30]),
    st.lists(st.booleans()),
)
def test_it_may_grow_while_it_is_read(
    script: list[Step], rows: int | None, speed: int, most: int, late: list[bool]
) -> None:
    film = filmed(script, rows, late)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.fdump"
        data = Racing(film, path, speed)
        dump = GrowingDump(data, str(path), 0, SharedTables(), LoadOptions())
        seen = Seen(dump.shared)
        while dump.header.state == RUNNING or dump.unread_bytes():
            seen.add(dump.read(most))
        dump.close()
        film.ended = True
        film.write(path)
        assert seen.work() == sorted(Dump(path).rows())
        assert seen.calls() == expected_calls(path)
        assert seen.others() == expected_calls(path, "call")
        assert seen.ended() == expected_ranges(path, "range")
        assert dump.warnings() == ()
        assert_work_follows_its_calls(seen, path)


def test_in_a_long_dump_all_threads_get_on_together() -> None:
    film = Film(rows=20)
    for row in range(500):
        for tid in (100, 101):
            # One thread launches every time, the other seldom: its chunk lasts for long.
            if tid == 100 or row % 50 == 0:
                film.launch(10 * row, 10 * row + 1, 10 * row + tid, tid=tid)
                film.kernel("k", 10 * row + 2, 10 * row + 3, 10 * row + tid, tid=tid)
    film.ended = False
    with viewed(film.data()) as viewer:
        viewer.read(most=2000)
        given = [b.calls.start for b in viewer.seen.batches if len(b.calls)]
        assert len(given) > 10
        assert all(one.max() <= other.min() for one, other in itertools.pairwise(given))
        assert len(viewer.seen.work()) == 510


def test_where_chunks_have_wrong_times_not_all_waits_for_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(growing, "_MOST_WAITING", 100)
    file = DumpFile(rows=20)
    for row in range(500):
        file.launch(10 * row, 10 * row + 1, row + 1)
        file.kernel("k", 10 * row + 2, 10 * row + 3, row + 1, tid=100)
    with viewed(file.data()) as viewer:
        viewer.read(most=2000)
        assert sum(not batch.empty for batch in viewer.seen.batches) > 5
        assert len(viewer.seen.work()) == len(viewer.seen.calls()) == 500


def test_not_very_much_work_waits_for_calls_that_are_not_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(growing, "_MOST_WAITING", 100)
    file = DumpFile()
    file.ended = False
    for row in range(101):
        file.kernel("k", 0, 1, row + 1, tid=100)
    with viewed(file.data()) as viewer:
        assert [len(viewer.read().work) for _ in range(2)] == [0, 101]
