"""The filters dialog: its list of every kind, by keys and by mouse."""

from __future__ import annotations

from pathlib import Path

import pytest

from flame.core.loading.many import load, load_all
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from flame.core.names.phases import parse_phases
from flame.core.projection.filter_kinds import FILTER_KINDS
from flame.core.projection.filters import (
    Filter,
    HideFrames,
    Kernel,
    MinShare,
    NvtxRange,
    Phases,
    Ranks,
    ShowStacks,
    Time,
)
from flame.core.projection.phases import name_phases
from flame.tui.dialogs.filter_fields import FIELDS
from flame.tui.dialogs.filters import slots
from flame.tui.dialogs.text_fields import PHASES_FIELD, TextField
from flame.tui.session.query import SelectedName
from tests.tui.dialog_stage import PENDING, stage
from tests.tui.dialogs.filter_stage import MS, dialog
from tests.tui.traces import HOSTILE

# As data


def test_there_is_a_field_for_every_kind_of_filter() -> None:
    kinds = Filter.__args__
    assert {field.type for field in FIELDS} == set(kinds)


def test_set_filters_come_before_room_for_more_of_their_kind() -> None:
    where = (MinShare(1.0), ShowStacks("a"), Time(1, 2), ShowStacks("b"))
    rows = [(slot.field.title, slot.place) for slot in slots(where)]
    assert rows[:4] == [
        *(("only stacks with", 1), ("only stacks with", 3), ("only stacks with", None)),
        ("without", None),
    ]
    assert [place for title, place in rows if title == "time"] == [2]
    assert [place for title, place in rows if title == "minimum share"] == [0]


@pytest.mark.parametrize(
    "one",
    [
        *(ShowStacks("a|b"), HideFrames("^$"), Kernel("gemm"), MinShare(0.25)),
        *(Time(1, 2_500 * MS), NvtxRange("user@host", "NCCL")),
    ],
)
def test_what_is_spelled_is_read_back(one: Filter) -> None:
    field = next(field for field in FIELDS if field.type is type(one))
    assert isinstance(field, TextField)
    assert field.read(field.spell(one)) == one


# The list


@pytest.mark.parametrize("key", ["x", "delete", "backspace"])
async def test_x_removes_a_filter(profile: Profile, key: str) -> None:
    async with stage(dialog(profile, ShowStacks("a"), MinShare(1.0))) as user:
        await user.press(key, key)
        await user.press("a")
        assert user.result == (MinShare(1.0),)


async def test_r_removes_all(profile: Profile) -> None:
    async with stage(dialog(profile, ShowStacks("a"), MinShare(1.0))) as user:
        await user.press("r")
        assert "no filter" in user.line("apply  ")
        await user.press("a")
        assert user.result == ()


@pytest.mark.parametrize("key", ["escape", "q", "f"])
async def test_leaving_applies_nothing(profile: Profile, key: str) -> None:
    async with stage(dialog(profile, ShowStacks("a"))) as user:
        await user.press("x", key)
        assert user.result is None


async def test_letters_are_typed_where_text_is_asked_for(profile: Profile) -> None:
    async with stage(dialog(profile)) as user:
        await user.press("space", *"xraqfjk")
        assert user.entry == "xraqfjk"
        assert user.result is PENDING


async def test_the_apply_row_says_when_nothing_has_changed(profile: Profile) -> None:
    async with stage(dialog(profile, ShowStacks("a"))) as user:
        assert "1 filter, as before" in user.read()
        await user.press("x")
        assert "as before" not in user.read()
        await user.click(" apply ")
        assert user.result == ()


@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_names_are_shown_and_typed_safely(profile: Profile, name: str) -> None:
    async with stage(dialog(profile, NvtxRange(name), name=name, kind=Kind.NVTX)) as user:
        for line in user.read().splitlines():
            assert line.isprintable() and len(line) <= 100
        await user.press("enter")
        assert user.entry is not None and user.entry.isprintable()


async def test_it_works_on_the_smallest_screen(profile: Profile) -> None:
    async with stage(dialog(profile), (60, 15)) as user:
        assert user.read().startswith("Filters: all of them hold")
        await user.press("pagedown", "pagedown")
        assert user.line("▸").startswith("▸  apply")
        await user.press("up", "space")
        assert user.entry == ""
        await user.press(*"2%", "enter", "enter")
        assert user.result == (MinShare(2.0),)


def test_the_dialog_offers_every_kind_of_filter() -> None:
    assert sorted(field.title for field in FIELDS) == sorted(kind.title for kind in FILTER_KINDS)


def test_names_that_nothing_has_are_doubted(tmp_path: Path) -> None:
    paths = [tmp_path / f"rank{number}.folded" for number in range(2)]
    for path in paths:
        path.write_text("a;train 5\nb 7\n")
    profile = name_phases(load_all(paths), parse_phases('{"training": ["train"]}'))
    for kind, known, why in (
        (Ranks, "rank*", "no trace is called that"),
        (Phases, "unm*", "no phase is called that"),
    ):
        [field] = [field for field in FIELDS if field.type is kind]
        assert isinstance(field, TextField) and field.applies(profile)
        assert field.doubt(profile, field.read(known)) == ""
        assert field.doubt(profile, field.read("other")) == why
    assert not PHASES_FIELD.applies(load(paths[0])), "stacks have no phases but those of a file"
    selected = SelectedName("a, b", Kind.PHASE)
    assert PHASES_FIELD.guess(selected) == "a? b"
    assert "training, unmapped" in PHASES_FIELD.about(profile)
