"""Count PC samples of growing recordings by kernel, with code as it becomes known."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Event

import numpy as np

from flame.core.columns import I4, I8
from flame.core.errors import CancelledError
from flame.core.live.decode.growing import GrowingDump
from flame.core.live.sums.groups import ActivityGroups
from flame.core.model.activities import NONE
from flame.core.model.frames import FrameBuilder, Kind
from flame.core.model.pc_samples import Code, Sampling, SamplingBuilder
from flame.core.model.raw import RawPcSamples
from flame.core.readers.fdump.samples import DumpSamples
from flame.core.sampling.recorded import build_distributions
from flame.core.sass.disassembly import find_codes
from flame.core.sass.module_lives import Cubins

MOST_PARTS = 10_000
"""Instructions and reasons that are shown together: trees are made anew four times a second."""

_PACE = 1.0
"""Seconds between two looks at what samples say, at least."""

_REST = 10
"""So many times as long as a look has taken is the time to the next one, at least."""

FunctionKey = tuple[Path, Cubins, str]
"""A function: the folder of its recording, the cubins it may be of, its name."""

FoundCodes = dict[tuple[Cubins, str], Code]


class LiveSamples:
    """Builds the `Sampling` of snapshots; frames are added to ``frames``, before those are taken.

    ``groups`` are those of the activities. Samples count from when recording began, whichever
    window is shown.
    """

    def __init__(self, frames: FrameBuilder, groups: ActivityGroups) -> None:
        self._frames = frames
        self._groups = groups
        self._codes = _CodeLookup()
        self._kernels = _KernelNumbers(frames)
        self._known: Sampling | None = None
        self._owners: I8 = np.zeros(0, np.int64)
        self._seen: tuple[int, ...] = ()
        self._due = 0.0

    def take(self, dumps: Sequence[GrowingDump]) -> Sampling | None:
        """Return the sampling now; None where no dump has any sample."""
        if self.is_due(dumps):
            begin, self._seen = time.monotonic(), self._state(dumps)
            self._build(dumps)
            self._due = begin + max(_PACE, _REST * (time.monotonic() - begin))
        if self._known is None:  # one without a distribution is false
            return None
        return replace(self._known, of_group=self._distribution_of_groups())

    def is_due(self, dumps: Sequence[GrowingDump]) -> bool:
        """Return whether `take` would return more than the last time: samples, or text of code."""
        state = self._state(dumps)
        return state != self._seen and any(state[1:]) and time.monotonic() >= self._due

    def _state(self, dumps: Sequence[GrowingDump]) -> tuple[int, ...]:
        return (self._codes.version, *(dump.sample_records for dump in dumps))

    def close(self) -> None:
        """Stop looking for code."""
        self._codes.close()

    def _build(self, dumps: Sequence[GrowingDump]) -> None:
        builder = SamplingBuilder(self._frames)
        owners: list[int] = []
        for dump in dumps:
            if (samples := dump.build_samples()) is not None:
                names = np.array([self._kernels.number(name) for name in samples.rows.functions])
                used, owner = np.unique(names[samples.rows.function], return_inverse=True)
                owners += ((dump.process << 32) | used).tolist()
                for parts in build_distributions(
                    self._add_codes(dump, samples), owner.astype(np.int32)
                ):
                    builder.add(parts, False)
        self._owners = np.array(owners, np.int64)
        self._known = replace(builder.build(np.zeros(0, np.int32)), most_parts=MOST_PARTS)

    def _add_codes(self, dump: GrowingDump, samples: DumpSamples) -> RawPcSamples:
        folder = Path(dump.path).parent
        keys = [
            (folder, *pair) for pair in zip(samples.cubins, samples.rows.functions, strict=True)
        ]
        return replace(samples.rows, codes=tuple(self._codes.codes_of(keys)))

    def _distribution_of_groups(self) -> I4:
        """Return the distribution of every group, by its process and kernel."""
        groups = self._groups
        name = self._kernels.of_frames()[groups.column("frame")]
        name = np.where(groups.column("kind") == Kind.KERNEL, name, NONE)
        key = (groups.column("process").astype(np.int64) << 32) | np.maximum(name, 0)
        order = np.argsort(self._owners)
        place = np.searchsorted(self._owners[order], key)
        distribution = np.append(order, NONE)[np.minimum(place, len(order))]
        has_samples = (name >= 0) & (np.append(self._owners, NONE)[distribution] == key)
        return np.where(has_samples, distribution, NONE).astype(np.int32)


class _KernelNumbers:
    """Numbers the names of kernels, and returns the number of each of ``frames``."""

    def __init__(self, frames: FrameBuilder) -> None:
        self._frames = frames
        self._numbers: dict[str, int] = {}
        self._of_frame: I4 = np.zeros(0, np.int32)

    def number(self, name: str) -> int:
        """Return the number of ``name``, new or known."""
        return self._numbers.setdefault(name, len(self._numbers))

    def of_frames(self) -> I4:
        """Return the number of every frame's kernel name, -1 for others; the last is for -1."""
        known = len(self._of_frame)
        new = [self._of(index) for index in range(known, len(self._frames))]
        self._of_frame = np.append(self._of_frame, np.array(new, np.int32))
        return np.append(self._of_frame, np.int32(NONE))

    def _of(self, index: int) -> int:
        frame = self._frames[index]
        if frame.kind != Kind.KERNEL:
            return NONE
        return self.number(frame.get("mangled") or frame.get("demangled"))


class _CodeLookup:
    """Finds the code of functions in a thread of its own: that may take nvdisasm seconds."""

    def __init__(self) -> None:
        self._version = 0
        self._stopped = Event()
        self._pool = ThreadPoolExecutor(1, "flame-code")
        self._known: dict[FunctionKey, Code | None] = {}
        self._asked: dict[Future[FoundCodes], list[FunctionKey]] = {}

    @property
    def version(self) -> int:
        """A number that rises when code has come."""
        for asked in [future for future in self._asked if future.done()]:
            keys, codes = self._asked.pop(asked), asked.result()
            self._known |= {key: codes.get(key[1:]) for key in keys}
            self._version += 1
        return self._version

    def codes_of(self, keys: Sequence[FunctionKey]) -> list[Code | None]:
        """Return the code of each function, None where it is not known (yet)."""
        wanted = [key for key in dict.fromkeys(keys) if key not in self._known]
        for folder in dict.fromkeys(key[0] for key in wanted):
            self._ask(folder, [key for key in wanted if key[0] == folder])
        return [self._known[key] for key in keys]

    def _ask(self, folder: Path, keys: list[FunctionKey]) -> None:
        wanted: dict[Cubins, set[str]] = {}
        for _, cubins, name in keys:
            wanted.setdefault(cubins, set()).add(name)
        self._known |= dict.fromkeys(keys)
        self._asked[self._pool.submit(self._find_codes, folder, wanted)] = keys

    def _find_codes(self, folder: Path, wanted: dict[Cubins, set[str]]) -> FoundCodes:
        with suppress(CancelledError):
            return find_codes(folder, wanted, self._go_on)[0]
        return {}

    def _go_on(self, stage: str, done: int, expected: int) -> None:
        if self._stopped.is_set():
            raise CancelledError("stopped")

    def close(self) -> None:
        self._stopped.set()
        self._pool.shutdown(wait=False, cancel_futures=True)
