"""The JSON document around the events: cut into pieces of whole events, damage passed over."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from flame.core.readers.kineto.boundaries import (
    ENDLESS,
    EVENTS_KEY,
    NEAR,
    NEXT_EVENT,
    last_boundary,
    passed,
    value_end,
)
from flame.core.readers.kineto.events import EventDecoder, Events
from flame.core.readers.kineto.stream import Stream

EVENTS = "traceEvents"
_SMALL = 64 << 10  # a piece of this size that does not decode is gone through event by event
_LONGEST = 1 << 20  # bytes of one event: what is longer has lost its end
_SHORTEST = 1 << 10  # as much is looked at even where all has lost its end
_IN_VAIN = 8 << 20  # bytes that may be looked at again, beside those in whole pieces
_SPACE = re.compile(rb"\s*+")
_SPACE_AND_COMMAS = re.compile(rb"[\s,]*+")


class Document:
    """A trace being read: its `pieces`, and when they are through, ``top`` and the damage.

    ``top`` are the texts of the ``wanted`` keys beside the events; no others are kept. ``cut_at``
    is the byte (of the unpacked file) at which it ends too early. ``damaged`` counts places that
    are no JSON.
    """

    def __init__(self, stream: Stream, wanted: frozenset[str]) -> None:
        self.top: dict[str, bytes] = {}
        self.cut_at: int | None = None
        self.damaged = 0
        self.decoder = EventDecoder()
        self._wanted = wanted
        self._stream = stream
        self._small = min(_SMALL, stream.piece // 4 + 1)
        self._spare = _IN_VAIN

    def pieces(self) -> Iterator[Events]:
        """All events, some thousand at a time."""
        opening = self._next(_SPACE)
        if opening == b"\xef":
            self._stream.at += len(b"\xef\xbb\xbf")  # a byte order mark
            opening = self._next(_SPACE)
        self._stream.at += len(opening)
        if opening == b"[":
            yield from self._array()
        elif opening == b"{":
            yield from self._object()

    def _next(self, between: re.Pattern[bytes]) -> bytes:
        """The next byte after what ``between`` passes over; none at the end."""
        stream = self._stream
        while stream.have(1):
            found = between.match(stream.window, stream.at)
            stream.at = found.end() if found else stream.at
            if stream.at < len(stream.window):
                return stream.window[stream.at : stream.at + 1]
        return b""

    def _cut(self) -> None:
        """The file ends too early."""
        self._stream.at = len(self._stream.window)
        self.cut_at = self._stream.position

    def _object(self) -> Iterator[Events]:
        while (key := self._key()) is not None:
            if key == EVENTS and self._next(_SPACE) == b"[":
                self._stream.at += 1
                yield from self._array()
            elif key not in self._wanted:
                self._pass_over()
            elif (text := self._value()) is not None:
                self.top[key] = text
            self._stream.report()

    def _key(self) -> str | None:
        """The next key, passed over with its colon; None at the end of the object."""
        opening = self._next(_SPACE_AND_COMMAS)
        if opening in (b"", b"}"):
            if not opening:
                self._cut()
            return None
        text = self._value()
        if text is None:
            return None
        colon = self._next(_SPACE)
        if colon == b"":
            self._cut()
            return None
        if opening != b'"' or colon != b":":
            self.damaged += 1
            return EVENTS if self._search(EVENTS_KEY) else None
        self._stream.at += 1
        self._next(_SPACE)
        return _unquoted(text)

    def _value(self) -> bytes | None:
        """The text of the value here, passed over; None where the file ends in it."""
        length = self._length()
        if length is None:
            self._cut()
            return None
        stream = self._stream
        stream.at += length
        return stream.window[stream.at - length : stream.at]

    def _pass_over(self) -> None:
        """Go on behind the value here, however large it is."""
        stream = self._stream
        if self._next(_SPACE) not in (b"{", b"["):
            self._value()
            return
        depth = 0
        while True:
            stream.at, depth = passed(stream.window, stream.at, depth=depth)
            if depth == 0:
                return
            if not stream.fill():
                self._cut()
                return

    def _length(self, longest: int = ENDLESS) -> int | None:
        """Bytes of the value here, all in the window; None where its end is not found."""
        stream = self._stream
        while (end := value_end(stream.window, stream.at, stream.at + longest)) is None:
            if len(stream.window) - stream.at > longest or not stream.fill():
                return None
        return end - stream.at

    def _search(self, pattern: re.Pattern[bytes]) -> bool:
        """Go on behind the next place that matches; at the file's end where there is none."""
        stream = self._stream
        while (found := pattern.search(stream.window, stream.at)) is None:
            stream.at = max(stream.at, len(stream.window) - NEAR)
            if not stream.fill():
                stream.at = len(stream.window)
                return False
        stream.at = found.end()
        return True

    def _array(self) -> Iterator[Events]:
        """Events up to the array's end: large pieces at once, small ones where that fails."""
        stream, size = self._stream, self._stream.piece
        while (opening := self._next(_SPACE_AND_COMMAS)) not in (b"]", b""):
            stream.have(size)
            events = self._piece(size)
            if events is not None:
                yield events
                size = min(2 * size, stream.piece)
            elif size > self._small:
                size //= 2
            else:
                yield self._one_by_one(stream.position + size)
        if opening:
            stream.at += 1
        else:
            self._cut()

    def _piece(self, size: int) -> Events | None:
        """The events of the next ``size`` bytes, all but the last; None where that fails."""
        stream = self._stream
        end = last_boundary(stream.window, stream.at, min(stream.at + size, len(stream.window)))
        if end is None:
            return None
        try:
            events = self.decoder.decode(stream.window[stream.at : end])
        except (ValueError, RecursionError):
            return None
        self._spare = min(self._spare + end - stream.at, _IN_VAIN)
        stream.at = end
        return events

    def _one_by_one(self, until: int) -> Events:
        """Events up to the one that reaches ``until``, or to the array's end."""
        events: list[Any] = []
        while self._stream.position < until:
            if self._next(_SPACE_AND_COMMAS) in (b"]", b""):
                break
            events += self._one()
        self._stream.report()
        return events

    def _one(self) -> Events:
        """The next event; nothing where it is damaged."""
        stream = self._stream
        longest = min(max(self._spare, _SHORTEST), _LONGEST)
        length = self._length(longest)
        if not length:  # without an end, or a bracket that closes nothing
            self._step_in(longest if length is None else 0)
            # Nothing after it: the file ends in this event, which then is not damaged but cut off.
            self.damaged += self._search(NEXT_EVENT)
            return []
        text = stream.window[stream.at : stream.at + length]
        try:
            events = self.decoder.decode_odd(text)
        except (ValueError, RecursionError):
            self.damaged += 1
            self._leave(text)
            return []
        if text[:1] == b"[":
            self._leave(text)  # a stray bracket, before events
        else:
            stream.at += length
        return events

    def _step_in(self, size: int) -> None:
        """Go on behind the next byte, although ``size`` bytes have been looked at.

        Each damaged event could cost as much as all that follow it: what is to spare ends some day.
        """
        self._spare -= min(size, len(self._stream.window) - self._stream.at)
        self._stream.at += 1

    def _leave(self, text: bytes) -> None:
        """Go on behind ``text``, which is no event, or where the next one begins inside it."""
        closed = text[:1] != b"{" or text.endswith(b"}")
        if closed and not NEXT_EVENT.search(text, 1) and self._separated(len(text)):
            self._stream.at += len(text)
        else:
            self._step_in(len(text))
            self._search(NEXT_EVENT)

    def _separated(self, length: int) -> bool:
        """Whether the value of ``length`` is followed by what may follow an event."""
        stream = self._stream
        stream.have(length + NEAR)
        place = stream.at + length
        return stream.window[place : place + NEAR].lstrip()[:1] in (b",", b"]", b"")


def _unquoted(text: bytes) -> str:
    try:
        return str(json.loads(text))
    except ValueError:
        return ""
