"""Keep beside a dump what was read of it, as a summary that has the collectives of its rank, too.

So it takes the dump's place, also where the collectives of all ranks are compared.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np

from flame._version import __version__
from flame.core.columns import I8
from flame.core.errors import InputError
from flame.core.mapped_files import open_regular
from flame.core.model.activities import NONE
from flame.core.rank_summary.collective_table import COLUMNS as OF_TABLE
from flame.core.rank_summary.packed_columns import PackedColumns
from flame.core.rank_summary.rank_communication import COLUMNS as OF_SUMS
from flame.core.rank_summary.rank_communication import RankCommunication
from flame.core.rank_summary.signs import SUFFIX
from flame.core.rank_summary.summary import RankSummary
from flame.core.rank_summary.summary_file import not_together, pack_summary, unpack_with_columns
from flame.core.rank_summary.summary_head import HEAD, origin_in
from flame.core.ranks.communication.arrivals import (
    COLUMNS,
    Arrivals,
    communication_of,
    table_of,
)
from flame.core.ranks.communication.rank_groups import RankGroups, name_groups
from flame.core.ranks.communication.rank_steps import RankSteps
from flame.core.ranks.summarise import RankOptions, RankPart
from flame.core.readers.fdump.folder import SUFFIX as DUMP

_PREFIX = "a_"
_SIGN, _PIECE = 16, 1 << 16
_LONGEST_TIME = 1 << 62


def summary_beside(dump: Path) -> Path:
    """Name the summary of a dump."""
    return dump.with_suffix(SUFFIX)


def identify_dump(dump: Path) -> bytes:
    """Return what stands for the dump's contents, as this flame reads it. Raises OSError.

    By its size, its beginning and its end: a dump is never changed in place but for its head, which
    counts what was written. A copy has the same.
    """
    with os.fdopen(open_regular(dump), "rb", 0) as file:
        size = os.fstat(file.fileno()).st_size
        digest = hashlib.blake2b(b"%d %b\n" % (size, __version__.encode()), digest_size=_SIGN)
        digest.update(file.read(_PIECE))
        file.seek(max(size - _PIECE, 0))
        digest.update(file.read(_PIECE))
    return digest.digest()


def head_of(path: Path) -> bytes:
    """Return how a file begins; b'' where it cannot be read."""
    try:
        return _read(path, HEAD)
    except (OSError, ValueError):
        return b""


def origin_of(path: Path) -> bytes:
    """Return what stands for the dump that the summary at ``path`` lies beside; else b''."""
    return origin_in(head_of(path))


def has_fresh_summary(dump: Path) -> bool | None:
    """Tell whether the summary beside ``dump`` was made of it as it is; None where there is none.

    It may be damaged all the same.
    """
    origin = origin_of(summary_beside(dump))
    try:
        return origin == identify_dump(dump) if origin else None
    except OSError:
        return False


def _read(path: Path, size: int = -1) -> bytes:
    with os.fdopen(open_regular(path), "rb") as file:
        return file.read(size)


# Writing and reading


def pack_part(part: RankPart, sign: bytes) -> bytes:
    """Pack the part of a dump with this ``sign``, to lie beside it; ValueError of several ranks."""
    (arrivals,), summary = part.arrivals, part.summary
    info = [msgspec.structs.replace(one, path=Path(one.path).name) for one in summary.info]
    columns = {name: getattr(arrivals, name) for name in COLUMNS}
    columns["group"] = _places(summary, arrivals)
    more = {_PREFIX + name: column for name, column in columns.items()}
    return pack_summary(replace(summary, info=tuple(info)), sign, more)


def _places(summary: RankSummary, arrivals: Arrivals) -> I8:
    """Where the group of each collective is among those of ``summary``; -1 where not known."""
    found = np.searchsorted(summary.group_hash[:, 0], arrivals.group_hash[:, 0])
    return np.append(found, NONE)[arrivals.group]


def unpack_part(data: bytes, name: str) -> RankPart:
    """Unpack what `pack_part` packed; InputError, of the file ``name``, where it did not."""
    summary, columns = unpack_with_columns(data, name)
    try:
        arrivals = _unpack_arrivals(summary, columns)
    except (ValueError, IndexError):
        raise not_together(name) from None
    return RankPart(summary, (arrivals,))


def _unpack_arrivals(summary: RankSummary, columns: PackedColumns) -> Arrivals:
    (info,) = summary.info
    rows = columns.rows(_PREFIX + COLUMNS[0])
    found = {name: columns.take(_PREFIX + name, rows) for name in COLUMNS}
    steps = RankSteps(*map(np.asarray, (info.step_numbers, info.step_times, info.step_work)))
    arrivals = Arrivals(
        info.rank,
        info.origin,
        **found,
        group_hash=summary.group_hash,
        steps=steps,
        others=_others(summary.communication),
        communicators=summary.collectives.communicators,
        kinds=summary.collectives.kinds,
    )
    if not _agree(summary, arrivals):
        raise ValueError("the collectives are others than those of the summary")
    return arrivals


def _others(communication: RankCommunication) -> RankCommunication:
    """What does not bring all ranks together."""
    rows = communication.together == 0
    of = {name: getattr(communication, name)[rows] for name in OF_SUMS}
    hashes = set(of["communicator"].tolist())
    return RankCommunication(
        **of, names=tuple(one for one in communication.names if one[0] in hashes)
    )


def _agree(summary: RankSummary, arrivals: Arrivals) -> bool:
    """Whether ``arrivals`` are those that ``summary`` tells of, and all places in it are there."""
    places = (arrivals.group, len(summary.group_hash)), (arrivals.step, len(arrivals.steps.number))
    if not all(((place >= NONE) & (place < size)).all() for place, size in places):
        return False
    if not (np.abs(arrivals.start) < _LONGEST_TIME).all():
        return False
    table, sums = table_of(arrivals), communication_of(arrivals)
    return all(
        np.array_equal(getattr(one, name), getattr(known, name))
        for one, known, names in (
            (table, summary.collectives, OF_TABLE),
            (sums, summary.communication, OF_SUMS),
        )
        for name in names
    )


def part_kept(path: Path, name: str, options: RankOptions) -> RankPart | None:
    """Read what is kept of the file at ``path``, a dump or its summary, called ``name``.

    None of a dump of which nothing is kept as it is, or not under these ``options``, or that cannot
    be read. Raises InputError, OSError.
    """
    if origin_of(path):
        part = unpack_part(_read(path), name)
    else:
        if path.suffix != DUMP or options.iteration or not has_fresh_summary(path):
            return None
        try:
            part = unpack_part(_read(summary_beside(path)), name)
        except (InputError, OSError):
            return None
        part = _called(part, name)
    return part if options.mesh is None else _with_mesh(part, options.mesh)


def _called(part: RankPart, name: str) -> RankPart:
    info = tuple(msgspec.structs.replace(one, path=name) for one in part.summary.info)
    return part._replace(summary=replace(part.summary, info=info))


def _with_mesh(part: RankPart, mesh: RankGroups) -> RankPart:
    arrivals = tuple(name_groups(one, mesh) for one in part.arrivals)
    table, sums = table_of(arrivals[0]), communication_of(arrivals[0])
    return RankPart(replace(part.summary, collectives=table, communication=sums), arrivals)
