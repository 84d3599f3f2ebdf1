"""Filters on activities and on stacks, as a tagged union, and how option texts spell them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from flame.core.columns import Bool, Column
from flame.core.errors import UsageError
from flame.core.model.activities import Activities
from flame.core.model.frames import Frame, Kind
from flame.core.model.meta import Source
from flame.core.model.profile import Profile
from flame.core.regex import expression

_SOME = 4


@dataclass(frozen=True)
class Time:
    """Activities that start in [begin, end), ns on the trace's clock; None is unbounded."""

    begin: int | None = None
    end: int | None = None

    def rows(self, profile: Profile, table: Activities) -> Bool:
        """Rows of ``table`` that start in the window."""
        keep = np.ones(len(table), bool)
        if self.begin is not None:
            keep &= table.start >= self.begin
        if self.end is not None:
            keep &= table.start < self.end
        return keep


@dataclass(frozen=True)
class Step:
    """Activities launched in the profiler's steps ``first`` to ``last``, both included.

    What has no recorded launch counts by its own start. Steps are those of the same process.
    """

    first: int
    last: int

    def rows(self, profile: Profile, table: Activities) -> Bool:
        """Rows of ``table`` that belong to these steps; none where the trace has no such step."""
        keep = np.zeros(len(table), bool)
        steps = profile.steps
        if steps is None:
            return keep
        time = np.where(table.launched, table.launch_start, table.start)
        for row in np.flatnonzero((steps.number >= self.first) & (steps.number <= self.last)):
            inside = (time >= steps.start[row]) & (time < steps.end[row])
            keep |= inside & (table.process == steps.process[row])
        return keep


@dataclass(frozen=True)
class NvtxRange:
    """Activities below an NVTX range whose name (and domain) match a glob."""

    name: str
    domain: str | None = None

    def groups(self, profile: Profile, table: Activities) -> Bool:
        """Groups with such a range anywhere on their path."""
        found = table.stacks.contain_any(self.ranges(profile))
        return found[table.groups.nvtx] | found[table.groups.stack]

    def ranges(self, profile: Profile) -> Bool:
        """Which of the profile's frames are such ranges, bool[frames]."""
        name = _glob(self.name).fullmatch
        domain = _glob(self.domain).fullmatch if self.domain is not None else None

        def fits(frame: Frame) -> bool:
            if frame.kind != Kind.NVTX or not name(frame.name):
                return False
            return domain is None or bool(domain(frame.get("domain")))

        return _marked(profile, fits)


@dataclass(frozen=True)
class Ranks:
    """Activities of these files of several, by rank number or by label; both may be globs."""

    names: tuple[str, ...]

    def groups(self, profile: Profile, table: Activities) -> Bool:
        """Groups of one of the files."""
        fits = [self._fits(source) for source in profile.sources]
        return _pick([fits[process.source] for process in profile.processes], table.groups.process)

    def known(self, profile: Profile) -> bool:
        """Whether ``profile`` is of any such file."""
        return any(map(self._fits, profile.sources))

    def _fits(self, source: Source) -> bool:
        called = (source.label, str(source.meta.rank))
        return any(_glob(name).fullmatch(text) for name in self.names for text in called)


@dataclass(frozen=True)
class Devices:
    """Activities on these GPUs, by their number."""

    ids: tuple[int, ...]

    def groups(self, profile: Profile, table: Activities) -> Bool:
        """Groups on one of the devices."""
        fits = [device.id in self.ids for device in profile.devices]
        return _pick(fits, table.groups.device)


@dataclass(frozen=True)
class Streams:
    """Activities on these CUDA streams, by stream id."""

    ids: tuple[int, ...]

    def groups(self, profile: Profile, table: Activities) -> Bool:
        """Groups on one of the streams."""
        return np.isin(table.groups.stream, self.ids)


@dataclass(frozen=True)
class Pids:
    """Activities of these processes, by operating-system pid."""

    ids: tuple[int, ...]

    def groups(self, profile: Profile, table: Activities) -> Bool:
        """Groups of one of the processes."""
        return _pick(
            [process.pid in self.ids for process in profile.processes], table.groups.process
        )


@dataclass(frozen=True)
class Tids:
    """Activities launched by these threads, by operating-system tid."""

    ids: tuple[int, ...]

    def groups(self, profile: Profile, table: Activities) -> Bool:
        """Groups of one of the threads."""
        return _pick([thread.tid in self.ids for thread in profile.threads], table.groups.thread)


@dataclass(frozen=True)
class _Expression:
    """A filter on names by a regular expression, which may match anywhere in them."""

    option: ClassVar[str]
    pattern: str

    def compile(self) -> re.Pattern[str]:
        """The expression; UsageError naming the option where it is wrong."""
        return compile_regex(self.pattern, self.option)


