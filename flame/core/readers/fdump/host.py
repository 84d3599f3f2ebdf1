"""What the threads did: CUDA API calls, and NVTX ranges with their payloads."""

from __future__ import annotations

import struct

import numpy as np

from flame.core.columns import I4, I8, Bool, pack
from flame.core.frames import Frame, Kind
from flame.core.names import api_name, payload_text
from flame.core.profile import NONE
from flame.core.raw import OPEN, Batches, Calls, Ranges
from flame.core.readers.fdump.context import Context
from flame.core.readers.fdump.gpu import recorded
from flame.core.readers.fdump.ids import Made
from flame.core.readers.fdump.names import API

CALLS, RANGES, OPEN_RANGES = "launch", "range", "open_range"
_CALL_FIELDS = ("start", "end", "correlation", "tid", "python", "nvtx", "api")
OPEN_FIELDS = ("start", "tid", "name")
_PAYLOAD_FIELDS = ("payload", "payload_text", "payload_type")
_RANGE_FIELDS = (*OPEN_FIELDS, "end", "kind", *_PAYLOAD_FIELDS)
_PUSH_POP, _START_END = 0, 1
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


def read_calls(context: Context) -> tuple[Calls, I4]:
    """All CUDA API calls, and the path of NVTX ranges recorded with each."""
    batches, paths = Batches(Calls), [np.zeros(0, np.int32)]
    frames = Made(lambda api: context.frames.add(_call(context, api)))
    for piece in context.columns("reading API calls", CALLS, _CALL_FIELDS):
        start, end = context.spans("CUDA API calls", piece["start"], piece["end"])
        row = recorded(context, piece)
        paths.append(row["nvtx"])
        batches.add(
            start=start,
            end=end,
            thread=row["thread"],
            correlation=piece["correlation"],
            frame=frames.rows([piece["api"]]),
            python=row["python"],
            native=np.zeros(len(start)),
            chain_only=np.zeros(len(start)),
        )
    return batches.build(), np.concatenate(paths)


def _call(context: Context, api: int) -> Frame:
    name = api_name(context.vocabulary.name(API, api))
    return Frame(Kind.LAUNCH, name or f"[API call with unknown name {api}]")


class _Payloads:
    """Keeps a few payloads of ranges as examples: they differ from instance to instance."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._left = _MAX_PAYLOADS

    def add(self, piece: dict[str, I8]) -> None:
        """Those of the ranges in ``piece``."""
        filled = (piece["payload_type"] != 0) | (piece["payload_text"] != 0)
        rows = np.flatnonzero(filled)[: self._left]
        self._left -= len(rows)
        texts = self._context.vocabulary.texts.of(piece["payload_text"][rows])
        frames = self._context.vocabulary.range_frames(piece["name"][rows]).tolist()
        columns = (piece[name][rows].tolist() for name in _PAYLOAD_FIELDS)
        for index, bits, text, kind in zip(frames, *columns, strict=True):
            payload = payload_text(texts[text]) if text else _payload(bits, kind)
            if payload:
                self._context.frames.example(index, payload)


def _payload(bits: int, kind: int) -> str:
    if kind not in _PAYLOADS:
        return ""
    title, form = _PAYLOADS[kind]
    (value,) = struct.unpack_from(form, struct.pack("<q", bits))
    return f"{title} {value}"


def read_ranges(context: Context, still_open: dict[str, I8]) -> Ranges:
    """All push/pop ranges, ``still_open`` ones last; start/end ranges where options ask for them.

    ``still_open`` are columns of open ranges that were read before all others: some may have ended.
    """
    batches, payloads, lost = Batches(Ranges), _Payloads(context), 0
    wanted = [_PUSH_POP, _START_END] if context.options.nvtx_start_end else [_PUSH_POP]
    for piece in context.columns("reading NVTX ranges", RANGES, _RANGE_FIELDS):
        piece = _chosen(piece, np.isin(piece["kind"], wanted))
        end, ended = context.times(piece["end"])
        lost += _add(context, batches, piece, end, ended)
        payloads.add(piece)
    known = batches.build()
    batches.add(**{name: getattr(known, name) for name in ("start", "end", "thread", "frame")})
    left = _chosen(still_open, ~_among(context, still_open, known))
    end = np.full(len(left["start"]), OPEN)
    lost += _add(context, batches, left, end, end == OPEN)
    if len(end):
        context.reach_end()
    if lost:
        context.notes.append(f"{lost:,} NVTX ranges have no time that makes sense: left out")
    return batches.build()


def _chosen(piece: dict[str, I8], rows: Bool) -> dict[str, I8]:
    return {name: column[rows] for name, column in piece.items()}


def _add(
    context: Context, batches: Batches[Ranges], piece: dict[str, I8], end: I8, ended: Bool
) -> int:
    """Add the ranges in ``piece`` that have times; how many have none."""
    start, started = context.times(piece["start"])
    whole = started & ended
    batches.add(
        start=start[whole],
        end=end[whole],
        thread=context.thread(piece["tid"][whole]),
        frame=context.vocabulary.range_frames(piece["name"][whole]),
    )
    return int((~whole).sum())


def _among(context: Context, still_open: dict[str, I8], known: Ranges) -> Bool:
    """Which of the ``still_open`` ranges began on a thread when one of the ``known`` ones did."""
    start, _ = context.times(still_open["start"])
    thread = context.thread(still_open["tid"])
    keys = pack([np.append(thread, known.thread), np.append(start, known.start)])
    wanted, ended = keys[: len(start)], np.sort(keys[len(start) :])
    found: Bool = np.append(ended, NONE)[np.searchsorted(ended, wanted)] == wanted
    return found
