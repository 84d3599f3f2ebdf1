"""Filter activities and stacks: a class for each kind of filter, and why nothing passes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import ClassVar, Literal, get_args

import numpy as np

from flame.core.columns import I8, Bool, Column, unique
from flame.core.errors import UsageError
from flame.core.lazy_dataclass import dataclass
from flame.core.model.activities import Activities
from flame.core.model.frames import CODE_KINDS, Frame, FrameTable, Kind
from flame.core.model.meta import Source
from flame.core.model.profile import Profile
from flame.core.names.framework import USUAL
from flame.core.projection.labels import Naming, exact_labels
from flame.core.projection.phases import phase_frames, phase_names
from flame.core.regex import Limit, compile_expression, compile_glob, fits

_MOST_NAMES = 4
"""Names of ranks that a message lists."""


@dataclass(frozen=True)
class Time:
    """Choose activities that start in [begin, end), ns on the trace's clock; None is unbounded."""

    begin: int | None = None
    end: int | None = None

    def rows(self, profile: Profile, table: Activities) -> Bool:
        """Mark the rows of ``table`` that start in the window, bool[n]."""
        keep = np.ones(len(table), bool)
        if self.begin is not None:
            keep &= table.start >= self.begin
        if self.end is not None:
            keep &= table.start < self.end
        return keep


Moment = Literal["peak", "oom", "end"]
MOMENTS: tuple[Moment, ...] = get_args(Moment)


@dataclass(frozen=True)
class At:
    """Choose the moment at which memory is shown, by name or ns on the trace's clock.

    It lets every activity pass: what lived then is another table, see `project.shown_profile`.
    """

    moment: Moment | int


@dataclass(frozen=True)
class Steps:
    """Choose activities launched in the iterations with a number in one of ``spans``.

    Each is (first, last), both included. Activities without a recorded launch count by their own
    start. Iterations are those of the same process: steps of the PyTorch profiler, or ranges.
    """

    spans: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, numbers: Iterable[int]) -> Steps:
        """Choose the iterations with these ``numbers``."""
        return cls.joined((number, number) for number in numbers)

    @classmethod
    def joined(cls, spans: Iterable[tuple[int, int]]) -> Steps:
        """Choose ``spans``, in order; those that overlap or follow each other are one."""
        found: list[tuple[int, int]] = []
        for first, last in sorted(spans):
            if found and first <= found[-1][1] + 1:
                found[-1] = found[-1][0], max(found[-1][1], last)
            else:
                found.append((first, last))
        return cls(tuple(found))

    def rows(self, profile: Profile, table: Activities) -> Bool:
        """Mark the rows of ``table`` in these steps; none where the trace has no such step."""
        chosen = self.chosen(profile.iterations.number)
        return np.append(chosen, False)[profile.iterations.of(table)]

    def chosen(self, numbers: I8) -> Bool:
        """Mark those of ``numbers`` that are chosen, bool[n]."""
        first, last = np.array(sorted(self.spans), np.int64).reshape(-1, 2).T
        place = np.searchsorted(first, numbers, "right")
        inside: Bool = numbers <= np.append(-1, np.maximum.accumulate(last))[place]
        return inside


@dataclass(frozen=True)
class NvtxRange:
    """Choose activities below an NVTX range whose name (and domain) match a glob."""

    name: str
    domain: str | None = None

    def groups(self, profile: Profile, table: Activities) -> Bool:
        """Mark the groups with such a range anywhere on their path, bool[groups]."""
        within = table.stacks.contain_any(self.ranges(profile))
        return within[table.groups.nvtx] | within[table.groups.stack]

    def ranges(self, profile: Profile) -> Bool:
        """Mark the frames of ``profile`` that are such ranges, bool[frames]."""
        name = compile_glob(self.name).fullmatch
        domain = compile_glob(self.domain).fullmatch if self.domain is not None else None

        def fits(frame: Frame) -> bool:
            if frame.kind != Kind.NVTX or not name(frame.name):
                return False
            return domain is None or bool(domain(frame.get("domain")))

        return _mark_frames(profile, fits)


