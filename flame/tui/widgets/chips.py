"""Put filters into words, and into chips with a cross to take each away."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, log10

from flame.core.analysis.words.formats import NVTX, terms_of
from flame.core.analysis.words.memory import asked_words
from flame.core.model.grouping import device_name, process_name, thread_name
from flame.core.model.profile import Profile
from flame.core.projection.filter_options import format_span, kind_of
from flame.core.projection.filters import (
    At,
    Devices,
    Filter,
    HideFrames,
    HideFramework,
    HideStacks,
    Include,
    MinShare,
    NvtxRange,
    Phases,
    Pids,
    Ranks,
    ShowFrom,
    ShowStacks,
    Steps,
    Streams,
    Tids,
    Time,
)
from flame.core.units import format_count
from flame.tui.session.query import SelectedName, exact_name, folded_name
from flame.tui.shell.actions import Action, QuickFilter
from flame.tui.toolkit.lines import Line, Piece
from flame.tui.toolkit.text import cut, printable, width_of

_QUICK: dict[QuickFilter, Callable[[str], Filter]] = {
    QuickFilter.ONLY: ShowStacks,
    QuickFilter.WITHOUT: HideStacks,
    QuickFilter.FROM: ShowFrom,
    QuickFilter.HIDE: HideFrames,
}

_SCALES = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))
_CROSS = " × "
_GAP = 1
_LEAST = 10
_FOLDED = "numbers folded"
_MOST_SPANS = 4
_RECALLED = "as last time"


def quick_filter(kind: QuickFilter, selected: SelectedName) -> Filter:
    """Make a filter of ``kind`` for the ``selected`` frame, all of its name."""
    return _QUICK[kind](selected.pattern)


def describe(filter_: Filter, profile: Profile | None = None) -> str:
    """Put ``filter_`` into words, on one printable line; ``profile`` names a single device."""
    return f"{_word(filter_, profile)} {value_of(filter_, profile)}".lstrip()


def _word(filter_: Filter, profile: Profile | None) -> str:
    if isinstance(filter_, Steps) and value_of(filter_).isdigit():
        return "step"
    if isinstance(filter_, Ranks) and filter_.names[0].startswith(kind_of(Ranks).word):
        return ""
    if isinstance(filter_, NvtxRange) and profile and terms_of(profile) is not NVTX:
        return "in"
    if isinstance(filter_, At):
        return ""
    return kind_of(type(filter_)).word


def value_of(filter_: Filter, profile: Profile | None = None) -> str:
    """Return what ``filter_`` asks for, without the word for its kind."""
    if isinstance(filter_, Time):
        return _window(filter_) + (_cut_off(filter_, profile) if profile else "")
    if isinstance(filter_, At):
        return asked_words(filter_)
    if isinstance(filter_, Steps):
        return _steps(filter_)
    if isinstance(filter_, Ranks | Phases):
        return printable(", ".join(filter_.names))
    if isinstance(filter_, NvtxRange):
        return printable(
            filter_.name if filter_.domain is None else f"{filter_.name} in {filter_.domain}"
        )
    if isinstance(filter_, Include):
        return ", ".join(kind.title for kind in filter_.kinds)
    if isinstance(filter_, MinShare):
        return f"{filter_.percent:g} %"
    if isinstance(filter_, Devices | Streams | Pids | Tids):
        return printable(_names(filter_, profile) or ", ".join(map(str, filter_.ids)))
    if isinstance(filter_, HideFramework):
        return "frames of frameworks"
    name = exact_name(filter_.pattern) or folded_name(filter_.pattern)
    return printable(filter_.pattern if name is None else name) or "[empty]"


def _steps(steps: Steps) -> str:
    """The first few of the steps, and how many stretches there are if these are not all."""
    spans = [format_span(*span, "–") for span in steps.spans]
    shown = ", ".join(spans[:_MOST_SPANS])
    more = len(spans) - _MOST_SPANS
    return f"{shown} and {format_count(more)} more" if more > 0 else shown


def _names(filter_: Devices | Streams | Pids | Tids, profile: Profile | None) -> str:
    """What the only device, process or thread of ``filter_`` is called in ``profile``."""
    if profile is None or len(filter_.ids) != 1:
        return ""
    if isinstance(filter_, Devices):
        named = [(device.id, device_name(device)) for device in profile.devices]
    elif isinstance(filter_, Pids):
        named = [(process.pid, process_name(process)) for process in profile.processes]
    elif isinstance(filter_, Tids):
        named = [(thread.tid, thread_name(thread)) for thread in profile.threads]
    else:
        named = []
    names = {name for number, name in named if number == filter_.ids[0]}
    return names.pop() if len(names) == 1 else ""


def _window(window: Time) -> str:
    """A window with as many digits as it takes to tell its two ends apart."""
    begin, end = window.begin, window.end
    if begin is None or end is None:
        given = begin if end is None else end
        scale, unit = _scale(given or 0)
        word = "from" if end is None else "until"
        return f"{word} {(given or 0) / scale:.9g} {unit}"
    scale, unit = _scale(max(abs(begin), abs(end)))
    digits = max(ceil(log10(scale / max(end - begin, 1))) + 1, 0)
    first, last = (_stripped(f"{time / scale:.{digits}f}") for time in (begin, end))
    return f"{first}–{last} {unit}"


def _cut_off(window: Time, profile: Profile) -> str:
    """That rows of a part of the window are not kept any more, where they are not."""
    begin = profile.begin if window.begin is None else max(window.begin, profile.begin)
    if begin >= profile.rows_begin:
        return ""
    scale, unit = _scale(profile.rows_begin)
    return f", kept since {profile.rows_begin / scale:.4g} {unit}"


def _scale(time: int) -> tuple[int, str]:
    return next((scale for scale in _SCALES if abs(time) >= scale[0]), _SCALES[-1])


def _stripped(number: str) -> str:
    return number.rstrip("0").rstrip(".") if "." in number else number


def fold_chip() -> Line:
    """Return the chip that says that numbers in names are folded; a click takes that back."""
    unfold = Action.NUMBERS.click()
    return [*_chip(_FOLDED, unfold, unfold), Piece("# ", "key", unfold)]


def recalled_chip() -> Line:
    """Return the chip that says that settings are remembered; a click forgets them."""
    return _chip(_RECALLED, Action.FORGET.click(), Action.FORGET.click())


def chips(where: Sequence[Filter], profile: Profile, width: int, moment: str = "") -> Line:
    """Return one chip for every filter, the long ones cut; those that do not fit are counted.

    ``moment`` says which one is shown of memory, where one is asked for.
    A click on the cross runs ``screen.unfilter(i)``, on the words ``screen.filters``.
    """
    told = [moment if isinstance(filter_, At) else "" for filter_ in where]
    texts = [text or describe(filter_, profile) for text, filter_ in zip(told, where, strict=True)]
    more = f" +{len(texts)} more"
    shown, room = texts, width
    while len(shown) > 1 and _needed(shown) > room:
        shown, room = shown[:-1], width - len(more)
    line: Line = []
    for place, (text, fits) in enumerate(zip(shown, _fair(shown, room), strict=True)):
        line += _chip(cut(text, fits), Action.UNFILTER.click(place), Action.FILTERS.click())
    if len(shown) < len(texts):
        line.append(Piece(f" +{len(texts) - len(shown)} more", "key", Action.FILTERS.click()))
    return line


def _chip(text: str, remove: str, change: str) -> Line:
    return [
        Piece(_CROSS, "key", remove),
        Piece(text, "strong", change),
        Piece(" " * _GAP),
    ]


def _needed(texts: Sequence[str]) -> int:
    """Cells that chips of ``texts`` take at least."""
    return sum(min(width_of(text), _LEAST) + len(_CROSS) + _GAP for text in texts)


def _fair(texts: Sequence[str], width: int) -> list[int]:
    """Cells for each text: what it needs, but the longest get no more than the others leave."""
    wanted = sorted(map(width_of, texts))
    room = width - len(texts) * (len(_CROSS) + _GAP)
    most = room
    for place, want in enumerate(wanted):
        most = room // (len(wanted) - place)
        if want > most:
            break
        room -= want
    return [min(width_of(text), max(most, 1)) for text in texts]
