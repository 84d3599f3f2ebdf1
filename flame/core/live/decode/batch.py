"""Hold the new rows of a growing dump, in a vocabulary shared by all dumps."""

from __future__ import annotations

from flame.core.columns import I4, I8, U1, Bool
from flame.core.lazy_dataclass import dataclass


@dataclass(frozen=True, eq=False)
class NewActivities:
    """New GPU activities, one row each. Times are ns of CLOCK_MONOTONIC.

    | column | dtype | meaning |
    |---|---|---|
    | kind | u1 | `Kind` of the leaf |
    | start, end | i8 | ns; both 0 where the GPU did not say when |
    | device | i4 | index into `SharedTables.devices` |
    | stream | i4 | stream id |
    | correlation | i8 | of the launching call in the same process; <= 0: none |
    | frame | i4 | frame id of the kernel, copy or set |
    | thread, python, nvtx | i4 | of the launch as the library saw it; -1, stacks 0: unknown |
    | captured_python, captured_nvtx | i4 | stacks of the graph node's capture, marked; 0: none |
    | graph | bool | whether it was replayed from a CUDA graph node |
    | config | i4 | index into `SharedTables.configs`, -1 for copies and sets |
    | bytes | i8 | what a copy or set moved, -1 for kernels |
    """

    kind: U1
    start: I8
    end: I8
    device: I4
    stream: I4
    correlation: I8
    frame: I4
    thread: I4
    python: I4
    nvtx: I4
    captured_python: I4
    captured_nvtx: I4
    graph: Bool
    config: I4
    bytes: I8

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True, eq=False)
class NewCalls:
    """New API calls: ns of CLOCK_MONOTONIC, index of the thread, stacks (0: empty), frame id.

    ``within`` is the frame id of the call that each lies in, one that launches nothing; -1: none.
    """

    start: I8
    end: I8
    thread: I4
    correlation: I8
    frame: I4
    python: I4
    nvtx: I4
    within: I4

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True, eq=False)
class NewRanges:
    """New push/pop ranges: ns of CLOCK_MONOTONIC, thread, ``nvtx``: the path with the range."""

    start: I8
    end: I8
    thread: I4
    nvtx: I4

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True, eq=False)
class DumpBatch:
    """New rows of one dump (``source`` is its number), and the ranges that are open on it now.

    Every activity's call is in this batch or in an earlier one. ``others`` are calls that launched
    nothing. ``open``: ``end`` is meaningless.
    ``rest``: there was more in the file than was read this time. ``newest``: the latest time in
    any row read so far, ns, 0 without one.
    """

    source: int
    work: NewActivities
    calls: NewCalls
    others: NewCalls
    ended: NewRanges
    open: NewRanges
    rest: bool
    newest: int

    @property
    def empty(self) -> bool:
        """Whether no row has come."""
        calls = len(self.calls) + len(self.others)
        return not (len(self.work) or calls or len(self.ended))