@dataclass(frozen=True)
class Ranks:
    """Choose activities of some of several files, by rank or by label; both may be globs."""

    names: tuple[str, ...]

    def groups(self, profile: Profile, table: Activities) -> Bool:
        """Mark the groups of one of the files, bool[groups]."""
        fits = [self.fits(source) for source in profile.sources]
        return _pick([fits[process.source] for process in profile.processes], table.groups.process)

    def matches_any(self, profile: Profile) -> bool:
        """Tell whether any file of ``profile`` has one of these names."""
        return any(
            map(self.fits, profile.ranks.sources if profile.ranks is not None else profile.sources)
        )

    def fits(self, source: Source) -> bool:
        """Tell whether a file is one of those."""
        texts = (source.label, str(source.meta.rank))
        return any(compile_glob(name).fullmatch(text) for name in self.names for text in texts)


@dataclass(frozen=True)
class Phases:
    """Choose activities of some phases, by the names of these, which may be globs."""

    names: tuple[str, ...]

    def groups(self, profile: Profile, table: Activities) -> Bool:
        """Mark the groups of one of the phases, bool[groups]."""
        phases = phase_frames(profile, table)
        chosen = np.zeros(len(profile.frames), bool)
        for frame in unique(phases[phases >= 0]).tolist():
            chosen[frame] = self.fits(profile.frames[frame].name)
        return _pick(chosen, phases)

    def fits(self, phase: str) -> bool:
        """Tell whether a phase is one of those."""
        return any(compile_glob(name).fullmatch(phase) for name in self.names)


@dataclass(frozen=True)
class Devices:
    """Choose activities on these GPUs, by their number."""

    ids: tuple[int, ...]

    def groups(self, profile: Profile, table: Activities) -> Bool:
        """Mark the groups on one of the devices, bool[groups]."""
        fits = [device.id in self.ids for device in profile.devices]
        return _pick(fits, table.groups.device)


@dataclass(frozen=True)
class Streams:
    """Choose activities on these CUDA streams, by stream id."""

    ids: tuple[int, ...]

    def groups(self, profile: Profile, table: Activities) -> Bool:
        """Mark the groups on one of the streams, bool[groups]."""
        return np.isin(table.groups.stream, self.ids)


@dataclass(frozen=True)
class Pids:
    """Choose activities of these processes, by operating-system pid."""

    ids: tuple[int, ...]

    def groups(self, profile: Profile, table: Activities) -> Bool:
        """Mark the groups of one of the processes, bool[groups]."""
        return _pick(
            [process.pid in self.ids for process in profile.processes], table.groups.process
        )


@dataclass(frozen=True)
class Tids:
    """Choose activities launched by these threads, by operating-system tid."""

    ids: tuple[int, ...]

    def groups(self, profile: Profile, table: Activities) -> Bool:
        """Mark the groups of one of the threads, bool[groups]."""
        return _pick([thread.tid in self.ids for thread in profile.threads], table.groups.thread)


@dataclass(frozen=True)
class ExpressionFilter:
    """Match names by a regular expression, which may match anywhere in them."""

    option: ClassVar[str]
    pattern: str

    def compile(self) -> re.Pattern[str]:
        """Compile the expression; UsageError naming the option where it is wrong."""
        try:
            return compile_expression(self.pattern)
        except UsageError as error:
            raise UsageError(f"{self.option}: '{self.pattern}' is {error}") from None


@dataclass(frozen=True)
class Kernel(ExpressionFilter):
    """Choose kernels by a regular expression that matches anywhere in one of their names.

    These are the short, the base and the demangled name, and do not depend on which are shown.
    """

    option = "--kernel"

    def groups(self, profile: Profile, table: Activities) -> Bool:
        """Mark the groups that are such kernels, bool[groups]."""
        pattern, frames = self.compile(), profile.frames
        marked = np.zeros(len(frames), bool)
        short = exact_labels(frames, Naming("short")).text
        fits_name = partial(fits, pattern, limit=Limit())  # naming may take longer than searching
        for kernel in np.flatnonzero(frames.kind == Kind.KERNEL).tolist():
            names = (short[kernel], frames[kernel].name, frames[kernel].get("demangled"))
            marked[kernel] = any(map(fits_name, filter(None, names)))
        in_stack = table.stacks.contain_any(marked)[table.groups.stack]
        return _pick(marked, table.groups.frame) | in_stack


@dataclass(frozen=True)
class Include:
    """Choose activities of these kinds only."""

    kinds: tuple[Kind, ...]

    def groups(self, profile: Profile, table: Activities) -> Bool:
        """Mark the groups of one of the kinds, bool[groups]."""
        return np.isin(table.groups.kind, self.kinds)


@dataclass(frozen=True)
class ShowStacks(ExpressionFilter):
    """Show only stacks with a matching frame."""

    option = "--show-stacks"


