"""Build stacks of speedscope profiles, from samples and from events, whole columns at a time."""

from __future__ import annotations

import itertools
from hashlib import sha256
from typing import NamedTuple

import msgspec
import numpy as np

from flame.core.columns import I4, I8, Bool, Column, order_by
from flame.core.errors import InputError
from flame.core.model.stacks import EMPTY, StackBuilder
from flame.core.readers.shared.stack_rows import Tick
from flame.core.readers.stacks.folded_frames import ExactKeys
from flame.core.readers.stacks.speedscope_schema import decode_json
from flame.core.readers.stacks.speedscope_values import join

_ANY = msgspec.json.Decoder(msgspec.Raw)
_BETWEEN = b"],["
_MANY = 1 << 17
_LARGEST = (1 << 31) - 1
_REFUSED_DEPTH = 50_000
"""Frames of a stack above which a file is refused: a megabyte of deeper ones takes over 5 s. Fewer
are opened; what is too deep to be shown is left out later, and told."""
_SPACES = b" \t\r\n"
_BLANKS = bytes.maketrans(b",\n", b"  ")
_STRANGE = ~np.isin(np.arange(256), list(b"0123456789,\n"))


class SampleStacks:
    """Collects the samples of all profiles.

    Each text of a sample is taken apart once, unless there are many and most are new. A profiler
    writes the same few thousand ones again and again, our own exporter all once for each metric.
    """

    def __init__(self) -> None:
        self._texts = ExactKeys()
        self._added: dict[bytes, I4] = {}
        self._size = 0
        self._most_are_new = False
        self._indices: list[I4] = [np.zeros(0, np.int32)]
        self._lengths: list[I8] = [np.zeros(0, np.int64)]
        self._beyond: Bool | None = None

    def add(self, text: bytes) -> I4:
        """Return which of all different samples each sample in ``text`` is, i4[n].

        ``text`` are JSON lists of indices of frames, with commas between them. Raises
        WrongSampleError where it is something else, and InputError where it is no JSON.
        """
        lists = text.translate(None, _SPACES)
        digest = sha256(lists).digest()
        if digest not in self._added:
            inside = lists[1:] if lists.startswith(b"[") else b"[" + lists
            self._added[digest] = self._number(inside.removesuffix(b"]"))
        if len(lists) < len(text):  # there may be white space in a number
            decode_json(_ANY, b"".join((b"[", text, b"]")))
        return self._added[digest]

    def _number(self, lists: bytes) -> I4:
        """Return which of all different samples those inside ``lists`` are; new ones are taken.

        `_BETWEEN` stands between them. Where an element is no list, or one with a list in it,
        brackets are left: the first of them opens the element that is wrong, or closes the one
        before it.
        """
        known, texts = self._size, self._texts
        if self._most_are_new:
            self._take(lists.replace(_BETWEEN, b"\n"))
            return np.arange(known, self._size, dtype=np.int32)
        samples = lists.split(_BETWEEN)
        ids = np.fromiter(map(texts.__getitem__, samples), np.int32, len(samples))
        new = list(itertools.islice(reversed(texts), len(texts) - known))[::-1]
        if new:
            try:
                self._take(b"\n".join(new))
            except WrongSampleError as wrong:
                wrong.sample = int(np.flatnonzero(ids == known + wrong.sample)[0])
                raise
        self._most_are_new = len(texts) > _MANY and 2 * len(new) > len(samples)
        return ids

    def check(self, samples: I4, limit: int) -> None:
        """Raise InputError where ``samples``, those of a profile, name ``limit`` or a frame beyond.

        It begins with the place in the profile. All samples are added, and have the same ``limit``.
        """
        wrong = np.flatnonzero(self._names_beyond(limit)[samples])
        if len(wrong):
            indices, lengths = self._join()
            end = int(lengths[: samples[wrong[0]] + 1].sum())
            sample = indices[end - lengths[samples[wrong[0]]] : end]
            unknown = _unknown_frame(int(sample[sample >= limit][0]), limit)
            raise InputError(f"samples[{wrong[0]}]: {unknown}")

    def _names_beyond(self, limit: int) -> Bool:
        """Return of each different sample whether it names ``limit``, or a frame beyond.

        That is looked up once for all profiles, of which there may be as many as samples.
        """
        if self._beyond is None:
            indices, lengths = self._join()
            self._beyond = np.zeros(len(lengths), np.bool_)
            beyond = np.flatnonzero(indices >= limit)
            self._beyond[np.searchsorted(np.cumsum(lengths), beyond, side="right")] = True
        return self._beyond

    def build(self, frames: I4) -> tuple[I4, I8]:
        """Return the frames of all different samples in a row, and each sample's length.

        ``frames`` are the frames of the indices. No more samples are added, or checked, afterwards.
        """
        indices, lengths = self._join()
        self._indices, self._lengths = [], []
        for at in range(0, len(indices), _MANY):  # as one, they would become indices of 64 bits
            indices[at : at + _MANY] = frames[indices[at : at + _MANY]]
        return indices, lengths

    def _join(self) -> tuple[I4, I8]:
        self._texts, self._added = ExactKeys(), {}
        self._indices, self._lengths = [join(self._indices)], [join(self._lengths)]
        return self._indices[0], self._lengths[0]

    def _take(self, samples: bytes) -> None:
        """Take the ``samples``, a line each."""
        indices, lengths = _parse_numbers(samples)
        beyond = np.flatnonzero(indices > _LARGEST)
        if len(beyond):
            sample = int(np.searchsorted(np.cumsum(lengths), beyond[0], side="right"))
            raise WrongSampleError(sample, f"frame {indices[beyond[0]]}, and no file has so many")
        deep = np.flatnonzero(lengths > _REFUSED_DEPTH)
        if len(deep):
            raise WrongSampleError(int(deep[0]), f"a stack of more than {_REFUSED_DEPTH:,} frames")
        self._indices.append(indices.astype(np.int32))
        self._lengths.append(lengths)
        self._size += len(lengths)


