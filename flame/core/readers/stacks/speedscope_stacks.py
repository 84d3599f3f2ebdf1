"""Build stacks of speedscope profiles, from samples and from events, whole columns at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
from msgspec import Raw

from flame.core.columns import I4, I8, Bool, Column
from flame.core.errors import InputError
from flame.core.lazy_regex import lazy_regex
from flame.core.model.stacks import EMPTY, StackBuilder
from flame.core.readers.shared.stack_rows import Tick
from flame.core.readers.stacks.speedscope_schema import InputEvent

_PIECE = 1 << 22
_BETWEEN = b"],["
_MANY = 1 << 17
_CLOSE = lazy_regex(rb"\]")
_SPACES = b" \t\r\n"
_BLANKS = bytes.maketrans(b",\n", b"  ")
_STRANGE = ~np.isin(np.arange(256), list(b"0123456789,\n"))


class SampleStacks:
    """Collects the samples of all profiles; ``limit`` is the number of frames they may name.

    Each text of a sample is taken apart once, unless there are many and most are new. A profiler
    writes the same few thousand ones again and again, our own exporter all once for each metric.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._texts: dict[bytes, int] = {}
        self._added: list[tuple[memoryview, I4]] = []
        self._size = 0
        self._most_are_new = False
        self._indices: list[I4] = [np.zeros(0, np.int32)]
        self._lengths: list[I8] = [np.zeros(0, np.int64)]

    def add(self, text: Raw, tick: Tick) -> I4:
        """Return which of all different samples each sample in ``text`` is, i4[n].

        ``text`` is a JSON list of lists of indices of frames. Raises InputError, which begins with
        the place in the profile, where it is something else.
        """
        view = memoryview(text)
        for added, which in self._added:
            if _are_equal(added, view):
                return which
        parts: list[I4] = [np.zeros(0, np.int32)]
        for lists in _split_lists(view):
            tick()
            try:
                parts.append(self._number(lists))
            except _WrongSampleError as wrong:
                place = sum(map(len, parts)) + wrong.sample + wrong.behind
                raise InputError(f"samples[{place}]: {wrong}") from None
        self._added.append((view, np.concatenate(parts)))
        return self._added[-1][1]

    def _number(self, lists: bytes) -> I4:
        """Return which of all different samples those inside ``lists`` are; new ones are taken."""
        known, texts = self._size, self._texts
        if self._most_are_new:
            self._take(lists.replace(_BETWEEN, b"\n"))
            return np.arange(known, self._size, dtype=np.int32)
        samples = lists.split(_BETWEEN)
        ids = np.fromiter((texts.setdefault(one, len(texts)) for one in samples), np.int32)
        new = list(islice(reversed(texts), len(texts) - known))[::-1]
        if new:
            try:
                self._take(b"\n".join(new))
            except _WrongSampleError as wrong:
                wrong.sample = int(np.flatnonzero(ids == known + wrong.sample)[0])
                raise
        self._most_are_new = len(texts) > _MANY and 2 * len(new) > len(samples)
        return ids

    def build(self) -> tuple[I4, I8]:
        """Return frame indices of all different samples in a row, and each sample's length."""
        return np.concatenate(self._indices), np.concatenate(self._lengths)

    def _take(self, samples: bytes) -> None:
        """Take the ``samples``, a line each."""
        indices, lengths = _parse_numbers(samples)
        beyond = np.flatnonzero(indices >= self._limit)
        if len(beyond):
            sample = int(np.searchsorted(np.cumsum(lengths), beyond[0], side="right"))
            raise _WrongSampleError(sample, _unknown_frame(int(indices[beyond[0]]), self._limit))
        self._indices.append(indices.astype(np.int32))
        self._lengths.append(lengths)
        self._size += len(lengths)


class _WrongSampleError(Exception):
    """What is wrong with ``sample`` or, if ``behind`` is 1, with the sample after it."""

    def __init__(self, sample: int, what: str, behind: int = 0) -> None:
        super().__init__(what)
        self.sample, self.behind = sample, behind


def _unknown_frame(index: int, limit: int) -> str:
    return f"frame {index} of shared.frames, which has {limit:,}"


def _are_equal(first: memoryview, second: memoryview) -> bool:
    """Return whether two texts are equal, piece by piece: views compare themselves slowly."""
    places = range(0, len(first), _PIECE)
    return len(first) == len(second) and all(
        bytes(first[at : at + _PIECE]) == bytes(second[at : at + _PIECE]) for at in places
    )


