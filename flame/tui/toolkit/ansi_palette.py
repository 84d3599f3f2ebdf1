"""Style frames, bars and marks on terminals of sixteen colours, or of none.

Only the names of the colours are known: dark ones take white ink, all others black.
"""

from __future__ import annotations

from functools import lru_cache

from rich.style import Style

from flame.core.frame import Frame, Kind
from flame.core.model.calls import CallClass, IdleCause, StateKind
from flame.core.names.kernel_category import (
    ATTENTION,
    CATEGORIES,
    COMMUNICATION,
    COPY,
    ELEMENTWISE,
    INDEXING,
    MATRIX,
    NORMALISATION,
    OTHER,
)
from flame.tui.toolkit.colours import (
    BLACK,
    WHITE,
    StallClass,
    category_hue,
    look_of,
    shade_of,
)
from flame.tui.toolkit.palette import Palette

_WHITE_INK = ("blue", "magenta", "red", "bright_black")
_NAMED: dict[Kind, tuple[str, ...]] = {
    Kind.PYTHON: ("blue", "bright_blue"),
    Kind.NATIVE: ("cyan", "bright_cyan"),
    Kind.LAUNCH: ("magenta", "bright_magenta"),
    Kind.NVTX: ("green", "bright_green"),
    Kind.SHAPES: ("bright_green", "green"),
    Kind.KERNEL: ("yellow", "bright_yellow"),
    Kind.MEMCPY: ("white",),
    Kind.MEMSET: ("white",),
    Kind.GRAPH: ("red", "bright_red"),
    Kind.SASS: ("bright_red", "red"),
    Kind.STALL: ("bright_magenta", "magenta"),
    Kind.WAIT: ("bright_black", "red"),
    Kind.FRAME: ("yellow", "bright_yellow", "bright_red", "red"),
}
"""The colours of a kind, the first also for its name; grey where there is none."""
_NAMED_STALLS = {
    StallClass.MEMORY: "blue",
    StallClass.COMPUTE: "red",
    StallClass.SYNC: "magenta",
    StallClass.ISSUE: "yellow",
    StallClass.OTHER: "bright_black",
}
_NAMED_CATEGORIES = {
    MATRIX: "yellow",
    ATTENTION: "blue",
    NORMALISATION: "green",
    ELEMENTWISE: "bright_yellow",
    INDEXING: "cyan",
    COMMUNICATION: "red",
    COPY: "magenta",
    OTHER: "bright_black",
}

_NAMED_CALLS = {
    CallClass.LAUNCH: "magenta",
    CallClass.SYNC: "red",
    CallClass.COPY: "white",
    CallClass.ALLOC: "cyan",
    CallClass.OTHER: "bright_black",
}

_NAMED_STATES = {
    StateKind.COLLECTION: "magenta",
    StateKind.GIL_HELD: "green",
    StateKind.GIL_WAITING: "red",
    StateKind.LOADING: "cyan",
    StateKind.PROFILER: "bright_black",
}
_NAMED_CAUSES = {
    IdleCause.HOST_CODE: "bright_blue",
    IdleCause.SYNC: "red",
    IdleCause.ALLOC: "cyan",
    IdleCause.COPY_CALL: "white",
    IdleCause.LAUNCH_CALL: "magenta",
    IdleCause.IN_LAUNCH: "magenta",
}
"""Dim where there is none."""

_NAMED_CHANGES = {
    (True, False): "yellow",
    (True, True): "bright_yellow",
    (False, False): "blue",
    (False, True): "cyan",
}
"""By whether it is more than it was, and whether one side has nothing of it."""

_GREY = ("bright_black",)


