"""Put into words at which moment memory is shown."""

from __future__ import annotations

from collections.abc import Sequence

from flame.core.model.allocator.memory_events import BEFORE_FRAME, NATIVE_FRAME
from flame.core.model.allocator.recorded import MemoryMoment, MemoryOfDevice
from flame.core.model.profile import Profile
from flame.core.projection.chosen_metric import chosen_metric
from flame.core.projection.filters import At, Moment, Ranks
from flame.core.projection.project import shown_moments
from flame.core.projection.selection import Selection
from flame.core.shown_text import printable
from flame.core.units import format_bytes, format_count, format_ns

_NAMES: dict[Moment, str] = {
    "peak": "at the peak",
    "oom": "at the last failed request",
    "end": "at the end",
}

_MOST_FILES = 3

FRAME_MEANINGS = {
    BEFORE_FRAME.name: "It was there before the recording began, and nothing tells by whom: mostly "
    "weights, and states of optimizers.",
    NATIVE_FRAME.name: "Allocated by a thread that runs no Python, such as autograd's: "
    "--levels python,native shows its C++ frames.",
}
"""What to know of frames that stand for what was not recorded, by their names."""


def asked_words(at: At) -> str:
    """Say which moment ``at`` asks for: ``at the peak``, ``at 50.5 ms``."""
    return f"at {format_ns(at.moment)}" if isinstance(at.moment, int) else _NAMES[at.moment]


def moment_words(profile: Profile, selection: Selection) -> str:
    """Say which moment of memory is shown: ``at the peak, event 3,486, 50.5 ms``.

    It is empty where no memory is shown, or over a time.
    """
    moments = shown_moments(profile, selection)
    if not moments or profile.memory is None:
        return ""
    asked = [asked_words(one) for one in selection.where if isinstance(one, At)]
    metric = chosen_metric(profile, selection.metric).key
    usual = _NAMES["peak"] if metric == "peak" else _NAMES["end"]
    words = _words(profile, moments, asked[0] if asked else usual)
    return words + _none_failed(profile, selection, moments)


def _words(profile: Profile, moments: Sequence[MemoryMoment], asked: str) -> str:
    """What is ``asked``, unless it is the peak of all, or that of a failed request."""
    assert profile.memory is not None
    if len(moments) > 1:
        return f"{asked}, each GPU at its own" if asked == _NAMES["peak"] else asked
    [moment] = moments
    device = next(each for each in profile.memory.devices if each.device == moment.device)
    word = _word(device, moment) or asked
    gpu = f", {_gpu(profile, moment.device)}" if len(profile.devices) > 1 else ""
    return f"{word}, {place_words(profile, device, moment.position, moment.time)}{gpu}"


def _gpu(profile: Profile, place: int) -> str:
    """Call a GPU by its number, and of several files by its file."""
    device = profile.devices[place]
    file = f"{printable(profile.sources[device.source].label)} " if len(profile.sources) > 1 else ""
    return f"{file}GPU{device.id}"


def _none_failed(profile: Profile, selection: Selection, moments: Sequence[MemoryMoment]) -> str:
    """Name the files in which no request failed, which therefore are not shown."""
    if At("oom") not in selection.where or profile.memory is None:
        return ""
    chosen = [one for one in selection.where if isinstance(one, Ranks)]
    files = dict.fromkeys(profile.devices[one.device].source for one in profile.memory.devices)
    shown = {profile.devices[one.device].source for one in moments}
    others = [
        printable(profile.sources[file].label)
        for file in files
        if file not in shown and all(one.fits(profile.sources[file]) for one in chosen)
    ]
    if not others:
        return ""
    more = len(others) - _MOST_FILES
    end = f" and {format_count(more)} more" if more > 0 else ""
    return f"; none failed in {', '.join(others[:_MOST_FILES])}{end}"


def _word(device: MemoryOfDevice, moment: MemoryMoment) -> str:
    """What is known of ``moment``, whoever has asked for it."""
    if moment.position == device.peak_position:
        return _NAMES["peak"]
    failed = [one for one in device.out_of_memory if one.position == moment.position]
    return f"when {format_bytes(failed[0].size)} could not be had" if failed else ""


def place_words(profile: Profile, device: MemoryOfDevice, position: int, time: int | None) -> str:
    """Say where in the history of ``device`` an event is: ``event 3,486, 50.5 ms``."""
    if not device.events:
        return "there is no history"
    if position < 0:
        return "before the first event"
    event = f"event {format_count(position + 1)}"
    return event if time is None else f"{event}, {format_ns(time - profile.begin)}"
