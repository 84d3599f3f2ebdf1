"""Read a speedscope file through a window that moves on: its long lists become columns.

What is left, the outline, is decoded at its end, when all keys have been met in whatever order.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from functools import partial
from typing import TypeVar

import msgspec
import numpy as np

from flame.core.columns import I4, I8, Column
from flame.core.errors import InputError
from flame.core.lazy_dataclass import dataclass
from flame.core.lazy_regex import lazy_regex
from flame.core.readers.shared.file_stream import FileStream
from flame.core.readers.shared.json_document import SPACE, JsonDocument, unquote
from flame.core.readers.shared.json_values import find_last_boundary
from flame.core.readers.stacks.speedscope_schema import (
    InputEvent,
    InputFrame,
    Number,
    SpeedscopeInput,
    decode_file,
    decode_json,
)
from flame.core.readers.stacks.speedscope_stacks import (
    ProfileEvents,
    SampleStacks,
    WrongSampleError,
)
from flame.core.readers.stacks.speedscope_values import number_column

_Item = TypeVar("_Item")
_SMALL = 1 << 10  # a piece of this size that does not decode is a single element
_FRAMES = msgspec.json.Decoder(list[InputFrame])
_EVENTS = msgspec.json.Decoder(list[InputEvent])
_WEIGHTS = msgspec.json.Decoder(list[Number])
_LAST_OBJECT = lazy_regex(rb"\}\s*+\]")
_LAST_SAMPLE = lazy_regex(rb"\]\s*+(?=\])")
_ITEM = lazy_regex(r"`\$\[(\d+)\]")
_BYTE = lazy_regex(r"\(byte (\d+)\)")
_Members = Mapping[str, Callable[[], None]]


@dataclass
class ProfileColumns:
    """The long lists of a profile, in pieces."""

    samples: list[I4] = field(default_factory=lambda: [np.zeros(0, np.int32)])
    weights: list[Column] = field(default_factory=lambda: [np.zeros(0, np.int64)])
    events: list[ProfileEvents] = field(default_factory=list)


class SpeedscopeDocument(JsonDocument):
    """A speedscope file being read: `read` returns its outline, in which long lists are empty.

    Those are ``frames``, the ``samples`` of all profiles and what ``profiles`` has of each.
    """

    def __init__(self, stream: FileStream) -> None:
        super().__init__(stream)
        self.frames: list[InputFrame] = []
        self.samples = SampleStacks()
        self.profiles: list[ProfileColumns] = []
        self._outline: list[bytes] = []
        self._places: list[int] = []

    def read(self) -> SpeedscopeInput:
        """Read the file to its end; InputError where it is damaged, or not of this format."""
        self._first_byte()
        self._copy_object({"shared": self._copy_shared, "profiles": self._copy_profiles})
        if self._next_byte(SPACE):
            self._copy_sign()
        if self._damage:
            raise self._damage
        try:
            return decode_file(b"".join(self._outline))
        except InputError as error:
            raise InputError(_BYTE.sub(self._spell_place, str(error))) from None

    def _spell_place(self, said: re.Match[str]) -> str:
        """Spell the byte of the file that is the one ``said`` of the outline."""
        ends = np.cumsum([len(part) for part in self._outline])
        byte = int(said[1])
        part = min(bisect_right(ends.tolist(), byte), len(ends) - 1)
        return f"(byte {self._places[part] + byte - int(ends[part]) + len(self._outline[part])})"

    @property
    def _damage(self) -> InputError | None:
        what = self._stream.detail
        return InputError(what) if what else None

    def _peek(self) -> bytes:
        """Return the next byte that is no white space; InputError where the file ends."""
        sign = self._next_byte(SPACE)
        if not sign:
            raise self._cut()
        return sign

    def _cut(self) -> InputError:
        return self._damage or InputError("damaged or cut off: Input data was truncated")

    def _value(self) -> bytes:
        """Return the text of the value here, passed over; InputError where the file ends in it."""
        text = self._take_value()
        if text is None:
            raise self._cut()
        return text

    def _copy(self, text: bytes) -> None:
        """Copy ``text``, which has just been passed over, to the outline."""
        self._outline.append(text)
        self._places.append(self._stream.position - len(text))

    def _copy_sign(self) -> None:
        sign = self._peek()
        self._stream.at += 1
        self._copy(sign)

    def _copy_value(self) -> None:
        self._peek()
        self._copy(self._value())

    def _copy_object(self, members: _Members) -> None:
        """Copy the object here; ``members`` copy what they want of the values of these keys."""
        self._copy_items(b"{", partial(self._copy_member, members))

    def _copy_member(self, members: _Members) -> None:
        key = self._value()
        self._copy(key)
        if self._peek() == b":":
            self._copy_sign()
        members.get(unquote(key), self._copy_value)()

    def _copy_items(self, opening: bytes, copy_item: Callable[[], None]) -> None:
        """Copy the array or object here, if it is one; what is no JSON is found in the outline."""
        if self._peek() != opening:
            self._copy_value()
            return
        self._copy_sign()
        while self._peek() not in b"]}":
            copy_item()
            if self._peek() == b",":
                self._copy_sign()
        self._copy_sign()

    def _copy_shared(self) -> None:
        self._copy_object({"frames": self._copy_frames})

    def _copy_frames(self) -> None:
        self.frames.clear()
        for frames in self._pieces(_FRAMES, _find_objects_end, "$.shared.frames"):
            self.frames += frames

    def _copy_profiles(self) -> None:
        self.profiles.clear()
        self._copy_items(b"[", self._copy_profile)

    def _copy_profile(self) -> None:
        place = f"profiles[{len(self.profiles)}]"
        columns = ProfileColumns()
        self.profiles.append(columns)
        self._copy_object(
            {
                "samples": partial(self._copy_samples, columns, place),
                "weights": partial(self._copy_weights, columns, place),
                "events": partial(self._copy_events, columns, place),
            }
        )

    def _copy_weights(self, profile: ProfileColumns, place: str) -> None:
        profile.weights = ProfileColumns().weights
        for weights in self._pieces(_WEIGHTS, _find_numbers_end, f"$.{place}.weights"):
            profile.weights.append(number_column(f"{place}.weights", weights))

    def _copy_events(self, profile: ProfileColumns, place: str) -> None:
        profile.events = []
        for events in self._pieces(_EVENTS, _find_objects_end, f"$.{place}.events"):
            frame = _narrow(np.array([event.frame for event in events], np.int64))
            opens = np.array([event.type == "O" for event in events], bool)
            at = number_column(f"{place}.events", [event.at for event in events])
            profile.events.append(ProfileEvents(frame, opens, at))

    def _copy_samples(self, profile: ProfileColumns, place: str) -> None:
        profile.samples = ProfileColumns().samples
        done = 0
        for text in self._sample_texts():
            try:
                profile.samples.append(self.samples.add(text))
            except WrongSampleError as wrong:
                number = done + wrong.sample + wrong.behind
                raise InputError(f"{place}.samples[{number}]: {wrong}") from None
            done += len(profile.samples[-1])

    def _enters_list(self) -> bool:
        """Return whether a list with elements begins here, and go on to the first of them.

        An empty one is copied to the outline for it, and what is no list as it is.
        """
        if self._peek() != b"[":
            self._copy_value()
            return False
        self._stream.at += 1
        self._copy(b"[]")
        return not self._passes(b"]")

    def _passes(self, sign: bytes) -> bool:
        """Return whether the next byte is ``sign``, and go on behind it if it is."""
        found = self._peek() == sign
        self._stream.at += found
        return found

    def _passes_comma(self) -> bool:
        """Go on to the next element of the list; False, and behind its end, where there is none."""
        if self._passes(b"]"):
            return False
        if not self._passes(b","):
            raise self._malformed()
        self._peek()
        return True

    def _sample_texts(self) -> Iterator[bytes]:
        """Yield the elements of the list of samples here, a piece at a time.

        Equal lists are cut at equal places, unless white space differs.
        """
        more = self._enters_list()
        while more:
            yield self._take_samples()
            more = self._passes_comma()

    def _take_samples(self) -> bytes:
        """Take whole samples, up to the last one or to the first that ends beyond a piece.

        Where they are no lists of numbers, more than they: to the last bracket that there is.
        """
        stream, piece = self._stream, self._stream.piece
        while True:
            stream.ensure(piece)
            window, at = stream.window, stream.at
            cut = window.find(b"]", at + piece - 1)
            last = _LAST_SAMPLE.search(window, at, max(cut, at + piece) + 1)
            end = last.start() + 1 if last else cut + 1
            if not end and not stream.double():
                end = window.rfind(b"]", at) + 1
                if not end:
                    raise self._cut()
            if end:
                stream.at = end
                return window[at:end]

    def _pieces(
        self,
        decoder: msgspec.json.Decoder[list[_Item]],
        find_end: Callable[[bytes, int, int], int | None],
        place: str,
    ) -> Iterator[list[_Item]]:
        """Yield the elements of the list here, some thousand at a time.

        ``find_end`` finds, between two places of the window, the end of an element: of the last
        one, or of one that another follows. ``place`` begins what is said of a wrong element.
        """
        stream, size, done = self._stream, self._stream.piece, 0
        more = self._enters_list()
        while more:
            stream.ensure(size)
            end = find_end(stream.window, stream.at, min(stream.at + size, len(stream.window)))
            items = self._decode_piece(decoder, end)
            size = min(2 * size, stream.piece) if items else max(size // 8, _SMALL)
            items = items or self._decode_one(decoder, place, done)
            yield items
            done += len(items)
            more = self._passes_comma()

    def _decode_piece(
        self, decoder: msgspec.json.Decoder[list[_Item]], end: int | None
    ) -> list[_Item]:
        """Decode the elements up to ``end``; none where that fails."""
        if end is None:
            return []
        text = memoryview(self._stream.window)[self._stream.at : end]
        try:
            items = decoder.decode(b"".join((b"[", text, b"]")))
        except (ValueError, RecursionError):
            return []
        self._stream.at = end
        return items

    def _decode_one(
        self, decoder: msgspec.json.Decoder[list[_Item]], place: str, number: int
    ) -> list[_Item]:
        """Decode the next element, the one of that ``number``; InputError where it is wrong."""
        text = self._value()
        if not text:
            raise self._malformed()
        try:
            return decode_json(decoder, b"[" + text + b"]")
        except InputError as error:
            raise InputError(_ITEM.sub(f"`{place}[{number}]", str(error))) from None

    def _malformed(self) -> InputError:
        place = self._stream.position
        return InputError(f"damaged or cut off: JSON is malformed (byte {place})")


def _narrow(frames: I8) -> Column:
    """Return ``frames`` in 32 bits, if those of all events fit."""
    narrow = frames.astype(np.int32)
    return narrow if (narrow == frames).all() else frames


def _find_numbers_end(text: bytes, start: int, end: int) -> int | None:
    last = text.find(b"]", start, end)
    comma = last if last >= 0 else text.rfind(b",", start, end)
    return comma if comma >= 0 else None


def _find_objects_end(text: bytes, start: int, end: int) -> int | None:
    last = _LAST_OBJECT.search(text, start, end)
    return last.start() + 1 if last else find_last_boundary(text, start, end)
