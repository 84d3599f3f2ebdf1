"""Hold the code of a kernel with its PC samples, in the order of its instructions."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property, reduce

import numpy as np

from flame.core.columns import I4, I8, expand_ranges, sum_by, unique, unique_rows
from flame.core.lazy_dataclass import dataclass
from flame.core.model.frames import FrameTable
from flame.core.model.pc_samples import Code, Sampling
from flame.core.projection.splits.sample_split import apportion

_LINES = 1 << 32


@dataclass(frozen=True, eq=False)
class Version:
    """``code`` with entries of samples: one kernel may have been compiled several times.

    Entry i: ``samples`` (i8) at the instruction ``place`` (i8, ascending) for ``reasons[reason]``
    (keys of `model.stalls`), worth ``value`` (i8) in the metric. It is ``numbers`` of the
    codes of a `Sampling`: of several where processes have the same.
    """

    code: Code
    reasons: tuple[str, ...]
    place: I8
    reason: I8
    samples: I8
    value: I8
    numbers: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.code)

    @cached_property
    def total(self) -> int:
        """All its samples."""
        return int(self.samples.sum())

    @cached_property
    def at(self) -> I8:
        """Samples at each instruction, i8[n]."""
        return sum_by(self.place, self.samples, len(self))

    @cached_property
    def most(self) -> int:
        """The most samples that an instruction has."""
        return int(self.at.max(initial=0))

    @cached_property
    def before(self) -> I8:
        """Samples before each instruction, and in all, i8[n + 1]."""
        return np.concatenate([[0], np.cumsum(self.at)])

    @cached_property
    def value_before(self) -> I8:
        """The metric before each instruction, and in all, i8[n + 1]."""
        return np.concatenate([[0], np.cumsum(sum_by(self.place, self.value, len(self)))])

    @cached_property
    def _bounds(self) -> I8:
        """Where the entries of each instruction begin, and where the last ones end, i8[n + 1]."""
        return np.searchsorted(self.place, np.arange(len(self) + 1))

    @cached_property
    def hottest(self) -> I8:
        """The instructions that have samples, those with the most first."""
        order = np.argsort(-self.at, kind="stable")
        return order[: int(np.count_nonzero(self.at))]

    def by_reason(self, first: int, last: int) -> I8:
        """Samples at the instructions from ``first`` up to ``last``, by reason."""
        entries = slice(int(self._bounds[first]), int(self._bounds[last]))
        return sum_by(self.reason[entries], self.samples[entries], len(self.reasons))

    def hottest_for(self, reason: str) -> int:
        """Find the instruction with the most samples for ``reason``, or the hottest of all."""
        at = self._at_for(reason)
        return int(np.argmax(at if at.any() else self.at))

    def most_for(self, reason: str) -> int:
        """Find the most samples that an instruction has for ``reason``; empty: at all."""
        return int(self._at_for(reason).max(initial=0))

    def _at_for(self, reason: str) -> I8:
        if not reason:
            return self.at
        chosen = np.array([key == reason for key in self.reasons], bool)[self.reason]
        return sum_by(self.place[chosen], self.samples[chosen], len(self))

    # Source lines

    @cached_property
    def has_lines(self) -> bool:
        """Whether a source line is known of any instruction."""
        return bool((self.code.line > 0).any())

    @cached_property
    def line_of(self) -> I8:
        """A number for each instruction's source line, -1 for none, i8[n]."""
        known = (self.code.file >= 0) & (self.code.line > 0)
        return np.where(known, self.code.file * np.int64(_LINES) + self.code.line, -1)

    @cached_property
    def _lines(self) -> tuple[I8, I8]:
        """The numbers of all lines, and the samples of each."""
        lines, place = np.unique(self.line_of, return_inverse=True)
        return lines, sum_by(place, self.at, len(lines))

    def samples_of_line(self, line: int) -> int:
        """Return the samples of the line with that number, wherever its instructions stand."""
        lines, samples = self._lines
        return int(samples[np.searchsorted(lines, line)])


def file_and_line(number: int) -> tuple[int, int]:
    """Return the file and the line that `Version.line_of` has this ``number`` for."""
    return divmod(number, _LINES)


def versions_of(sampling: Sampling, frames: FrameTable, used: I4, value: I8) -> list[Version]:
    """Gather the samples of distributions ``used``, worth ``value`` each, by code, largest first.

    A value is split over its samples as `projection.splits.sample_split` does: exact in sum.
    """
    size = np.diff(sampling.bounds)[used]
    entries = expand_ranges(sampling.bounds[used], size)
    code, place, stall = (
        column[entries] for column in (sampling.code, sampling.place, sampling.stall)
    )
    samples = sampling.samples[entries]
    worth = apportion(value, samples, np.repeat(np.arange(len(used)), size))
    versions = []
    for whole, numbers in merge_codes({at: sampling.codes[at] for at in unique(code).tolist()}):
        rows = np.flatnonzero(np.isin(code, numbers))
        at = _places(sampling, whole, code[rows], place[rows])
        columns = (at, stall[rows], samples[rows], worth[rows])
        versions.append(_version(whole, numbers, frames, *columns))
    return sorted(versions, key=lambda version: -version.total)


def _places(sampling: Sampling, whole: Code, code: I4, place: I4) -> I8:
    """The places in ``whole`` of instructions at ``place`` in the codes with numbers ``code``."""
    offset = np.zeros(len(place), np.int64)
    for number in unique(code).tolist():
        chosen = code == number
        offset[chosen] = sampling.codes[number].offset[place[chosen]]
    return np.searchsorted(whole.offset, offset)


def _version(
    code: Code,
    numbers: tuple[int, ...],
    frames: FrameTable,
    place: I8,
    stall: I4,
    samples: I8,
    value: I8,
) -> Version:
    """``code`` with these samples, those of one instruction and frame ``stall`` as one."""
    first, kind = unique_rows([place, stall])  # in the order of the places
    stalls, reason = np.unique(stall[first], return_inverse=True)
    return Version(
        code,
        tuple(frames[frame].get("reason") for frame in stalls.tolist()),
        place[first],
        reason,
        sum_by(kind, samples, len(first)),
        sum_by(kind, value, len(first)),
        numbers,
    )


# Codes of several processes, or files, that are equal: each is listed once


def merge_codes(codes: Mapping[int, Code]) -> list[tuple[Code, tuple[int, ...]]]:
    """Merge equal ``codes``: each code once, and the numbers of all that are it.

    It has all instructions of these: where none has a text, each may know of others.
    """
    same: dict[Hashable, list[int]] = {}
    for number, code in codes.items():
        same.setdefault(_key(code), []).append(number)
    return [
        (_whole([codes[number] for number in numbers]), tuple(numbers)) for numbers in same.values()
    ]


def _key(code: Code) -> Hashable:
    return (code.name, code.offset.tobytes(), code.text) if any(code.text) else code.name


def _whole(codes: Sequence[Code]) -> Code:
    """One for all ``codes``: where there are texts the one of which most lines are known."""
    if any(codes[0].text):
        return max(codes, key=lambda code: int((code.line > 0).sum()))
    return Code.unknown(codes[0].name, reduce(np.union1d, (code.offset for code in codes)))
