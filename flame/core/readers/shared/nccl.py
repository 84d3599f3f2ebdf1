"""Understand the NVTX ranges of NCCL: what their payloads say of collectives and communicators.

Facts are of NCCL's sources (github.com/NVIDIA/nccl, tags v2.16.2-1 to v2.30.7-1). Ranges are in the
domain ``NCCL`` and have the names of functions (src/include/nvtx.h). Payloads exist from 2.16 on.
Their entries have labels, which say what they are, and the unit: collectives.cc up to 2.24, from
2.25 on src/include/nvtx_payload_schemas.h.

- ``Message size [bytes]`` (up to 2.24 ``Bytes`` in broadcasts, sends and receives) is the size of
  one message, count × size of an element: collectives.cc, "not the total bytes sent/received".
- ``NCCL communicator ID`` is the 64-bit hash of the communicator, the same on all its ranks; from
  2.25 on. It is 0 where the communicator is not made yet.
- ``No. of ranks`` and ``Rank`` are those of that communicator where it is made, destroyed, aborted
  and revoked. In ``ncclCommSplit`` they are of the parent, and stand beside the new one's hash
  (src/init.cc of 2.25 to 2.30): nothing is taken from there. Before 2.25 no hash goes with them.
- ``Reduction operation`` is an ncclRedOp_t (src/nccl.h.in); numbers from 5 on are a program's own.
- Groups: what is called between ncclGroupStart and the ncclGroupEnd that closes it is launched by
  the latter (src/group.cc); these ranges have no payload. There is no number of the call anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from flame.core.columns import I4, I8, unique_rows
from flame.core.model.activities import NONE
from flame.core.model.launches import GROUP_END, GROUP_START, NcclCall, NcclRanges
from flame.core.units import format_counted

DOMAIN = "NCCL"

Payload = Mapping[str, object]
"""Values by label; empty where there are none."""

COMMUNICATOR, REDUCTION = "NCCL communicator ID", "Reduction operation"
_SIZES = ("Message size [bytes]", "Bytes")
_ROOT, _PEER, _RANK = "Root", "Peer rank", "Rank"
_REDUCTIONS = ("sum", "product", "max", "min", "avg")
_GROUPS = {
    "ncclGroupStart": GROUP_START,
    "ncclGroupEnd": GROUP_END,
    "ncclGroupSimulateEnd": GROUP_END,
}
_COLLECTIVES = frozenset(
    f"nccl{name}"
    for name in (
        *("AllGather", "AllReduce", "AlltoAll", "Broadcast", "Gather", "Reduce"),
        *("ReduceScatter", "Scatter", "Send", "Recv"),
    )
)
_OTHERS = frozenset(("ncclPutSignal", "ncclSignal", "ncclWaitSignal"))
"""They launch, but no collective."""

_RANKS_BY = {
    "ncclCommInitAll": "No. of devices",
    **{
        f"ncclComm{name}": "No. of ranks"
        for name in ("InitRank", "InitRankConfig", "InitRankScalable", "Destroy", "Abort", "Revoke")
    },
}
_NOTHING = -3
_LARGEST = 1 << 40
"""Bytes: more than any GPU has; a larger number is damage."""
_MOST_RANKS = (1 << 31) - 1
_HASHES = 1 << 64


def json_payload(text: str) -> Payload | None:
    """Read a payload that was written as JSON; None where it is not, or says nothing."""
    import msgspec

    try:
        return msgspec.json.decode(text, type=dict[str, object]) or None
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return None


def build_ranges(
    thread: I4,
    start: I8,
    end: I8,
    kind: I4,
    kinds: Sequence[tuple[str, Payload | None]],
    process: I4,
    advice: str = "",
) -> NcclRanges:
    """Build what NCCL tells, of ranges in its domain; all columns are of these, ns.

    ``kind`` is the place of a range's name and payload in ``kinds``: None is a payload that cannot
    be read. ``process`` is that of the thread. ``advice`` says how to get payloads that are absent.
    """
    calls: list[NcclCall] = []
    step = np.array([_step(*one, calls) for one in kinds], np.int32)[kind]
    counts = np.bincount(kind, minlength=len(kinds)).tolist()
    rows = np.flatnonzero((step != _NOTHING) & (thread >= 0))
    sizes, ranks = _communicators(kind, kinds, process)
    columns = (thread[rows], start[rows], end[rows], step[rows])
    warnings = tuple(_warnings(kinds, counts, advice))
    return NcclRanges(*columns, tuple(calls), sizes, ranks, warnings)


def _step(name: str, payload: Payload | None, calls: list[NcclCall]) -> int:
    if name in _GROUPS:
        return _GROUPS[name]
    if name not in _COLLECTIVES | _OTHERS:
        return _NOTHING
    calls.append((payload and _call(name, payload)) or NcclCall(name))
    return len(calls) - 1


def _call(name: str, payload: Payload) -> NcclCall | None:
    """What a call does; None where any of it cannot be."""
    size = _number(next((payload[label] for label in _SIZES if label in payload), None), _LARGEST)
    root, peer = (_number(payload.get(label), _MOST_RANKS) for label in (_ROOT, _PEER))
    odd = [label for label, one in ((_ROOT, root), (_PEER, peer)) if one is None]
    if size is None or any(payload.get(label) is not None for label in odd):
        return None
    communicator = _communicator(payload)
    if communicator is None:
        return None
    return NcclCall(name, communicator or None, size, _reduction(payload), root, peer)


def _number(value: object, most: int) -> int | None:
    """The ``value`` if it is a whole number from 0 to ``most``."""
    fits = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most
    return value if isinstance(value, int) and fits else None


def _communicator(payload: Payload) -> int | None:
    """The hash, 0 where there is none; None where it cannot be one."""
    value = payload.get(COMMUNICATOR, 0)
    signed = isinstance(value, int) and -1 << 63 <= value < 0
    return _number(value % _HASHES if isinstance(value, int) and signed else value, _HASHES - 1)


def _reduction(payload: Payload) -> str:
    value = payload.get(REDUCTION)
    if isinstance(value, str):
        return value.lower() if value.lower() in _REDUCTIONS else ""
    number = _number(value, len(_REDUCTIONS) - 1)
    return "" if number is None else _REDUCTIONS[number]


def _communicators(
    kind: I4, kinds: Sequence[tuple[str, Payload | None]], process: I4
) -> tuple[dict[int, int], dict[tuple[int, int], int]]:
    """(how many ranks each communicator has, which of them each process is); as all agree."""
    first, _ = unique_rows([process, kind]) if len(kind) else (np.zeros(0, np.int64), None)
    sizes: dict[int, set[int]] = {}
    ranks: dict[tuple[int, int], set[int]] = {}
    for owner, at in zip(process[first].tolist(), kind[first].tolist(), strict=True):
        name, payload = kinds[at]
        communicator, size, rank = _membership(name, payload or {})
        if communicator is not None and size is not None:
            sizes.setdefault(communicator, set()).add(size)
            ranks.setdefault((owner, communicator), set()).add(rank)
    agreed = {key: found.pop() for key, found in sizes.items() if len(found) == 1}
    own = {key: found.pop() for key, found in ranks.items() if len(found) == 1}
    return agreed, {key: rank for key, rank in own.items() if 0 <= rank < agreed.get(key[1], 0)}


def _membership(name: str, payload: Payload) -> tuple[int | None, int | None, int]:
    """(communicator, how many ranks it has, which this one is or -1)."""
    size = _number(payload.get(_RANKS_BY.get(name, "")), _MOST_RANKS)
    rank = _number(payload.get(_RANK), _MOST_RANKS)
    return _communicator(payload) or None, size or None, NONE if rank is None else rank


def _warnings(
    kinds: Sequence[tuple[str, Payload | None]], counts: Sequence[int], advice: str
) -> list[str]:
    of_calls = [
        (_call(name, payload) if payload else payload, count)
        for (name, payload), count in zip(kinds, counts, strict=True)
        if name in _COLLECTIVES
    ]
    absent = sum(count for found, count in of_calls if found == {})
    unread = sum(count for found, count in of_calls if found is None)
    warnings = []
    if absent:
        have = format_counted(absent, "call of NCCL has", "calls of NCCL have")
        warnings.append(f"{have} no payload, which tells size and group{advice}")
    if unread:
        have = format_counted(unread, "call of NCCL has", "calls of NCCL have")
        warnings.append(f"{have} a payload that cannot be read: size and group are not known")
    return warnings
