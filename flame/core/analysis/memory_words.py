"""Put into words at which moment memory is shown."""

from __future__ import annotations

from collections.abc import Sequence

from flame.core.model.allocator.recorded import MemoryMoment, MemoryOfDevice
from flame.core.model.profile import Profile
from flame.core.projection.chosen_metric import chosen_metric
from flame.core.projection.filters import At, Moment
from flame.core.projection.project import shown_moments
from flame.core.projection.selection import Selection
from flame.core.units import format_bytes, format_count, format_ns

_NAMES: dict[Moment, str] = {
    "peak": "at the peak",
    "oom": "at the last failed request",
    "end": "at the end",
}


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
    return _words(profile, moments, asked[0] if asked else usual)


def _words(profile: Profile, moments: Sequence[MemoryMoment], asked: str) -> str:
    """What is ``asked``, unless it is the peak of all, or that of a failed request."""
    assert profile.memory is not None
    if len(moments) > 1:
        return f"{asked}, each GPU at its own" if asked == _NAMES["peak"] else asked
    [moment] = moments
    device = next(each for each in profile.memory.devices if each.device == moment.device)
    word = _word(device, moment) or asked
    gpu = f", GPU{profile.devices[moment.device].id}" if len(profile.devices) > 1 else ""
    return f"{word}, {place_words(profile, moment.position, moment.time)}{gpu}"


def _word(device: MemoryOfDevice, moment: MemoryMoment) -> str:
    """What is known of ``moment``, whoever has asked for it."""
    if moment.position == device.peak_position:
        return _NAMES["peak"]
    failed = [one for one in device.out_of_memory if one.position == moment.position]
    return f"when {format_bytes(failed[0].size)} could not be had" if failed else ""


def place_words(profile: Profile, position: int, time: int | None) -> str:
    """Say where in the history an event is: ``event 3,486, 50.5 ms``."""
    if position < 0:
        return "before the first event"
    event = f"event {format_count(position + 1)}"
    return event if time is None else f"{event}, {format_ns(time - profile.begin)}"
