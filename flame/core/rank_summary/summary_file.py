"""Keep summaries as bytes: the same for equal summaries, and refused where they do not make sense.

The hashes of frames, stacks and groups are not kept: they are found anew, so that nothing is called
what it is not. Cells are kept as what they differ from the mean over the ranks by.

A summary may say which single file it was made of: it then lies beside that, and its paths are
those of files in its folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from flame.core.columns import I4, I8, Column
from flame.core.errors import InputError
from flame.core.frame import Frame, Kind
from flame.core.memory import MemoryShortError, within_memory
from flame.core.model.activities import NONE
from flame.core.model.stacks import StackTable, stack_depths
from flame.core.options import silent
from flame.core.rank_summary.collective_table import COLUMNS, CollectiveTable
from flame.core.rank_summary.content_hash import Hashes, hash_frames
from flame.core.rank_summary.hashed_groups import hash_groups, hash_stacks
from flame.core.rank_summary.packed_columns import (
    MOST_DEFLATED,
    DeflatedTexts,
    PackedColumn,
    PackedColumns,
    as_plain,
    as_wire,
    inflate,
    is_too_large,
    narrowed,
    pack_column,
    pack_texts,
)
from flame.core.rank_summary.rank_communication import COLUMNS as OF_RANKS
from flame.core.rank_summary.rank_communication import RankCommunication
from flame.core.rank_summary.rank_waits import OF_GROUPS, RankWaitTable
from flame.core.rank_summary.rank_waits import OF_RANKS as WAITS_OF_RANKS
from flame.core.rank_summary.signs import SUFFIX as SUFFIX
from flame.core.rank_summary.signs import is_summary as is_summary
from flame.core.rank_summary.summary import (
    FRAMES,
    METRICS,
    STACKS,
    LostRank,
    RankInfo,
    RankSummary,
    SummaryGroups,
)
from flame.core.rank_summary.summary_check import holds_together
from flame.core.rank_summary.summary_head import NO_ORIGIN, origin_in, seal, unseal

_CELL_LEVEL = 6
_PER_NUMBER, _PER_TEXT = 16, 16
"""Bytes of memory that a number of a column takes while it is unpacked, and a byte of texts."""
_RISING = frozenset(("bin_group", "longest_rank", "c_communicator", "c_ordinal"))
"""Columns of which the differences are kept."""


def pack_summary(
    summary: RankSummary, origin: bytes = NO_ORIGIN, more: Mapping[str, Column] | None = None
) -> bytes:
    """Pack ``summary`` and ``more`` columns; equal summaries give equal bytes.

    ``origin`` (16 bytes) stands for the file that it lies beside.
    """
    packed = _packed(summary)
    packed.columns.update({name: pack_column(column) for name, column in (more or {}).items()})
    return seal(msgspec.msgpack.encode(packed), origin)


def unpack_summary(data: bytes, name: str) -> RankSummary:
    """Unpack what `pack_summary` packed; InputError, of the file ``name``, where it did not.

    Raises MemoryShortError, before it takes any, where there is too little memory.
    """
    return unpack_with_columns(data, name)[0]


def unpack_with_columns(data: bytes, name: str) -> tuple[RankSummary, PackedColumns]:
    """Do the same, with all columns, among them what was packed as well."""
    body = unseal(data, name)
    try:
        packed = _DECODER.decode(body)
        need = _memory_of(packed, len(body))
        if is_too_large(packed.columns, packed.frames.size + packed.info.size, len(body)):
            raise InputError(f"{name}: the summary unpacks to far more than summaries do")
        within_memory(name, need, silent)
        summary = _unpacked(packed)
        if not holds_together(summary):
            raise ValueError
    except MemoryError:
        raise MemoryShortError(f"{name}: there is not enough memory to read it") from None
    except (msgspec.MsgspecError, ValueError, IndexError, OverflowError, RecursionError):
        raise not_together(name) from None
    if origin_in(data):
        summary = _with_folder(summary, Path(name).parent)
    return summary, PackedColumns(packed.columns, _RISING)


def not_together(name: str) -> InputError:
    """Make the error of the summary ``name`` that makes no sense."""
    return InputError(f"{name}: the summary does not hold together: make it again")


def _with_folder(summary: RankSummary, folder: Path) -> RankSummary:
    """Say where the files are whose names a summary in ``folder`` has."""
    info = [msgspec.structs.replace(one, path=str(folder / one.path)) for one in summary.info]
    return replace(summary, info=tuple(info))


# What is in the file


class _PackedSummary(msgspec.Struct, array_like=True, frozen=True):
    """Hold a summary as it is in the file; ``sizes`` are those of `_Sizes`."""

    sizes: tuple[int, int, int, int, int, int]
    frames: DeflatedTexts
    info: DeflatedTexts
    columns: dict[str, PackedColumn]


class _Sizes(NamedTuple):
    """How many there are of each."""

    frames: int
    stacks: int
    groups: int
    ranks: int
    bins: int
    cells: int


_WireFrame = tuple[int, bytes, bytes, int, list[tuple[bytes, bytes]]]


class _WireInfo(msgspec.Struct, array_like=True, frozen=True):
    """`RankInfo`, whose texts may be no UTF-8."""

    rank: int
    path: bytes
    format: bytes
    producer: bytes
    begin: int
    end: int
    origin: int | None
    activities: int
    gpus: list[bytes]
    coverage: list[tuple[bytes, int]]
    warnings: list[bytes]
    step_numbers: list[int]
    step_times: list[int]
    step_work: list[int]
    iteration: bytes = b""
    host: bytes = b""


class _WireRanks(msgspec.Struct, array_like=True, frozen=True):
    """Hold what is known of ranks besides numbers, and the names of collectives' hashes."""

    info: list[_WireInfo]
    lost: list[tuple[bytes, bytes]]
    communicators: list[tuple[int, bytes]]
    kinds: list[tuple[int, bytes]]
    communication: list[tuple[int, bytes]]


