"""The picker of traces: a list that fills, is filtered and sorted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flame.core.loading import search
from flame.core.loading.search import FoundTrace
from flame.tui.picker import screen as module
from flame.tui.picker.rows import TraceRow, row
from flame.tui.toolkit.lines import Line
from tests.tui.picker.conftest import Gate
from tests.tui.picker.picking import picking, write

# The list


async def test_the_traces_of_the_folder_are_listed_the_newest_first(folder: Path) -> None:
    async with picking() as user:
        assert user.names == ["young.folded", "run/rank0.folded", "run/rank1.folded"]
        assert "young.folded" in user.line and "folded stacks" in user.line
        assert user.read("header").endswith("3 traces")
        assert user.read("heads").split() == ["name", "format", "GPUs", "size", "age"]
        assert "young.folded" in user.read("about")


async def test_a_folder_that_was_named_is_the_heading(folder: Path) -> None:
    async with picking(folder / "run", with_recent=False) as user:
        assert user.names == ["rank0.folded", "rank1.folded"]
        assert user.read("header").split()[:4] == ["flame", "traces", "in", "run"]
        assert "Recent" not in user.read("items")


async def test_the_list_is_there_at_once_and_fills(folder: Path, gate: Gate) -> None:
    async with picking(wait=False) as user:
        assert "looking for traces in" in user.read("items")
        assert user.read("header").endswith("0 traces · looking …")
        gate.let()
        await user.until(lambda: user.names == ["young.folded"])
        gate.let(2)
        await user.listed()
        assert len(user.names) == 3 and user.read("header").endswith("3 traces")


async def test_the_cursor_is_on_the_newest_until_it_is_moved_then_on_its_trace(
    folder: Path, gate: Gate
) -> None:
    for age, name in enumerate(("d1", "d2", "d3"), 10):
        write(folder / "run" / f"{name}.folded", age)
    async with picking(folder / "run", wait=False) as user:
        gate.let(2)
        await user.until(lambda: len(user.names) == 2)
        await user.settle()
        assert user.line.startswith(f"▸  {user.names[0]}")
        await user.press("down")
        before = user.line
        gate.let(3)
        await user.listed()
        assert len(user.names) == 5 and user.line == before


async def test_one_can_open_what_is_found_before_all_is(folder: Path, gate: Gate) -> None:
    async with picking(wait=False) as user:
        gate.let()
        await user.until(lambda: user.names)
        await user.press("enter")
        assert await user.shown() == ["young.folded"]


async def test_r_looks_again_and_keeps_marks_but_of_what_has_gone(folder: Path) -> None:
    async with picking() as user:
        await user.press("space", "space")
        write(folder / "newer.folded", -5)
        (folder / "young.folded").unlink()
        await user.press("r")
        await user.listed()
        assert user.names == ["newer.folded", "run/rank0.folded", "run/rank1.folded"]
        assert user.marked == ["run/rank0.folded"] and "rank1" in user.line


async def test_nothing_found_says_what_there_could_be(tmp_path: Path) -> None:
    async with picking(tmp_path, with_recent=False) as user:
        said = user.read("items")
        assert "There is no trace in" in said and "flame record -- CMD" in said
        await user.press("enter", "space", "a", "s", "down")
        assert user.app.is_running and user.read("header").endswith("0 traces")


async def test_in_a_folder_that_has_been_removed_nothing_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    async with picking() as user:
        assert "There is no trace in" in user.read("items")


async def test_what_was_not_looked_at_is_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FolderSearch", lambda path: search.FolderSearch(path, most=2))
    async with picking() as user:
        assert "there is more than was looked at" in user.read("notes")


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (120, 40), (250, 70), (20, 6)])
async def test_every_size_is_drawn(folder: Path, size: tuple[int, int]) -> None:
    async with picking(size=size) as user:
        assert "you" in user.line
        await user.pilot.resize_terminal(100, 30)
        await user.settle()
        assert "young.folded" in user.line


async def test_where_there_is_room_for_one_row_it_is_the_selected_one_and_no_title(
    folder: Path,
) -> None:
    async with picking(size=(20, 6)) as user:
        for _ in range(2):
            user.picker.reveal()
            await user.settle()
            assert "you" in user.line


async def test_the_selected_row_stays_in_sight_in_less_room(folder: Path) -> None:
    for age in range(20):
        write(folder / f"d{age}.folded", age + 10)
    async with picking() as user:
        await user.press("G")
        await user.pilot.resize_terminal(100, 12)
        await user.settle()
        assert "d19.folded" in user.line


async def test_a_thousand_traces_cost_no_more_than_the_rows_on_the_screen(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many_traces = [FoundTrace((folder / f"{number}",), "x", 1, number) for number in range(3000)]
    monkeypatch.setattr(search.FolderSearch, "looks", lambda searched: iter(many_traces))
    async with picking(folder) as user:
        drawn: list[str] = []

        def counted(item: TraceRow, *rest: Any) -> Line:
            drawn.append(item.name)
            return row(item, *rest)

        monkeypatch.setattr("flame.tui.picker.screen.row", counted)
        await user.press("down", "pagedown")
        assert "▸  2988" in user.line and 0 < len(drawn) < 200
        await user.press("G")
        assert user.line.split()[1] == "0"


async def test_names_that_a_terminal_would_obey_are_shown(folder: Path) -> None:
    write(folder / "\x1b[2Jred\n\u202e.folded", -1)
    async with picking() as user:
        assert "␛[2Jred␊�.folded" in user.line
        assert "␛[2Jred␊�.folded" in user.read("about")


# Filtering and sorting


async def test_a_filter_leaves_what_matches_and_enter_opens_it(folder: Path) -> None:
    async with picking() as user:
        await user.press("slash", *"rank1")
        assert user.names == ["run/rank1.folded"]
        assert user.read("header").endswith("1 of 3 traces")
        await user.press("enter")
        assert await user.shown() == ["run/rank1.folded"]


async def test_moving_leaves_the_filter_as_it_is_so_that_letters_are_keys(folder: Path) -> None:
    async with picking() as user:
        await user.press("slash", *"rank", "down", "a")
        assert user.marked == user.names == ["run/rank0.folded", "run/rank1.folded"]
        await user.press("escape")
        assert len(user.names) == 3 and len(user.marked) == 2


async def test_a_filter_that_nothing_matches_is_said(folder: Path) -> None:
    async with picking() as user:
        await user.press("slash", *"zzz")
        assert "nothing matches 'zzz'" in user.read("items")
        await user.press("enter")
        assert user.app.screen is user.picker


async def test_s_sorts_and_goes_to_the_first(folder: Path) -> None:
    write(folder / "a_large.folded", 50, "main;work 3\n" * 50)
    async with picking() as user:
        assert "newest" in user.read("status")
        await user.press("G", "s")
        assert user.names[:2] == ["a_large.folded", "run/rank0.folded"]
        assert "name" in user.read("status") and "a_large" in user.line
        await user.press("s")
        assert user.names[0] == "a_large.folded" and "largest" in user.read("status")
        await user.press("s")
        assert user.names[0] == "young.folded"
