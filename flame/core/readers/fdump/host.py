"""Read what threads did: CUDA API calls, and NVTX ranges with their payloads."""

from __future__ import annotations

import struct
from functools import partial

import numpy as np

from flame.core.columns import I4, I8, Bool, Column, pack
from flame.core.model.activities import NONE
from flame.core.model.frames import Frame, Kind
from flame.core.model.threads.call_rows import UNKNOWN_RESULT, FailedCalls
from flame.core.names.cuda import api_name
from flame.core.names.nvtx import payload_text
from flame.core.readers.fdump.context import DumpContext
from flame.core.readers.fdump.ids import OptionalRowIds
from flame.core.readers.fdump.records import NamedColumns
from flame.core.readers.fdump.vocabulary import API

LAUNCHES, CALLS, RANGES, OPEN_RANGES = "launch", "call", "range", "open_range"
_PAYLOAD_FIELDS = ("payload", "payload_text", "payload_type")
_CALL_FIELDS = ("start", "end", "tid", "python", "nvtx", "api")
FIELDS = {
    LAUNCHES: (*_CALL_FIELDS, "correlation", "flags"),
    CALLS: (*_CALL_FIELDS, "result"),
    RANGES: ("start", "tid", "name", "node", "end", "kind", *_PAYLOAD_FIELDS),
    OPEN_RANGES: ("start", "tid", "name", "node"),
}
PUSH_POP, START_END = 0, 1
_WITHIN, _16_BITS = 16, 0xFFFF  # kWithin in dump.h
_FAILED, _RESULT, _15_BITS = 1, 1, 0x7FFF  # kFailed, kResult
_DEEPEST = 250  # kMaxDepth in dump.h: what is deeper has the path of the range around it
# nvtxPayloadType_t in nvToolsExt.h: what it is called, and how it stands in 64 bits
_PAYLOADS = {
    1: ("uint64", "<Q"),
    2: ("int64", "<q"),
    3: ("double", "<d"),
    4: ("uint32", "<I"),
    5: ("int32", "<i"),
    6: ("float", "<f"),
}
_MAX_PAYLOADS = 2_000


class DumpCallRows:
    """Builds rows of CUDA API calls from their records.

    Columns are those of `flame.core.model.raw.RawCalls`, and ``nvtx``, the path recorded with each.
    """

    def __init__(self, context: DumpContext) -> None:
        self._context = context
        self._frames = OptionalRowIds(partial(_add_call, context))
        self._others = 0

    def forget_names(self) -> None:
        """Look names up again: a name may come after the first call that has it."""
        self._frames = OptionalRowIds(partial(_add_call, self._context))

    def launch_rows(self, piece: dict[str, I8]) -> NamedColumns:
        """Build the rows of all launches in ``piece``."""
        return self._call_rows(piece) | {"correlation": piece["correlation"]}

    def call_rows(self, piece: dict[str, I8]) -> NamedColumns:
        """Build the rows of calls that launch nothing: the id of each is one that no work has."""
        first, size = self._others, len(piece["start"])
        self._others += size
        return self._call_rows(piece) | {"correlation": -1 - np.arange(first, first + size)}

    def frames_around(self, flags: I8) -> I4:
        """Return the frames of the calls in which launches with these ``flags`` lie, or -1."""
        within = flags >> _WITHIN & _16_BITS
        around = np.full(len(flags), NONE, np.int32)
        rows = np.flatnonzero(within)
        if len(rows):
            around[rows] = self._frames.look_up([within[rows]])
        return around

    def _call_rows(self, piece: dict[str, I8]) -> NamedColumns:
        start, end = self._context.spans("CUDA API calls", piece["start"], piece["end"])
        nothing = np.zeros(len(start))
        return self._context.thread_and_stacks(piece) | {
            "start": start,
            "end": end,
            "frame": self._frames.look_up([piece["api"]]),
            "native": nothing,
            "chain_only": nothing,
        }


