"""Share the state of reading a trace: frames, threads, and the times of events."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal

import msgspec
import numpy as np

from flame.core.columns import I4, I8
from flame.core.lazy_regex import lazy_regex
from flame.core.model.activities import NONE
from flame.core.model.frames import FrameBuilder
from flame.core.model.stacks import StackBuilder
from flame.core.operators.formulas import OPERATORS, WITH_VALUES
from flame.core.options import LoadOptions
from flame.core.readers.kineto.events import (
    LIMIT,
    NO_DETAILS,
    EventArgs,
    Number,
    TraceEvent,
    to_nanoseconds,
)
from flame.core.readers.kineto.vocabulary import RangeFrameIds, RangeKey, detail_text, raw_texts
from flame.core.units import format_counted, one_of

AnyEvent = TraceEvent[Number | float] | TraceEvent[Decimal]
Place = tuple[int | str, int | str]
"""Process and thread of an event, or device and stream."""

NO_ARGS = EventArgs()

_KEPT_AS_PAIRS = 256
"""Places that are found by the pair itself, which is fast: a file can choose numbers so that the
hashes of all its pairs collide, but those of texts have a secret in Python."""


def place_key(place: Place) -> str:
    """Spell ``place`` as a text that no other has."""
    return f"{place[0]!r} {place[1]!r}"


class ThreadNumbers(dict[Place, int]):
    """Dense numbers of threads; ``places`` are the threads by number.

    The same thread may be `5555` in one event and `"5555"` in another.
    """

    def __init__(self) -> None:
        super().__init__()
        self.places: list[Place] = []
        self._numbers: dict[str, int] = {}

    def __missing__(self, place: Place) -> int:
        plain = normalize_place(place)
        key = place_key(plain)
        number = self._numbers.setdefault(key, len(self.places))
        if number == len(self.places):
            self.places.append(plain)
        if len(self) < _KEPT_AS_PAIRS:
            self[place] = number
        return number


def normalize_place(place: Place) -> Place:
    """Return ``place`` with numbers for texts that spell a number."""
    process, thread = place
    return _normalize(process), _normalize(thread)


def _normalize(value: int | str) -> int | str:
    return int(value) if isinstance(value, str) and _NUMBER.fullmatch(value) else value


_NUMBER = lazy_regex(r"-?[0-9]{1,18}", re.ASCII)


class KinetoContext:
    """State of reading one trace; ``details`` are of the piece that is being read."""

    def __init__(self, options: LoadOptions) -> None:
        self.details = NO_DETAILS
        self.options = options
        self.frames = FrameBuilder()
        self.stacks = StackBuilder()
        self.threads = ThreadNumbers()
        self.process_names: dict[str, str] = {}
        self.thread_names: dict[str, str] = {}
        self.ranges = RangeFrameIds(self.frames, clean=options.nvtx_names == "clean")
        self.first_time = LIMIT
        self.last_time = -LIMIT
        self.untimed: Counter[str] = Counter()

    def select_timed(self, what: str, events: Sequence[AnyEvent]) -> tuple[list[AnyEvent], I8, I8]:
        """Select the ``events`` that have a time, and return their starts and ends.

        An event without a duration ends where it starts.
        """
        whole = [event for event in events if event.ph == "X"]
        durations = [event.dur for event in whole]
        start, started = to_nanoseconds([event.ts for event in whole])
        length, lasting = to_nanoseconds(durations)
        if not lasting.all():
            lasting |= np.array([duration is None for duration in durations])
        end = start + length
        good = started & lasting & (length >= 0) & (end <= LIMIT)
        if not good.all():
            self.untimed[what] += int((~good).sum())
            whole = [event for event, known in zip(whole, good.tolist(), strict=True) if known]
            start, end = start[good], end[good]
        self.first_time = min(self.first_time, int(start.min(initial=LIMIT)))
        self.last_time = max(self.last_time, int(end.max(initial=-LIMIT)))
        return whole, start, end

    def find_timed(self, events: Sequence[AnyEvent]) -> tuple[list[AnyEvent], I8, I8]:
        """Find the ``events`` that have a time, as `select_timed`, and pass over the others.

        The trace is as long as it is without them.
        """
        start, started = to_nanoseconds([event.ts for event in events])
        length, _ = to_nanoseconds([event.dur for event in events])  # an instant has none
        end = start + length
        good = started & (length >= 0) & (end <= LIMIT)
        rows = np.flatnonzero(good).tolist()
        return [events[row] for row in rows], start[rows], end[rows]

    def thread_numbers(self, events: Sequence[AnyEvent]) -> I4:
        """Return the thread numbers of ``events``."""
        # No list of pairs: `zip` hands out the same tuple again and again.
        places = zip([event.pid for event in events], [event.tid for event in events], strict=True)
        return np.fromiter(map(self.threads.__getitem__, places), np.int32, len(events))

    def learn_names(self, events: Sequence[AnyEvent]) -> None:
        """Add the names of processes and threads in ``events``."""
        for event in events:
            name, place = (event.args or NO_ARGS).name, normalize_place((event.pid, event.tid))
            if name and event.name == "process_name":
                self.process_names[repr(place[0])] = name
            elif name and event.name == "thread_name":
                self.thread_names[place_key(place)] = name

    def range_frames(self, events: Sequence[AnyEvent], args: Sequence[EventArgs]) -> I4:
        """Return the frames of operators and annotations, which have these ``args``."""
        names = [event.name for event in events]
        dims = raw_texts([event_args.dims for event_args in args])
        empty = (b"", b"", b"")
        keys: list[RangeKey] = [
            (name, text, empty, detail)
            for name, text, detail in zip(
                names, dims, self._detail_texts(events, args), strict=True
            )
        ]
        for at in [at for at, name in enumerate(names) if name in OPERATORS]:
            known = args[at]
            values = known.values if names[at] in WITH_VALUES else msgspec.UNSET
            inputs = raw_texts([known.types, known.strides, values])
            keys[at] = (*keys[at][:2], (inputs[0], inputs[1], inputs[2]), keys[at][3])
        return self.ranges.of(keys)

    def _detail_texts(self, events: Sequence[AnyEvent], args: Sequence[EventArgs]) -> list[str]:
        """What is known of each operator besides, empty for most."""
        texts = [""] * len(args)
        rows = [at for at, one in enumerate(args) if one.collective or one.backend]
        for row, details in zip(rows, self.details.of([events[at] for at in rows]), strict=True):
            texts[row] = detail_text(args[row], details)
        return texts

    def time_warnings(self) -> list[str]:
        """Return a warning for each kind of event without usable times."""
        return [
            f"{format_counted(count, f'{one_of(what)} has', f'{what} have')} "
            "no time that makes sense: left out"
            for what, count in self.untimed.items()
        ]


def fill_absent(values: Sequence[int | None], absent: int) -> I8:
    """Return whole numbers, ``absent`` where there is none."""
    with suppress(TypeError):  # it is for None, and mostly there is none
        return np.array(values, np.int64)
    if values.count(None) == len(values):
        return np.full(len(values), absent, np.int64)
    return np.array([absent if value is None else value for value in values], np.int64)


def fit_31_bits(values: Sequence[int | str | None]) -> I4:
    """Return numbers that fit 31 bits, -1 for others; `stream 7` is 7."""
    with suppress(OverflowError):
        if set(map(type, values)) == {int}:
            numbers = np.array(values, np.int64)
            return np.where((numbers >= 0) & (numbers < 1 << 31), numbers, NONE).astype(np.int32)
    known = map(_digits, values)
    fitting = [value if 0 <= value < 1 << 31 else NONE for value in known]
    return np.array(fitting, np.int32)


def _digits(value: int | str | None) -> int:
    if isinstance(value, str):
        last = value.rpartition(" ")[2][:12]
        return int(last) if last.isdecimal() else NONE
    return NONE if value is None else value
