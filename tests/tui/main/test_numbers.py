"""Names that differ only in numbers: as one at first, all of them by key, undone and copied."""

from __future__ import annotations

from pathlib import Path

import pytest

from flame.core.model.frames import Kind
from flame.core.projection.filters import ShowStacks
from flame.core.projection.selection import Selection
from flame.options.command_line import options_of
from flame.options.selection import parse
from flame.tui.timeline.pane import TimelinePane
from tests.support.writers.nsysfile import NsysFile
from tests.tui.conftest import USUAL, User, open_app


@pytest.fixture
def training(tmp_path: Path) -> Path:
    """Twelve steps, each longer than the one before, and one range that is no step."""
    path = tmp_path / "training.sqlite"
    file = NsysFile(path)
    for number in range(1, 14):
        start = 10_000 * number
        file.nvtx(f"step {number}" if number < 13 else "save", start, start + 9_000)
        file.api("cudaLaunchKernel", start + 10, start + 20, number)
        file.kernel("gemm", start + 100, start + 100 + 10 * number, number)
    file.close()
    return path


SHOWN = Selection(("nvtx", "kernel"), naming=USUAL.naming)


def selected(user: User) -> tuple[str, ...]:
    return user.screen.view.tree.names(user.screen.view.cursor.node)


async def test_they_are_one_at_first_and_apart_by_key(training: Path) -> None:
    async with open_app(training, selection=SHOWN) as user:
        assert "step *  85.7 %" in user.read("icicle")
        assert user.read("folds").strip() == "× numbers folded #"
        await user.press("number_sign")
        await user.rest()
        assert "step 12" in user.read("icicle") and "*" not in user.read("icicle")
        assert not user.screen.parts.folds.display
        await user.press("number_sign")
        await user.rest()
        assert "step *" in user.read("icicle")


async def test_undo_takes_it_back(training: Path) -> None:
    async with open_app(training, selection=SHOWN) as user:
        await user.press("number_sign")
        await user.rest()
        await user.press("z")
        await user.rest()
        assert "step *" in user.read("icicle")
        await user.press("Z")
        await user.rest()
        assert "step 12" in user.read("icicle")


async def test_a_click_on_the_chip_takes_it_away(training: Path) -> None:
    async with open_app(training, selection=SHOWN) as user:
        await user.pilot.click("#folds", offset=(1, 0))
        await user.rest()
        assert "step 12" in user.read("icicle")


async def test_where_nothing_folds_the_key_says_so(training: Path) -> None:
    async with open_app(training, selection=Selection(("kernel",), naming=USUAL.naming)) as user:
        assert not user.screen.parts.folds.display
        await user.press("number_sign")
        assert "no names here that differ only in numbers" in user.read("status")


async def test_what_is_selected_stays_selected(training: Path) -> None:
    async with open_app(training, selection=SHOWN) as user:
        await user.press("down", "down")
        assert selected(user) == ("step *", "gemm")
        await user.press("number_sign")
        await user.rest()
        assert selected(user) == ("step 12", "gemm")
        await user.press("number_sign")
        await user.rest()
        assert selected(user) == ("step *", "gemm")


async def test_details_say_how_many_names_it_stands_for(training: Path) -> None:
    async with open_app(training, selection=SHOWN) as user:
        await user.press("down")
        await user.rest()
        details = user.read("details")
        assert "12 names, # shows all" in details
        assert details.index("15.4 %") < details.index("step 12") < details.index("step 11")


async def test_a_filter_of_a_folded_name_holds_for_all_its_names(training: Path) -> None:
    async with open_app(training, selection=SHOWN) as user:
        total = int(user.screen.view.tree.total[0])
        await user.press("down", "A")
        await user.rest()
        assert "only stacks with step *" in user.read("chips")
        assert user.screen.view.tree.total[0] == total - 130
        await user.press("number_sign")
        await user.rest()
        assert user.screen.view.tree.total[0] == total - 130
        assert len(user.screen.view.tree.children(0)) == 12


async def test_a_filter_of_one_of_the_names_holds_where_they_are_folded(training: Path) -> None:
    one = Selection(SHOWN.levels, (ShowStacks("^step 7$"),), naming=USUAL.naming)
    async with open_app(training, selection=one) as user:
        assert user.screen.view.tree.total[0] == 70
        assert "step *" in user.read("icicle")
        await user.press("down")
        await user.rest()
        assert "1 name, # shows all" in user.read("details")


async def test_new_filters_begin_with_a_pattern_of_the_folded_name(training: Path) -> None:
    async with open_app(training, selection=SHOWN) as user:
        await user.press("down", "f", "enter")
        assert user.app.screen.query_one("Input").value == r"^step (?:[0-9]+|\*)$"  # type: ignore[attr-defined]


async def test_the_search_for_the_same_name_finds_it(training: Path) -> None:
    async with open_app(training, selection=SHOWN) as user:
        await user.press("down", "asterisk")
        await user.rest()
        assert "match 1 of 1" in user.read("status")


async def test_the_timeline_has_all_numbers_and_finds_either(training: Path) -> None:
    async with open_app(training, (240, 40), SHOWN) as user:
        await user.press("down", "asterisk")
        user.screen.action_show_view("timeline")
        await user.until(lambda: not user.screen.busy)
        await user.settle()
        rows = user.read("timeline-rows")
        assert "step 12" in rows and "step *" not in rows
        for name, found in ((r"^step \*$", 12), ("^step 1$", 1), ("^save$", 1)):
            await user.press("slash", "ctrl+u", *name, "enter")
            await user.rest()
            await user.until(lambda: not user.screen.busy)
            assert int(bright_ranges(user)) == found, name


def bright_ranges(user: User) -> int:
    """Ranges that the search finds on the timeline."""
    time = user.screen.query_one(TimelinePane)._time
    assert time is not None and time.highlight.matching is not None
    return int((time.highlight.matching & (time.timeline.kind == Kind.NVTX)).sum())


async def test_the_command_line_says_what_is_folded(training: Path) -> None:
    async with open_app(training, selection=SHOWN) as user:
        options = user.screen.session.options
        assert "--no-fold-numbers" not in options_of(options, user.screen.shown.selection)
        await user.press("number_sign")
        await user.rest()
        words = options_of(options, user.screen.shown.selection)
        assert "--no-fold-numbers" in words
        assert parse(words)[1] == user.screen.shown.selection


@pytest.mark.parametrize(("view", "part"), [("sandwich", "subject"), ("top", "table")])
async def test_tables_and_sandwiches_have_one_of_them(training: Path, view: str, part: str) -> None:
    async with open_app(training, selection=SHOWN) as user:
        await user.press("down", "x")
        await user.rest()
        user.screen.action_show_view(view)
        await user.rest()
        assert "step *" in user.read(part) and "step 1" not in user.read(part)
