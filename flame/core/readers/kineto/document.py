"""Cut the JSON document into pieces of whole events, passing over damage."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from flame.core.lazy_regex import lazy_regex
from flame.core.readers.kineto.boundaries import (
    ENDLESS,
    EVENTS_KEY,
    NEAR,
    NEXT_EVENT,
    find_last_boundary,
    find_value_end,
    skip_brackets,
)
from flame.core.readers.kineto.events import EventDecoder, Events
from flame.core.readers.kineto.stream import TraceStream

EVENTS = "traceEvents"
_SMALL = 64 << 10  # a piece of this size that does not decode is gone through event by event
_LONGEST = 1 << 20  # bytes of one event: what is longer has lost its end
_SHORTEST = 1 << 10  # as much is looked at even where all has lost its end
_IN_VAIN = 8 << 20  # bytes that may be looked at again, beside those in whole pieces
_SPACE = lazy_regex(rb"\s*+")
_SPACE_AND_COMMAS = lazy_regex(rb"[\s,]*+")


class TraceDocument:
    """A trace being read: its `pieces`, and when they are through, ``top`` and the damage.

    ``top`` are the texts of the ``wanted`` keys beside the events; no others are kept. ``cut_at``
    is the byte (of the unpacked file) at which it ends too early. ``damaged`` counts places that
    are no JSON.
    """

    def __init__(self, stream: TraceStream, wanted: frozenset[str]) -> None:
        self.top: dict[str, bytes] = {}
        self.cut_at: int | None = None
        self.damaged = 0
        self.decoder = EventDecoder()
        self._wanted = wanted
        self._stream = stream
        self._small = min(_SMALL, stream.piece // 4 + 1)
        self._spare = _IN_VAIN

    def pieces(self) -> Iterator[Events]:
        """Yield all events, some thousand at a time."""
        opening = self._next_byte(_SPACE)
        if opening == b"\xef":
            self._stream.at += len(b"\xef\xbb\xbf")  # a byte order mark
            opening = self._next_byte(_SPACE)
        self._stream.at += len(opening)
        if opening == b"[":
            yield from self._read_array()
        elif opening == b"{":
            yield from self._read_object()

    def _next_byte(self, between: re.Pattern[bytes]) -> bytes:
        """Return the next byte after what ``between`` passes over; none at the end."""
        stream = self._stream
        while stream.ensure(1):
            match = between.match(stream.window, stream.at)
            stream.at = match.end() if match else stream.at
            if stream.at < len(stream.window):
                return stream.window[stream.at : stream.at + 1]
        return b""

    def _note_cut(self) -> None:
        """Note that the file ends too early."""
        self._stream.at = len(self._stream.window)
        self.cut_at = self._stream.position

    def _read_object(self) -> Iterator[Events]:
        while (key := self._next_key()) is not None:
            if key == EVENTS and self._next_byte(_SPACE) == b"[":
                self._stream.at += 1
                yield from self._read_array()
            elif key not in self._wanted:
                self._skip_value()
            elif (text := self._take_value()) is not None:
                self.top[key] = text
            self._stream.report_progress()

    def _next_key(self) -> str | None:
        """Return the next key, passed over with its colon; None at the end of the object."""
        opening = self._next_byte(_SPACE_AND_COMMAS)
        if opening in (b"", b"}"):
            if not opening:
                self._note_cut()
            return None
        text = self._take_value()
        if text is None:
            return None
        colon = self._next_byte(_SPACE)
        if colon == b"":
            self._note_cut()
            return None
        if opening != b'"' or colon != b":":
            self.damaged += 1
            return EVENTS if self._skip_past(EVENTS_KEY) else None
        self._stream.at += 1
        self._next_byte(_SPACE)
        return _unquote(text)

    def _take_value(self) -> bytes | None:
        """Return the text of the value here, passed over; None where the file ends in it."""
        length = self._value_length()
        if length is None:
            self._note_cut()
            return None
        stream = self._stream
        stream.at += length
        return stream.window[stream.at - length : stream.at]

    def _skip_value(self) -> None:
        """Go on behind the value here, however large it is."""
        stream = self._stream
        if self._next_byte(_SPACE) not in (b"{", b"["):
            self._take_value()
            return
        depth = 0
        while True:
            stream.at, depth = skip_brackets(stream.window, stream.at, depth=depth)
            if depth == 0:
                return
            if not stream.double():
                self._note_cut()
                return

    def _value_length(self, longest: int = ENDLESS) -> int | None:
        """Return the bytes of the value here, all in the window; None without an end."""
        stream = self._stream
        while (end := find_value_end(stream.window, stream.at, stream.at + longest)) is None:
            if len(stream.window) - stream.at > longest or not stream.double():
                return None
        return end - stream.at

    def _skip_past(self, pattern: re.Pattern[bytes]) -> bool:
        """Go on behind the next place that matches; at the file's end where there is none."""
        stream = self._stream
        while (match := pattern.search(stream.window, stream.at)) is None:
            stream.at = max(stream.at, len(stream.window) - NEAR)
            if not stream.double():
                stream.at = len(stream.window)
                return False
        stream.at = match.end()
        return True

    def _read_array(self) -> Iterator[Events]:
        """Yield events up to the array's end: large pieces at once, small ones where that fails."""
        stream, size = self._stream, self._stream.piece
        while (opening := self._next_byte(_SPACE_AND_COMMAS)) not in (b"]", b""):
            stream.ensure(size)
            events = self._decode_piece(size)
            if events is not None:
                yield events
                size = min(2 * size, stream.piece)
            elif size > self._small:
                size //= 2
            else:
                yield self._decode_events_singly(stream.position + size)
        if opening:
            stream.at += 1
        else:
            self._note_cut()

    def _decode_piece(self, size: int) -> Events | None:
        """Decode the events of the next ``size`` bytes, all but the last; None where that fails."""
        stream = self._stream
        end = find_last_boundary(
            stream.window, stream.at, min(stream.at + size, len(stream.window))
        )
        if end is None:
            return None
        try:
            events = self.decoder.decode(memoryview(stream.window)[stream.at : end])
        except (ValueError, RecursionError):
            return None
        self._spare = min(self._spare + end - stream.at, _IN_VAIN)
        stream.at = end
        return events

    def _decode_events_singly(self, until: int) -> Events:
        """Decode events up to the one that reaches ``until``, or to the array's end."""
        events: list[Any] = []
        while self._stream.position < until:
            if self._next_byte(_SPACE_AND_COMMAS) in (b"]", b""):
                break
            events += self._decode_event()
        self._stream.report_progress()
        return events

    def _decode_event(self) -> Events:
        """Decode the next event; nothing where it is damaged."""
        stream = self._stream
        longest = min(max(self._spare, _SHORTEST), _LONGEST)
        length = self._value_length(longest)
        if not length:  # without an end, or a bracket that closes nothing
            self._step_in(longest if length is None else 0)
            # Nothing after it: the file ends in this event, which then is not damaged but cut off.
            self.damaged += self._skip_past(NEXT_EVENT)
            return []
        text = stream.window[stream.at : stream.at + length]
        try:
            events = self.decoder.decode_malformed(text)
        except (ValueError, RecursionError):
            self.damaged += 1
            self._skip_damaged(text)
            return []
        if text[:1] == b"[":
            self._skip_damaged(text)  # a stray bracket, before events
        else:
            stream.at += length
        return events

    def _step_in(self, size: int) -> None:
        """Go on behind the next byte, although ``size`` bytes have been looked at.

        Each damaged event could cost as much as all that follow it: what is to spare ends some day.
        """
        self._spare -= min(size, len(self._stream.window) - self._stream.at)
        self._stream.at += 1

    def _skip_damaged(self, text: bytes) -> None:
        """Go on behind ``text``, which is no event, or where the next one begins inside it."""
        closed = text[:1] != b"{" or text.endswith(b"}")
        if closed and not NEXT_EVENT.search(text, 1) and self._ends_cleanly(len(text)):
            self._stream.at += len(text)
        else:
            self._step_in(len(text))
            self._skip_past(NEXT_EVENT)

    def _ends_cleanly(self, length: int) -> bool:
        """Return whether the value of ``length`` is followed by what may follow an event."""
        stream = self._stream
        stream.ensure(length + NEAR)
        place = stream.at + length
        return stream.window[place : place + NEAR].lstrip()[:1] in (b",", b"]", b"")


def _unquote(text: bytes) -> str:
    try:
        return str(json.loads(text))
    except ValueError:
        return ""
