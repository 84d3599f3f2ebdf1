"""An independent reading of PyTorch profiler traces: `json` and plain loops, no columns.

What a test compares flame with. It shares no code with flame but the cleaning of range names,
which has tests of its own.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from flame.core.names import clean_range

Event = dict[str, Any]
Thread = tuple[str, str]

_GPU = {"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"}
_CALLS = {"cuda_runtime", "cuda_driver", "runtime"}
_RANGES = {"cpu_op", "operator", "user_annotation"}
_FUNCTION = re.compile(r"(.*)\((\d+)\): (.*)", re.DOTALL)
NO_LAUNCH = "[no launch recorded]"


def events_of(path: Path) -> list[Event]:
    """All complete events, as they stand there, times as exact decimals."""
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    found = json.loads(text, parse_float=Decimal)
    events = found["traceEvents"] if isinstance(found, dict) else found
    return [event for event in events if event.get("ph") == "X"]


def category(event: Event) -> str:
    """In lower case: it was capitalised until 2022."""
    return str(event.get("cat", "")).lower()


def begin(event: Event) -> int:
    """Nanoseconds."""
    ns: int = round(event["ts"] * 1000)
    return ns


def length(event: Event) -> int:
    """Nanoseconds."""
    ns: int = round(event["dur"] * 1000)
    return ns


def thread(event: Event) -> Thread:
    """Numbers are written as text in some events and as numbers in others."""
    return str(event["pid"]), str(event["tid"])


def gpu_events(events: Iterable[Event]) -> list[Event]:
    """Kernels, copies and sets."""
    return [event for event in events if category(event) in _GPU]


def kernel_totals(events: Iterable[Event]) -> dict[str, int]:
    """Time by the full name of what ran on the GPU, ns."""
    totals: defaultdict[str, int] = defaultdict(int)
    for event in gpu_events(events):
        totals[shown(event)] += length(event)
    return dict(totals)


def shown(event: Event) -> str:
    """Kernels by their full name, copies by their direction, sets as such."""
    name = str(event["name"])
    if category(event).endswith("memset"):
        return "memset"
    if category(event).endswith("memcpy"):
        return f"memcpy {name.split()[1]}"
    return name


@dataclass(frozen=True)
class Launched:
    """One GPU activity and where it came from, outermost frames first."""

    python: tuple[str, ...]
    launch: str
    ranges: tuple[str, ...]
    kernel: str
    ns: int

    @property
    def stack(self) -> tuple[str, ...]:
        """In the order in which flame shows it."""
        return (*self.python, self.launch, *self.ranges, self.kernel)


def launched(events: list[Event]) -> list[Launched]:
    """Every GPU activity with the Python functions and ranges open where it was launched."""
    calls = {event["args"]["correlation"]: event for event in events if category(event) in _CALLS}
    gpu = gpu_events(events)
    of = [calls.get(event["args"].get("correlation")) for event in gpu]
    places = {id(call): call for call in of if call is not None}.values()
    python = dict(_open_at([e for e in events if category(e) == "python_function"], places))
    ranges = dict(_open_at([e for e in events if category(e) in _RANGES], places))
    lanes = [e for e in events if category(e) == "gpu_user_annotation"]
    alone = [event for event, call in zip(gpu, of, strict=True) if call is None]
    placed = dict(_open_at(lanes, alone))
    return [
        _launched(event, call, python, ranges, placed) for event, call in zip(gpu, of, strict=True)
    ]


def _launched(
    event: Event,
    call: Event | None,
    python: dict[int, list[Event]],
    ranges: dict[int, list[Event]],
    placed: dict[int, list[Event]],
) -> Launched:
    if call is None:
        above = tuple(map(_range_name, placed[id(event)]))
        return Launched((), NO_LAUNCH, above, shown(event), length(event))
    functions, within = python[id(call)], ranges[id(call)]
    frames = tuple(map(_function_name, functions)) or _call_stack(within)
    return Launched(
        frames, call["name"], tuple(map(_range_name, within)), shown(event), length(event)
    )


def _open_at(spans: list[Event], places: Iterable[Event]) -> Iterator[tuple[int, list[Event]]]:
    """(id of a place, spans of its thread open when it began, outermost first)."""
    by_thread: defaultdict[Thread, list[Event]] = defaultdict(list)
    for span in spans:
        by_thread[thread(span)].append(span)
    wanted: defaultdict[Thread, list[Event]] = defaultdict(list)
    for place in places:
        wanted[thread(place)].append(place)
    for on, asked in wanted.items():
        yield from _swept(by_thread[on], asked)


def _swept(spans: list[Event], places: list[Event]) -> Iterator[tuple[int, list[Event]]]:
    order = sorted(
        range(len(spans)),
        key=lambda at: (begin(spans[at]), -length(spans[at]), _number(spans[at]), at),
    )
    opened: list[Event] = []
    upcoming = iter([spans[at] for at in order])
    following = next(upcoming, None)
    for place in sorted(places, key=begin):
        now = begin(place)
        while following is not None and begin(following) <= now:
            opened.append(following)
            following = next(upcoming, None)
        opened = [span for span in opened if begin(span) + length(span) >= now]
        yield id(place), list(opened)


def _number(span: Event) -> int:
    return int(span.get("args", {}).get("Python id") or 0)


def _function_name(event: Event) -> str:
    name = str(event["name"])
    found = _FUNCTION.fullmatch(name)
    return found[3] if found else re.sub(r" at 0x[0-9a-f]+", "", name)


def _range_name(event: Event) -> str:
    return clean_range(str(event["name"])).name


def _call_stack(ranges: list[Event]) -> tuple[str, ...]:
    """The Python stack written down with the innermost range that has one."""
    for event in reversed(ranges):
        text = event.get("args", {}).get("Call stack")
        if text:
            frames = [_FUNCTION.fullmatch(frame) for frame in text.split(";")]
            return tuple(found[3] for found in reversed(frames) if found)
    return ()
