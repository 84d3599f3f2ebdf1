"""Align several traces on one clock: the Unix time, if they know it and were recorded together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from flame.core.lazy_dataclass import dataclass
from flame.core.model.profile import Profile

_TIME_LIMIT = 1 << 61
_MOST_NAMED = 4


@dataclass(frozen=True)
class CommonClock:
    """The shift of each trace's times, ns, and the first and last time there is then.

    ``origin`` is the Unix time at which the common clock is 0, None if it stands for no such time.
    """

    shifts: tuple[int, ...]
    begin: int
    end: int
    origin: int | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class _TraceSpan:
    """When one trace was recorded, on its own clock, which is 0 at ``origin``.

    Those with equal ``clock`` are of one recording.
    """

    place: int
    label: str
    begin: int
    end: int
    origin: int | None
    clock: str

    def shift_by(self, shift: int) -> _TraceSpan:
        return replace(self, begin=self.begin + shift, end=self.end + shift)


def align_clocks(profiles: Sequence[Profile], labels: Sequence[str]) -> CommonClock:
    """Return the clock of the earliest of ``profiles``, or one on which each begins at 0, and why.

    Profiles with no times at all have no say. Those of one recording stay as far apart as they are.
    """
    spans = [
        _TraceSpan(
            place, label, profile.begin, profile.end, profile.meta.origin, profile.meta.clock
        )
        for place, (profile, label) in enumerate(zip(profiles, labels, strict=True))
        if profile.timed and (profile.begin or profile.end)
    ]
    size = len(profiles)
    if len(spans) < 2:
        return _build_clock(size, spans, [0], spans[0].origin if spans else None)
    origins = [span.origin for span in spans if span.origin is not None]
    if len(origins) < len(spans):
        unknown = [span.label for span in spans if span.origin is None]
        return _start_each_at_zero(
            size, spans, f"no time of day is known of {_list_labels(unknown)}"
        )
    shifts = [origin - min(origins) for origin in origins]
    moved = [span.shift_by(shift) for span, shift in zip(spans, shifts, strict=True)]
    apart = _explain_apart([_join_spans(recording) for recording in _group_by_recording(moved)])
    if apart:
        return _start_each_at_zero(size, spans, apart)
    return _build_clock(size, spans, shifts, min(origins))


def _build_clock(
    size: int, spans: Sequence[_TraceSpan], shifts: Sequence[int], origin: int | None
) -> CommonClock:
    of_all = [0] * size
    for span, shift in zip(spans, shifts, strict=False):
        of_all[span.place] = shift
    moved = [span.shift_by(of_all[span.place]) for span in spans]
    begin = min((span.begin for span in moved), default=0)
    return CommonClock(tuple(of_all), begin, max((span.end for span in moved), default=0), origin)


def _start_each_at_zero(size: int, spans: Sequence[_TraceSpan], reason: str) -> CommonClock:
    shifts: dict[int, int] = {}
    for recording in _group_by_recording(spans):
        first = min(span.origin or 0 for span in recording)
        moved = [span.shift_by((span.origin or 0) - first) for span in recording]
        begin = min(span.begin for span in moved)
        shifts |= {
            new.place: new.begin - begin - old.begin
            for old, new in zip(recording, moved, strict=True)
        }
    clock = _build_clock(size, spans, [shifts[span.place] for span in spans], None)
    what = "trace" if len(_group_by_recording(spans)) == len(spans) else "recording"
    return replace(clock, warnings=(f"times are not aligned, each {what} begins at 0: {reason}",))


def _group_by_recording(spans: Sequence[_TraceSpan]) -> list[list[_TraceSpan]]:
    """Group the traces of each recording."""
    recordings: dict[str | int, list[_TraceSpan]] = {}
    for span in spans:
        recordings.setdefault(span.clock or span.place, []).append(span)
    return list(recordings.values())


def _join_spans(recording: Sequence[_TraceSpan]) -> _TraceSpan:
    """Span from the beginning of the first trace of a recording to the end of the last."""
    begin, end = min(span.begin for span in recording), max(span.end for span in recording)
    label = _list_labels([span.label for span in recording])
    return replace(recording[0], label=label, begin=begin, end=end)


def _explain_apart(spans: Sequence[_TraceSpan]) -> str:
    """Say why these were not recorded together; empty if they may have been."""
    ordered = sorted(spans, key=lambda span: span.begin)
    reach = ordered[0].end
    for number, span in enumerate(ordered):
        if span.begin > reach:
            earlier, later = ([part.label for part in ordered[:number]], span.label)
            return f"{_list_labels(earlier)} had ended when {later} began"
        reach = max(reach, span.end)
    if max(abs(ordered[0].begin), abs(reach)) >= _TIME_LIMIT:
        return "their times are centuries away"
    return ""


def _list_labels(labels: Sequence[str]) -> str:
    """List the first of ``labels``, and how many more there are."""
    more = len(labels) - _MOST_NAMED
    return ", ".join(labels[:_MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")
