"""Draw the rows of the list of steps: number, name, duration, GPU time, how busy the GPUs were."""

from __future__ import annotations

import numpy as np

from flame.core.analysis.iterations import IterationTable, iteration_name
from flame.core.model.profile import Profile
from flame.core.units import format_ns, format_percent
from flame.tui.toolkit.dialog import CURSOR
from flame.tui.toolkit.lines import Line, Piece
from flame.tui.toolkit.text import cut_start, fill, printable
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
        texts.append(f"{'duration':>{_TIME}} {'':{self._bar_width(width) + _RATIO}}")
        texts.append(f"{'GPU time':>{_TIME}}{'busy':>{_BUSY}}" if self._on_gpu else "")
        return [Piece(cut_start("".join(texts), width), "dim")]

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
            Piece(f" {fill(cut_start(self._name(place), room), room)}", "dim"),
            Piece(f"{format_ns(duration):>{_TIME}} ", tone),
            Piece(bar(duration, self._longest)[: self._bar_width(width)], tone or "dim"),
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
        """What the range says besides its name, `generation, 8 gen reqs`, or else its name."""
        found, row = self._table.iterations, int(self._table.row[place])
        if found.source == "profiler":
            return ""
        detail = self._profile.frames[int(found.frame[row])].get("detail") or ""
        return printable(detail.removeprefix("phase=") or iteration_name(self._profile, row))

    def _bar_width(self, width: int) -> int:
        """Cells for bars, which narrow lists have not."""
        return BAR_CELLS if width >= self._taken + BAR_CELLS + self._least_name else 0

    def _name_width(self, width: int) -> int:
        """Cells for names, of which steps of the profiler have none."""
        if not self._least_name:
            return 0
        return max(width - self._taken - self._bar_width(width), self._least_name)

    @property
    def _least_name(self) -> int:
        return _LEAST_NAME if self._table.iterations.source == "ranges" else 0

    @property
    def _taken(self) -> int:
        """Cells of all that is neither name nor bar."""
        return 7 + self._number + _TIME + 1 + _RATIO + self._on_gpu * (_TIME + _BUSY)
