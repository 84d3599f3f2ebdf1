"""The line of how busy the GPUs were: shares of time, and a filter by what is drawn over it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from flame.core.loading.many import load
from flame.core.projection.filters import Time
from flame.core.projection.selection import Selection
from flame.core.units import BLOCKS
from flame.tui.views.busy_line import BusyLine
from tests.support.writers.nsysfile import NsysFile
from tests.tui.conftest import User, open_app


def write(path: Path, devices: int = 1) -> Path:
    """Each GPU works for 3 of 10 µs, and then for 5 µs more; the second only for the first 3."""
    with NsysFile(path) as file:
        for device in range(devices):
            file.kernel("early", 0, 3_000, device=device)
            if not device:
                file.kernel("late", 10_000, 15_000, device=device)
    return path


def drawn(user: User) -> str:
    """The cells of the line, without its label."""
    line = user.read("busy")
    assert line.startswith((" GPU busy ", " GPUs busy "))
    return line.partition(" busy ")[2]


async def drag(user: User, *cells: int) -> None:
    """Press on the first of ``cells``, move over the others and let go on the last."""
    left = len(user.read("busy")) - len(drawn(user))
    await user.pilot.mouse_down(BusyLine, offset=(left + cells[0], 0))
    for cell in cells[1:]:
        await user.pilot.hover(BusyLine, offset=(left + cell, 0))
    await user.pilot.mouse_up(BusyLine, offset=(left + cells[-1], 0))
    await user.settle()


def eighths(moments: set[int], low: int, length: int, cells: int) -> list[int]:
    """By hand: eighths of each cell in which anything ran, at least one where anything did."""
    edges = [low + length * at // cells for at in range(cells + 1)]
    shares = [
        len(moments & set(range(*edge))) / max(edge[1] - edge[0], 1) for edge in pairwise(edges)
    ]
    return [max(round(8 * share), int(share > 0)) for share in shares]


async def test_a_cell_shows_the_share_of_its_time(tmp_path: Path) -> None:
    async with open_app(write(tmp_path / "x.sqlite")) as user:
        cells = drawn(user)
        busy = {*range(3_000), *range(10_000, 15_000)}
        assert [BLOCKS.index(cell) for cell in cells] == eighths(busy, 0, 15_000, len(cells))


async def test_of_several_gpus_it_is_the_mean(tmp_path: Path) -> None:
    async with open_app(write(tmp_path / "x.sqlite", devices=2)) as user:
        cells = drawn(user)
        assert user.read("busy").startswith(" GPUs busy ")
        assert cells[0] == "█" and cells[-1] == "▄" and cells[len(cells) // 2] == " "


async def test_what_is_drawn_over_it_filters_all_views(tmp_path: Path) -> None:
    path = write(tmp_path / "x.sqlite")
    async with open_app(path) as user:
        width, origin = len(drawn(user)), load(path).begin
        await drag(user, 70, 90, 75)
        low, high = (origin + 15_000 * at // width for at in (70, 76))
        await user.until(lambda: user.screen.wanted.where == (Time(low, high),))
        await user.until(lambda: user.screen.shown.selection.where)
        await user.press("z")
        await user.until(lambda: not user.screen.shown.selection.where)
        assert len(drawn(user)) == width


async def test_it_can_be_drawn_from_right_to_left_and_beyond_its_ends(tmp_path: Path) -> None:
    path = write(tmp_path / "x.sqlite")
    async with open_app(path) as user:
        width, begin = len(drawn(user)), load(path).begin
        await drag(user, width - 1, width - 20, -8)
        await user.until(lambda: user.screen.wanted.where == (Time(begin, begin + 15_000),))


async def test_it_shows_the_time_that_is_chosen(tmp_path: Path) -> None:
    path = write(tmp_path / "x.sqlite")
    begin = load(path).begin
    chosen = Selection(where=(Time(begin + 1_000, begin + 11_000),))
    async with open_app(path, selection=chosen) as user:
        cells = drawn(user)
        busy = {*range(3_000), *range(10_000, 15_000)}
        assert [BLOCKS.index(cell) for cell in cells] == eighths(busy, 1_000, 10_000, len(cells))
        await drag(user, 0, len(cells) - 1)
        assert user.screen.wanted.where == chosen.where


async def test_a_click_alone_filters_nothing(tmp_path: Path) -> None:
    async with open_app(write(tmp_path / "x.sqlite")) as user:
        await drag(user, 5, 5)
        assert user.screen.wanted.where == ()


async def test_the_stretch_is_marked_while_it_is_drawn(tmp_path: Path) -> None:
    async with open_app(write(tmp_path / "x.sqlite")) as user:
        line = user.screen.query_one(BusyLine)
        plain = {segment.style for segment in line.strip(0)}
        left = len(user.read("busy")) - len(drawn(user))
        await user.pilot.mouse_down(BusyLine, offset=(left + 5, 0))
        await user.pilot.hover(BusyLine, offset=(left + 9, 0))
        await user.settle()
        [marked] = [segment for segment in line.strip(0) if segment.style not in plain]
        assert len(marked.text) == 5
        assert " of time" in user.read("status")
        await user.pilot.hover(BusyLine, offset=(left + 5, 0))
        await user.pilot.mouse_up(BusyLine, offset=(left + 5, 0))
        await user.settle()
        assert {segment.style for segment in line.strip(0)} == plain


async def test_it_is_absent_where_nothing_is_known_or_rows_are_few(
    tmp_path: Path, decode: Path
) -> None:
    (tmp_path / "x.folded").write_text("a;b 3\n")
    async with open_app(tmp_path / "x.folded") as user:
        assert user.screen.query_one(BusyLine).size.height == 0
    async with open_app(decode, size=(100, 21)) as user:
        assert user.screen.query_one(BusyLine).size.height == 0
    async with open_app(decode, size=(80, 24)) as user:
        assert user.screen.query_one(BusyLine).size.height == 1


async def test_keys_draw_nothing_of_it_anew(decode: Path) -> None:
    async with open_app(decode) as user:
        line = user.screen.query_one(BusyLine)
        before = line._shown[0]
        await user.press("down", "right", "enter", "tab", "shift+tab", "slash", *"gemm", "enter")
        assert line._shown[0] is before
