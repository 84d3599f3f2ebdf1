"""Compose the rows of traces to open, sort them, and say what opening one comes to."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from flame.core.lazy_regex import lazy_regex
from flame.core.loading.inputs import Inputs
from flame.core.loading.search import RECORDING, FoundTrace
from flame.core.loading.source_labels import absolute_path
from flame.core.units import format_age, format_bytes
from flame.tui.toolkit.dialog import CURSOR
from flame.tui.toolkit.lines import Line, Piece
from flame.tui.toolkit.list_screen import Column, fitting, right
from flame.tui.toolkit.palette import Palette
from flame.tui.toolkit.text import cut, cut_start, fill
from flame.tui.widgets.gpus import count_models

MARK = "●"
"""A trace that will be opened with others."""

_SIGNS = 3
_NAME = 22
"""Cells that the name keeps when columns are chosen."""

_SERIES = lazy_regex(r"\b(GeForce|Tesla) (?=\w)")

Key = tuple[Path, ...]
"""Tells traces apart, wherever they are listed: their absolute paths."""


class TraceRow:
    """A row of the list: ``trace``, called ``name`` there, in the list of what was shown before."""

    def __init__(self, trace: FoundTrace, name: str, recent: bool = False) -> None:
        self.trace = trace
        self.name = name
        self.recent = recent

    @cached_property
    def key(self) -> Key:
        """What it is told apart from others by."""
        return tuple(map(absolute_path, self.trace.paths))

    @cached_property
    def gpus(self) -> str:
        """``8×B200``: the GPUs of the machine by model, empty where they are not known."""
        return count_models(_SERIES.sub("", name) for name in self.trace.gpus)

    @cached_property
    def words(self) -> str:
        """What a filter looks into."""
        return f"{self.name} {self.trace.format} {self.gpus}".lower()

    @property
    def age(self) -> str:
        """How long ago it was written."""
        return format_age(max(time.time() - self.trace.modified, 0.0))


def offer_of(trace: FoundTrace, folder: Path) -> TraceRow:
    """Make a row of a trace in ``folder``, called by its path there."""
    path = trace.paths[0].relative_to(folder)
    return TraceRow(trace, f"{path}/" if trace.format == RECORDING else str(path))


def recent_offer(trace: FoundTrace) -> TraceRow:
    """Make a row of what was shown before, called by its path, of several by their number."""
    if len(trace.paths) > 1:
        return TraceRow(trace, Inputs(trace.paths).title, recent=True)
    end = "/" if trace.format == RECORDING else ""
    return TraceRow(trace, f"{short_path(trace.paths[0])}{end}", recent=True)


def short_path(path: Path) -> str:
    """Write a path from the current or the home folder on, where it is in one."""
    with suppress(OSError):  # the current folder has been removed
        absolute, here = absolute_path(path), Path.cwd()
        if here != Path("/") and absolute.is_relative_to(here):
            return str(absolute.relative_to(here))
    return home_path(path)


def home_path(path: Path) -> str:
    """Write an absolute path, with ``~`` for the home folder."""
    with suppress(OSError, RuntimeError):  # as above; nobody's home is known
        path = absolute_path(path)
        home = Path.home()
        if path.is_relative_to(home) and home != Path("/"):
            return str(Path("~", path.relative_to(home)))
    return str(path)


# The order of rows


class Order(NamedTuple):
    """An order of rows; ``key`` sorts by it, the first row first."""

    title: str
    key: Callable[[TraceRow], object]


def _natural(text: str) -> list[str | int]:
    """Sort ``rank10`` behind ``rank9``: texts and numbers alternate."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", text)]


def _newest(offer: TraceRow) -> object:
    # To the second: ranks that were written together stand in their order.
    return (-int(offer.trace.modified), _natural(offer.name))


ORDERS = (
    Order("newest", _newest),
    Order("name", lambda offer: _natural(offer.name)),
    Order("largest", lambda offer: (-offer.trace.size, _natural(offer.name))),
)


def sort_offers(offers: Sequence[TraceRow], order: Order) -> list[TraceRow]:
    """Sort rows; those of what was shown before stay as they are where the newest are first."""
    if order is ORDERS[0] and all(offer.recent for offer in offers):
        return list(offers)
    return sorted(offers, key=order.key)  # type: ignore[arg-type]


def paths_of(offers: Sequence[TraceRow]) -> tuple[Path, ...]:
    """Return the files of several rows in the order of their names, each once."""
    paths = {
        key: path
        for offer in sorted(offers, key=lambda offer: _natural(offer.name))
        for key, path in zip(offer.key, offer.trace.paths, strict=True)
    }
    return tuple(paths.values())


# Rows


_WIDE = 110
"""Cells from which on the GPUs have more of them."""

_WIDEST = 150
"""Cells that a row takes at most: an eye follows it from the name to the age."""

_WANTED = (3, 2, 0, 1)
"""The columns, the one that a narrow screen keeps longest first."""


def heads(width: int) -> Line:
    """Return the titles of the columns that fit ``width``."""
    wide, width = width, min(width, _WIDEST)
    titles = "".join(column.title.rjust(column.width) for column in _columns(width))
    name = "name".ljust(width - _SIGNS - len(titles))
    return [Piece(cut_start(f"{' ' * _SIGNS}{name}{titles}", width).ljust(wide), "dim")]


def row(offer: TraceRow, selected: bool, marked: bool, palette: Palette, width: int) -> Line:
    """Return one line of ``width`` cells."""
    wide, width = width, min(width, _WIDEST)
    columns = _columns(width)
    cells = "".join(right(column.cell(offer), column.width) for column in columns)
    cells += " " * (wide - width)
    room = width - _SIGNS - sum(column.width for column in columns)
    name = fill(cut(offer.name, room), room)
    signs = f"{CURSOR if selected else ' '}{MARK if marked else ' '} "
    tone = palette.cursor if selected else "key" if marked else ""
    return [Piece(signs, tone), Piece(name, tone), Piece(cells, palette.cursor if selected else "")]


def _columns(width: int) -> list[Column[TraceRow]]:
    """Those that fit ``width`` cells, left to right."""
    columns: tuple[Column[TraceRow], ...] = (
        Column("format", 17, lambda offer: offer.trace.format),
        Column("GPUs", 24 if width >= _WIDE else 14, lambda offer: offer.gpus),
        Column("size", 9, lambda offer: format_bytes(offer.trace.size)),
        Column("age", 8, lambda offer: offer.age),
    )
    return fitting(columns, _WANTED, width - _SIGNS - _NAME)


def matches(offer: TraceRow, text: str) -> bool:
    """Tell whether all words of ``text`` stand somewhere in the row of ``offer``."""
    return all(word in offer.words for word in text.lower().split())


# In words


def about(offer: TraceRow) -> tuple[str, str]:
    """Return where a trace lies, and what is known of it."""
    trace = offer.trace
    where = short_path(trace.paths[0])
    if more := len(trace.paths) - 1:
        where += f", and {more:,} more: one view of them all"
    written = time.strftime("%Y-%m-%d %H:%M", time.localtime(trace.modified))
    known = (trace.format, offer.gpus, format_bytes(trace.size), f"written {written}")
    return where, " · ".join(filter(None, known))