_DECODER = msgspec.msgpack.Decoder(_PackedSummary)
_FRAMES = msgspec.msgpack.Decoder(list[_WireFrame])
_RANKS = msgspec.msgpack.Decoder(_WireRanks)


# Packing


def _packed(summary: RankSummary) -> _PackedSummary:
    table = summary.collectives
    sizes = _Sizes(
        len(summary.frames),
        len(summary.stack_hash),
        len(summary.group_hash),
        len(summary),
        len(summary.bin),
        len(summary.cell_group),
    )
    info = [
        [as_wire(getattr(one, name)) for name in RankInfo.__struct_fields__] for one in summary.info
    ]
    names = table.communicators, table.kinds, summary.communication.names
    ranks = [info, as_wire(summary.lost), *map(as_wire, names)]
    columns = {name: pack_column(one) for name, one in _columns_of(summary).items()}
    return _PackedSummary(
        sizes,
        pack_texts([as_wire((int(one.kind), *one[1:])) for one in summary.frames]),
        pack_texts(ranks),
        columns | {f"cell_{key}": pack_column(one, _CELL_LEVEL) for key, one in _cells(summary)},
    )


def _columns_of(summary: RankSummary) -> dict[str, Column]:
    """All columns but cells, with what is kept in place of some."""
    order, number = _stacks_by_depth(summary)
    found: dict[str, Column] = {
        "stack_parent": number[summary.stack_parent[order]],
        "stack_frame": summary.stack_frame[order],
        "shortest": summary.shortest,
        "longest": summary.longest - summary.shortest,
        "longest_rank": summary.longest_rank,
        "bin_group": summary.bin_group,
        "bin": summary.bin,
        "bin_count": summary.bin_count,
        "cell_length": np.diff(summary.cell_start),
        "cell_group": np.diff(summary.cell_group.astype(np.int64), prepend=0),
    }
    for name in SummaryGroups._fields:
        column = getattr(summary.groups, name)
        found[f"group_{name}"] = number[column] if name in STACKS else column
    for row, key in enumerate(METRICS):
        found |= {f"total_{key}": summary.total[row], f"rank_{key}": summary.rank_total[row]}
    found |= {f"c_{name}": getattr(summary.collectives, name) for name in COLUMNS}
    found |= {f"r_{name}": getattr(summary.communication, name) for name in OF_RANKS}
    if summary.waits is not None:
        found |= {f"w_{name}": column for name, column in summary.waits._asdict().items()}
    rising = {name: np.diff(found[name].astype(np.int64), prepend=0) for name in _RISING}
    return found | rising


