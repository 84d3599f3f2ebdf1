"""Number texts in the order in which they first come."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from flame.core.compiled.library import loaded, random_key


class TextTable:
    """Number texts (UTF-8 as stored) in the order in which they first come.

    Where ``kept`` is not None, the running numbers of PyTorch's operators are left out of texts
    that begin with none of these strings. There must be a compiled library.
    """

    def __init__(self, kept: Sequence[bytes] | None = None) -> None:
        self._library = loaded()
        strings = None if kept is None else b"".join(text + b"\0" for text in kept) + b"\0"
        self.table: int | None = self._library.flamecore_texts_new(random_key(), strings)
        if not self.table:
            raise MemoryError

    def __len__(self) -> int:
        count: int = self._library.flamecore_texts_count(self.table)
        return count

    def number(self, text: bytes) -> int:
        """Return the number of ``text``, new or known."""
        number: int = self._library.flamecore_texts_number(self.table, text, len(text))
        if number < 0:
            raise MemoryError
        return number

    def text(self, number: int) -> bytes:
        """Return the text of a number."""
        place = ctypes.c_void_p()
        size = self._library.flamecore_texts_get(self.table, number, ctypes.byref(place))
        return ctypes.string_at(place, size) if size else b""

    def __del__(self) -> None:
        if table := getattr(self, "table", None):
            self._library.flamecore_texts_free(table)
