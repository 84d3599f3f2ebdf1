"""The sandwich view: one frame between its callers and its callees, moved through as one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import events

from flame.core.projection.selection import Selection
from flame.tui.session.query import Query, find
from flame.tui.session.tree_view import TreeView
from flame.tui.views import sandwich_pane as module
from flame.tui.views.icicle import Icicle
from flame.tui.views.icicle_pane import IciclePane
from flame.tui.views.sandwich_halves import SandwichHalves
from flame.tui.views.sandwich_pane import SandwichPane
from tests.tui import traces
from tests.tui.conftest import User, open_app
from tests.tui.trees import node, random_trees, stack_tree

KERNEL = "flash_fwd_kernel"


async def sandwich_of(user: User, name: str) -> SandwichPane:
    """Select the frame called ``name`` in the icicle and open its sandwich, a row per frame."""
    user.open_chains()
    view = user.screen.shown.view
    frame = view.tree.text.index(name)
    user.screen.action_select(int(view.places(frame)[0]))
    await user.press("x")
    return user.screen.query_one(SandwichPane)


def row(user: User, name: str) -> int:
    """The row of the callers, from the subject up, that shows ``name``."""
    lines = user.read("callers").splitlines()[::-1]
    return next(place for place, line in enumerate(lines) if name in line)


def offset(user: User, widget: str, name: str) -> tuple[int, int]:
    """The cell in which the frame that shows ``name`` begins."""
    lines = user.read(widget).splitlines()
    y = next(place for place, line in enumerate(lines) if f"▏{name}" in line)
    return lines[y].index(f"▏{name}") + 1, y


# Halves without the app


@given(random_trees, st.data())
def test_halves_weigh_what_the_view_says_of_the_frame_everywhere(tree, data) -> None:  # type: ignore[no-untyped-def]
    frame = data.draw(st.sampled_from(sorted(set(tree.frame.tolist()))))
    everywhere = TreeView(tree).everywhere(frame)
    for half in SandwichHalves.of(TreeView(tree), frame):
        assert int(half.tree.total[0]) == everywhere.total
        assert int(half.tree.count[0]) == everywhere.activities


@given(random_trees, st.data())
def test_self_time_is_that_of_all_places(tree, data) -> None:  # type: ignore[no-untyped-def]
    frame = data.draw(st.sampled_from(sorted(set(tree.frame.tolist()))))
    assert SandwichHalves.of(TreeView(tree), frame).own == int(tree.own[tree.frame == frame].sum())


def test_a_search_marks_both_halves_and_the_subject_once() -> None:
    tree = stack_tree({("ab", "b", "ab2"): 3, ("c", "b", "d"): 4})
    halves = SandwichHalves.of(TreeView(tree), tree.text.index("b"))
    halves.mark(tree, find(tree, Query("b")))
    marked = [
        [half.tree.name(one) for one in half.matches.result.order]
        for half in halves
        if half.matches.result
    ]
    assert marked == [["ab"], ["b", "ab2"]]
    halves.mark(tree, None)
    assert [half.matches.result for half in halves] == [None, None]


# In the app


async def test_callers_stand_above_and_callees_below(decode: Path) -> None:
    async with open_app(decode) as user:
        await sandwich_of(user, "model.layers.0")
        assert user.read("subject").startswith("▏model.layers.0  200 µs · 43.9 % of all · 2×")
        assert row(user, "generate") == 0
        assert row(user, "cudaLaunchKernel") == 1
        below = user.read("callees").splitlines()
        assert below[0].startswith("▏model.layers.0.mlp  70.0 %  140 µs")
        assert below[1].startswith("▏gemm")


async def test_all_places_of_a_frame_are_merged(decode: Path) -> None:
    async with open_app(decode) as user:
        await sandwich_of(user, KERNEL)
        said = "120 µs · 26.3 % of all · 2× · 2 places · nothing below"
        assert user.read("subject") == f"▏{KERNEL}  {said}"
        line = user.read("callers").splitlines()[-1]
        assert "▏model.layers.0.attention" in line and "▏model.layers.1.attention" in line
        assert not user.read("callees").strip()


async def test_a_frame_at_the_top_has_no_callers(decode: Path) -> None:
    async with open_app(decode) as user:
        await sandwich_of(user, "cudaLaunchKernel")
        assert "no callers" in user.read("subject")
        await user.press("up")
        assert "nothing above it" in user.read("status")
        assert user.selected == "cudaLaunchKernel"


async def test_up_and_down_go_through_the_whole_sandwich(decode: Path) -> None:
    async with open_app(decode) as user:
        await sandwich_of(user, "model.layers.0")
        seen = []
        for key in ("up", "up", "up", "down", "down", "down", "down", "down", "up", "up", "k"):
            await user.press(key)
            seen.append(user.selected)
        layer = "model.layers.0"
        assert seen == [
            "generate",
            "cudaLaunchKernel",
            "cudaLaunchKernel",
            "generate",
            layer,
            f"{layer}.mlp",
            "gemm",
            "gemm",
            f"{layer}.mlp",
            layer,
            "generate",
        ]
        await user.press("home")
        assert user.selected == layer


async def test_left_and_right_stay_on_the_row(decode: Path) -> None:
    async with open_app(decode) as user:
        await sandwich_of(user, KERNEL)
        await user.press("up", "right")
        assert user.selected == "model.layers.1.attention"
        await user.press("h")
        assert user.selected == "model.layers.0.attention"
        await user.press("home", "left")
        assert user.selected == KERNEL


async def test_zooming_stays_in_one_half_and_is_undone_in_order(decode: Path) -> None:
    async with open_app(decode) as user:
        pane = await sandwich_of(user, KERNEL)
        await user.press("up", "right", "enter")
        assert user.zoomed == "model.layers.1.attention"
        assert "model.layers.0" not in user.read("callers")
        assert KERNEL in user.read("subject")
        await user.press("up", "enter")
        assert user.zoomed == "model.layers.1"
        await user.press("z")
        assert user.zoomed == "model.layers.1.attention"
        await user.press("Z")
        assert user.zoomed == "model.layers.1"
        await user.press("u")
        assert user.zoomed == "model.layers.1.attention"
        await user.press("escape")
        assert pane.view.viewport.zoom.node == 0
        await user.press("z")
        assert user.zoomed == "model.layers.1.attention"


async def test_from_a_zoomed_half_one_steps_to_the_other(decode: Path) -> None:
    async with open_app(decode) as user:
        await sandwich_of(user, "model.layers.0")
        await user.press("down", "enter", "up")
        assert user.selected == "generate"
        await user.press("down")
        assert user.selected == "model.layers.0.mlp"
        await user.press("u")
        await user.press("up", "up", "up", "enter", "down")
        assert user.selected == "model.layers.0"


async def test_x_makes_the_selected_frame_the_subject_and_z_goes_back(decode: Path) -> None:
    async with open_app(decode) as user:
        await sandwich_of(user, KERNEL)
        await user.press("up", "enter", "up", "x")
        assert user.read("subject").startswith("▏model.layers.0  ")
        await user.press("z")
        assert user.read("subject").startswith(f"▏{KERNEL}  ")
        assert "model.layers.1" not in user.read("callers")
        await user.press("z")
        assert "model.layers.1" in user.read("callers")
        await user.press("Z", "Z")
        assert user.read("subject").startswith("▏model.layers.0  ")


async def test_entering_takes_the_selected_frame_and_leaving_selects_the_subject(
    decode: Path,
) -> None:
    async with open_app(decode) as user:
        user.open_chains()
        await user.press("down", "down", "down", "tab")
        assert user.read("subject").startswith("▏model.layers.0  ")
        await user.press("up", "x", "shift+tab")
        assert isinstance(user.screen.pane, IciclePane)
        assert user.selected == "generate"
        await user.press("down", "right", "tab")
        assert user.read("subject").startswith("▏model.layers.1  ")


async def test_matches_are_marked_and_visited_in_both_halves(decode: Path) -> None:
    async with open_app(decode) as user:
        await sandwich_of(user, "model.layers.0")
        await user.press("slash", *"gemm|gen|mlp", "enter")
        seen = [user.selected]
        for _ in range(3):
            await user.press("n")
            seen.append(user.selected)
        assert sorted(seen[:3]) == ["gemm", "generate", "model.layers.0.mlp"]
        assert seen[3] == seen[0]
        await user.press("N")
        assert user.selected == seen[2]
        await user.press("slash", *"no such", "enter", "n")
        assert "no match" in user.read("status")


async def test_a_projection_keeps_the_subject_and_the_place(decode: Path) -> None:
    async with open_app(decode) as user:
        await sandwich_of(user, KERNEL)
        await user.press("up", "right", "enter")
        assert user.zoomed == "model.layers.1.attention"
        await user.press("ctrl+n", "ctrl+n")
        assert user.screen.shown.metric.key == "count"
        assert user.read("subject").startswith(f"▏{KERNEL}  2 · ")
        assert user.zoomed == "model.layers.1.attention"
        await user.press("z", "z")
        assert user.screen.shown.metric.key == "gpu"
        assert user.zoomed == "model.layers.1.attention"
        await user.press("z")
        assert user.zoomed == KERNEL


async def test_a_subject_that_is_gone_is_said_and_comes_back(decode: Path) -> None:
    async with open_app(decode) as user:
        await sandwich_of(user, "model.layers.0")
        await user.press("8")
        assert "nvtx" not in user.levels
        assert user.read("subject") == "▏model.layers.0  is not in what is shown now"
        for key in ("up", "down", "left", "enter", "u", "home"):
            await user.press(key)
        await user.press("8")
        assert user.read("subject").startswith("▏model.layers.0  200 µs")
        await user.until(lambda: "generate" in user.read("callers"))  # there is room for them again
        assert row(user, "generate") == 0


async def test_the_callers_of_an_inverted_tree_stand_above_too(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("i")
        assert user.screen.shown.view.tree.layout.inverted
        await sandwich_of(user, "model.layers.0")
        assert row(user, "generate") == 0
        assert "▏model.layers.0.mlp" in user.read("callees")


async def test_a_large_tree_is_merged_in_a_thread(
    decode: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AT_ONCE", 0)
    async with open_app(decode) as user:
        pane = await sandwich_of(user, KERNEL)
        await user.until(lambda: not pane.busy)
        await user.settle()
        assert row(user, "model.layers.0.attention") == 0
        assert "120 µs" in user.read("subject")
        assert user.selected == KERNEL


async def test_a_deep_sandwich_scrolls_with_the_subject_in_the_middle(tmp_path: Path) -> None:
    async with open_app(traces.deep(tmp_path / "deep.sqlite"), (100, 30)) as user:
        await sandwich_of(user, "level 30")
        callers = user.screen.query_one("#callers", Icicle)
        callees = user.screen.query_one("#callees", Icicle)
        assert abs(callers.size.height - callees.size.height) <= 1
        # It scrolls once it is laid out.
        await user.until(lambda: user.read("callers").splitlines()[-1].startswith("▏level 29"))
        await user.press(*["up"] * 20)
        assert user.selected == "level 10"
        assert "level 10" in user.read("callers")
        await user.press(*["down"] * 20)
        assert user.read("callers").splitlines()[-1].startswith("▏level 29")
        await user.press("pagedown")
        assert callees.scroll_offset.y == callees.size.height
        await user.press("up", "pageup")
        assert callers.scroll_offset.y < callers.max_scroll_y


async def test_clicks_select_and_zoom_in_either_half(decode: Path) -> None:
    async with open_app(decode) as user:
        pane = await sandwich_of(user, "model.layers.0")
        await user.pilot.click("#callers", offset=offset(user, "callers", "generate"))
        await user.settle()
        assert user.selected == "generate"
        mlp = "model.layers.0.mlp"
        await user.pilot.click("#callees", offset=offset(user, "callees", mlp), times=2)
        await user.settle()
        assert (user.selected, user.zoomed) == (mlp, mlp)
        await user.pilot.click("#subject", offset=(3, 0))
        await user.settle()
        assert (user.selected, pane.view.viewport.zoom.node) == ("model.layers.0", 0)


async def test_hovering_speaks_only_of_the_half_that_is_moved_in(decode: Path) -> None:
    async with open_app(decode) as user:
        await sandwich_of(user, "model.layers.0")
        mlp = "model.layers.0.mlp"
        await user.pilot.hover("#callees", offset=offset(user, "callees", mlp))
        await user.settle()
        assert mlp in user.read("status")
        await user.press("home")
        await user.pilot.hover("#callers", offset=offset(user, "callers", "generate"))
        await user.settle()
        assert "generate" not in user.read("status")


async def test_the_wheel_with_shift_pans_a_zoomed_half(decode: Path) -> None:
    async with open_app(decode) as user:
        pane = await sandwich_of(user, KERNEL)
        await user.press("up", "enter")
        before = pane.view.viewport.zoom
        callers = user.screen.query_one("#callers", Icicle)
        wheel = (callers, 5, 0, 0, 0, 0, True, False, False)
        callers.post_message(events.MouseScrollDown(*wheel))
        await user.settle()
        assert pane.view.viewport.zoom.span.low > before.span.low
        await user.press("z")
        assert pane.view.viewport.zoom == before


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (250, 70)])
async def test_every_size_shows_subject_and_callers(size: tuple[int, int], decode: Path) -> None:
    async with open_app(decode, size) as user:
        await sandwich_of(user, KERNEL)
        assert KERNEL[:8] in user.read("subject")
        assert "▏model" in user.read("callers").splitlines()[-1]


async def test_names_of_any_kind_leave_the_lines_whole(tmp_path: Path) -> None:
    async with open_app(traces.hostile(tmp_path / "hostile.sqlite")) as user:
        view = user.screen.shown.view
        for frame in sorted(set(view.tree.frame[1:].tolist())):
            user.screen.action_select(int(view.places(frame)[0]))
            user.screen._sandwich(frame)
            await user.settle()
            for name in ("callers", "subject", "callees"):
                assert all(char.isprintable() or char == "\n" for char in user.read(name))


async def test_halves_are_zoomed_out_together() -> None:
    tree = stack_tree({("a", "b"): 2, ("c", "b"): 1})
    halves = SandwichHalves.of(TreeView(tree), int(tree.frame[node(tree, "a", "b")]))
    halves.callers.zoom_to(halves.callers.viewport.zoom_of(1))
    halves.reset()
    assert [half.viewport.zoom.node for half in halves] == [0, 0]


async def test_a_selection_without_the_frame_begins_with_what_is_selected(decode: Path) -> None:
    async with open_app(decode, selection=Selection(levels=("kernel",))) as user:
        await user.press("down", "tab")
        assert user.read("subject").startswith("▏gemm")
        assert "no callers · nothing below" in user.read("subject")