def _stacks_by_depth(summary: RankSummary) -> tuple[I8, I8]:
    """(the stacks by depth and hash, the place of each in these); the last place is -1's."""
    root = np.array([NONE])
    depth = stack_depths(np.concatenate([root, summary.stack_parent + 1]).astype(np.int32))[1:]
    order = np.argsort(depth, kind="stable")
    number = np.full(len(order) + 1, NONE, np.int64)
    number[order] = np.arange(len(order))
    return order, number


def _cells(summary: RankSummary) -> Iterable[tuple[str, I8]]:
    """What the cells have more than the mean over all ranks, by metric."""
    mean = summary.total // max(len(summary), 1)
    for row, key in enumerate(METRICS):
        yield key, summary.cell[row] - mean[row][summary.cell_group]


# Unpacking


def _memory_of(packed: _PackedSummary, size: int) -> int:
    """How many bytes unpacking takes, about; ValueError where so many bytes cannot hold that."""
    rows = [column.rows for column in packed.columns.values()]
    texts = [packed.frames.size, packed.info.size]
    sizes = [*packed.sizes, *rows, *texts]
    if min(sizes) < 0 or max(sizes) > MOST_DEFLATED * size:
        raise ValueError("it has more than there is room for")
    return _PER_NUMBER * sum(rows) + _PER_TEXT * sum(texts)


def _unpacked(packed: _PackedSummary) -> RankSummary:
    sizes = _Sizes(*packed.sizes)
    frames = _unpack_frames(packed.frames, sizes.frames)
    ranks = _RANKS.decode(inflate(packed.info.data, packed.info.size))
    if len(ranks.info) != sizes.ranks:
        raise ValueError("ranks are lacking")
    columns = PackedColumns(packed.columns, _RISING)
    frame_hash = hash_frames(frames)
    parent, frame, stack_hash, number = _unpack_stacks(columns, sizes, frame_hash)
    groups = _unpack_groups(columns, sizes, number)
    start = np.concatenate([[0], np.cumsum(columns.take("cell_length", sizes.ranks))])
    total = np.array([columns.take(f"total_{key}", sizes.groups) for key in METRICS])
    shortest = columns.take("shortest", sizes.groups)
    cell_group = np.cumsum(columns.take("cell_group", sizes.cells))
    return RankSummary(
        frames=frames,
        frame_hash=frame_hash,
        stack_hash=stack_hash,
        stack_parent=parent,
        stack_frame=frame,
        group_hash=_hash_groups(groups, stack_hash, frame_hash),
        groups=groups,
        shortest=shortest,
        longest=shortest + columns.take("longest", sizes.groups),
        longest_rank=columns.narrow("longest_rank", sizes.groups),
        bin_group=columns.narrow("bin_group", sizes.bins),
        bin=columns.narrow("bin", sizes.bins),
        bin_count=columns.take("bin_count", sizes.bins),
        info=tuple(_unpack_info(one) for one in ranks.info),
        cell_start=start,
        cell_group=narrowed(cell_group),
        cell=_unpack_cells(columns, sizes, total, cell_group),
        total=total,
        rank_total=np.array([columns.take(f"rank_{key}", sizes.ranks) for key in METRICS]),
        collectives=_unpack_collectives(columns, ranks),
        communication=_unpack_communication(columns, ranks),
        waits=_unpack_waits(columns, sizes, sum(len(one.step_numbers) for one in ranks.info)),
        lost=tuple(LostRank(*as_plain(one)) for one in ranks.lost),
    )


def _unpack_frames(packed: DeflatedTexts, size: int) -> tuple[Frame, ...]:
    found = _FRAMES.decode(inflate(packed.data, packed.size))
    if len(found) != size:
        raise ValueError("frames are lacking")
    return tuple(Frame(Kind(kind), *as_plain(rest)) for kind, *rest in found)


def _unpack_info(wire: _WireInfo) -> RankInfo:
    return RankInfo(*(as_plain(getattr(wire, name)) for name in RankInfo.__struct_fields__))