class WrongSampleError(Exception):
    """What is wrong with ``sample`` of those added or, if ``behind`` is 1, with the one after."""

    def __init__(self, sample: int, what: str, behind: int = 0) -> None:
        super().__init__(what)
        self.sample, self.behind = sample, behind


def _unknown_frame(index: int, limit: int) -> str:
    return f"frame {index} of shared.frames, which has {limit:,}"


def _parse_numbers(samples: bytes) -> tuple[I8, I8]:
    """Parse the whole numbers in ``samples``, a line each, and count how many each sample has."""
    joined = samples + b"\n"
    text = np.frombuffer(joined, np.uint8)
    ends, commas = np.flatnonzero(text == ord("\n")), np.flatnonzero(text == ord(","))
    strange = np.flatnonzero(_STRANGE[text])
    if len(strange):
        behind = text[strange[0]] == ord("]")
        sample = int(np.searchsorted(ends, strange[0]))
        raise WrongSampleError(sample, "no list of frame numbers", int(behind))
    if not _are_lists(samples):
        wrong = (at for at, line in enumerate(samples.split(b"\n")) if not _are_lists(line))
        raise WrongSampleError(next(wrong), "no list of frame numbers")
    lengths = np.diff(np.searchsorted(commas, ends), prepend=0)
    lengths += np.diff(ends, prepend=-1) > 1
    if not lengths.any():
        return np.zeros(0, np.int64), lengths  # NumPy reads a 0 from blanks alone
    return np.fromstring(joined.translate(_BLANKS), np.int64, sep=" "), lengths


def _are_lists(samples: bytes) -> bool:
    """Return whether the ``samples``, a line each, are what may stand in JSON lists."""
    try:
        _ANY.decode(b"[[" + samples.replace(b"\n", _BETWEEN) + b"]]")
    except msgspec.DecodeError:
        return False
    return True


class ProfileEvents(NamedTuple):
    """Events of a profile: ``frame`` i4 or i8, whether it ``opens``, and the value, ``at``."""

    frame: Column
    opens: Bool
    at: Column


