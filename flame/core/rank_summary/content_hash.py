"""Name things by what they are: 128 bits, equal on every machine and in every order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from flame.core.columns import I8, Column
from flame.core.errors import InputError
from flame.core.frame import Frame

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Hashes = NDArray[np.uint64]
else:
    Hashes = np.ndarray
"""u8[n, 2]: the first half orders, the second one tells whether two are the same."""

_SEEDS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], np.uint64)
_FACTORS = np.array([31, 37], np.uint64)


def hash_frames(frames: Iterable[Frame]) -> Hashes:
    """Hash ``frames`` by all that makes them what they are."""
    encode = msgspec.msgpack.Encoder().encode
    found = [hashlib.blake2b(encode(_plain(one)), digest_size=16).digest() for one in frames]
    return np.frombuffer(b"".join(found), "<u8").astype(np.uint64).reshape(-1, 2)


def hash_text(text: str) -> int:
    """Hash a text to a number of 63 bits."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def _plain(frame: Frame) -> tuple[object, ...]:
    """The parts of ``frame``; msgpack takes no lone surrogates, which names in files may have."""
    texts = [frame.name, frame.file, *(text for pair in frame.extra for text in pair)]
    return (int(frame.kind), frame.line, *(one.encode("utf-8", "surrogatepass") for one in texts))


def hash_rows(columns: Sequence[Hashes]) -> Hashes:
    """Hash the rows of ``columns``, at least one, in their order."""
    found = np.broadcast_to(_SEEDS, columns[0].shape).copy()
    with np.errstate(over="ignore"):
        for column in columns:
            found = _mix(found * _FACTORS + column + (found[:, ::-1] >> np.uint64(7)))
    return found


def hash_numbers(values: Column) -> Hashes:
    """Hash whole numbers."""
    number = values.astype(np.int64).view(np.uint64)
    return _mix(np.stack([number + np.uint64(1), number ^ _SEEDS[1]], axis=1))


def _mix(words: Hashes) -> Hashes:
    """Spread every bit over all others: the last steps of SplitMix64."""
    with np.errstate(over="ignore"):
        words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return words ^ (words >> np.uint64(31))


def unite_hashes(columns: Sequence[Hashes]) -> tuple[Hashes, list[I8]]:
    """Find the distinct hashes of ``columns``, in order, and where the entries of each are.

    Raises InputError where two that differ agree in their first half: what they name would be
    taken for one thing.
    """
    first = columns[0]
    if is_ascending(first) and all(np.array_equal(first, column) for column in columns[1:]):
        return first, [np.arange(len(first))] * len(columns)  # ranks that run one program
    whole = np.concatenate(columns)
    order = np.lexsort((whole[:, 1], whole[:, 0]))
    ordered = whole[order]
    begins = np.ones(len(ordered), bool)
    begins[1:] = ordered[1:, 0] != ordered[:-1, 0]
    again = ~begins
    if (ordered[1:, 1][again[1:]] != ordered[:-1, 1][again[1:]]).any():
        raise InputError("two things have one hash: the summaries cannot be merged")
    place = np.empty(len(ordered), np.int64)
    place[order] = np.cumsum(begins) - 1
    return ordered[begins], np.split(place, np.cumsum([len(one) for one in columns])[:-1])


def is_ascending(hashes: Hashes) -> bool:
    """Tell whether ``hashes`` are in order, each once."""
    return bool((hashes[1:, 0] > hashes[:-1, 0]).all())
