"""Interpret the numbers in CUPTI's records, for all formats that keep these as they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from flame.core.columns import I4, I8, Bool, Column
from flame.core.model.activities import NONE
from flame.core.model.launches import DEVICE, PAGEABLE, PINNED, Dim
from flame.core.units import format_counted, one_of

# CUpti_ActivityMemcpyKind in cupti_activity.h
_COPY_KINDS = {1: "HtoD", 2: "DtoH", 8: "DtoD", 9: "HtoH", 10: "PtoP"}
# CUpti_ActivityMemoryKind in cupti_activity.h
_MEMORY_KINDS = {
    1: PAGEABLE,
    2: PINNED,
    3: DEVICE,
    4: "array",
    5: "managed",
    6: "device static",
    7: "managed static",
}
ALLOW_PROFILING = (
    "run as root, or let everyone: 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' in "
    "/etc/modprobe.d/nvidia.conf, then reboot"
)
"""What to do where the driver refuses counters and samples (ERR_NVGPUCTRPERM)."""

_NO_CLUSTER = ((0, 0, 0), (1, 1, 1))


def copy_name(kind: int) -> str:
    """Return the name of a memory copy by its copyKind."""
    return f"memcpy {_COPY_KINDS[kind]}" if kind in _COPY_KINDS else "memcpy"


def memory_kind(number: int) -> str | None:
    """Return the name of a kind of memory, None where it is unknown."""
    return _MEMORY_KINDS.get(number)


def memory_named(name: str) -> str | None:
    """Return the kind of memory that tools call so, None where they do not know."""
    known = name.strip().lower()
    return known if known in _MEMORY_KINDS.values() else None


def cluster_of(dim: Dim | None) -> Dim | None:
    """Return the size of a thread block cluster, None for a kernel without clusters."""
    return None if dim in _NO_CLUSTER else dim


def graph_name(graph: int) -> str:
    """Return what a CUDA graph traced as a whole is called, by its id; below 0: not known."""
    return f"CUDA graph {graph}" if graph >= 0 else "CUDA graph"


def fit_31_bits(column: Column) -> I4:
    """Return ids that fit 31 bits, -1 for others."""
    fits = (column >= 0) & (column < 1 << 31)
    return np.where(fits, column, NONE).astype(np.int32)


def complete_spans(start: I8, started: Bool, end: I8, ended: Bool) -> tuple[I8, I8]:
    """Return starts and ends, of which ``started`` and ``ended`` are known, without gaps.

    One that is missing is taken from the other: 0 ns.
    """
    begin = np.where(started, start, np.where(ended, end, 0))
    return begin, np.where(ended, end, begin)


def untimed_warnings(counts: Mapping[str, int]) -> Iterator[str]:
    """Return a warning for each kind of record without times, ``counts`` by its name."""
    return (
        format_counted(
            count,
            f"{one_of(what)} was recorded without a start or an end: it counts as 0 ns",
            f"{what} were recorded without a start or an end: they count as 0 ns",
        )
        for what, count in counts.items()
        if count
    )
