"""Number the frames of folded stacks by their text: of millions, a few bytes are kept of each."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

import numpy as np

from flame.core.columns import I4, I8
from flame.core.lazy_regex import lazy_regex
from flame.core.model.frames import Frame, FrameBuilder, Kind, PackedFrames
from flame.core.readers.shared.frame_text import NO_NAME, parse_frame

# What `parse_frame` takes as a name, without asking it: its kinds have other characters, or begin
# as those left out here.
_NAME = lazy_regex(rb"(?!cu|hip|[PT][0-9])[A-Za-z_][A-Za-z0-9_.~$<>-]*")
_SHORT = 1 << 31


class SameKeyError(Exception):
    """Two texts have the same key."""


class ExactKeys(dict[bytes, int]):
    """Keys of texts that are always different, in ten times the memory of hashes."""

    def __missing__(self, text: bytes) -> int:
        key = self[text] = len(self)
        return key


class FoldedFrames:
    """Numbers frames in the order in which they are met; texts are UTF-8.

    Texts are told apart by ``key``, 64 bits, which is then checked: `SameKeyError` where two have
    the same. A text, of which there may be several for a frame, is an entry.
    """

    def __init__(self, key: Callable[[bytes], int] = hash) -> None:
        self._key = key
        self._keys: I8 = np.zeros(0, np.int64)
        self._entry_of_key: I4 = np.zeros(0, np.int32)
        self._texts = bytearray()
        self._ends: I8 = np.zeros(1, np.int64)
        self._frame: I4 = np.zeros(0, np.int32)
        self._others = {0: Frame(Kind.ROOT, "all")}
        self._ids: dict[Frame, int] = {}
        self._size = 1

    def ids(self, texts: Sequence[bytes]) -> I4:
        """Return the frame id of each text, new or known, i4[n]."""
        keys = np.fromiter(map(self._key, texts), np.int64, len(texts))
        wanted, first, place = np.unique(keys, return_index=True, return_inverse=True)
        examples = [texts[at] for at in first.tolist()]
        if not all(map(operator.eq, texts, map(examples.__getitem__, place.tolist()))):
            raise SameKeyError
        entries = self._entries(wanted, first, examples)
        return self._frame[entries[place]]

    def _entries(self, wanted: I8, first: I8, texts: Sequence[bytes]) -> I4:
        """Return the entries of distinct ``texts`` with the keys ``wanted``, ascending.

        ``first`` is where each was met first.
        """
        at = np.searchsorted(self._keys, wanted)
        known = np.append(self._keys, 0)[at] == wanted
        known &= at < len(self._keys)
        entries = np.append(self._entry_of_key, np.int32(-1))[at]
        for place in np.flatnonzero(known).tolist():
            if self._text(int(entries[place])) != texts[place]:
                raise SameKeyError
        new = np.flatnonzero(~known)
        new_in_order = new[np.argsort(first[new])]
        entries[new_in_order] = np.arange(len(new), dtype=np.int32) + len(self._frame)
        self._add([texts[place] for place in new_in_order.tolist()])
        self._keys = np.insert(self._keys, at[new], wanted[new])
        self._entry_of_key = np.insert(self._entry_of_key, at[new], entries[new])
        return entries

    def _text(self, entry: int) -> bytes:
        return bytes(self._texts[self._ends[entry] : self._ends[entry + 1]])

    def _add(self, texts: Sequence[bytes]) -> None:
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        self._ends = np.append(self._ends, self._ends[-1] + np.cumsum(lengths))
        self._texts += b"".join(texts)
        ids = np.fromiter(map(self._number, texts), np.int32, len(texts))
        self._frame = np.append(self._frame, ids)

    def _number(self, text: bytes) -> int:
        """Number the frame of a new text: packed if it is all of its name, once if it is not."""
        if not _NAME.fullmatch(text):
            name = text.decode()
            frame = parse_frame(name)
            if name == NO_NAME or frame != Frame(Kind.FRAME, name):
                known = self._ids.setdefault(frame, self._size)
                if known < self._size:
                    return known
                self._others[known] = frame
        self._size += 1
        return self._size - 1

    def find(self, text: bytes) -> int:
        """Find the frame of ``text``; -1 where it has not been met."""
        at = int(np.searchsorted(self._keys, self._key(text)))
        entry = int(self._entry_of_key[at]) if at < len(self._keys) else len(self._frame)
        return int(self._frame[entry]) if self._text_or_none(entry) == text else -1

    def _text_or_none(self, entry: int) -> bytes | None:
        return self._text(entry) if entry < len(self._frame) else None

    def build(self) -> FrameBuilder:
        """Build the frames met so far; no more are numbered afterwards."""
        self._keys, self._entry_of_key = self._keys[:0], self._entry_of_key[:0]
        dtype = np.int32 if len(self._texts) < _SHORT else np.int64
        start, end = np.zeros(self._size, dtype), np.zeros(self._size, dtype)
        start[self._frame], end[self._frame] = self._ends[:-1], self._ends[1:]
        others = list(self._others)
        start[others] = end[others] = 0
        names, self._texts = bytes(self._texts), bytearray()
        return FrameBuilder(PackedFrames(names, start, end, self._others))
