"""Summaries of ranks: bytes, and numbers and texts in them, with the right signs again."""

from __future__ import annotations

import random
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from flame.core.columns import I8
from flame.core.errors import FlameError, InputError
from flame.core.loading.many import load
from flame.core.projection.selection import select
from flame.core.rank_summary import summary_file
from flame.core.rank_summary.merge import merge_summaries
from flame.core.rank_summary.opened import profile_of, summary_of
from flame.core.rank_summary.packed_columns import (
    PackedColumn,
    deflate,
    inflate,
    pack_column,
    unpack_column,
)
from flame.core.rank_summary.summary import RankSummary
from flame.core.rank_summary.summary_file import pack_summary, unpack_summary
from flame.core.rank_summary.summary_head import HEAD, NO_ORIGIN, seal
from flame.core.ranks.communication.matching import match_table
from flame.core.ranks.communication.summary_waits import with_waits
from flame.core.ranks.communication.waits import waits_of
from flame.core.ranks.rank_sections.of_summary import questions_of
from flame.core.ranks.report import SECTIONS, rank_sections
from flame.core.ranks.summarise import summarise
from tests.fuzz.checks import FoundError, folder, write
from tests.fuzz.mutations import INTEGERS, LARGE, odd_value
from tests.fuzz.target import Target
from tests.support.ranks.random_ranks import random_summary
from tests.support.ranks.rank_traces import write_ranks

_MOST_ROWS = 1 << 16
_PARTS = ("sizes", "frames", "info")
_FOLDED = select(kernel_names="short", fold=True, fold_numbers=True)


def check(data: bytes) -> None:
    """It is refused in one line, or is what a summary is: shown, reported on, merged, kept."""
    path = write("x.flamesum", data)
    try:
        summary = summary_of(load(path))
    except InputError as error:
        line = str(error)
        if line.splitlines() != [line] or not line.startswith(f"{path}: "):
            raise FoundError(f"refused in other words: {line!r}") from error
        return
    if summary is not None:
        ask(summary)


def ask(summary: RankSummary) -> None:
    """All that is shown of a summary; whatever it says, it is said without a fault."""
    from flame.console.info import as_json
    from flame.console.print_view import view
    from flame.core.loading.inputs import Inputs

    profile = profile_of(summary)
    as_json(profile, Inputs((Path("x"),)))
    for selection in (select("rank,nvtx,kernel"), select("launch,nvtx", metric="host"), _FOLDED):
        with suppress(FlameError):
            view(profile, selection, "title", 100)
    with suppress(FlameError):
        list(rank_sections(questions_of(summary, _FOLDED, profile), SECTIONS))
    again = pack_summary(merge_summaries([summary, random_summary(9, 1 << 20, 3)]))
    unpack_summary(again, "merged")
    if pack_summary(unpack_summary(pack_summary(summary), "again")) != pack_summary(summary):
        raise FoundError("it is another when it is written and read again")


@cache
def seeds() -> list[bytes]:
    """A generated run with all that a summary has, and two made at random."""
    run = write_ranks(folder() / "ranks", 3, 2, 2, straggler=1, odd=2)
    parts = [summarise(load(path), path.name) for path in run.paths]
    whole = merge_summaries([part.summary for part in parts])
    matching = match_table(whole.collectives, len(whole))
    waits = [waits_of(part.arrivals[0], whole.collectives, matching) for part in parts]
    others = [random_summary(7, rank) for rank in range(3)]
    return [pack_summary(one) for one in (with_waits(whole, waits), merge_summaries(others))]


def mutate(data: bytes, draw: random.Random) -> bytes:
    """Change numbers of columns, texts and sizes, and make the signs right again."""
    try:
        packed = summary_file._DECODER.decode(data[HEAD:])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return seal(data[HEAD:], NO_ORIGIN)
    for _ in range(draw.choice((1, 1, 2, 5))):
        with suppress(ValueError, OverflowError, TypeError, msgspec.MsgspecError):
            packed = _changed(packed, draw)
    origin = draw.choice((NO_ORIGIN, NO_ORIGIN, draw.randbytes(len(NO_ORIGIN))))
    return seal(msgspec.msgpack.encode(packed), origin)


def _changed(packed: Any, draw: random.Random) -> Any:
    if draw.random() < 0.65:
        name = draw.choice(sorted(packed.columns))
        column = _changed_column(packed.columns, name, draw)
        columns = {**packed.columns, name: column}
        if draw.random() < 0.05:
            del columns[name]
        return msgspec.structs.replace(packed, columns=columns)
    name = draw.choice(_PARTS)
    if name == "sizes":
        sizes = list(packed.sizes)
        sizes[draw.randrange(len(sizes))] = draw.choice((*INTEGERS, *LARGE[:3]))
        return msgspec.structs.replace(packed, sizes=tuple(sizes))
    return msgspec.structs.replace(packed, **{name: _changed_texts(getattr(packed, name), draw)})


def _changed_column(columns: dict[str, PackedColumn], name: str, draw: random.Random) -> Any:
    """One of other numbers, of another length, another's, or one that lies about itself."""
    packed = columns[name]
    if draw.random() < 0.1:
        rows = draw.choice((0, 1, packed.rows + 1, 1 << 31, 1 << 40, -1))
        return PackedColumn(rows, draw.choice((0, 1, 8, 9, packed.width)), packed.data)
    if draw.random() < 0.1:
        return columns[draw.choice(sorted(columns))]
    if not 0 <= packed.rows <= _MOST_ROWS:
        return packed
    column: I8 = unpack_column(packed, packed.rows).copy()
    match draw.randrange(6):
        case 0:
            column = column[: draw.randrange(len(column) + 1)]
        case 1:
            column = np.append(column, column[-1:])
        case 2:
            draw.shuffle(found := column.tolist())
            column = np.array(found, np.int64)
        case 3 if len(column):
            at, by = draw.randrange(len(column)), draw.choice((-1, 1, 1_000))
            column[at] += by
            column[draw.randrange(len(column))] -= by
        case _ if len(column):
            column[draw.randrange(len(column))] = draw.choice((-(2**63), -2, -1, *INTEGERS, 2**62))
    return pack_column(column)


def _changed_texts(packed: Any, draw: random.Random) -> Any:
    """Other texts and numbers in place of some of frames, ranks or names."""
    whole = msgspec.msgpack.decode(inflate(packed.data, packed.size))
    holder: Any = whole
    while isinstance(holder, list) and holder:
        at = draw.randrange(len(holder))
        if not isinstance(holder[at], list) or draw.random() < 0.1:
            holder[at] = _odd(holder[at], draw)
            break
        holder = holder[at]
    raw = msgspec.msgpack.encode(whole)
    return type(packed)(draw.choice((len(raw), len(raw), len(raw) + 1)), deflate(raw))


def _odd(value: Any, draw: random.Random) -> Any:
    odd = odd_value(draw)
    if isinstance(value, bytes) and draw.random() < 0.7:
        return str(odd).encode("utf-8", "surrogatepass")
    if isinstance(value, int) and draw.random() < 0.7:
        return value + draw.choice((-1, 1, 1_000, 2**40))
    return odd


TARGET = Target("flamesum", seeds, check, mutate, 1 << 15)
