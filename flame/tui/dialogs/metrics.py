"""Ask for the metric, from a list that says what each measures and how much there is of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType

from flame.core.errors import InputError
from flame.core.model.metrics import ALL_METRICS, EXPOSED, WAIT, Metric
from flame.core.model.profile import Profile
from flame.core.units import format_value
from flame.tui.session.glossary import meaning_of
from flame.tui.toolkit.background import Done, in_background
from flame.tui.toolkit.dialog import CURSOR, Dialog
from flame.tui.toolkit.lines import Line, Piece
from flame.tui.toolkit.text import ELLIPSIS, cut, cut_start, fill, printable, width_of, wrap

_DIGITS = "1234567890"
_NOT_LIVE = "not while a recording goes on"
_NONE_WAITED = "no rank waited for another"
_NOT_OF_RANKS = "not of a summary: open a rank's trace"
_UNITS = {"ns": "time", "bytes": "bytes"}
_TITLE = 18
"""Cells of the longest title of flame's own: `memory at the peak`."""

_VALUE = 9
_MEANING = 2
"""Lines of what the metric under the cursor means."""


def listed_metrics(profile: Profile) -> tuple[Metric, ...]:
    """Return the metrics worth a row: those of ``profile``, and, with why, those it lacks."""
    if profile.resolved:
        return profile.metrics
    known = {metric.key: metric for metric in profile.metrics if metric.key != WAIT.key}
    return tuple(known.get(metric.key, _lacking(metric, profile)) for metric in ALL_METRICS)


def _lacking(metric: Metric, profile: Profile) -> Metric:
    """``metric`` with the reason why ``profile`` may have nothing of it."""
    if profile.ranks is None:
        goes_on = metric.when_asked and EXPOSED not in profile.metrics
        return replace(metric, lacking=_NOT_LIVE) if goes_on else metric
    if metric.key == WAIT.key:
        return replace(metric, lacking=profile.ranks.why_no_waits or _NONE_WAITED)
    return replace(metric, lacking=_NOT_OF_RANKS) if metric.when_asked else metric


def about_metric(metric: Metric) -> str:
    """Say what ``metric`` measures, and in what."""
    return metric.about or f"{_UNITS.get(metric.unit, 'number')}, as the file has it"


class MetricDialog(Dialog[str | None]):
    """Return the key of the chosen metric, or None if the user left without choosing.

    ``recorded`` are the keys of those that the trace may have something of; ``shown`` is on screen.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,space", "choose", "show the metric", key_display="enter"),
        Binding("1", "pick(0)", "show a metric at once", key_display="1 … 9 0"),
        *(Binding(digit, f"pick({place})") for place, digit in enumerate(_DIGITS[1:], 1)),
        Binding("escape,q,m", "leave", "leave without a change", key_display="esc q m"),
    ]

    def __init__(self, profile: Profile, recorded: Sequence[str], shown: str) -> None:
        super().__init__()
        self._profile, self._shown = profile, shown
        self._metrics = listed_metrics(profile)
        self._totals: dict[str, int] = {
            one.key: 0 for one in self._metrics if one.key not in recorded
        }
        keys = [metric.key for metric in self._metrics]
        self.cursor = keys.index(shown) if shown in keys else 0

    def on_mount(self) -> None:
        """Add up what is there: what may take longer, such as the host's part, beside the rest."""
        missing = [metric for metric in self._metrics if metric.key not in self._totals]
        quick = [one for one in missing if one.table == "gpu" and not one.when_asked]
        for metrics in (quick, *([one] for one in missing if one not in quick)):
            in_background(partial(self._sums, metrics), 0, self.post_message)

    def _sums(self, metrics: Sequence[Metric]) -> dict[str, int]:
        sums = ((one, self._profile.totals_by_group(one)[0]) for one in metrics)
        return {one.key: int(values.sum()) for one, values in sums}

    @on(Done)
    def _summed(self, message: Done) -> None:
        try:
            found = message.result()
        except InputError as error:  # it was opened from the cache, and has changed or gone
            self.note = str(error)
        else:
            assert isinstance(found, dict)
            self._totals.update(found)
        self.draw()

    # What is shown

    def head(self, width: int) -> list[Line]:
        title = "What is measured, and how much of it the trace has"
        return [[Piece(cut_start(title, width), "strong")], []]

    def rows(self, width: int) -> list[Line]:
        return [self._row(place, metric, width) for place, metric in enumerate(self._metrics)]

    def tail(self, width: int) -> list[Line]:
        """Say in full what the metric under the cursor measures."""
        known = "" if self._profile.resolved else self._metrics[self.cursor].title
        meaning = wrap(meaning_of(known), width, _MEANING)
        padding = [""] * (_MEANING - len(meaning))
        return [[], *([Piece(part, "dim")] for part in (*meaning, *padding))]

    def hint(self) -> str:
        last = _DIGITS[min(len(self._metrics), len(_DIGITS)) - 1]
        return f"1…{last} or enter choose · m esc leave"

    def _row(self, place: int, metric: Metric, width: int) -> Line:
        selected, total = place == self.cursor, self._totals.get(metric.key)
        digit = _DIGITS[place] if place < len(_DIGITS) else " "
        title = fill(cut(printable(metric.title), _TITLE), _TITLE)
        value = ELLIPSIS if total is None else format_value(total, metric.unit) if total else "–"
        tone = "accent" if metric.key == self._shown else "dim" if total == 0 else ""
        line: Line = [
            Piece(f"{CURSOR if selected else ' '} {digit} ", "strong"),
            Piece(title, tone),
            Piece(f" {value}".rjust(_VALUE), "dim" if total == 0 else ""),
        ]
        about = metric.lacking if total == 0 else about_metric(metric)
        room = width - sum(width_of(piece.text) for piece in line)
        quiet = "" if selected and total != 0 else "dim"
        return [*line, Piece(cut_start(f"  {about}", room), quiet)]

    # Choosing

    def clicked(self) -> None:
        self.action_choose()

    def action_pick(self, place: int) -> None:
        """Choose the metric of a digit."""
        if place < len(self._metrics):
            self.cursor = place
            self.action_choose()

    def action_choose(self) -> None:
        """Show the metric under the cursor, if there is anything of it."""
        metric = self._metrics[self.cursor]
        if self._totals.get(metric.key) == 0:
            self.note = f"{metric.title}: {metric.lacking}"
            self.draw()
        else:
            self.dismiss(metric.key)
