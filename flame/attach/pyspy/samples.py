"""Count stacks that py-spy has sampled by thread and stack, for any part of the time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import Generic, NamedTuple, TypeVar

import msgspec
import numpy as np

from flame.core.columns import I4, I8, distinct, sum_by
from flame.core.errors import InputError
from flame.core.lazy_regex import lazy_regex
from flame.core.live.window import LONGEST, LiveWindow
from flame.core.model.activities import NONE
from flame.core.model.frames import Frame, FrameBuilder, Kind
from flame.core.model.meta import Meta, Process, Thread
from flame.core.model.raw import Measure, RawStacks
from flame.core.model.stacks import StackBuilder
from flame.core.readers.shared.frame_text import parse_frame
from flame.core.readers.shared.stack_rows import build_row_stacks
from flame.core.readers.stacks.speedscope_schema import InputFrame as FileFrame
from flame.core.readers.stacks.speedscope_schema import SampledInput, decode_file

METRIC = "samples"
_TITLE = "CPU samples"
_THREAD_BITS = 32
_STACK = (1 << _THREAD_BITS) - 1
_STACKS = msgspec.json.Decoder(list[tuple[int, ...]])
_PROCESS = lazy_regex(r"process (\d+):\"(.*)\"\Z", re.DOTALL)
_THREAD = lazy_regex(r"thread \((0[xX][0-9a-fA-F]+|\d+)\)(?:: (.*))?\Z", re.DOTALL)
_LONGEST_NAME = 80


class _StackCounts(NamedTuple):
    """How often each thread was seen with each stack: ``key`` i8[n], sorted, ``number`` i8[n]."""

    key: I8
    number: I8


_NONE = _StackCounts(np.zeros(0, np.int64), np.zeros(0, np.int64))


def _together(parts: Sequence[_StackCounts]) -> _StackCounts:
    keys, place = distinct(np.concatenate([_NONE.key, *(counts.key for counts in parts)]))
    counts = np.concatenate([_NONE.number, *(counts.number for counts in parts)])
    return _StackCounts(keys, sum_by(place, counts, len(keys)))


class _CpuSegment(NamedTuple):
    """What one run of py-spy has brought, ns of CLOCK_MONOTONIC."""

    begin: int
    end: int
    counts: _StackCounts


_Key = TypeVar("_Key")
_Item = TypeVar("_Item")


class _Numbered(Generic[_Key, _Item]):
    """Items in the order in which their keys came; the newest item of a key counts."""

    def __init__(self) -> None:
        self._items: dict[_Key, _Item] = {}
        self._places: dict[_Key, int] = {}

    def index(self, key: _Key, item: _Item) -> int:
        self._items[key] = item
        return self._places.setdefault(key, len(self._places))

    @property
    def all(self) -> tuple[_Item, ...]:
        return tuple(self._items.values())


class CpuSamples:
    """Hold everything sampled so far; what is older than the longest window is only in the sums.

    What one run has brought is not divided: it belongs to a window if more than half of its time
    does, and to what came since the mark if it began after that.
    """

    def __init__(self) -> None:
        self._frames = FrameBuilder()
        self._stacks = StackBuilder()
        self._processes = _Numbered[int, Process]()
        self._threads = _Numbered[tuple[int, int], Thread]()
        self._segments: list[_CpuSegment] = []
        self._older = self._older_marked = _NONE
        self._mark = 0

    def add(self, data: bytes, begin: int, end: int) -> None:
        """Count the samples in the speedscope file ``data``. InputError if it is damaged."""
        file = decode_file(data)
        names = [frame.name if not frame.file else "" for frame in file.shared.frames]
        ids = np.array([self._frames.add(_frame(frame)) for frame in file.shared.frames], np.int32)
        parts = [
            self._count(profile, names, ids)
            for profile in file.profiles
            if isinstance(profile, SampledInput)
        ]
        self._segments.append(_CpuSegment(begin, end, _together(parts)))
        self._forget(end - LONGEST)

    def _count(self, profile: SampledInput, names: Sequence[str], ids: I4) -> _StackCounts:
        """The samples of one thread; the first frames of each say which process and thread it is.

        ``names`` of the file's frames that have no source file, else empty.
        """
        sampled = Counter(_stacks_of(profile, len(ids)))
        if not sampled:
            return _NONE
        first = next(iter(sampled))
        size = next((at for at, frame in enumerate(first) if not names[frame]), len(first))
        thread = self._thread_of([names[frame] for frame in first[:size]])
        paths = [stack[size:] for stack in sampled]
        lengths = np.array([len(path) for path in paths], np.int64)
        spelled = np.fromiter(chain.from_iterable(paths), np.int64, int(lengths.sum()))
        built, place = build_row_stacks(ids[spelled], lengths, _go_on)
        same = np.arange(len(self._frames), dtype=np.int32)
        stack = self._stacks.absorb(built.build(), same)[place].astype(np.int64)
        counts = np.fromiter(sampled.values(), np.int64, len(sampled))
        return _together([_StackCounts((np.int64(thread) << _THREAD_BITS) | stack, counts)])

    def _thread_of(self, names: Sequence[str]) -> int:
        """The index of the thread that is meant, -1 where no frame says it.

        Before the frame of the thread are those of its process and of that one's parents.
        """
        processes = [match for name in names if (match := _PROCESS.match(name))]
        thread = next((match for name in names if (match := _THREAD.match(name))), None)
        if not processes or not thread:
            return NONE
        pid, tid = int(processes[-1][1]), int(thread[1], 0)
        process = self._processes.index(pid, Process(pid, _short(processes[-1][2])))
        return self._threads.index((pid, tid), Thread(process, tid, thread[2] or ""))

    def mark(self, now: int) -> None:
        """Count from now on for "since the mark"."""
        self._mark, self._older_marked = now, _NONE

    def _forget(self, limit: int) -> None:
        """Keep only the sums of what ended before ``limit``."""
        while self._segments and self._segments[0].end < limit:
            first = self._segments.pop(0)
            self._older = _together([self._older, first.counts])
            if first.begin >= self._mark:
                self._older_marked = _together([self._older_marked, first.counts])

    def stacks(self, window: LiveWindow, now: int, meta: Meta, warnings: list[str]) -> RawStacks:
        """Return what was sampled in ``window``, which lasts up to ``now``."""
        counts = self._within(window, now)
        return RawStacks(
            frames=self._frames,
            stacks=self._stacks,
            stack=(counts.key & _STACK).astype(np.int32),
            measures=(Measure(METRIC, _TITLE, "count", counts.number),),
            meta=meta,
            thread=(counts.key >> _THREAD_BITS).astype(np.int32),
            processes=self._processes.all,
            threads=self._threads.all,
            warnings=warnings,
        )

    def _within(self, window: LiveWindow, now: int) -> _StackCounts:
        older, since = self._older, 0
        if window.marked:
            older = self._older_marked
            wanted = [part for part in self._segments if part.begin >= self._mark]
        else:
            since = now - window.length if window.length else 0
            older = _NONE if window.length else older
            wanted = [part for part in self._segments if (part.begin + part.end) // 2 >= since]
        return _together([older, *(part.counts for part in wanted)])


def _stacks_of(profile: SampledInput, frames: int) -> list[tuple[int, ...]]:
    """The samples, frames outermost first. InputError where a frame is none of ``frames``."""
    try:
        stacks = _STACKS.decode(profile.samples)
    except msgspec.MsgspecError as error:
        raise InputError(f"samples: {error}") from None
    used = set(chain.from_iterable(stacks))
    if used and not 0 <= min(used) <= max(used) < frames:
        raise InputError(f"samples: frame {max(used)} of {frames}")
    return stacks


def _frame(frame: FileFrame) -> Frame:
    if not frame.file:
        return parse_frame(frame.name)
    return Frame(Kind.PYTHON, frame.name, frame.file, max(int(frame.line or 0), 0))


def _short(command: str) -> str:
    """What a process is called: its command, without the folder of the program, one line of it."""
    program, _, rest = command.partition(" ")
    line = " ".join([program.rpartition("/")[2], rest]).split("\n")[0].strip()
    return line if len(line) <= _LONGEST_NAME else line[: _LONGEST_NAME - 1] + "…"


def _go_on() -> None:
    """Stacks of one run are few: nobody has to be asked whether to go on."""