class FailedRows:
    """Keeps those rows of calls that failed."""

    def __init__(self) -> None:
        self._failed: list[list[Column]] = []
        self._known = 0

    def add(self, rows: NamedColumns, piece: dict[str, I8]) -> None:
        """Look at the ``rows`` that were built of ``piece``."""
        self._known += len(rows["start"])
        if "result" in piece:
            failed = np.flatnonzero(piece["result"])
            value = piece["result"][failed]
        else:
            failed = np.flatnonzero(piece["flags"] & _FAILED)
            value = piece["flags"][failed] >> _RESULT & _15_BITS
            value[value == 0] = UNKNOWN_RESULT
        columns = (rows[name] for name in ("thread", "frame", "start", "end"))
        self._failed.append([*(column[failed] for column in columns), value])

    def build(self) -> FailedCalls | None:
        """Build the table of all; None where there were no calls."""
        if not self._known:
            return None
        thread, frame, start, end, value = map(np.concatenate, zip(*self._failed, strict=True))
        return FailedCalls(thread, frame, start, end, value, self._known)


def _add_call(context: DumpContext, api: int) -> int:
    name = api_name(context.vocabulary.name_of(API, api))
    frame = Frame(Kind.LAUNCH, name or f"[API call with unknown name {api}]")
    return context.shared.frames.add(frame)


class Payloads:
    """Keeps a few payloads of ranges as examples: they differ from instance to instance."""

    def __init__(self, context: DumpContext) -> None:
        self._context = context
        self._left = _MAX_PAYLOADS

    def add(self, piece: dict[str, I8]) -> None:
        """Keep payloads of the ranges in ``piece``."""
        filled = (piece["payload_type"] != 0) | (piece["payload_text"] != 0)
        rows = np.flatnonzero(filled)[: self._left]
        self._left -= len(rows)
        texts = self._context.vocabulary.texts.look_up(piece["payload_text"][rows])
        frames = self._context.vocabulary.range_frames(piece["name"][rows]).tolist()
        columns = (piece[name][rows].tolist() for name in _PAYLOAD_FIELDS)
        for index, bits, text, kind in zip(frames, *columns, strict=True):
            payload = payload_text(texts[text]) if text else _format_payload(bits, kind)
            if payload:
                self._context.shared.frames.add_example(index, payload)


def _format_payload(bits: int, kind: int) -> str:
    if kind not in _PAYLOADS:
        return ""
    title, form = _PAYLOADS[kind]
    (value,) = struct.unpack_from(form, struct.pack("<q", bits))
    return f"{title} {value}"


def build_range_rows(
    context: DumpContext, piece: dict[str, I8]
) -> tuple[NamedColumns, dict[str, I8]]:
    """Build rows of ranges that have times, columns of `RawRanges`; and select their records.

    Ranges that are open have no ``end`` in ``piece``, and get none.
    """
    times: NamedColumns = {}
    whole = np.ones(len(piece["start"]), bool)
    for name in {"start", "end"} & piece.keys():
        times[name], known = context.times(piece[name])
        whole &= known
    kept = select_rows(piece, whole)
    rows: NamedColumns = {
        "thread": context.thread_indices(kept["tid"]),
        "frame": context.vocabulary.range_frames(kept["name"]),
    }
    return rows | select_rows(times, whole), kept


def build_push_pop_rows(
    context: DumpContext, piece: dict[str, I8]
) -> tuple[NamedColumns, dict[str, I8], int]:
    """Build rows of push/pop ranges with ``nvtx``, the path with the range; and their records.

    The last is how many are on no path of their own: the library records none for the innermost
    of very many, nor for those whose names it had no memory for.
    """
    rows, kept = build_range_rows(context, piece)
    node = kept["node"]
    own = (node != 0) & (kept["name"] != 0) & (context.stacks.depths_of(node) < _DEEPEST)
    rows["nvtx"] = context.stacks.stacks_of(node, Kind.NVTX)
    return select_rows(rows, own), select_rows(kept, own), int((~own).sum())


def share_begin(rows: NamedColumns, others: NamedColumns) -> Bool:
    """Return which ``rows`` began when one of ``others`` did, on the same thread."""
    thread, start = rows["thread"], rows["start"]
    keys = pack([np.append(thread, others["thread"]), np.append(start, others["start"])])
    wanted, begins = keys[: len(start)], np.sort(keys[len(start) :])
    shared: Bool = np.append(begins, NONE)[np.searchsorted(begins, wanted)] == wanted
    return shared


def select_kinds(piece: dict[str, I8], kinds: tuple[int, ...]) -> dict[str, I8]:
    """Select the records of ranges of these kinds."""
    return select_rows(piece, np.isin(piece["kind"], kinds))


def select_rows(piece: NamedColumns, rows: Bool) -> NamedColumns:
    """Select some rows of all columns."""
    return {name: column[rows] for name, column in piece.items()}
