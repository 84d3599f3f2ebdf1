"""Ask which levels the stacks have, in which order, and whether layers are one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from rich.style import Style
from textual.binding import Binding, BindingType

from flame.core.analysis.wording import NVTX, Terms
from flame.core.projection.levels import LEVELS, SAMPLE_LEVELS
from flame.tui.session.wording import NO_SAMPLES, level_about
from flame.tui.shell.commands import LEVEL_KEYS
from flame.tui.toolkit.colours import LEVEL_KINDS
from flame.tui.toolkit.dialog import CURSOR, Dialog
from flame.tui.toolkit.lines import Line, Lines, Piece, line_width, palette_of
from flame.tui.toolkit.text import cut_start

_NEED_ONE = "switch at least one level on"


class LevelsChoice(NamedTuple):
    """The levels, root first, and whether ``model.layers.18`` is shown as ``model.layers.*``."""

    levels: tuple[str, ...]
    fold: bool = False


PRESETS: tuple[tuple[str, LevelsChoice], ...] = (
    ("by layer", LevelsChoice(("nvtx", "kernel"), fold=True)),
    ("by kernel", LevelsChoice(("kernel", "nvtx"))),
    ("by Python function", LevelsChoice(("python", "kernel"))),
    ("by module", LevelsChoice(("python", "kernel"), fold=True)),
    ("Python alone", LevelsChoice(("python",), fold=True)),
    ("by shape", LevelsChoice(("shapes", "kernel"))),
    ("by stream", LevelsChoice(("device", "stream", "kernel"))),
    ("by stall reason", LevelsChoice(("stall", "nvtx", "kernel"))),
    ("to the instruction", LevelsChoice(("kernel", "sass", "stall"))),
    ("by category", LevelsChoice(("category", "kernel"))),
)
USUAL = "usual"


def why_absent(*levels: str) -> str:
    """Say why there is no frame of any of ``levels``, and what would bring it."""
    if set(levels) & {*SAMPLE_LEVELS}:
        return NO_SAMPLES
    return f"this trace has no {' and no '.join(levels)} frames"


def _not_here(level: str) -> str:
    return NO_SAMPLES if level in SAMPLE_LEVELS else "not in this trace"


def toggled(levels: tuple[str, ...], level: str) -> tuple[str, ...]:
    """Remove ``level`` from ``levels``, or add it before the first that naturally follows it."""
    if level in levels:
        return tuple(other for other in levels if other != level)
    later = LEVELS[LEVELS.index(level) :]
    place = next((place for place, other in enumerate(levels) if other in later), len(levels))
    return (*levels[:place], level, *levels[place:])


def offered(levels: tuple[str, ...], recorded: Iterable[str]) -> tuple[str, ...]:
    """List the levels worth a row beside ``levels``, which are shown.

    Of stacks that a file has resolved only what is there; of traces all that one could record.
    """
    recorded = frozenset(recorded)
    rare = {"stack", "rank"} - recorded
    fits = recorded if "stack" in recorded else {*LEVELS} - rare
    return tuple(level for level in LEVELS if level in fits or level in levels)


@dataclass
class Choice:
    """The ``offered`` levels in the order of the dialog, and those that are on."""

    levels: tuple[str, ...]
    offered: tuple[str, ...] = LEVELS
    order: list[str] = field(init=False)
    on: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self.set(self.levels)

    def set(self, levels: tuple[str, ...]) -> None:
        """Switch on exactly ``levels``, in this order; the others follow."""
        self.order = [*levels, *(level for level in self.offered if level not in levels)]
        self.on = set(levels)

    @property
    def result(self) -> tuple[str, ...]:
        """The levels that are on, in order."""
        return tuple(level for level in self.order if level in self.on)

    def toggle(self, level: str) -> None:
        """Switch ``level`` on or off."""
        self.on ^= {level}

    def shift(self, place: int, step: int) -> int:
        """Move the level at ``place`` up (-1) or down (+1) in the order; its place then."""
        to = min(max(place + step, 0), len(self.order) - 1)
        self.order.insert(to, self.order.pop(place))
        return to


class LevelsDialog(Dialog[LevelsChoice | None]):
    """Return the chosen levels, or None if the user left without choosing."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "flip"),
        Binding("shift+up,K", "shift(-1)"),
        Binding("shift+down,J", "shift(1)"),
        Binding("f", "fold"),
        Binding("p", "next_preset(1)"),
        Binding("P", "next_preset(-1)"),
        Binding("u", "reset"),
        Binding("enter", "apply"),
        Binding("escape,q,L", "leave"),
        *(Binding(key, f"switch('{level}')") for level, key in LEVEL_KEYS.items()),
    ]

    def __init__(
        self,
        choice: LevelsChoice,
        usual: tuple[str, ...],
        recorded: Iterable[str],
        terms: Terms = NVTX,
    ) -> None:
        super().__init__()
        self._recorded = frozenset(recorded)
        self._choice = Choice(choice.levels, offered((*choice.levels, *usual), self._recorded))
        self._fold = choice.fold
        self._terms = terms
        presets = () if "stack" in self._recorded else PRESETS
        self._presets = (*presets, (USUAL, LevelsChoice(usual)))

    # What is shown

    def head(self, width: int) -> list[Line]:
        return [[Piece("Levels, from the root down", "strong")], []]

    def rows(self, width: int) -> list[Line]:
        return [*(self._level(place, width) for place in range(self._below)), self._folding(width)]

    def tail(self, width: int) -> list[Line]:
        return [[], *self._preset_lines(width)]

    def hint(self) -> str:
        return "space on/off · shift+↑ ↓ order · p preset · enter apply · esc leave"

    def _level(self, place: int, width: int) -> Line:
        level = self._choice.order[place]
        known = level in self._recorded
        about = level_about(level, self._terms) if known else _not_here(level)
        on = level in self._choice.on
        tone = palette_of(self.query_one(Lines)).kind(LEVEL_KINDS[level]) if on else "dim"
        name = Piece(f" {level} ".ljust(10), tone)
        return self._switch(place, LEVEL_KEYS[level], on, name, about, width)

    def _folding(self, width: int) -> Line:
        name = Piece(" fold ".ljust(10), "strong" if self._fold else "dim")
        about = "layers.18 is layers.*, Linear_7 is Linear_*"
        return self._switch(self._below, "f", self._fold, name, about, width)

    def _switch(self, place: int, key: str, on: bool, name: Piece, about: str, width: int) -> Line:
        selected = place == self.cursor
        return [
            Piece(f"{CURSOR if selected else ' '} {key} ", "strong"),
            Piece("[x] " if on else "[ ] ", "strong" if on else "dim"),
            name,
            Piece(cut_start(f"  {about}", width - 18), "" if selected else "dim"),
        ]

    def _preset_lines(self, width: int) -> list[Line]:
        """The presets side by side, on as many lines as they need."""
        lines: list[Line] = [[Piece("  p "), Piece("presets ", "dim")]]
        for place, (name, _) in enumerate(self._presets):
            piece = Piece(f" {name} ", self._preset_tone(place), f"screen.preset({place})")
            if line_width([*lines[-1], piece]) > width:
                lines.append([Piece(" " * 12)])
            lines[-1].append(piece)
        return lines

    def _preset_tone(self, place: int) -> str | Style:
        if self._presets[place][1] == self._chosen:
            return "accent"
        return "dim" if self._missing(place) else ""

    def _missing(self, place: int) -> list[str]:
        """Levels of a preset that the trace lacks; the usual levels may lack some."""
        name, choice = self._presets[place]
        if name == USUAL:
            return []
        return [level for level in choice.levels if level not in self._recorded]

    @property
    def _chosen(self) -> LevelsChoice:
        return LevelsChoice(self._choice.result, self._fold)

    # Choosing

    @property
    def _on_level(self) -> bool:
        """Whether a level is selected, and not the switch below them."""
        return self.cursor < self._below

    @property
    def _below(self) -> int:
        """The row below the levels, with the switch that folds layers."""
        return len(self._choice.order)

    def _changed(self, note: str = "") -> None:
        self.note = note if self._choice.on else _NEED_ONE
        self.draw()

    def clicked(self) -> None:
        self.action_flip()

    def action_shift(self, step: int) -> None:
        if self._on_level:
            self.cursor = self._choice.shift(self.cursor, step)
        self._changed()

    def action_flip(self) -> None:
        if self._on_level:
            self._choice.toggle(self._choice.order[self.cursor])
            self._changed()
        else:
            self.action_fold()

    def action_switch(self, level: str) -> None:
        if level in self._choice.order:
            self.cursor = self._choice.order.index(level)
            self.action_flip()
        else:
            self._changed(why_absent(level))

    def action_fold(self) -> None:
        self._fold = not self._fold
        self._changed()

    def action_preset(self, place: int) -> None:
        (name, choice), missing = self._presets[place], self._missing(place)
        if missing:
            self._changed(f"{name}: {why_absent(*missing)}")
            return
        self._choice.set(choice.levels)
        self._fold = choice.fold
        self._changed()

    def action_next_preset(self, step: int) -> None:
        """Choose the next preset whose levels are all in the trace."""
        possible = [place for place in range(len(self._presets)) if not self._missing(place)]
        shown = [place for place in possible if self._presets[place][1] == self._chosen]
        before = possible.index(shown[0]) if shown else min(-step, 0)
        self.action_preset(possible[(before + step) % len(possible)])

    def action_reset(self) -> None:
        self.action_preset(len(self._presets) - 1)

    def action_apply(self) -> None:
        if self._choice.on:
            self.dismiss(self._chosen)
