"""Hold what a trace of GPU work records of memory: what was given out and back, and by which call.

Unlike a snapshot a trace knows no blocks; some tell how much is in use after each event.
"""

from __future__ import annotations

from flame.core.columns import I4, I8, Bool
from flame.core.lazy_dataclass import dataclass
from flame.core.model.frames import Frame, Kind
from flame.core.model.side_tables.device_memory import MemoryPlace

UNTOLD = -1
"""In ``in_use``: the trace does not say."""

ON_DEVICE = frozenset({"device", "array", "device static"})
"""Kinds of memory that a GPU has itself; pinned memory is the host's, managed memory of both."""

BEFORE_FRAME = Frame(Kind.PYTHON, "[allocated before recording]")
UNKNOWN_FRAME = Frame(Kind.PYTHON, "[no stack recorded]")
NATIVE_FRAME = Frame(Kind.PYTHON, "[no Python frames]")
"""Stands above the C++ frames of threads that run no Python, such as those of autograd."""


@dataclass(frozen=True, eq=False)
class ReservedSizes:
    """Hold how much was reserved for what: by an allocator of memory, or in a pool of it.

    A row says so right after the event ``row`` i8[m] of the `MemoryEvents` (-1: before the first
    of them), at ``time`` i8[m] (ns); in that order. ``source`` i4[m] is who reserved it, ``device``
    i4[m] the GPU's place in the devices; ``size`` i8[m] are bytes, ``before`` i8[m] those before,
    or `UNTOLD`: only what the first row of a source says of these counts. ``covered`` bool[n] are
    the events whose memory is part of this: all other memory is reserved by itself.
    """

    row: I8
    time: I8
    source: I4
    device: I4
    size: I8
    before: I8
    covered: Bool

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True, eq=False)
class MemoryEvents:
    """Hold events of memory in columns, in the order in which they happened.

    | column | dtype | meaning |
    |---|---|---|
    | time | i8 | ns |
    | space | i4 | whose addresses they are: an address is of one allocation at a time in each |
    | place | i4 | place in ``places``: whose memory it is, of which GPU and kind |
    | address, size | i8 | of the memory; bytes, positive |
    | allocates | bool | whether it is given out, or back |
    | process, thread | i4 | places in the lists of the trace, -1 unknown |
    | correlation | i8 | that of the API call, 0 unknown |
    | in_use | i8 | bytes in use at the place right after, as the trace says, or `UNTOLD` |

    ``left_out`` counts events that make no sense. ``reserved`` is None where nothing tells of it.
    """

    time: I8
    space: I4
    place: I4
    address: I8
    size: I8
    allocates: Bool
    process: I4
    thread: I4
    correlation: I8
    in_use: I8
    places: tuple[MemoryPlace, ...]
    left_out: int = 0
    reserved: ReservedSizes | None = None

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True, eq=False)
class MemoryStacks:
    """Hold what was open at each of the `MemoryEvents`, of the same rows.

    ``python``, ``native``, ``nvtx`` and ``whole`` (ranges below Python frames) i4[n] are stack ids,
    ``launch`` i4[n] is the frame of the API call, -1 where none is looked for; ``thread``
    i4[n]. ``before`` is the stack of what was allocated before recording.
    """

    python: I4
    native: I4
    nvtx: I4
    whole: I4
    launch: I4
    thread: I4
    before: int
