"""Decode the events of a trace: the few fields that matter, fast where JSON is clean."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from functools import cached_property
from typing import Annotated, Generic, TypeVar

import msgspec
import numpy as np

from flame.core.columns import I8, Bool
from flame.core.lazy_regex import lazy_regex

LIMIT = 1 << 61
"""Times beyond 73 years (ns) are damage; the difference of two within fits 63 bits."""


Number = Annotated[int, msgspec.Meta(ge=-(1 << 62), le=1 << 62)]
Text = msgspec.Raw | msgspec.UnsetType
Us = int | float | Decimal | None
"""A time in µs, as the file spells it."""

_Us = TypeVar("_Us")

EXACT_US = float(1 << 43)
"""Float µs below are within half a nanosecond of what the file says; above, digits are lost."""


_SPELLED = {
    "call": "Python id",
    "caller": "Python parent id",
    "sequence": "Sequence number",
    "forward_thread": "Fwd thread id",
    "registers": "registers per thread",
    "shared": "shared memory",
    "dims": "Input Dims",
    "types": "Input type",
    "strides": "Input Strides",
    "values": "Concrete Inputs",
    "call_stack": "Call stack",
    "collective": "Collective name",
    "backend": "kernel_backend",
}
_DETAILS = {
    "sent": "In msg nelems",
    "received": "Out msg nelems",
    "ranks": "Group size",
    "group": "Process Group Name",
    "about": "Process Group Description",
    "members": "Process Group Ranks",
    "sequence": "Seq",
    "in_use": "Total Allocated",
    "reserved": "Total Reserved",
    "device": "Device Id",
    "device_type": "Device Type",
    "change": "Bytes",
    "address": "Addr",
    "order": "Ev Idx",
}


class EventArgs(msgspec.Struct, gc=False, rename=_SPELLED):
    """The `args` of an event; each field is absent in most events.

    `Raw` are values of many shapes, of which only the text is kept.
    """

    correlation: Number | None = None
    device: Number | None = None
    stream: Number | None = None
    bytes: Number | None = None
    call: Number | None = None
    caller: Number | None = None
    sequence: Number | None = None
    forward_thread: Number | None = None
    registers: Number | None = None
    shared: Number | None = None
    dims: Text = msgspec.UNSET
    types: Text = msgspec.UNSET
    strides: Text = msgspec.UNSET
    values: Text = msgspec.UNSET
    grid: Text = msgspec.UNSET
    block: Text = msgspec.UNSET
    call_stack: str | None = None
    name: str | None = None
    collective: str | None = None
    backend: str | None = None


class EventDetails(msgspec.Struct, gc=False, rename=_DETAILS):
    """What only few events have in their `args`, of any type; see `PieceDetails`."""

    dtype: object = None
    sent: object = None
    received: object = None
    ranks: object = None
    group: object = None
    about: object = None
    members: object = None
    sequence: object = None
    num_warps: object = None
    num_stages: object = None
    in_use: object = None
    reserved: object = None
    device: object = None
    device_type: object = None
    change: object = None
    address: object = None
    order: object = None


class TraceEvent(msgspec.Struct, Generic[_Us], gc=False):
    """One entry of `traceEvents`. Processes and threads have numbers, some have names."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: int | str = 0
    tid: int | str = 0
    ts: _Us | None = None
    dur: _Us | None = None
    id: int | str | None = None
    args: EventArgs | None = None


Events = Sequence[TraceEvent[Number | float]] | Sequence[TraceEvent[Decimal]]


class _BareEvent(msgspec.Struct, gc=False):
    args: Text = msgspec.UNSET


_bare = msgspec.json.Decoder(list[_BareEvent])
_details = msgspec.json.Decoder(EventDetails)


class PieceDetails:
    """Decodes the details of some ``events`` of a piece, which are all those of ``texts``.

    Each field of `EventArgs` makes every event dearer, also those that lack it. So what few events
    have is decoded in another pass, of pieces with such events alone.
    """

    def __init__(self, events: Events, texts: Sequence[bytes | memoryview]) -> None:
        self._events = events
        self._texts = texts

    @cached_property
    def _args(self) -> dict[int, Text]:
        """The JSON text of the `args` of each event."""
        with suppress(RecursionError):  # so deep that it is luck that it has been decoded before
            args = [bare.args for text in self._texts for bare in _bare.decode(_listed(text))]
            return dict(zip(map(id, self._events), args, strict=True))
        return {}

    def of(self, events: Sequence[object]) -> list[EventDetails]:
        """Decode the details of ``events``, which have `args`."""
        return [self._decoded(self._args.get(id(event), b"{}")) for event in events]

    @staticmethod
    def _decoded(args: Text | bytes) -> EventDetails:
        with suppress(ValueError, RecursionError):  # what nobody decodes may be no UTF-8
            return _details.decode(args or b"{}")
        return EventDetails()


