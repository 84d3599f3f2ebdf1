"""A kept profile that is damaged is not used, or gives the same answers: never others."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.columns import Column
from flame.core.efficiency.sums import count_operators
from flame.core.errors import InputError
from flame.core.loading.file import load_file
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions, silent
from flame.core.reopening.column_file import ColumnFile, write_columns
from flame.core.reopening.encode import can_be_kept
from flame.core.reopening.profile_head import ProfileHead
from tests.core.reopening.conftest import find, keep, kept_file, written
from tests.support.profiles.same_profiles import differences
from tests.support.tiers import examples

Change = Callable[[dict[str, Any], dict[str, Column]], None]


class Kept:
    """A trace, what was kept of it, and what it answers."""

    def __init__(self, folder: Path) -> None:
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        self.trace = written(folder / "trace.sqlite")
        self.loaded = keep(self.trace)
        self.file = kept_file(folder / "cache" / "flame" / "profiles")
        self.data = self.file.read_bytes()

    def open(self, data: bytes) -> Profile | None:
        """Open the trace where ``data`` is what was kept of it."""
        self.file.write_bytes(data)
        self.file.chmod(0o600)
        return find(self.trace)

    def check(self, data: bytes) -> bool:
        """Tell whether ``data`` was used; the answers are the right ones then."""
        found = self.open(data)
        if found is None:
            assert not self.file.exists(), "what is damaged stays"
            return False
        assert not differences(self.loaded, found)
        return True


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kept:
    monkeypatch.setenv("XDG_CACHE_HOME", "set by Kept")
    return Kept(tmp_path)


@pytest.fixture(scope="module")
def one_kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    """For properties, whose examples share it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", "set by Kept")
        yield Kept(tmp_path_factory.mktemp("kept"))


@contextmanager
def own_cache(kept: Kept) -> Iterator[None]:
    """The cache of a module's fixture, in place of each test's own."""
    before = os.environ["XDG_CACHE_HOME"]
    os.environ["XDG_CACHE_HOME"] = str(kept.file.parents[2])
    try:
        yield
    finally:
        os.environ["XDG_CACHE_HOME"] = before


def test_what_was_kept_is_used(kept: Kept) -> None:
    assert kept.check(kept.data)


def test_no_byte_of_the_head_may_differ(kept: Kept) -> None:
    with kept.file.open("rb", 0) as binary:
        end = ColumnFile(binary)._begin
    places = [*range(200), *random.Random(1).sample(range(200, end), 300)]
    for place in places:
        data = bytearray(kept.data)
        data[place] ^= 1 << place % 8
        assert kept.open(bytes(data)) is None or kept.data[place] == 0, place


@pytest.mark.deep
def test_no_byte_at_all_may_make_another_answer(kept: Kept) -> None:
    for place in range(0, len(kept.data), 83):
        data = bytearray(kept.data)
        data[place] ^= 0xFF
        kept.check(bytes(data))


@given(cut=st.floats(0, 1, exclude_max=True))
def test_a_cut_file_is_not_used(cut: float, one_kept: Kept) -> None:
    with own_cache(one_kept):
        assert not one_kept.check(one_kept.data[: int(cut * len(one_kept.data))])


@examples(0.5)
@given(place=st.floats(0, 1, exclude_max=True), junk=st.binary(min_size=1, max_size=100))
def test_junk_in_a_file_makes_no_other_answer(place: float, junk: bytes, one_kept: Kept) -> None:
    data = bytearray(one_kept.data)
    at = int(place * len(data))
    data[at : at + len(junk)] = junk[: len(data) - at]
    with own_cache(one_kept):
        one_kept.check(bytes(data))


def test_a_damaged_column_is_read_from_the_trace(kept: Kept) -> None:
    """Which is seen when it is read: the tree stands before that."""
    start = kept.loaded.activities.start.tobytes()
    at = kept.data.index(start)
    found = kept.open(kept.data[:at] + bytes(8) + kept.data[at + 8 :])
    assert found is not None
    assert found.gpu_time == kept.loaded.gpu_time
    assert kept.file.exists()
    np.testing.assert_array_equal(found.activities.start, kept.loaded.activities.start)
    assert not kept.file.exists()
    assert not differences(kept.loaded, found)


# What is written by somebody who knows how


def hostile(kept: Kept, change: Change) -> bytes:
    """What was kept, with a ``change`` and all checksums right."""
    kept.file.write_bytes(kept.data)
    with kept.file.open("rb", 0) as binary:
        file = ColumnFile(binary)
        places = file._places
        columns = {name: file.read(name, place.dtype[1:]) for name, place in places.items()}
        about, head = file.about, msgspec.msgpack.decode(file.content)
    change(head, columns)
    with kept.file.open("wb") as binary:
        write_columns(binary, about, msgspec.msgpack.encode(head), columns)
    return kept.file.read_bytes()


def put(column: str, place: int, value: int) -> Change:
    """Put ``value`` into a column."""

    def change(_: dict[str, Any], columns: dict[str, Column]) -> None:
        columns[column] = columns[column].copy()
        columns[column][place] = value

    return change


def cut(column: str) -> Change:
    def change(_: dict[str, Any], columns: dict[str, Column]) -> None:
        columns[column] = columns[column][:-1]

    return change


def say(key: str, value: object) -> Change:
    return lambda head, _: head.update({key: value})


def drop(column: str) -> Change:
    def change(_: dict[str, Any], columns: dict[str, Column]) -> None:
        del columns[column]

    return change


FAR = 1 << 30


