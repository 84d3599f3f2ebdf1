from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.project import LEVELS
from flame.tui.keys import DIGITS
from flame.tui.levels import ABOUT, Choice, toggled

level_lists = st.lists(st.sampled_from(LEVELS), unique=True, min_size=1).map(tuple)


@pytest.mark.parametrize(
    ("levels", "level", "result"),
    [
        (("nvtx", "kernel"), "launch", ("launch", "nvtx", "kernel")),
        (("nvtx", "kernel"), "shapes", ("nvtx", "shapes", "kernel")),
        (("kernel", "nvtx"), "device", ("device", "kernel", "nvtx")),
        (("nvtx",), "kernel", ("nvtx", "kernel")),
        (("nvtx", "kernel"), "nvtx", ("kernel",)),
        (("kernel",), "kernel", ()),
    ],
)
def test_toggling_a_level(levels: tuple[str, ...], level: str, result: tuple[str, ...]) -> None:
    assert toggled(levels, level) == result


@given(level_lists, st.sampled_from(LEVELS))
def test_toggling_twice_keeps_the_set_and_the_order_of_the_others(
    levels: tuple[str, ...], level: str
) -> None:
    twice = toggled(toggled(levels, level), level)
    assert set(twice) == set(levels)
    assert [one for one in twice if one != level] == [one for one in levels if one != level]


def test_a_choice_lists_the_shown_levels_first() -> None:
    choice = Choice(("kernel", "nvtx"))
    assert choice.order[:3] == ["kernel", "nvtx", "process"]
    assert set(choice.order) == set(LEVELS)
    assert choice.result == ("kernel", "nvtx")


def test_a_level_is_moved_with_the_cursor_and_not_beyond_the_ends() -> None:
    choice = Choice(("launch", "nvtx", "kernel"))
    choice.shift(-1)
    assert choice.order[0] == "launch"
    choice.shift(1)
    choice.shift(1)
    assert choice.result == ("nvtx", "kernel", "launch")
    assert choice.order[choice.cursor] == "launch"


@given(level_lists, st.lists(st.sampled_from(["up", "down", "raise", "lower", "toggle"])))
def test_no_key_loses_a_level(levels: tuple[str, ...], keys: list[str]) -> None:
    choice = Choice(levels)
    for key in keys:
        if key == "toggle":
            choice.toggle()
        elif key in ("up", "down"):
            choice.select(-1 if key == "up" else 1)
        else:
            choice.shift(-1 if key == "raise" else 1)
    assert sorted(choice.order) == sorted(LEVELS)
    assert 0 <= choice.cursor < len(LEVELS)


def test_every_level_has_a_key_and_an_explanation() -> None:
    assert len(DIGITS) == len(LEVELS)
    assert set(ABOUT) == set(LEVELS)