def _split_lists(text: memoryview) -> Iterator[bytes]:
    """Yield the inside of the lists in the JSON list ``text``, without spaces, thousands at once.

    `_BETWEEN` stands between them.
    Where an element is no list, or one with a list in it, brackets are left: the first of them
    opens the element that is wrong, or closes the one before it.
    """
    begin, last = 1, len(text) - 1
    if text[0] != ord("["):
        raise InputError("samples: no list")
    while begin < last:
        cut = _CLOSE.search(text, begin + _PIECE, last)
        end = cut.end() if cut else last
        piece = bytes(text[begin:end]).translate(None, _SPACES).removeprefix(b",")
        if piece:
            inside = piece[1:] if piece.startswith(b"[") else b"[" + piece
            yield inside.removesuffix(b"]")
        begin = end


def _parse_numbers(samples: bytes) -> tuple[I8, I8]:
    """Parse the whole numbers in ``samples``, a line each, and count how many each sample has."""
    joined = samples + b"\n"
    text = np.frombuffer(joined, np.uint8)
    ends, commas = np.flatnonzero(text == ord("\n")), np.flatnonzero(text == ord(","))
    strange = np.flatnonzero(_STRANGE[text])
    if len(strange):
        behind = text[strange[0]] == ord("]")
        sample = int(np.searchsorted(ends, strange[0]))
        raise _WrongSampleError(sample, "no list of frame numbers", int(behind))
    lengths = np.diff(np.searchsorted(commas, ends), prepend=0)
    lengths += np.diff(ends, prepend=-1) > 1
    if not lengths.any():
        return np.zeros(0, np.int64), lengths  # NumPy reads a 0 from blanks alone
    return np.fromstring(joined.translate(_BLANKS), np.int64, sep=" "), lengths


def build_event_stacks(
    events: Sequence[InputEvent],
    at: Column,
    frames: I4,
    stacks: StackBuilder,
    tick: Tick,
) -> tuple[I4, I8]:
    """Build the stacks that ``events``, at the values ``at``, open and close.

    Returns the id in ``stacks`` of what is open after each event, i4[events], and the events after
    which something is open until a later value. Raises InputError, which begins with the place in
    the profile, where they are not strictly nested or not in order.
    """
    frame = np.fromiter((event.frame for event in events), np.int64, len(events))
    opens = np.fromiter((event.type == "O" for event in events), bool, len(events))
    depth = np.cumsum(np.where(opens, 1, -1))
    _check_events(frame, opens, depth, at, len(frames))
    node: I4 = np.full(len(events), EMPTY, np.int32)
    above = np.zeros(0, np.int64)
    for level in _by_level(opens, depth):
        tick()
        opening, closing = level[::2], level[1::2]
        parent = node[above[np.searchsorted(above, opening) - 1]] if len(above) else EMPTY
        parents = np.broadcast_to(np.asarray(parent, np.int32), opening.shape)
        node[opening] = stacks.extend(parents, frames[frame[opening]])
        node[closing] = parents
        above = opening
    lasting = np.flatnonzero((at[1:] > at[:-1]) & (depth[:-1] > 0))
    return node, lasting


def _by_level(opens: Bool, depth: I8) -> list[I8]:
    """Return, for depth 1, 2, …, the events that open and close a frame there, in turn."""
    level = _levels(opens, depth)
    order = np.argsort(level, kind="stable")
    return np.split(order, np.cumsum(np.bincount(level)[1:])[:-1]) if len(order) else []


def _levels(opens: Bool, depth: I8) -> I8:
    """Return how deep the frame lies that each event opens or closes."""
    return np.where(opens, depth, depth + 1)


def _check_events(frame: I8, opens: Bool, depth: I8, at: Column, limit: int) -> None:
    unknown = np.flatnonzero((frame < 0) | (frame >= limit))
    if len(unknown):
        raise InputError(f"events[{unknown[0]}]: {_unknown_frame(int(frame[unknown[0]]), limit)}")
    back = np.flatnonzero(at[1:] < at[:-1])
    if len(back):
        raise InputError(f"events[{back[0] + 1}]: at an earlier value than the event before it")
    beyond = np.flatnonzero(depth < 0)
    nested = int(beyond[0]) if len(beyond) else len(depth)
    _check_pairs(frame[:nested], opens[:nested], depth[:nested])
    if len(beyond):
        raise InputError(f"events[{nested}]: closes frame {frame[nested]}, but none is open")
    if len(depth) and depth[-1]:
        left = np.flatnonzero(opens & (depth == 1))[-1]
        raise InputError(f"events[{left}]: opens frame {frame[left]}, which is never closed")


def _check_pairs(frame: I8, opens: Bool, depth: I8) -> None:
    """Raise InputError unless each closing event closes the innermost open frame."""
    order = np.argsort(_levels(opens, depth), kind="stable")
    place = np.flatnonzero(~opens[order])
    opening, closing = order[place - 1], order[place]
    crossing = np.flatnonzero(frame[opening] != frame[closing])
    if len(crossing):
        first = crossing[np.argmin(closing[crossing])]
        raise InputError(
            f"events[{closing[first]}]: closes frame {frame[closing[first]]}, "
            f"but frame {frame[opening[first]]} was opened last"
        )
