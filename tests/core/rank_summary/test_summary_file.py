"""A summary comes back from its bytes as it was, and nothing else is taken for one."""

from __future__ import annotations

import contextlib
import gc
import random
import tracemalloc
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from flame.core.analysis.trace_summary import summarize
from flame.core.errors import InputError, NoMatchError
from flame.core.loading.many import load
from flame.core.memory import MemoryShortError
from flame.core.projection.project import project
from flame.core.projection.selection import select
from flame.core.rank_summary import summary_file
from flame.core.rank_summary.merge import merge_summaries
from flame.core.rank_summary.opened import profile_of
from flame.core.rank_summary.packed_columns import (
    MOST_DEFLATED,
    DeflatedTexts,
    PackedColumn,
    deflate,
    inflate,
    pack_column,
    pack_texts,
    unpack_column,
)
from flame.core.rank_summary.summary import RankSummary, empty_summary
from flame.core.rank_summary.summary_check import holds_together
from flame.core.rank_summary.summary_file import is_summary, pack_summary, unpack_summary
from flame.core.rank_summary.summary_head import HEAD, NO_ORIGIN, seal
from flame.core.ranks.summarise import summarise
from tests.conftest import TRACES, needs_traces
from tests.support.ranks.random_ranks import plain, random_summary
from tests.support.ranks.rank_traces import write_ranks


def some_ranks(ranks: int = 6) -> RankSummary:
    return merge_summaries([random_summary(7, rank) for rank in range(ranks)])


def signed(body: bytes) -> bytes:
    """A file of ``body`` that nothing is wrong with but what is in it."""
    return seal(body, NO_ORIGIN)


def test_a_summary_comes_back_as_it_was() -> None:
    for summary in (empty_summary(), random_summary(1, 4), some_ranks(), random_summary(2, 0, 0)):
        data = pack_summary(summary)
        assert is_summary(data)
        again = unpack_summary(data, "x")
        assert plain(again) == plain(summary) and again.info == summary.info
        assert pack_summary(again) == data
        for name in ("stack_hash", "group_hash", "frame_hash", "cell_start"):
            assert (getattr(again, name) == getattr(summary, name)).all()
            assert getattr(again, name).dtype == getattr(summary, name).dtype
        assert again.cell_group.dtype == np.int32 and again.stack_parent.dtype == np.int32


def test_columns_come_back_as_they_were() -> None:
    rng = np.random.default_rng(1)
    ends = [np.iinfo(np.int64).min, np.iinfo(np.int64).max, -1, 0, 1]
    for column in (np.zeros(0, np.int64), np.array(ends), rng.integers(-300, 300, 999)):
        assert (unpack_column(pack_column(column), len(column)) == column).all()
    assert pack_column(np.zeros(9, np.int64)).data == b""
    with pytest.raises(ValueError, match="length"):
        unpack_column(pack_column(np.arange(5)), 6)


def test_nothing_is_inflated_beyond_its_size() -> None:
    bomb = deflate(bytes(50_000_000))
    tracemalloc.start()
    for size in (0, 10, 5_000):
        with pytest.raises(ValueError, match="length"):
            inflate(bomb, size)
    with pytest.raises(ValueError, match="longer"):
        inflate(b"x", 1 << 60)
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


def test_other_files_and_versions_are_refused_in_one_line() -> None:
    data = pack_summary(some_ranks())
    for wrong, why in (
        (b"", "no summary"),
        (b"SQLite format 3\0", "no summary"),
        (data[:8] + b"\x09\0\0\0" + data[12:], "version 9"),
        (data[:10], "cut off"),
        (data[:-5], "cut off"),
        (data + b"x", "damaged"),
        (data[:12], "cut off"),
    ):
        with pytest.raises(InputError, match=why) as refused:
            unpack_summary(wrong, "run.flamesum")
        assert "\n" not in str(refused.value) and str(refused.value).startswith("run.flamesum: ")