def _unpack_stacks(
    columns: PackedColumns, sizes: _Sizes, frame_hash: Hashes
) -> tuple[I4, I4, Hashes, I8]:
    """(parents, frames and hashes of the stacks by hash, where each of the file is in these)."""
    parent = columns.narrow("stack_parent", sizes.stacks)
    frame = columns.narrow("stack_frame", sizes.stacks)
    above = (parent >= NONE) & (parent < np.arange(sizes.stacks))
    if not (above & (frame >= 0) & (frame < sizes.frames)).all():
        raise ValueError("a stack refers to what is not there")
    root = np.array([NONE], np.int32)
    table = StackTable.of_links(np.concatenate([root, parent + 1]), np.concatenate([root, frame]))
    found = hash_stacks(table, frame_hash)[1:]
    order = np.argsort(found[:, 0], kind="stable")
    number = np.full(sizes.stacks + 1, NONE, np.int64)
    number[order] = np.arange(sizes.stacks)
    if (np.lexsort((number[:-1], table.depth[1:])) != np.arange(sizes.stacks)).any():
        raise ValueError("the stacks are in another order")
    return number[parent[order]].astype(np.int32), frame[order], found[order], number


def _unpack_groups(columns: PackedColumns, sizes: _Sizes, number: I8) -> SummaryGroups:
    found = {name: columns.narrow(f"group_{name}", sizes.groups) for name in SummaryGroups._fields}
    for name in STACKS:
        if not ((found[name] >= NONE) & (found[name] < sizes.stacks)).all():
            raise ValueError("a group refers to what is not there")
        found[name] = number[found[name]].astype(np.int32)
    if any(((found[name] < NONE) | (found[name] >= sizes.frames)).any() for name in FRAMES):
        raise ValueError("a group refers to what is not there")
    return SummaryGroups(**found)


def _hash_groups(groups: SummaryGroups, stack_hash: Hashes, frame_hash: Hashes) -> Hashes:
    none = np.zeros((1, 2), np.uint64)
    stack_hash, frame_hash = (np.concatenate([one, none]) for one in (stack_hash, frame_hash))
    stacks = [stack_hash[getattr(groups, name)] for name in STACKS]
    frames = [frame_hash[getattr(groups, name)] for name in FRAMES]
    return hash_groups(groups.kind, groups.launched, groups.host, stacks, frames)


def _unpack_cells(columns: PackedColumns, sizes: _Sizes, total: I8, cell_group: I8) -> I8:
    if not ((cell_group >= 0) & (cell_group < sizes.groups)).all():
        raise ValueError("a cell refers to what is not there")
    mean = total // max(sizes.ranks, 1)
    cell = np.empty((len(METRICS), sizes.cells), np.int64)
    for row, key in enumerate(METRICS):
        cell[row] = columns.take(f"cell_{key}", sizes.cells)
        cell[row] += mean[row][cell_group]
    return cell


def _unpack_collectives(columns: PackedColumns, ranks: _WireRanks) -> CollectiveTable:
    rows = columns.rows(f"c_{COLUMNS[0]}")
    found: dict[str, Any] = {name: columns.take(f"c_{name}", rows) for name in COLUMNS}
    return CollectiveTable(
        **found, communicators=as_plain(ranks.communicators), kinds=as_plain(ranks.kinds)
    )


def _unpack_communication(columns: PackedColumns, ranks: _WireRanks) -> RankCommunication:
    rows = columns.rows(f"r_{OF_RANKS[0]}")
    found: dict[str, Any] = {name: columns.take(f"r_{name}", rows) for name in OF_RANKS}
    return RankCommunication(**found, names=as_plain(ranks.communication))


def _unpack_waits(columns: PackedColumns, sizes: _Sizes, steps: int) -> RankWaitTable | None:
    if not columns.has("w_wait"):
        return None
    rows = columns.rows("w_group")
    return RankWaitTable(
        **{name: columns.take(f"w_{name}", sizes.ranks) for name in WAITS_OF_RANKS},
        step_wait=columns.take("w_step_wait", steps),
        group_start=columns.take("w_group_start", sizes.ranks + 1),
        **{name: columns.take(f"w_{name}", rows) for name in OF_GROUPS},
    )
