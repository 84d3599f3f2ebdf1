"""Memory snapshots: pickles and JSON, their check, and all that is read of them."""

from __future__ import annotations

import json
import pickle
import pickletools
import random
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from itertools import pairwise
from typing import Any, NoReturn

from flame.core.errors import InputError
from flame.core.model.allocator.recorded import MemoryOfDevice
from flame.core.readers.snapshot.pickle_check import check_pickle
from tests.fuzz.checks import FoundError, opens_or_refuses, packed, unpacked_size, write
from tests.fuzz.mutations import mutate_json, odd_value
from tests.fuzz.target import Target
from tests.support.writers.snapshotfile import SnapshotFile

_PLAIN = (dict, list, str, int, float, bool, type(None))


def check(data: bytes) -> None:
    if data.startswith(b"\x80"):
        _check_pickle(data)
    profile = opens_or_refuses(write("snapshot.pickle", data))
    for one in profile.memory.devices if profile is not None and profile.memory else ():
        _check_device(one)


def _check_device(found: MemoryOfDevice) -> None:
    """The parts add up to what is reserved, and nothing is negative."""
    reserved, *parts, largest = found.parts or (0,) * 7
    if sum(parts) != reserved or largest > reserved or min(reserved, *parts) < 0:
        raise FoundError(f"parts {found.parts}")
    if not 0 <= found.before <= found.peak >= found.live_end >= 0:
        raise FoundError(f"peak {found.peak}, before {found.before}, at the end {found.live_end}")


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> NoReturn:
        raise FoundError(f"looks up {module}.{name}")

    def persistent_load(self, pid: object) -> NoReturn:
        raise FoundError(f"asks for {pid!r}")


def _check_pickle(data: bytes) -> None:
    """What passes the check looks nothing up, and holds plain data."""
    try:
        check_pickle(data)
    except InputError:
        return
    try:
        root = _Unpickler(BytesIO(data)).load()
    except FoundError:
        raise
    except Exception:
        return
    _check_plain(root)


def _check_plain(root: object) -> None:
    pending, seen = [root], set[int]()
    while pending:
        value = pending.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, dict):
            pending += [*value.keys(), *value.values()]
        elif isinstance(value, list):
            pending += value
        elif isinstance(value, tuple):
            if [type(one) for one in value] != [int, int]:
                raise FoundError("a tuple of something else than two numbers")
        elif type(value) not in _PLAIN:
            raise FoundError(f"a {type(value).__name__}")


def mutate(data: bytes, draw: random.Random) -> bytes:
    """Change some objects of a snapshot, or some opcodes of a pickle."""
    if not data.startswith(b"\x80"):
        return mutate_json(data, draw)
    if draw.random() < 0.5:
        with suppress(Exception):  # a damaged pickle, or one with what cannot be written again
            check_pickle(data)
            whole = _Unpickler(BytesIO(data)).load()
            for _ in range(draw.choice((1, 1, 2, 5))):
                _change_object(whole, draw)
            return pickle.dumps(whole, draw.choice((2, 3, 4, 4, 5)))
    return _mutate_opcodes(data, draw)


def _change_object(whole: Any, draw: random.Random) -> None:
    """Change a value or leave it out; have objects in several places, themselves among them."""
    places = list(_places(whole))
    if not places:
        return
    holder, key = draw.choice(places)
    how = draw.randrange(7)
    if how == 0 and isinstance(holder, dict):
        del holder[key]
    elif how == 1 and isinstance(holder, list):
        holder[key:key] = [holder[key]] * draw.choice((1, 2, 1_000))
    elif how == 2:
        other, where = draw.choice(places)
        holder[key] = other[where]
    elif how == 3:
        holder[key] = draw.choice((whole, holder))
    elif how == 4 and type(holder[key]) is int:
        holder[key] += draw.choice((-1, 1, 512, -512))
    elif how == 5:
        holder[key] = _doubled(holder[key], draw.choice((2, 40)))
    else:
        holder[key] = odd_value(draw)


def _doubled(value: object, times: int) -> object:
    """A list of a list twice, of one twice, and so on: it is small, but its text is not."""
    for _ in range(times):
        value = [value, value]
    return value


def _places(value: object) -> Iterator[tuple[Any, Any]]:
    """Every (list or dictionary, index or key) inside of ``value``, which may be in itself."""
    pending, seen = [value], set[int]()
    while pending:
        holder = pending.pop()
        if isinstance(holder, list | dict) and id(holder) not in seen:
            seen.add(id(holder))
            for key in holder if isinstance(holder, dict) else range(len(holder)):
                yield holder, key
                pending.append(holder[key])


def _mutate_opcodes(data: bytes, draw: random.Random) -> bytes:
    """Leave opcodes out, repeat or exchange them, or put others between."""
    pieces = _opcodes(data)
    for _ in range(draw.choice((1, 1, 2, 5))):
        at, how = draw.randrange(len(pieces)), draw.randrange(4)
        if how == 0 and len(pieces) > 1:
            del pieces[at]
        elif how == 1:
            pieces[at:at] = [draw.choice(pieces)] * draw.choice((1, 1, 100))
        elif how == 2:
            pieces[at] = draw.choice(pieces)
        else:
            pieces.insert(at, random_opcode(draw))
    return b"".join(pieces)


def _opcodes(data: bytes) -> list[bytes]:
    """The opcodes of a pickle with what belongs to each, and the rest that is none."""
    starts = [0]
    with suppress(Exception):
        starts = [at for _, _, at in pickletools.genops(data) if at is not None]
    return [data[begin:end] for begin, end in pairwise([*starts, len(data)])]


def random_opcode(draw: random.Random) -> bytes:
    """An opcode, most often one that a snapshot has, and what may belong to it."""
    often = b"hj(}]ueas\x94K M J\x8aN\x86q r X\x8c.".replace(b" ", b"")
    code = draw.choice(often) if draw.random() < 0.8 else draw.randrange(256)
    small = draw.choice((0, 0, 1, 3, 255)), *(draw.choice((0, 0, 0, 1, 255)) for _ in range(8))
    return bytes([code, *small[: draw.choice((0, 1, 2, 4, 8))]])


def _whole() -> SnapshotFile:
    file = SnapshotFile(2)
    kept = file.alloc(1_000, ("main", "init"))
    for step in range(3):
        file.free(file.alloc(700, ("main", "forward")), pending=step == 1)
        file.alloc(1 << 20, ("main", "leak"), device=step % 2)
        file.end_step()
    file.free(kept)
    file.fail(1 << 21, 1_000)
    return file


def seeds() -> list[bytes]:
    file, small = _whole(), SnapshotFile()
    small.free(small.alloc(10))
    document = file.document(3)
    old: dict[str, Any] = {"size": 512, "state": "active_allocated", "history": [{"addr": 9}]}
    segment = {"device": 0, "address": 9, "total_size": 512, "stream": 0, "blocks": [old, old]}
    return [
        pickle.dumps(document, 4),
        pickle.dumps(small.document(), 2),
        pickle.dumps(small.segments(), 5),
        pickle.dumps({"segments": [segment], "device_traces": [[]]}, 4),
        packed(pickle.dumps(document, 4)),
        json.dumps(small.document()).encode(),
    ]


TARGET = Target("snapshot", seeds, check, mutate, 1 << 13, unpacked_size)