def join_events(pieces: list[ProfileEvents]) -> ProfileEvents:
    """Join the ``pieces`` of a profile's events, and empty their list."""
    none = ProfileEvents(np.zeros(0, np.int32), np.zeros(0, bool), np.zeros(0, np.int64))
    joined = ProfileEvents(*map(np.concatenate, zip(none, *pieces, strict=True)))
    pieces.clear()
    return joined


def build_event_stacks(
    events: ProfileEvents, frames: I4, stacks: StackBuilder, tick: Tick
) -> tuple[I4, I8]:
    """Build the stacks that ``events`` open and close.

    Returns the id in ``stacks`` of what is open after each event, i4[events], and the events after
    which something is open until a later value. Raises InputError, which begins with the place in
    the profile, where they are not strictly nested or not in order.
    """
    frame, opens, at = events
    depth = _count_open(opens)
    order = _check_events(events, depth, len(frames)).astype(np.int32)
    lasting = np.flatnonzero((at[1:] > at[:-1]) & (depth[:-1] > 0))
    node: I4 = np.full(len(opens), EMPTY, np.int32)
    above = order[:0]
    ends = np.cumsum(np.bincount(depth[opens])).tolist()
    del depth
    for low, high in itertools.pairwise(2 * end for end in ends):
        tick()
        opening, closing = order[low:high:2], order[low + 1 : high : 2]
        parent = node[above[np.searchsorted(above, opening) - 1]] if len(above) else EMPTY
        parents = np.broadcast_to(np.asarray(parent, np.int32), opening.shape)
        node[opening] = stacks.extend(parents, frames[frame[opening]])
        node[closing] = parents
        above = opening
    return node, lasting


def _count_open(opens: Bool) -> Column:
    """Count the frames that are open after each event, in 16 bits where these suffice."""
    depth = np.cumsum(np.where(opens, np.int8(1), np.int8(-1)), dtype=np.int32)
    return depth.astype(np.int16) if np.abs(depth).max(initial=0) < 1 << 15 else depth


def _order_by_level(opens: Bool, depth: Column) -> I8:
    """Order events by how deep the frame lies that each opens or closes: both in turn."""
    return order_by([depth + ~opens])


def _check_events(events: ProfileEvents, depth: Column, limit: int) -> I8:
    """Return the events in the order of their levels; InputError where they are wrong."""
    frame, opens, at = events
    unknown = np.flatnonzero((frame < 0) | (frame >= limit))
    if len(unknown):
        raise InputError(f"events[{unknown[0]}]: {_unknown_frame(int(frame[unknown[0]]), limit)}")
    back = np.flatnonzero(at[1:] < at[:-1])
    if len(back):
        raise InputError(f"events[{back[0] + 1}]: at an earlier value than the event before it")
    _check_depth(depth)
    beyond = np.flatnonzero(depth < 0)
    nested = int(beyond[0]) if len(beyond) else len(depth)
    order = _order_by_level(opens[:nested], depth[:nested])
    _check_pairs(frame, opens, order)
    if len(beyond):
        raise InputError(f"events[{nested}]: closes frame {frame[nested]}, but none is open")
    if len(depth) and depth[-1]:
        left = np.flatnonzero(opens & (depth == 1))[-1]
        raise InputError(f"events[{left}]: opens frame {frame[left]}, which is never closed")
    return order


def _check_depth(depth: Column) -> None:
    deep = np.flatnonzero(depth > _REFUSED_DEPTH)
    if len(deep):
        raise InputError(f"events[{deep[0]}]: a stack of more than {_REFUSED_DEPTH:,} frames")


def _check_pairs(frame: Column, opens: Bool, order: I8) -> None:
    """Raise InputError unless each closing event closes the innermost open frame.

    ``order`` is that of `_order_by_level`.
    """
    of_level = frame[order]
    crossing = np.flatnonzero(~opens[order[1:]] & (of_level[1:] != of_level[:-1]))
    if len(crossing):
        first = crossing[np.argmin(order[crossing + 1])]
        opening, closing = order[first], order[first + 1]
        raise InputError(
            f"events[{closing}]: closes frame {frame[closing]}, "
            f"but frame {frame[opening]} was opened last"
        )
