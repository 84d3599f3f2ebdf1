"""Draw the rows of the list of steps: number, name, duration, GPU time, how busy the GPUs were."""

from __future__ import annotations

import numpy as np

from flame.core.analysis.iterations import IterationTable, iteration_name
from flame.core.model.profile import Profile
from flame.core.units import format_ns, format_percent
from flame.tui.toolkit.dialog import CURSOR
from flame.tui.toolkit.lines import Line, Piece
from flame.tui.toolkit.text import cut, fill, printable
from flame.tui.views.top_columns import BAR_CELLS
from flame.tui.views.top_table import bar, times

_RATIO = 8
_TIME = 10
_BUSY = 9
_LEAST_NAME = 6


class StepRows:
    """Draw rows of ``table``, each by itself."""

    def __init__(self, profile: Profile, table: IterationTable) -> None:
        self._profile, self._table = profile, table
        self._slow = table.slow
        self._longest = int(table.duration.max(initial=1))
        self._on_gpu = bool(table.window.any())
        self._number = max(len(str(int(np.max(table.number, initial=0)))), len("step"))

    def head(self, width: int) -> Line:
        """Return the titles of the columns."""
        texts = [f"{'':6}{'step':>{self._number}} {'':{self._name_width(width)}}"]
        texts.append(f"{'duration':>{_TIME}} {'':{BAR_CELLS}}{'':{_RATIO}}")
        texts.append(f"{'GPU time':>{_TIME}}{'busy':>{_BUSY}}" if self._on_gpu else "")
        return [Piece(cut("".join(texts), width), "dim")]

    def row(self, place: int, selected: bool, marked: bool, width: int) -> Line:
        """Return the row of the step at ``place``."""
        table, slow = self._table, bool(self._slow[place])
        duration, tone = int(table.duration[place]), "warning" if slow else ""
        room = self._name_width(width)
        number = f"{table.number[place]:>{self._number}}"
        return [
            Piece(f"{CURSOR if selected else ' '} ", "strong"),
            Piece("[x] " if marked else "[ ] ", "strong" if marked else "dim"),
            Piece(number, "strong" if selected else ""),
            Piece(f" {fill(cut(self._name(place), room), room)}", "dim"),
            Piece(f"{format_ns(duration):>{_TIME}} ", tone),
            Piece(bar(duration, self._longest), tone or "dim"),
            Piece(f"{times(duration, table.median) if slow else '':>{_RATIO}}", tone),
            *self._gpu(place),
        ]

    def _gpu(self, place: int) -> Line:
        if not self._on_gpu:
            return []
        table, window = self._table, int(self._table.window[place])
        busy = format_percent(int(table.busy[place]), window) if window else ""
        return [Piece(f"{format_ns(int(table.gpu_time[place])):>{_TIME}}{busy:>{_BUSY}}")]

    def _name(self, place: int) -> str:
        """What the step is called, if that says more than its number."""
        if self._table.iterations.source == "profiler":
            return ""
        return printable(iteration_name(self._profile, int(self._table.row[place])))

    def _name_width(self, width: int) -> int:
        """Cells for names, of which steps of the profiler have none."""
        taken = 7 + self._number + _TIME + 1 + BAR_CELLS + _RATIO + self._on_gpu * (_TIME + _BUSY)
        named = self._table.iterations.source == "ranges"
        return max(width - taken, _LEAST_NAME) if named else 0
