"""What is kept of traces in the cache: heads and columns, with all checksums as they should be."""

from __future__ import annotations

import random
from contextlib import suppress
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from flame.core.columns import Column
from flame.core.errors import FlameError, InputError
from flame.core.loading.file import load_file
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions, Progress, silent
from flame.core.projection.filters import Time
from flame.core.projection.selection import select
from flame.core.reopening.column_file import ColumnFile, DamagedError, write_columns
from flame.core.reopening.decode import decode, frames_of, read_head
from flame.core.reopening.encode import encode
from flame.core.reopening.trace_again import TraceAgain
from flame.core.reopening.trace_identity import TraceIdentity
from tests.fuzz.checks import write
from tests.fuzz.mutations import INTEGERS, LARGE, odd_value
from tests.fuzz.target import Target
from tests.support.profiles.same_profiles import LEVELS, exported
from tests.support.writers.nsysfile import NsysFile

_TRACE = TraceIdentity("x", 0, 0, 0, 0, 0, b"", 0)
_SMALL = (-2, -1, *INTEGERS)


def check(data: bytes) -> None:
    with suppress(DamagedError):
        ask(opened(write("x.profile", data)))


def opened(path: Path) -> Profile:
    columns = ColumnFile(path.open("rb", 0))
    head = read_head(columns)
    again = TraceAgain(path, LoadOptions(), _TRACE, _refuse, frames_of(head))
    return decode(columns, head, again, None)


def _refuse(path: Path, options: LoadOptions, progress: Progress) -> Profile:
    raise InputError("not again")


def ask(profile: Profile) -> None:
    """All that is shown at first; whatever it says, it is said without a fault."""
    from flame.console.info import as_json
    from flame.console.print_view import view
    from flame.core.loading.inputs import Inputs

    for levels in LEVELS:
        exported(profile, select(levels))
    with suppress(FlameError):
        view(profile, select(), "title", 100)
    with suppress(FlameError):
        as_json(profile, Inputs((Path("x"),)))
    exported(profile, select(where=(Time(0, 100),)))


@cache
def seeds() -> list[bytes]:
    path = write("x.sqlite", b"")
    path.unlink()
    with NsysFile(path) as file:
        for number in range(3):
            file.nvtx(f"step {number}", 100 * number, 100 * number + 90)
            file.api("cudaLaunchKernel_v7000", 100 * number, 100 * number + 5, corr=number + 1)
            file.kernel(f"gemm{number % 2}", 100 * number + 9, 100 * number + 40, corr=number + 1)
    kept = [encode(load_file(path, LoadOptions(), silent))]
    path.unlink()
    return [_whole(b"about", *parts) for parts in kept]


def _whole(about: bytes, head: bytes, columns: dict[str, Column]) -> bytes:
    file = BytesIO()
    write_columns(file, about, head, columns)
    return file.getvalue()


def mutate(data: bytes, draw: random.Random) -> bytes:
    """Change values of the head or of columns, and make the checksums right again."""
    try:
        file = ColumnFile(write("x.mutated", data).open("rb", 0))
        places = file._places
        columns = {name: file.read(name, place.dtype[1:]) for name, place in places.items()}
        head = msgspec.msgpack.decode(file.content)
    except (DamagedError, msgspec.MsgspecError, UnicodeDecodeError):
        return data
    for _ in range(draw.choice((1, 1, 2, 5))):
        if draw.random() < 0.3:
            _change_head(head, draw)
        else:
            name = draw.choice(sorted(columns))
            columns[name] = _changed(columns[name], draw)
    with suppress(OverflowError, UnicodeEncodeError, TypeError):
        return _whole(file.about, msgspec.msgpack.encode(head), columns)
    return data


def _change_head(head: Any, draw: random.Random) -> None:
    holder: Any = head
    while isinstance(holder, (dict, list)) and holder:
        key: Any = (
            draw.choice(sorted(holder)) if isinstance(holder, dict) else draw.randrange(len(holder))
        )
        if not isinstance(holder[key], (dict, list)) or draw.random() < 0.2:
            holder[key] = odd_value(draw)
            return
        holder = holder[key]


def _changed(column: Column, draw: random.Random) -> Column:
    if not len(column) or draw.random() < 0.1:
        return column[: draw.randrange(len(column) + 1)]
    value = draw.choice((*_SMALL, *LARGE, -(2**63)))
    limits = np.iinfo(column.dtype) if column.dtype != bool else None
    changed = column.copy()
    place = draw.randrange(len(column))
    if limits is None:
        changed.view(np.uint8)[place] = value % 256
    else:
        changed[place] = min(max(value, limits.min), limits.max)
    return changed


TARGET = Target("kept", seeds, check, mutate, 1 << 15)
