"""Cut the JSON document into pieces of whole events, passing over damage."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from flame.core.lazy_regex import lazy_regex
from flame.core.readers.kineto.events import EventDecoder, Events
from flame.core.readers.shared.file_stream import FileStream
from flame.core.readers.shared.json_document import SPACE, JsonDocument, unquote
from flame.core.readers.shared.json_values import NEAR, find_last_boundary

EVENTS = "traceEvents"
_SMALL = 64 << 10  # a piece of this size that does not decode is gone through event by event
_LONGEST = 1 << 20  # bytes of one event: what is longer has lost its end
_SHORTEST = 1 << 10  # as much is looked at even where all has lost its end
_IN_VAIN = 8 << 20  # bytes that may be looked at again, beside those in whole pieces
_EVENTS_KEY = lazy_regex(rb'"traceEvents"\s*+:\s*+(?=\[)')
_NEXT_EVENT = lazy_regex(rb'[}\]]\s*+,\s*+(?=\{\s*+"(?:ph|name|cat|pid|tid|ts|dur|args)"\s*+:)')
_SPACE_AND_COMMAS = lazy_regex(rb"[\s,]*+")


class TraceDocument(JsonDocument):
    """A trace being read: its `pieces`, and when they are through, ``top`` and the damage.

    ``top`` are the texts of the ``wanted`` keys beside the events; no others are kept. ``cut_at``
    is the byte (of the unpacked file) at which it ends too early. ``damaged`` counts places that
    are no JSON.
    """

    def __init__(self, stream: FileStream, wanted: frozenset[str]) -> None:
        super().__init__(stream)
        self.top: dict[str, bytes] = {}
        self.damaged = 0
        self.decoder = EventDecoder()
        self._wanted = wanted
        self._small = min(_SMALL, stream.piece // 4 + 1)
        self._spare = _IN_VAIN

    def pieces(self) -> Iterator[Events]:
        """Yield all events, some thousand at a time."""
        opening = self._first_byte()
        self._stream.at += len(opening)
        if opening == b"[":
            yield from self._read_array()
        elif opening == b"{":
            yield from self._read_object()

    def _read_object(self) -> Iterator[Events]:
        while (key := self._next_key()) is not None:
            if key == EVENTS and self._next_byte(SPACE) == b"[":
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
        colon = self._next_byte(SPACE)
        if colon == b"":
            self._note_cut()
            return None
        if opening != b'"' or colon != b":":
            self.damaged += 1
            return EVENTS if self._skip_past(_EVENTS_KEY) else None
        self._stream.at += 1
        self._next_byte(SPACE)
        return unquote(text)

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
            self.decoder.texts.clear()
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
            self.damaged += self._skip_past(_NEXT_EVENT)
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
        if closed and not _NEXT_EVENT.search(text, 1) and self._ends_cleanly(len(text)):
            self._stream.at += len(text)
        else:
            self._step_in(len(text))
            self._skip_past(_NEXT_EVENT)

    def _ends_cleanly(self, length: int) -> bool:
        """Return whether the value of ``length`` is followed by what may follow an event."""
        stream = self._stream
        stream.ensure(length + NEAR)
        place = stream.at + length
        return stream.window[place : place + NEAR].lstrip()[:1] in (b",", b"]", b"")
