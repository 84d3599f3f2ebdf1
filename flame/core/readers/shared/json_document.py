"""Walk through a JSON document of which only a window is in memory."""

from __future__ import annotations

import json
import re

from flame.core.lazy_regex import lazy_regex
from flame.core.readers.shared.file_stream import FileStream
from flame.core.readers.shared.json_values import ENDLESS, find_value_end, skip_brackets

SPACE = lazy_regex(rb"\s*+")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class JsonDocument:
    """A document being read, from its beginning on.

    ``cut_at`` is the byte (of the unpacked file) at which it ends too early.
    """

    def __init__(self, stream: FileStream) -> None:
        self.cut_at: int | None = None
        self._stream = stream

    def _first_byte(self) -> bytes:
        """Return the first byte of the document, after a byte order mark."""
        if self._next_byte(SPACE) == _BYTE_ORDER_MARK[:1]:
            self._stream.at += len(_BYTE_ORDER_MARK)
        return self._next_byte(SPACE)

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
        if self._next_byte(SPACE) not in (b"{", b"["):
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


def unquote(text: bytes) -> str:
    """Return the string in the JSON ``text``, the empty one where it is none."""
    try:
        return str(json.loads(text))
    except ValueError:
        return ""