def _listed(text: bytes | memoryview) -> bytes:
    return b"".join((b"[", text, b"]"))


NO_DETAILS = PieceDetails((), ())
"""Of no events."""


class EventDecoder:
    """Decodes events; ``bad`` counts JSON values that are no event.

    Times are decoded as floats until one is met that a float cannot hold to the nanosecond.
    ``texts`` are what has been decoded since that was last emptied.
    """

    def __init__(self) -> None:
        self.bad = 0
        self.texts: list[bytes | memoryview] = []
        self._exact = False
        self._float = msgspec.json.Decoder(list[TraceEvent[Number | float]], strict=False)
        self._decimal = msgspec.json.Decoder(list[TraceEvent[Decimal]], strict=False)

    def decode(self, text: bytes | memoryview) -> Events:
        """Decode all events of ``text``, objects with commas between them.

        Raises ValueError where anything about it is unusual: not JSON, not UTF-8, a wrong type.
        """
        events = self._decode(_listed(text))
        self.texts.append(text)
        return events

    def _decode(self, whole: bytes) -> Events:
        if not self._exact:
            events = self._float.decode(whole)
            self._exact = _has_inexact([event.ts for event in events])
            if not self._exact:
                return events
        return self._decimal.decode(whole)

    def decode_malformed(self, text: bytes) -> Events:
        """Decode the event ``text``, however oddly written; none where it has wrong types.

        Raises ValueError or RecursionError where it cannot be made JSON.
        """
        with suppress(ValueError, RecursionError):
            return self.decode(text)
        try:
            return self.decode(_strict_json(text.decode("utf-8", "replace")))
        except msgspec.ValidationError:
            self.bad += 1
            return []


def _has_inexact(times: Sequence[Us]) -> bool:
    """Return whether any of ``times`` is a float of which digits are lost."""
    if not (np.array(times, np.float64) >= EXACT_US).any():
        return False
    return any(type(time) is float and time >= EXACT_US for time in times)


def _strict_json(text: str) -> bytes:
    """Return ``text`` as msgspec accepts it: control characters escaped, NaN null, numbers kept."""
    try:
        value = _lenient.decode(text)
    except ValueError:
        value = _lenient.decode(_TOKEN.sub(_repair_token, text))
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_replace_surrogates(value))


_lenient = json.JSONDecoder(
    strict=False, parse_float=msgspec.Raw, parse_int=msgspec.Raw, parse_constant=lambda _: None
)
# Strings, and what C++ prints for a number that is none.
_TOKEN = lazy_regex(
    r'"(?:[^"\\]++|\\.)*+"|[-+]?\b(?:nan|inf(?:inity)?)\b', re.DOTALL | re.IGNORECASE
)
_BAD_ESCAPE = lazy_regex(r'\\(?:(["\\/bfnrt]|u[0-9a-fA-F]{4})|)')


def _repair_token(token: re.Match[str]) -> str:
    r"""Double stray backslashes (`C:\lib`) in a string; return null for a number that is none."""
    if not token[0].startswith('"'):
        return "null"
    return _BAD_ESCAPE.sub(lambda found: found[0] if found[1] else r"\\", token[0])


def _replace_surrogates(value: object) -> object:
    """Replace halves of characters, which no text can be written with, by `?` in ``value``."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_replace_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_replace_surrogates(key): _replace_surrogates(item) for key, item in value.items()}
    return value


def to_nanoseconds(values: Sequence[Us]) -> tuple[I8, Bool]:
    """Convert ``values`` (µs) to ns, and return which of them are times at all (0 where not)."""
    us = np.array(values, np.float64)
    known = np.abs(us) <= LIMIT // 1000  # not where it is NaN, which None becomes
    us = np.where(known, us, 0.0)
    # Whole microseconds and the rest apart: both are exact, their product by 1000 would not be.
    whole = np.floor(us)
    ns = whole.astype(np.int64) * 1000 + np.rint((us - whole) * 1000).astype(np.int64)
    for place in np.flatnonzero(us >= EXACT_US).tolist():
        value = values[place]
        if isinstance(value, Decimal):
            ns[place] = round(value * 1000)
    return ns, known
