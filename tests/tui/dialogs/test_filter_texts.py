"""Filters that are typed in their dialog: read, refused, changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from flame.core.loading.many import load
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from flame.core.projection.filters import (
    Filter,
    HideFrames,
    HideStacks,
    Kernel,
    MinShare,
    NvtxRange,
    ShowFrom,
    ShowStacks,
    Time,
)
from tests.tui import traces
from tests.tui.dialog_stage import stage
from tests.tui.dialogs.filter_stage import MS, dialog

# Typing


@pytest.mark.parametrize(
    ("row", "text", "one"),
    [
        ("only stacks with", "ge+mm", ShowStacks("ge+mm")),
        ("without", "copy", HideStacks("copy")),
        ("from", "gemm", ShowFrom("gemm")),
        ("hide", "cuda.*", HideFrames("cuda.*")),
        ("time", "1ms/2ms", Time(MS, 2 * MS)),
        ("NVTX range", "step*@NCCL", NvtxRange("step*", "NCCL")),
        ("kernel", "gemm", Kernel("gemm")),
        ("minimum share", "0.5 %", MinShare(0.5)),
    ],
)
async def test_what_is_typed_becomes_a_filter(
    profile: Profile, row: str, text: str, one: Filter
) -> None:
    async with stage(dialog(profile)) as user:
        await user.click(f" {row}")
        await user.type(text)
        await user.press("enter")
        assert user.line("▸").startswith("▸  apply  1 filter")
        await user.press("enter")
        assert user.result == (one,)


@pytest.mark.parametrize(
    ("row", "text", "complaint"),
    [
        ("only stacks with", "(", "not a regular expression"),
        ("kernel", "*", "not a regular expression"),
        ("time", "5", "use A/B"),
        ("time", "5x/6", "not a time"),
        ("time", "6s/5s", "empty"),
        ("NVTX range", "@NCCL", "a range name is missing"),
        ("minimum share", "many", "not a number"),
        ("minimum share", "101", "0 to 100"),
        ("minimum share", "nan", "0 to 100"),
    ],
)
async def test_what_is_wrong_is_said_while_typing(
    profile: Profile, row: str, text: str, complaint: str
) -> None:
    async with stage(dialog(profile)) as user:
        await user.click(f" {row}")
        await user.type(text)
        assert complaint in user.read()
        await user.press("enter")
        assert user.entry == text
        assert complaint in user.read()
        await user.press("escape", "a")
        assert user.result == ()


async def test_a_range_that_there_is_not_is_said_while_typing(tmp_path: Path) -> None:
    async with stage(dialog(load(traces.decode(tmp_path / "decode.sqlite")))) as user:
        await user.click("  NVTX range")
        await user.type("model.layers")
        said = "no range is called so: *model.layers* would find 6 names"
        assert said in user.read()
        await user.type("*model.layers*")
        assert "called so" not in user.read()
        await user.type("model.tails")
        assert "no range is called so" in user.read() and "would" not in user.read()
        await user.press("enter", "a")
        assert user.result == (NvtxRange("model.tails"),)


async def test_a_new_filter_begins_with_the_selected_frame(profile: Profile) -> None:
    async with stage(dialog(profile, name="f(int)")) as user:
        await user.press("enter")
        assert user.entry == r"^f\(int\)$"
        await user.press("g", "enter", "enter")
        assert user.result == (ShowStacks("g"),)


async def test_the_range_and_kernel_of_the_selected_frame(profile: Profile) -> None:
    async with stage(dialog(profile, name="user@host", kind=Kind.NVTX)) as user:
        await user.click("  NVTX range")
        assert user.entry == r"user\@host"
        await user.press("escape")
        await user.click("  kernel")
        assert user.entry == ""
    async with stage(dialog(profile, name="all", kind=Kind.ROOT)) as user:
        await user.press("enter")
        assert user.entry == ""


async def test_a_filter_is_changed_in_its_place(profile: Profile) -> None:
    where = (Kernel("a"), ShowStacks("b"), MinShare(1.0))
    async with stage(dialog(profile, *where)) as user:
        await user.press("enter")
        assert user.entry == "b"
        await user.press("ctrl+u")
        assert user.entry == ""
        await user.press("c", "enter", "enter")
        assert user.result == (Kernel("a"), ShowStacks("c"), MinShare(1.0))


async def test_an_emptied_filter_is_gone(profile: Profile) -> None:
    async with stage(dialog(profile, ShowStacks("b"))) as user:
        await user.press("enter", "ctrl+u", "enter", "enter")
        assert user.result == ()


async def test_several_filters_of_a_kind_stand_side_by_side(profile: Profile) -> None:
    async with stage(dialog(profile, ShowStacks("a"))) as user:
        await user.click("only stacks with +")
        await user.type("b")
        await user.press("enter", "a")
        assert user.result == (ShowStacks("a"), ShowStacks("b"))


async def test_the_same_filter_is_not_set_twice(profile: Profile) -> None:
    async with stage(dialog(profile, ShowStacks("a"))) as user:
        await user.click("only stacks with +")
        await user.type("a")
        await user.press("enter", "enter")
        assert user.result == (ShowStacks("a"),)


async def test_the_time_page_tells_how_long_the_trace_is(profile: Profile) -> None:
    async with stage(dialog(profile)) as user:
        await user.click("  time")
        assert "the trace runs from" in user.read()