@dataclass(frozen=True)
class HideStacks(ExpressionFilter):
    """Hide stacks with a matching frame."""

    option = "--hide-stacks"


@dataclass(frozen=True)
class ShowFrom(ExpressionFilter):
    """Show only stacks with a matching frame, from the first such frame on."""

    option = "--show-from"


@dataclass(frozen=True)
class HideFrames(ExpressionFilter):
    """Hide matching frames in stacks; their value goes to the frames above them."""

    option = "--hide-frames"


@dataclass(frozen=True)
class HideFramework(ExpressionFilter):
    """Hide frames of code whose ``FILE:NAME`` matches; their value goes to the frames above."""

    option = "--framework"
    pattern: str = USUAL

    def fits(self, frames: FrameTable, ids: I8) -> list[int]:
        """List those of the frames ``ids`` that match."""
        pattern, limit = self.compile(), Limit()
        code = ids[np.isin(frames.kind[ids], CODE_KINDS)].tolist()
        return [index for index in code if fits(pattern, _place(frames[index]), limit)]


def _place(frame: Frame) -> str:
    return f"{frame.file}:{frame.name}".replace("\\", "/")


@dataclass(frozen=True)
class MinShare:
    """Merge siblings of less than this share of the whole tree (0 to 100)."""

    percent: float

    def __post_init__(self) -> None:
        if not 0 <= self.percent <= 100:
            raise UsageError(f"--min-percent {self.percent:g}: choose a number from 0 to 100")


GroupFilter = NvtxRange | Phases | Ranks | Devices | Streams | Pids | Tids | Kernel | Include
StackFilter = ShowStacks | HideStacks | ShowFrom | HideFrames | HideFramework
RowFilter = Time | Steps
Filter = RowFilter | At | GroupFilter | StackFilter | MinShare


def passing_rows(profile: Profile, table: Activities, filters: tuple[Filter, ...]) -> Bool | None:
    """Mark the rows of ``table`` that pass all row filters, bool[n]; None where there are none.

    A table that is cut by them before passes whole: see `Profile.within`.
    """
    if table.is_cut:
        return None
    masks = [filter_.rows(profile, table) for filter_ in filters if isinstance(filter_, RowFilter)]
    if len(masks) < 2:
        return masks[0] if masks else None
    passing: Bool = np.logical_and.reduce(masks)
    return passing


def _mark_frames(profile: Profile, fits: Callable[[Frame], bool]) -> Bool:
    frames = profile.frames.frames
    return np.fromiter(map(fits, frames), bool, len(frames))


def _pick(fits: list[bool] | Bool, index: Column) -> Bool:
    """``fits[index]``, False where the index is absent (-1)."""
    return np.append(np.asarray(fits, bool), False)[index]


def explain_no_match(profile: Profile, filters: tuple[Filter, ...]) -> Iterator[str]:
    """Say which steps, ranks or phases in ``filters`` the trace lacks, and which it has instead.

    The words go on after a colon.
    """
    of_memory = profile.resolved and profile.memory_builder is not None
    if of_memory and any(map(_is_of_activities, filters)):
        yield "a memory snapshot has no kernels, ranges, processes or threads"
        return
    for filter_ in filters:
        if isinstance(filter_, Steps) and not filter_.chosen(profile.iterations.number).any():
            yield _describe_steps(profile)
        elif isinstance(filter_, Ranks) and not filter_.matches_any(profile):
            yield _describe_ranks(profile, filter_)
        elif isinstance(filter_, Phases):
            names = phase_names(profile)
            if not any(map(filter_.fits, names)):
                yield f"its phases are {', '.join(names)}" if names else "it has no phases"


def _is_of_activities(filter_: Filter) -> bool:
    return isinstance(filter_, NvtxRange | Phases | Pids | Tids | Kernel | Include)


def _describe_steps(profile: Profile) -> str:
    numbers = unique(profile.iterations.number).tolist()
    if not numbers:
        return "it has no steps, of the PyTorch profiler or as ranges such as `step 3`"
    first, last = numbers[0], numbers[-1]
    return f"its steps are {first} to {last}" if last > first else f"its only step is {first}"


def _describe_ranks(profile: Profile, ranks: Ranks) -> str:
    if len(profile.sources) < 2:
        return "there is only one trace, and no ranks"
    names = [source.label for source in profile.sources]
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return (
        f"no trace is called {', '.join(ranks.names)}, but {', '.join(names[:_MOST_NAMES])}{more}"
    )
