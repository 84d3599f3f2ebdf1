"""Hold PC samples: at which instructions of kernels warps were, and what they waited for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property

import numpy as np

from flame.core.columns import I4, I8, Bool, Column, unique
from flame.core.lazy_dataclass import dataclass
from flame.core.model.frames import Frame, FrameBuilder, Kind
from flame.core.model.stalls import stall_of
from flame.core.names.cuda import demangle, kernel_base

LONGEST_TEXT = 4_096
"""Characters of an instruction's text. Those of real ones are some hundred at most."""

FUNCTION = "function"
"""Key under which the frame of an instruction names its kernel: instructions are never shared."""


@dataclass(frozen=True, eq=False)
class Code:
    """Hold the instructions of one kernel, called ``name`` (mangled where that is known).

    ``offset`` i8[n]: bytes from the first instruction, ascending. ``text``: SASS, empty where it is
    not known. ``file`` i4[n] indexes ``files`` (-1 unknown), ``line`` i4[n] (0 unknown). ``source``
    has lines of the files by (file, line), where a report brings them.
    """

    name: str
    offset: I8
    text: tuple[str, ...]
    file: I4
    line: I4
    files: tuple[str, ...] = ()
    source: Mapping[tuple[int, int], str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.offset)

    @classmethod
    def unknown(cls, name: str, offsets: I8) -> Code:
        """Make code of which only the ``offsets`` (i8, ascending) of instructions are known."""
        size = len(offsets)
        nowhere, none = np.full(size, -1, np.int32), np.zeros(size, np.int32)
        return cls(name, offsets, ("",) * size, nowhere, none)

    def instruction(self, place: int) -> str:
        """Name the instruction at ``place``: ``+0x0120 LDG.E R2, [R4]``.

        Without its text ``kernel+0x120``.
        """
        return self._instruction(int(self.offset[place]), self.text[place])

    def _instruction(self, offset: int, text: str) -> str:
        return f"+0x{offset:04x} {text}" if text else f"{self._base}+0x{offset:x}"

    @cached_property
    def _base(self) -> str:
        return kernel_base(demangle(self.name))

    def frames(self, places: Column) -> Iterator[Frame]:
        """Make the frames of the instructions at ``places``."""
        extra = ((FUNCTION, self.name),)
        columns = (column[places].tolist() for column in (self.offset, self.file, self.line))
        for place, offset, file, line in zip(places.tolist(), *columns, strict=True):
            name = self.files[file] if file >= 0 else ""
            yield Frame(Kind.SASS, self._instruction(offset, self.text[place]), name, line, extra)


@dataclass(frozen=True, eq=False)
class CodeSamples:
    """Count samples in ``code``: at ``place`` i4[m] for the reason ``reasons[reason]`` (i4[m]).

    ``samples`` i8[m] are greater than 0; no pair of place and reason is there twice. ``reasons``
    are keys of `flame.core.model.stalls`.
    """

    code: Code
    place: I4
    reason: I4
    samples: I8
    reasons: tuple[str, ...]

    @property
    def total(self) -> int:
        """Sum of all samples."""
        return int(self.samples.sum())


@dataclass(frozen=True, eq=False)
class Sampling:
    """Hold distributions of PC samples, and which groups of activities each belongs to.

    ``of_group`` i4[groups of the activities]: the distribution, -1 for none. Distribution d has the
    entries ``bounds[d]`` to ``bounds[d + 1]`` (i8[d + 1]): samples of ``codes[code]`` at ``place``,
    with the frames ``sass`` and ``stall`` (i4 each), ``samples`` i8. ``exact`` bool[d]: of these
    launches alone; else of all launches of the kernel, wherever they came from. ``most_parts``
    limits how many entries are shown together, besides what `projection.splits.sample_split` does.
    """

    codes: tuple[Code, ...]
    of_group: I4
    bounds: I8
    code: I4
    place: I4
    sass: I4
    stall: I4
    samples: I8
    exact: Bool
    most_parts: int | None = None

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @cached_property
    def totals(self) -> I8:
        """Samples of every distribution, i8[d]."""
        before = np.concatenate([[0], np.cumsum(self.samples)])
        totals: I8 = before[self.bounds[1:]] - before[self.bounds[:-1]]
        return totals

    def entries(self, distribution: int) -> slice:
        """Find the entries of ``distribution``."""
        return slice(int(self.bounds[distribution]), int(self.bounds[distribution + 1]))


class SamplingBuilder:
    """Collect distributions of PC samples; their frames are added to ``frames``."""

    def __init__(self, frames: FrameBuilder) -> None:
        self._frames = frames
        self._codes: dict[int, int] = {}
        self._added: list[Code] = []
        self._sass: list[I4] = []
        self._sizes: list[int] = []
        self._exact: list[bool] = []
        self._columns: list[tuple[I4, I4, I4, I4, I8]] = []

    def add(self, parts: Sequence[CodeSamples], exact: bool) -> int:
        """Add a distribution of the samples in all ``parts``, and return its number."""
        self._columns += map(self._entries, parts)
        self._sizes.append(sum(len(part.place) for part in parts))
        self._exact.append(exact)
        return len(self._sizes) - 1

    def _entries(self, part: CodeSamples) -> tuple[I4, I4, I4, I4, I8]:
        number = self._code(part.code)
        sass = self._sass_frames(number, part.place)
        stall = np.array([self._frames.add(stall_frame(key)) for key in part.reasons], np.int32)
        code = np.full(len(part.place), number, np.int32)
        return code, part.place, sass, stall[part.reason], part.samples

    def _code(self, code: Code) -> int:
        if id(code) not in self._codes:
            self._codes[id(code)] = len(self._added)
            self._added.append(code)
            self._sass.append(np.full(len(code), -1, np.int32))
        return self._codes[id(code)]

    def _sass_frames(self, code: int, places: I4) -> I4:
        """Return the frames of instructions, made when they are first asked for."""
        frames = self._sass[code]
        new = unique(places[frames[places] < 0])
        frames[new] = list(map(self._frames.add, self._added[code].frames(new)))
        return frames[places]

    def build(self, of_group: I4) -> Sampling:
        """Build the distributions added so far; ``of_group`` as in `Sampling`."""
        none = np.zeros(0, np.int32)
        parts = [(none, none, none, none, np.zeros(0, np.int64)), *self._columns]
        code, place, sass, stall, samples = map(np.concatenate, zip(*parts, strict=True))
        bounds = np.concatenate([[0], np.cumsum(self._sizes, dtype=np.int64)])
        exact = np.array(self._exact, bool)
        codes = tuple(self._added)
        return Sampling(codes, of_group, bounds, code, place, sass, stall, samples, exact)


def stall_frame(key: str) -> Frame:
    """Make the frame of the stall reason ``key``."""
    return Frame(Kind.STALL, stall_of(key).title, extra=(("reason", key),))