def mutated(data: bytes, rng: random.Random) -> bytes:
    """``data`` with a few bytes changed, taken out or put in."""
    found = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(found))
        match rng.randrange(4):
            case 0:
                found[at] = rng.randrange(256)
            case 1:
                found[at] ^= 1 << rng.randrange(8)
            case 2:
                del found[at : at + rng.randint(1, 9)]
            case _:
                found[at:at] = rng.randbytes(rng.randint(1, 9))
    return bytes(found)


def show(summary: RankSummary) -> None:
    """Look at ``summary`` as a user does."""
    profile = profile_of(summary)
    summarize(profile)
    for selection in (select("rank,nvtx,kernel"), select("launch,nvtx", metric="host")):
        with contextlib.suppress(NoMatchError):
            project(profile, selection)


def check_mutated(count: int, seed: int) -> None:
    summary = some_ranks(4)
    data = pack_summary(summary)
    rng = random.Random(seed)
    for number in range(count):
        # Every other one has the right digest, so that what is in it is looked at.
        bad = signed(mutated(data[HEAD:], rng)) if number % 2 else mutated(data, rng)
        try:
            found = unpack_summary(bad, "x")
        except InputError:
            continue
        show(merge_summaries([found]))
        assert number % 2 or pack_summary(found) == data


def test_mutated_files_are_refused() -> None:
    check_mutated(60, 1)


@pytest.mark.deep
def test_many_mutated_files_are_refused() -> None:
    check_mutated(10_000, 2)


@pytest.mark.deep
def test_parts_of_mutated_numbers_are_refused_or_hold_together() -> None:
    """What is deflated is changed before that, so that it is taken apart to the end."""
    summary, rng = some_ranks(4), random.Random(5)
    packed = summary_file._packed(summary)
    for _ in range(1_500):
        columns = dict(packed.columns)
        name = rng.choice(sorted(columns))
        column = unpack_column(columns[name], columns[name].rows).copy()
        if len(column):
            column[rng.randrange(len(column))] += rng.choice([-1, 1, 7, -(1 << 40), 1 << 62])
        columns[name] = pack_column(column)
        body = msgspec.msgpack.encode(msgspec.structs.replace(packed, columns=columns))
        try:
            found = unpack_summary(signed(body), "x")
        except InputError:
            continue
        assert holds_together(merge_summaries([found]))
        show(found)


def peak_of_unpacking(data: bytes) -> int:
    """How much memory unpacking ``data`` takes at most, in bytes."""
    gc.collect()
    tracemalloc.start()
    with contextlib.suppress(InputError):
        unpack_summary(data, "x")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.deep
def test_a_mutated_file_takes_no_more_memory_than_the_file() -> None:
    data, rng = pack_summary(some_ranks(20)), random.Random(3)
    unpack_summary(data, "x")
    honest = peak_of_unpacking(data)
    for _ in range(100):
        assert peak_of_unpacking(signed(mutated(data[HEAD:], rng))) < 2 * honest


def test_a_file_that_says_that_it_is_large_takes_no_memory() -> None:
    packed = summary_file._packed(some_ranks(4))
    many = 1 << 40
    sizes = (1, 1, many, 1, 1, 1)
    columns = {name: PackedColumn(many, 0, b"") for name in packed.columns}
    long = {
        name: PackedColumn(1 << 26, 0, b"") if name.startswith(("c_", "r_")) else column
        for name, column in packed.columns.items()
    }
    for wrong in (
        msgspec.structs.replace(packed, columns=long),
        msgspec.structs.replace(packed, sizes=sizes, columns=columns),
        msgspec.structs.replace(packed, columns=columns),
        msgspec.structs.replace(packed, frames=DeflatedTexts(many, packed.frames.data)),
    ):
        body = msgspec.msgpack.encode(wrong)
        assert peak_of_unpacking(signed(body)) < 200_000
        with pytest.raises(InputError, match="hold together"):
            unpack_summary(signed(body), "x")


