"""Ask for an arrangement or single levels, and what else makes stacks what they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import ClassVar, NamedTuple

from textual.binding import Binding, BindingType

from flame.core.analysis.words.formats import NVTX, Terms, level_word, reworded
from flame.core.lazy_dataclass import dataclass
from flame.core.projection.levels import LEVELS, SAMPLE_LEVELS, WAIT_LEVEL
from flame.core.projection.named_levels import (
    ARRANGEMENT_KEYS,
    NAMED_LEVELS,
    NO_MODULES,
    NamedLevels,
)
from flame.tui.session.wording import NO_SAMPLES, level_about
from flame.tui.toolkit.colours import LEVEL_KINDS
from flame.tui.toolkit.dialog import CURSOR, Dialog
from flame.tui.toolkit.lines import Line, Lines, Piece, palette_of
from flame.tui.toolkit.text import cut_start

_NEED_ONE = "switch at least one level on"
_NO_LINKS = "no links from backward to forward operators in this trace"
_FOLD = "layers.18 is layers.*, Linear_7 is Linear_*"
_FORWARD = "backward work below its forward operator"
_SWITCHES = ("fold", "forward")


class LevelsChoice(NamedTuple):
    """The levels, root first; ``fold`` shows ``model.layers.18`` as ``model.layers.*``.

    ``forward``: backward passes stand below their forward operators.
    """

    levels: tuple[str, ...]
    fold: bool = False
    forward: bool = True


def why_absent(terms: Terms, *levels: str) -> str:
    """Say why there is no frame of any of ``levels``, and what would bring it."""
    if set(levels) & {*SAMPLE_LEVELS}:
        return NO_SAMPLES
    if levels == ("module",):
        return NO_MODULES
    words = (level_word(level, terms) for level in levels)
    return f"this trace has no {' and no '.join(words)} frames"


def _not_here(level: str) -> str:
    return NO_SAMPLES if level in SAMPLE_LEVELS else "not in this trace"


def toggled(levels: tuple[str, ...], level: str) -> tuple[str, ...]:
    """Remove ``level`` from ``levels``, or add it before the first that naturally follows it."""
    if level in levels:
        return tuple(other for other in levels if other != level)
    later = LEVELS[LEVELS.index(level) :]
    place = next((place for place, other in enumerate(levels) if other in later), len(levels))
    return (*levels[:place], level, *levels[place:])


def offered(
    levels: tuple[str, ...], recorded: Iterable[str], whole: bool = False
) -> tuple[str, ...]:
    """List the levels worth a row beside ``levels``, which are shown.

    Of files of stacks, and where what is ``recorded`` is the ``whole``, only what is there; of
    traces all that one could record.
    """
    recorded = frozenset(recorded)
    rare = {"stack", "rank", "cause", "pool", WAIT_LEVEL} - recorded
    fits = recorded if whole or "stack" in recorded else {*LEVELS} - rare
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
    """Return the chosen levels, or None if the user left without choosing.

    The rows are the arrangements, the levels, then the switches. ``linked`` is whether the trace
    has links to forward operators, ``whole`` whether it can have no other levels than these.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "apply", "show what is on; on an arrangement that one"),
        Binding("space", "flip", "take the arrangement; switch the level on or off"),
        Binding("shift+up,K", "shift(-1)", "move the level up, down", key_display="shift+↑ ↓  K J"),
        Binding("shift+down,J", "shift(1)"),
        *(Binding(key, f"arrange({place})") for place, key in enumerate(ARRANGEMENT_KEYS[1:], 1)),
        Binding("1", "arrange(0)", "show an arrangement at once", key_display="1 … 9 0 p"),
        Binding("f", "switch(0)", "turn the switch below the levels", key_display="f b"),
        Binding("b,B", "switch(1)"),
        Binding("u", "choose(0)", "switch on the usual levels"),
        Binding("escape,q,L", "leave", "leave without a change", key_display="esc q"),
    ]

    def __init__(
        self,
        choice: LevelsChoice,
        usual: tuple[str, ...],
        recorded: Iterable[str],
        terms: Terms = NVTX,
        linked: bool = False,
        whole: bool = False,
    ) -> None:
        super().__init__()
        self._recorded = frozenset(recorded)
        listed = offered((*choice.levels, *usual), self._recorded, whole)
        self._choice = Choice(choice.levels, listed)
        self._usual, self._terms, self._linked = usual, terms, linked
        self._on = dict(zip(_SWITCHES, (choice.fold, choice.forward), strict=True))
        self._named = NAMED_LEVELS[:1] if whole or "stack" in self._recorded else NAMED_LEVELS
        self.cursor = next(filter(self._is_chosen, range(len(self._named))), len(self._named))

    # What is shown

    def head(self, width: int) -> list[Line]:
        return [[Piece("Arrangements, and levels from the root down", "strong")], []]

    def rows(self, width: int) -> list[Line]:
        return [
            *(self._arrangement(place, width) for place in range(self._first_level)),
            *(self._level(place, width) for place in range(self._first_level, self._first_switch)),
            self._folding(width),
            self._linking(width),
        ]

    def hint(self) -> str:
        keys = "1…0 p" if len(self._named) > 1 else "1"
        return f"enter apply · {keys} at once · space on/off · shift+↑ ↓ order"

    def terms(self) -> list[tuple[str, str]]:
        return [
            ("arrangement", "levels in an order that answers a question, under a name"),
            ("level", "frames of one sort; those that are on make the stacks, root first"),
            ("fold", _FOLD),
            ("forward", _FORWARD),
        ]

    def _arrangement(self, place: int, width: int) -> Line:
        named, missing = self._named[place], self._missing(place)
        tone = "accent" if self._is_chosen(place) else "dim" if missing else ""
        name = Piece(f" {named.name} ".ljust(15), tone)
        usual = "the usual levels" if len(self._named) == 1 else reworded(named.about, self._terms)
        about = self._why_absent(named) if missing else usual
        return self._row(place, ARRANGEMENT_KEYS[place], name, about, width)

    def _level(self, place: int, width: int) -> Line:
        level = self._choice.order[place - self._first_level]
        known = level in self._recorded
        about = level_about(level, self._terms) if known else _not_here(level)
        on = level in self._choice.on
        tone = palette_of(self.query_one(Lines)).kind(LEVEL_KINDS[level]) if on else "dim"
        word = f" {level_word(level, self._terms)} ".ljust(11)
        return self._box(place, " ", on, Piece(word, tone), about, width)

    def _folding(self, width: int) -> Line:
        return self._switch(0, "f", self._on["fold"], _FOLD, width)

    def _linking(self, width: int) -> Line:
        about = _FORWARD if self._linked else _NO_LINKS
        return self._switch(1, "b", self._on["forward"] and self._linked, about, width)

    def _switch(self, switch: int, key: str, on: bool, about: str, width: int) -> Line:
        name = Piece(f" {_SWITCHES[switch]} ".ljust(11), "strong" if on else "dim")
        return self._box(self._first_switch + switch, key, on, name, about, width)

    def _box(self, place: int, key: str, on: bool, name: Piece, about: str, width: int) -> Line:
        line = self._row(place, key, name, about, width - 4)
        return [line[0], Piece("[x] " if on else "[ ] ", "strong" if on else "dim"), *line[1:]]

    def _row(self, place: int, key: str, name: Piece, about: str, width: int) -> Line:
        selected = place == self.cursor
        room = width - 4 - len(name.text)
        return [
            Piece(f"{CURSOR if selected else ' '} {key} ", "strong"),
            name,
            Piece(cut_start(f" {about}", room), "" if selected else "dim"),
        ]

    def _why_absent(self, named: NamedLevels) -> str:
        return why_absent(self._terms, *named.needs)

    def _missing(self, place: int) -> bool:
        """Whether the trace has nothing of what an arrangement needs."""
        needs = self._named[place].needs
        return bool(needs) and self._recorded.isdisjoint(needs)

    def _is_chosen(self, place: int) -> bool:
        named = self._named[place]
        return (self._levels_of(named), named.fold) == (self._choice.result, self._on["fold"])

    def _levels_of(self, named: NamedLevels) -> tuple[str, ...]:
        return self._usual if named.levels is None else named.levels

    # Choosing

    @property
    def _first_level(self) -> int:
        """The row of the first level."""
        return len(self._named)

    @property
    def _first_switch(self) -> int:
        """The row below the levels."""
        return self._first_level + len(self._choice.order)

    def _changed(self, note: str = "") -> None:
        self.note = note if self._choice.on else _NEED_ONE
        self.draw()

    def clicked(self) -> None:
        self.action_flip()

    def action_shift(self, step: int) -> None:
        if self._first_level <= self.cursor < self._first_switch:
            place = self._choice.shift(self.cursor - self._first_level, step)
            self.cursor = self._first_level + place
        self._changed()

    def action_flip(self) -> None:
        if self.cursor < self._first_level:
            self.action_choose(self.cursor)
        elif self.cursor < self._first_switch:
            self._choice.toggle(self._choice.order[self.cursor - self._first_level])
            self._changed()
        else:
            self.action_switch(self.cursor - self._first_switch)

    def action_switch(self, switch: int) -> None:
        """Turn a switch below the levels."""
        self.cursor, name = self._first_switch + switch, _SWITCHES[switch]
        if name == "forward" and not self._linked:
            self._changed(_NO_LINKS)
            return
        self._on[name] = not self._on[name]
        self._changed()

    def action_choose(self, place: int) -> bool:
        """Switch on the levels of an arrangement; False where the trace has none of them."""
        named = self._named[place]
        if self._missing(place):
            self._changed(f"{named.name}: {self._why_absent(named)}")
            return False
        self.cursor = place
        self._choice.set(self._levels_of(named))
        self._on["fold"] = named.fold
        self._changed()
        return True

    def action_arrange(self, place: int) -> None:
        """Show an arrangement at once."""
        if place < len(self._named) and self.action_choose(place):
            self.action_apply()

    def action_apply(self) -> None:
        """Show what is on; on the row of an arrangement that one."""
        if self.cursor < self._first_level and not self.action_choose(self.cursor):
            return
        if self._choice.on:
            self.dismiss(LevelsChoice(self._choice.result, **self._on))
