"""Stacks of speedscope profiles, from samples and from events, whole columns at a time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from msgspec import Raw

from flame.core.columns import I4, I8, Bool, Column
from flame.core.errors import InputError
from flame.core.readers.speedscope_file import Event
from flame.core.stacks import EMPTY, StackBuilder

_PIECE = 1 << 22
_CLOSE = re.compile(rb"\]")
_SPACES = b" \t\r\n"
_BLANKS = bytes.maketrans(b"[],", b"   ")
_STRANGE = ~np.isin(np.arange(256), list(b"0123456789[],"))

Working = Callable[[], None]
"""Called between pieces of work; may raise to stop."""


def samples_of(text: Raw, limit: int, working: Working) -> tuple[I4, I8]:
    """The samples in ``text``, a JSON list of lists of indices below ``limit``.

    Returns the indices of all samples one after another, and how many each sample has. Raises
    InputError, which begins with the place in the profile, where it is something else.
    """
    indices: list[I4] = [np.zeros(0, np.int32)]
    lengths: list[I8] = [np.zeros(0, np.int64)]
    samples = 0
    for piece in _pieces(memoryview(text)):
        working()
        found, length = _numbers(piece, samples)
        beyond = np.flatnonzero(found >= limit)
        if len(beyond):
            at = samples + int(np.searchsorted(np.cumsum(length), beyond[0], side="right"))
            raise InputError(f"samples[{at}]: {_no_frame(int(found[beyond[0]]), limit)}")
        indices.append(found.astype(np.int32))
        lengths.append(length)
        samples += len(length)
    return np.concatenate(indices), np.concatenate(lengths)


def _no_frame(index: int, limit: int) -> str:
    return f"frame {index} of shared.frames, which has {limit:,}"


def _pieces(text: memoryview) -> Iterator[bytes]:
    """What is in the JSON list ``text``, without spaces, in parts that end with an inner list."""
    begin, last = 1, len(text) - 1
    if text[0] != ord("["):
        raise InputError("samples: no list")
    while begin < last:
        cut = _CLOSE.search(text, begin + _PIECE, last)
        end = cut.end() if cut else last
        yield bytes(text[begin:end]).translate(None, _SPACES)
        begin = end


def _numbers(piece: bytes, samples: int) -> tuple[I8, I8]:
    """The numbers in lists of whole numbers, one after another, and how many each list has."""
    text = np.frombuffer(piece, np.uint8)
    opened, closed = np.flatnonzero(text == ord("[")), np.flatnonzero(text == ord("]"))
    _check_lists(text, opened, closed, samples)
    commas = np.flatnonzero(text == ord(","))
    lengths = np.searchsorted(commas, closed) - np.searchsorted(commas, opened)
    lengths += closed > opened + 1
    if not lengths.any():
        return np.zeros(0, np.int64), lengths  # NumPy reads a 0 from blanks alone
    return np.fromstring(piece.translate(_BLANKS), np.int64, sep=" "), lengths


def _check_lists(text: Column, opened: I8, closed: I8, samples: int) -> None:
    """InputError unless ``text``, a part of a JSON list, is nothing but lists of whole numbers."""
    strange = np.flatnonzero(_STRANGE[text])
    place = int(np.searchsorted(closed, strange[0])) if len(strange) else None
    if place is None:
        place = _first_no_list(text, opened, closed)
    if place is not None:
        raise InputError(f"samples[{samples + place}]: no list of frame numbers")


def _first_no_list(text: Column, opened: I8, closed: I8) -> int | None:
    """Which of the elements in ``text`` is no list, or one with a list in it; None if all are."""
    size = min(len(opened), len(closed))
    if not size:
        return 0 if len(text) else None
    # Between a list and the next there is a comma, and one before the first but in the first piece.
    begins = np.concatenate([[text[0] == ord(",")], closed[: size - 1] + 2])
    wrong = np.flatnonzero(opened[:size] != begins)
    if len(wrong):
        first = int(wrong[0])
        return first - int(first > 0 and opened[first] < closed[first - 1])
    return None if closed[-1] == len(text) - 1 else size


def event_stacks(
    events: Sequence[Event], at: Column, frames: I4, stacks: StackBuilder, working: Working
) -> tuple[I4, I8]:
    """The stacks that ``events``, at the values ``at``, open and close.

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
        working()
        opening, closing = level[::2], level[1::2]
        parent = node[above[np.searchsorted(above, opening) - 1]] if len(above) else EMPTY
        parents = np.broadcast_to(np.asarray(parent, np.int32), opening.shape)
        node[opening] = stacks.extend(parents, frames[frame[opening]])
        node[closing] = parents
        above = opening
    lasting = np.flatnonzero((at[1:] > at[:-1]) & (depth[:-1] > 0))
    return node, lasting


def _by_level(opens: Bool, depth: I8) -> list[I8]:
    """For depth 1, 2, …, the events that open and close a frame there, in turn."""
    level = _levels(opens, depth)
    order = np.argsort(level, kind="stable")
    return np.split(order, np.cumsum(np.bincount(level)[1:])[:-1]) if len(order) else []


def _levels(opens: Bool, depth: I8) -> I8:
    """How deep the frame lies that each event opens or closes."""
    return np.where(opens, depth, depth + 1)


def _check_events(frame: I8, opens: Bool, depth: I8, at: Column, limit: int) -> None:
    unknown = np.flatnonzero((frame < 0) | (frame >= limit))
    if len(unknown):
        raise InputError(f"events[{unknown[0]}]: {_no_frame(int(frame[unknown[0]]), limit)}")
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
    """InputError unless each event that closes a frame closes the innermost one that is open."""
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