@pytest.mark.parametrize(
    "change",
    [
        *(put(f"groups.{name}", 0, FAR) for name in ("process", "thread", "device")),
        *(put(f"groups.{name}", 0, FAR) for name in ("python", "native", "nvtx", "stack")),
        *(put(f"groups.{name}", 0, -1) for name in ("python", "native", "nvtx", "stack")),
        *(put(f"groups.{name}", 0, FAR) for name in ("launch", "frame")),
        *(put(f"groups.{name}", 0, -2) for name in ("process", "launch", "frame")),
        put("groups.kind", 0, 99),
        put("stacks.parent", 1, 1),
        put("stacks.parent", 1, -1),
        put("stacks.frame", 1, FAR),
        put("stacks.frame", 1, -1),
        put("stacks.depth", 1, 7),
        put("stacks.depth", 0, 1),
        *(put(f"grouping.{name}", 0, FAR) for name in ("process", "thread", "stream", "shapes")),
        put("grouping.category", 0, -2),
        put("sums.gpu", 0, -1),
        put("sums", 0, FAR),
        put("iterations.frame", 0, FAR),
        put("iterations.process", 0, FAR),
        put("iterations.thread", 0, -2),
        *(cut(f"groups.{name}") for name in ("kind", "frame", "launched")),
        *(cut(f"rows.{name}") for name in ("start", "group", "idle")),
        *(cut(f"stacks.{name}") for name in ("parent", "frame", "depth")),
        *(cut(f"grouping.{name}") for name in ("process", "stream_ids", "rank")),
        cut("sums.queue"),
        cut("sums"),
        cut("iterations.number"),
        *(drop(name) for name in ("rows.start", "groups.kind", "sums.idle", "stacks.frame")),
        say("frames", []),
        say("frames", [[10, "a"]]),
        say("frames", 7),
        say("rest", FAR),
        say("examples", {FAR: ["x"]}),
        say("threads", [{"process": 99, "tid": 1, "name": ""}]),
        say("processes", []),
        say("processes", [{"pid": 100, "name": "", "source": 3}]),
        say("busy", [99]),
        say("begin", "now"),
        say("builders", ["host", "all"]),
        say("metrics", ["gpu", "none"]),
        say("iterations", "some"),
        lambda head, _: head.clear(),
    ],
)
def test_what_does_not_fit_together_is_not_used(change: Change, one_kept: Kept) -> None:
    with own_cache(one_kept):
        assert not one_kept.check(hostile(one_kept, change))


@pytest.mark.parametrize("change", [put("rows.group", 0, FAR), put("rows.group", 0, -1)])
def test_groups_that_there_are_not_are_read_from_the_trace(change: Change, kept: Kept) -> None:
    assert kept.check(hostile(kept, change))
    assert not kept.file.exists()


@pytest.mark.parametrize(
    "change",
    [
        put("work.rows", 0, -1),
        put("work.rows", 1, 0),
        put("work.rows", -1, FAR),
        put("work.operator", 0, 1),
        put("work.operator", 0, FAR),
        put("work.flops", 0, -1),
        put("work.flops", 0, 1 << 62),
        put("work.counts", 1, -1),
        put("work.sums", 0, -1),
        put("work.sums", -1, 1 << 62),
        *(cut(f"work.{name}") for name in ("rows", "operator", "bytes", "counts", "sums")),
        *(drop(f"work.{name}") for name in ("rows", "flops", "sums")),
    ],
)
def test_work_that_cannot_be_is_measured_anew(change: Change, kept: Kept) -> None:
    data = hostile(kept, change)
    kept.file.write_bytes(data)
    found, loaded = find(kept.trace), kept.loaded.work
    assert found is not None and found.work is not None and loaded is not None
    assert loaded.flops.any()
    np.testing.assert_array_equal(found.work.flops, loaded.flops)
    np.testing.assert_array_equal(found.work.operator, loaded.operator)
    assert (found.work.calls, found.work.bare) == (loaded.calls, loaded.bare)
    counts, own = count_operators(found), count_operators(kept.loaded)
    assert counts is not None and own is not None
    assert counts.columns.tolist() == own.columns.tolist()


def test_what_is_kept_of_another_trace_is_not_used(kept: Kept, tmp_path: Path) -> None:
    other = written(tmp_path / "other.sqlite", 77)
    keep(other)
    [of_other] = set(kept.file.parent.iterdir()) - {kept.file}
    assert not kept.check(of_other.read_bytes())


@examples(0.7)
@given(data=st.data())
def test_any_numbers_are_refused_or_answered(data: st.DataObject, one_kept: Kept) -> None:
    """No exception but for what asks the trace itself."""
    with own_cache(one_kept):
        one_kept.file.write_bytes(one_kept.data)
        one_kept.file.chmod(0o600)
        with one_kept.file.open("rb", 0) as binary:
            names = sorted(ColumnFile(binary)._places)
        name = data.draw(st.sampled_from(names))
        value = data.draw(st.sampled_from([-2, -1, 0, 1, 2, 5, 127]))
        place = data.draw(st.sampled_from([0, -1]))
        try:
            changed = hostile(one_kept, put(name, place, value))
        except (IndexError, OverflowError):
            return
        found = one_kept.open(changed)
        if found is not None:
            with suppress(InputError):  # other starts than those in the trace
                differences(one_kept.loaded, found)


def test_the_head_says_all_that_a_profile_has(kept: Kept) -> None:
    """A field that a profile gets is to be kept as well."""
    fields = set(Profile.__dataclass_fields__)
    in_columns = {"activities", "grouping", "steps", "known"}
    derived = {"sources", "totals", "own_metrics", "timed", "sampling", "phases", "memory"}
    derived |= {"work_options"}
    builders = {name for name in fields if name.endswith(("_builder", "_finder", "side_tables"))}
    kept_fields = set(ProfileHead.__struct_fields__) | in_columns | derived | builders
    assert fields <= kept_fields
    assert can_be_kept(load_file(kept.trace, LoadOptions(), silent), kept.trace)
