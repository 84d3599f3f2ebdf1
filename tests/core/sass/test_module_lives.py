"""Which cubins a sample may be of, against a plain search through all lives of modules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.columns import I8
from flame.core.sass import module_lives
from flame.core.sass.module_lives import ENDS, LOADS, MOST_ALIKE, CubinId, Cubins, ModuleLives
from tests.support.tiers import examples


class Load(NamedTuple):
    """A module that was loaded, and unloaded (``end`` None: never)."""

    crc: int
    hash: int
    time: int
    context: int
    end: int | None = None


class Seen(NamedTuple):
    """A sample."""

    crc: int
    context: int
    time: int
    span: int = 0


def columns(fields: tuple[str, ...], rows: Sequence[tuple[int, ...]]) -> dict[str, I8]:
    table = np.array(rows, np.int64).reshape(-1, len(fields))
    return dict(zip(fields, table.T, strict=True))


def lives_of(loads: list[Load]) -> ModuleLives:
    """Every load is a module of its own."""
    lives = ModuleLives()
    begun = [(*load[:4], number) for number, load in enumerate(loads)]
    ended = [
        (load.end, load.context, number)
        for number, load in enumerate(loads)
        if load.end is not None
    ]
    lives.learn(columns(LOADS, begun), columns(ENDS, ended))
    return lives


def cubins_of(lives: ModuleLives, *seen: Seen) -> list[Cubins]:
    numbers = lives.numbers(columns(Seen._fields, list(seen)))
    return [lives.cubins[number] for number in numbers.tolist()]


def contents(cubins: Cubins) -> list[int]:
    return [cubin.content for cubin in cubins]


def plain(loads: list[Load], one: Seen) -> list[int]:
    """The contents that may be meant, by the rules."""
    alike = [load for load in loads if load.crc == one.crc and load.hash]
    if not alike:
        return [0] if one.crc else []
    mine = [load for load in alike if 0 in (load.context, one.context) or load[3] == one.context]
    if len({load.hash for load in mine}) > 1:
        since = one.time - 1000 * one.span if one.span else -1
        mine = [
            load
            for load in mine
            if load.time <= one.time and (load.end is None or load.end >= since)
        ]
    return sorted({load.hash for load in mine})


times = st.integers(0, 12).map(lambda number: number * 500)
loads = st.lists(
    st.builds(
        lambda crc, content, time, context, length: Load(
            crc, content, time, context, None if length is None else time + length
        ),
        st.sampled_from([1, 1, 1, 2]),
        st.integers(0, 4),
        times,
        st.sampled_from([0, 1, 1, 2]),
        st.one_of(st.none(), times),
    ),
    max_size=8,
)
all_seen = st.lists(
    st.builds(
        Seen,
        st.sampled_from([0, 1, 1, 1, 2, 3]),
        st.sampled_from([0, 1, 1, 2, 7]),
        times,
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=8,
)


@examples(3)
@given(loads, all_seen)
def test_they_are_those_of_a_plain_search(loads: list[Load], seen: list[Seen]) -> None:
    found = cubins_of(lives_of(loads), *seen)
    assert [contents(cubins) for cubins in found] == [plain(loads, one) for one in seen]
    assert all(
        cubin.crc == one.crc for one, cubins in zip(seen, found, strict=True) for cubin in cubins
    )


def test_what_is_learnt_again_and_later_changes_nothing() -> None:
    loads = [Load(1, 5, 100, 1), Load(1, 6, 300, 1, 900)]
    lives, together = ModuleLives(), lives_of(loads)
    nothing: tuple[dict[str, I8], dict[str, I8]] = columns(LOADS, []), columns(ENDS, [])
    first, second = columns(LOADS, [(1, 5, 100, 1, 0)]), columns(LOADS, [(1, 6, 300, 1, 1)])
    lives.learn(first, nothing[1])
    assert contents(cubins_of(lives, Seen(1, 1, 5000, 1))[0]) == [5]
    lives.learn(second, nothing[1])
    lives.learn(first, columns(ENDS, [(900, 1, 1)]))
    assert len(lives) == 3
    for seen in (Seen(1, 1, 200), Seen(1, 1, 800), Seen(1, 1, 5000, 1)):
        assert cubins_of(lives, seen) == cubins_of(together, seen)


def test_a_number_that_is_used_again_without_an_end_ends_nothing() -> None:
    lives = ModuleLives()
    begun = [(1, 5, 100, 1, 7), (1, 6, 200, 1, 7)]
    lives.learn(columns(LOADS, begun), columns(ENDS, [(300, 1, 7)]))
    assert contents(cubins_of(lives, Seen(1, 1, 9000, 1))[0]) == [5]
    assert contents(cubins_of(lives, Seen(1, 1, 250, 0))[0]) == [5, 6]


def test_lives_end_and_begin_to_the_nanosecond() -> None:
    lives = lives_of([Load(1, 5, 1000, 1, 4000), Load(1, 6, 9000, 1)])
    seen = [Seen(1, 1, 6000, 2), Seen(1, 1, 6001, 2), Seen(1, 1, 9000, 5), Seen(1, 1, 8999, 5)]
    assert [contents(one) for one in cubins_of(lives, *seen)] == [[5], [], [5, 6], [5]]


def test_an_end_from_before_is_of_another_module() -> None:
    lives = ModuleLives()
    lives.learn(columns(LOADS, [(1, 5, 200, 1, 7)]), columns(ENDS, [(100, 1, 7)]))
    lives.learn(columns(LOADS, [(1, 6, 300, 1, 7)]), columns(ENDS, []))
    assert contents(cubins_of(lives, Seen(1, 1, 9000, 1))[0]) == [5, 6]


def test_checksums_and_hashes_are_of_64_bits() -> None:
    high = np.array([1 << 63, (1 << 64) - 1], np.uint64).astype(np.int64).tolist()
    lives = lives_of([Load(high[0], high[1], 1, 1)])
    [cubins] = cubins_of(lives, Seen(high[0], 1, 5))
    assert cubins == (CubinId(1 << 63, (1 << 64) - 1),)
    assert cubins[0].stem == "8000000000000000-ffffffffffffffff"
    assert CubinId(0xAB).stem == "00000000000000ab"


def test_more_than_are_looked_at_are_told_by_one_more() -> None:
    lives = lives_of([Load(1, number, 1, 1) for number in range(1, 1000)])
    [cubins] = cubins_of(lives, Seen(1, 1, 5))
    assert len(cubins) == MOST_ALIKE + 1


def test_what_would_take_too_long_is_not_told_apart_by_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loads = [Load(1, 1 + number, 1000 * number, 1, 1000 * number + 999) for number in range(20)]
    seen = [Seen(1, 1, 1000 * number + 500, 1) for number in range(20)]
    exact = cubins_of(lives_of(loads), *seen)
    assert [len(cubins) for cubins in exact] == [1, *[2] * 19]
    monkeypatch.setattr(module_lives, "_MOST_WORK", 100)
    assert [len(cubins) for cubins in cubins_of(lives_of(loads), *seen)] == [20] * 20


@pytest.mark.parametrize("time", [-(1 << 63), (1 << 63) - 1, 0])
def test_absurd_times_do_no_harm(time: int) -> None:
    lives = lives_of([Load(1, 5, time, 1, 0), Load(1, 6, 100, 1, time)])
    for span in (0, 1, (1 << 32) - 1):
        [cubins] = cubins_of(lives, Seen(1, 1, time, span))
        assert set(contents(cubins)) <= {5, 6}