def test_a_summary_of_rows_without_bytes_is_refused_before_it_takes_any() -> None:
    packed = summary_file._packed(some_ranks(4))
    texts = pack_texts([str(number).encode() for number in range(20_000)])
    sizes = (*packed.sizes[:4], many := 4_000_000, packed.sizes[5])
    none = {name: PackedColumn(many, 0, b"") for name in ("bin_group", "bin", "bin_count")}
    columns = {**packed.columns, **none}
    body = msgspec.msgpack.encode(
        msgspec.structs.replace(packed, sizes=sizes, info=texts, columns=columns)
    )
    assert many < MOST_DEFLATED * len(body)
    assert peak_of_unpacking(signed(body)) < 1_000_000
    with pytest.raises(InputError, match=r"^x: the summary unpacks to far more than summaries do"):
        unpack_summary(signed(body), "x")


def test_a_summary_that_does_not_fit_into_memory_is_refused_before_it_takes_any(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of equal ranks little is in the file, and much in memory."""
    one, ranks = random_summary(7, 0, 40), 400
    infos = [msgspec.structs.replace(one.info[0], rank=rank) for rank in range(ranks)]
    equal = merge_summaries([replace(one, info=(info,)) for info in infos])
    data = pack_summary(equal)
    monkeypatch.setenv("FLAME_MEMORY", f"{peak_of_unpacking(data) / 2e6:.3f}MB")
    with pytest.raises(MemoryShortError, match=r"^x: needs about .* of memory") as refused:
        unpack_summary(data, "x")
    assert "\n" not in str(refused.value)
    assert peak_of_unpacking(data) < 100_000


def test_collectives_are_of_ranks_that_take_part(tmp_path: Path) -> None:
    """Who came last, and all sums, are of the members of the communicator."""
    run = write_ranks(tmp_path, 3, 1, 2)
    whole = merge_summaries([summarise(load(path), path).summary for path in run.paths])
    sums, table = whole.communication, whole.collectives
    assert holds_together(whole)
    for wrong in (
        replace(whole, communication=sums._replace(communicator=sums.communicator + 1)),
        replace(whole, communication=sums._replace(calls=sums.calls + np.arange(3))),
        replace(whole, communication=sums._replace(duration=sums.duration + np.arange(3))),
        replace(whole, communication=sums._replace(together=sums.together * 0)),
        replace(whole, collectives=table._replace(work=table.work + 1)),
        replace(whole, collectives=table._replace(ordinal=table.ordinal[:0])),
    ):
        assert not holds_together(wrong)
    two = merge_summaries([summarise(load(path), path).summary for path in run.paths[:2]])
    one = two.collectives._replace(last=np.full(len(two.collectives.last), 2))
    odd = replace(whole, collectives=one, communication=two.communication)
    assert holds_together(replace(odd, collectives=two.collectives))
    assert not holds_together(odd)


def test_names_of_the_system_come_back(tmp_path: Path) -> None:
    path = tmp_path / "run.flamesum"
    path.write_bytes(pack_summary(some_ranks()))
    profile = load(path)
    assert profile.meta.path == str(path)
    assert profile.size == int(some_ranks().total[0][some_ranks().groups.host == 0].sum())


@pytest.mark.deep
def test_generated_ranks_are_four_kilobytes_each_at_most(tmp_path: Path) -> None:
    run = write_ranks(tmp_path, 32, steps=6, layers=24)
    merged = merge_summaries([summarise(load(path), path).summary for path in run.paths])
    assert len(pack_summary(merged)) <= 4_096 * len(merged)


@needs_traces
@pytest.mark.deep
@pytest.mark.parametrize(
    "path", [*TRACES.glob("nsys/*.sqlite"), *TRACES.glob("kineto/*.gz")], ids=lambda path: path.name
)
def test_a_real_trace_is_a_megabyte_at_most(path: Path) -> None:
    summary = summarise(load(path), path).summary
    data = pack_summary(summary)
    assert len(data) <= 1_000_000
    assert pack_summary(merge_summaries([unpack_summary(data, "x"), empty_summary()])) == data