class SixteenColours(Palette):
    """Style everything in nothing but the terminal's own sixteen colours."""

    def __init__(self, by_category: bool = False) -> None:
        super().__init__(BLACK, WHITE, by_category=by_category)

    def frame(self, frame: Frame, name: str, faded: bool = False) -> Style:
        kind, hue = look_of(frame, name, self.by_category)
        if kind == Kind.STALL:
            return _named(_NAMED_STALLS[StallClass(hue)], faded)
        if kind == Kind.CATEGORY:
            return _named(_NAMED_CATEGORIES[CATEGORIES[hue]], faded)
        names = _NAMED.get(kind, _GREY)
        if kind == Kind.WAIT:
            return _named(names[hue], faded)
        return _named(names[shade_of(name) % len(names)], faded)

    def change(self, strength: float, one_sided: bool, faded: bool = False) -> Style:
        if not round(strength, 1):
            return _named("white", faded)
        return _named(_NAMED_CHANGES[strength > 0, one_sided], faded)

    def category(self, category: str) -> Style:
        return _named(_NAMED_CATEGORIES[CATEGORIES[category_hue(category)]], False)

    def kind(self, kind: Kind) -> Style:
        return _named(_NAMED.get(kind, _GREY)[0], False)

    def run(self, cover: float, matching: bool, faded: bool) -> Style:
        if matching:
            return Style(color="black", bgcolor="bright_yellow")
        return Style(dim=True)

    def ink(self, kind: Kind) -> Style:
        return Style(color=_NAMED[kind][0]) if kind in _NAMED else Style(dim=True)

    def category_ink(self, category: str) -> Style:
        return Style(color=_NAMED_CATEGORIES[category])

    def call(self, call_class: CallClass, name: str, faded: bool = False) -> Style:
        return _named(_NAMED_CALLS[call_class], faded)

    def call_ink(self, call_class: CallClass) -> Style:
        return Style(color=_NAMED_CALLS[call_class])

    def state(self, state_kind: StateKind, name: str, faded: bool = False) -> Style:
        return _named(_NAMED_STATES[state_kind], faded)

    def state_ink(self, state_kind: StateKind) -> Style:
        return Style(color=_NAMED_STATES[state_kind])

    def cause_ink(self, cause: IdleCause) -> Style:
        return Style(color=_NAMED_CAUSES[cause]) if cause in _NAMED_CAUSES else Style(dim=True)

    def stall(self, stall_class: StallClass) -> Style:
        return Style(color=_NAMED_STALLS[stall_class])

    @property
    def match_ink(self) -> Style:
        return Style(color="red", bold=True)

    @property
    def cursor(self) -> Style:
        return Style(reverse=True, bold=True, underline=True)

    @property
    def match(self) -> Style:
        return Style(color="black", bgcolor="bright_yellow", bold=True, underline=True)

    @property
    def tint(self) -> Style:
        return Style(bgcolor="bright_black")

    @property
    def quiet(self) -> Style:
        return Style(dim=True)


@lru_cache(64)
def _named(paper: str, faded: bool) -> Style:
    if faded:  # Grey, and dimmed, is no colour at all on some terminals.
        return Style(color=None if paper in _GREY else paper, dim=True, underline=True)
    return Style(color="bright_white" if paper in _WHITE_INK else "black", bgcolor=paper)


class NoColours(SixteenColours):
    """Style without any colour: frames are underlined, matches bold, what is selected reversed."""

    def frame(self, frame: Frame, name: str, faded: bool = False) -> Style:
        return Style(underline=True, dim=faded or None)

    def kind(self, kind: Kind) -> Style:
        return Style(underline=True)

    def category(self, category: str) -> Style:
        return Style(underline=True)

    def run(self, cover: float, matching: bool, faded: bool) -> Style:
        return Style(bold=True) if matching else Style(dim=True)

    def ink(self, kind: Kind) -> Style:
        return Style()

    def category_ink(self, category: str) -> Style:
        return Style()

    def change(self, strength: float, one_sided: bool, faded: bool = False) -> Style:
        return self.frame(Frame(Kind.FRAME, ""), "", faded)

    def call(self, call_class: CallClass, name: str, faded: bool = False) -> Style:
        return self.frame(Frame(Kind.LAUNCH, name), name, faded)

    def call_ink(self, call_class: CallClass) -> Style:
        return Style()

    def state(self, state_kind: StateKind, name: str, faded: bool = False) -> Style:
        return self.frame(Frame(Kind.THREAD, name), name, faded)

    def state_ink(self, state_kind: StateKind) -> Style:
        return Style()

    def cause_ink(self, cause: IdleCause) -> Style:
        return Style()

    def stall(self, stall_class: StallClass) -> Style:
        return Style()

    @property
    def match_ink(self) -> Style:
        return Style(bold=True)

    @property
    def cursor(self) -> Style:
        return Style(reverse=True, bold=True)

    @property
    def match(self) -> Style:
        return Style(bold=True, underline=True)

    @property
    def tint(self) -> Style:
        return Style(underline=True)