@dataclass(frozen=True)
class Kernel(_Expression):
    """Kernels whose base or demangled name matches a regular expression anywhere."""

    option = "--kernel"

    def groups(self, profile: Profile, table: Activities) -> Bool:
        """Groups that are such kernels."""
        search = self.compile().search

        def fits(frame: Frame) -> bool:
            names = (frame.name, frame.get("demangled"))
            return frame.kind == Kind.KERNEL and any(map(search, filter(None, names)))

        marked = _marked(profile, fits)
        in_stack = table.stacks.contain_any(marked)[table.groups.stack]
        return _pick(marked, table.groups.frame) | in_stack


@dataclass(frozen=True)
class Include:
    """Activities of these kinds only."""

    kinds: tuple[Kind, ...]

    def groups(self, profile: Profile, table: Activities) -> Bool:
        """Groups of one of the kinds."""
        return np.isin(table.groups.kind, self.kinds)


@dataclass(frozen=True)
class ShowStacks(_Expression):
    """Only stacks with a matching frame."""

    option = "--show-stacks"


@dataclass(frozen=True)
class HideStacks(_Expression):
    """No stacks with a matching frame."""

    option = "--hide-stacks"


@dataclass(frozen=True)
class ShowFrom(_Expression):
    """Only stacks with a matching frame, without what stands above the first one."""

    option = "--show-from"


@dataclass(frozen=True)
class HideFrames(_Expression):
    """Stacks without their matching frames, whose value goes to what stands above them."""

    option = "--hide-frames"


@dataclass(frozen=True)
class MinShare:
    """Siblings of less than this share of the whole tree (0 to 100) are shown as one."""

    percent: float

    def __post_init__(self) -> None:
        if not 0 <= self.percent <= 100:
            raise UsageError(f"--min-percent {self.percent:g}: choose a number from 0 to 100")


GroupFilter = NvtxRange | Ranks | Devices | Streams | Pids | Tids | Kernel | Include
StackFilter = ShowStacks | HideStacks | ShowFrom | HideFrames
RowFilter = Time | Step
Filter = RowFilter | GroupFilter | StackFilter | MinShare


def passing_rows(profile: Profile, table: Activities, where: tuple[Filter, ...]) -> Bool | None:
    """Rows of ``table`` in all windows of time, bool[n]; None where there is no such filter."""
    windows = [one.rows(profile, table) for one in where if isinstance(one, RowFilter)]
    return np.logical_and.reduce(windows) if windows else None


def _glob(pattern: str) -> re.Pattern[str]:
    """``*`` and ``?`` stand for any text and any character; brackets are part of many names."""
    parts = {"*": ".*", "?": "."}
    return re.compile("".join(parts.get(c) or re.escape(c) for c in pattern), re.DOTALL)


def _marked(profile: Profile, fits: object) -> Bool:
    assert callable(fits)
    frames = profile.frames.frames
    return np.fromiter(map(fits, frames), bool, len(frames))


def _pick(fits: list[bool] | Bool, index: Column) -> Bool:
    """``fits[index]``, False where the index is absent (-1)."""
    return np.append(np.asarray(fits, bool), False)[index]


def compile_regex(pattern: str, option: str) -> re.Pattern[str]:
    """Compile a user's regular expression; UsageError naming ``option`` when it is wrong."""
    try:
        return expression(pattern)
    except UsageError as error:
        raise UsageError(f"{option}: '{pattern}' is {error}") from None


def absences(profile: Profile, where: tuple[Filter, ...]) -> Iterator[str]:
    """What of ``where`` is not there, and what is instead, in words that go on after a colon."""
    for one in where:
        if isinstance(one, Step) and not _has_step(profile, one):
            yield _steps_there(profile)
        elif isinstance(one, Ranks) and not one.known(profile):
            yield _ranks_there(profile, one)


def _has_step(profile: Profile, one: Step) -> bool:
    numbers = _numbers(profile)
    return any(one.first <= number <= one.last for number in numbers)


def _numbers(profile: Profile) -> list[int]:
    return [] if profile.steps is None else np.unique(profile.steps.number).tolist()


def _steps_there(profile: Profile) -> str:
    numbers = _numbers(profile)
    if not numbers:
        return "it has no steps, which profiler.step() makes"
    return (
        f"its steps are {numbers[0]} to {numbers[-1]}"
        if numbers[1:]
        else f"its only step is {numbers[0]}"
    )


def _ranks_there(profile: Profile, one: Ranks) -> str:
    if len(profile.sources) < 2:
        return "there is only one trace, and no ranks"
    names = [source.label for source in profile.sources]
    more = f" and {len(names) - _SOME} more" if len(names) > _SOME else ""
    return f"no trace is called {', '.join(one.names)}, but {', '.join(names[:_SOME])}{more}"
