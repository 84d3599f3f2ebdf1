"""Small databases that claim far more than they hold: what is there is used many times.

To flame each is an export of Nsight Systems; SQLite reads them without complaint.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.support.writers.sqlitefile import (
    cell,
    database,
    interior,
    joined,
    page,
    placed,
    record,
    schema_cells,
    varint,
)

TABLE = "NVTX_EVENTS"
COLUMNS = "start INTEGER, end INTEGER, eventType INTEGER, globalTid INTEGER, text TEXT"
_VALUES = (100, 200, 59, 7)
_STEP = 21  # bytes from one row to the next, which lies in the first one's text
_INDEX_LEAF, _INDEX_ROW = 10, 7


def _create(table: str = TABLE, more: str = "", end: str = "") -> str:
    return f"CREATE TABLE {table} ({COLUMNS}{more}){end}"


def _tree(size: int, leaves: Sequence[bytes], per_leaf: int, *more: bytes, sql: str = "") -> bytes:
    """A table of ``leaves``, from page 3 on, each with up to so many rowids, and ``more`` pages."""
    children = [(3 + n, (n + 1) * per_leaf) for n in range(len(leaves))]
    schema = [("table", TABLE, 2, sql or _create())]
    return database(size, schema, [interior(size, children), *leaves, *more])


def overlapping_rows(size: int = 1 << 16, leaves: int = 4, more: str = "") -> bytes:
    """Rows that begin in the texts of those before: each text lasts until the page's end."""
    count = (size - 8) // (_STEP + 2)
    pages = [_staircase(size, count, n * count + 1) for n in range(leaves)]
    return _tree(size, pages, count, sql=_create(more=more))


def _staircase(size: int, count: int, rowid: int) -> bytes:
    rows, pointers = bytearray(), []
    begin = size - count * _STEP
    for n in range(count):
        payload = (count - n) * _STEP - 6
        kinds = bytes([1, 1, 1, 1]) + varint(13 + 2 * (payload - 12), 3)
        row = varint(payload, 3) + varint(rowid + n, 3) + bytes([8]) + kinds + bytes(_VALUES)
        pointers.append(begin + len(rows))
        rows += row.ljust(_STEP, b"x")
    return placed(size, pointers, bytes(rows))


def overlapping_without_rowids(size: int = 1 << 16) -> bytes:
    """One page of such rows of a table WITHOUT ROWID, ordered by the first column."""
    rows, pointers, step = bytearray(), [], _INDEX_ROW + 20
    count = (size // 4) // step
    begin = size - size // 4
    for n in range(count):
        payload = size // 4 - n * step - 3
        kinds = bytes([4, 1, 1, 1]) + varint(13 + 2 * (payload - 15), 3)
        values = n.to_bytes(4, "big") + bytes(_VALUES[1:])
        pointers.append(begin + len(rows))
        rows += (varint(payload, 3) + bytes([8]) + kinds + values).ljust(step, b"x")
    rows += b"x" * (size // 4 - len(rows))
    root = placed(size, pointers, bytes(rows), _INDEX_LEAF)
    sql = _create(more=", PRIMARY KEY (start)", end=" WITHOUT ROWID")
    return database(size, [("table", TABLE, 2, sql)], [root])


def shared_overflow(size: int = 4096, leaves: int = 160, chain: int = 160) -> bytes:
    """Rows whose long texts go on in the same overflow pages."""
    first = 3 + leaves
    row, least = _long_row(size, chain)
    per_leaf = (size - 8) // (least + 16)
    pages = [
        page(size, [_going_on(n * per_leaf + k + 1, row, least, first) for k in range(per_leaf)])
        for n in range(leaves)
    ]
    return _tree(size, pages, per_leaf, *_chain(size, first, chain))


def _long_row(size: int, chain: int) -> tuple[bytes, int]:
    """A row that fills so many overflow pages, and how many bytes of it stand on its leaf."""
    least = (size - 12) * 32 // 255 - 23
    length = least + chain * (size - 4)
    text = 2 * length - len(record((*_VALUES, "x" * length)))
    return record((*_VALUES, "x" * text)), least


def _going_on(rowid: int, row: bytes, least: int, overflow: int) -> bytes:
    return varint(len(row)) + varint(rowid) + row[:least] + overflow.to_bytes(4, "big")


def _chain(size: int, first: int, count: int) -> list[bytes]:
    following = [*range(first + 1, first + count), 0]
    return [number.to_bytes(4, "big").ljust(size, b"x") for number in following]


def _small_rows(size: int) -> bytes:
    """A full page of rows of the rowids from 1 on."""
    rows = [cell(number, record((*_VALUES, None))) for number in range(1, (size - 8) // 28)]
    return page(size, rows)


def repeated_leaf(size: int = 1 << 16, times: int = 5000) -> bytes:
    """A root that names the same leaf many times."""
    root = interior(size, [(3, 1 << 20)] * times)
    return database(size, [("table", TABLE, 2, _create())], [root, _small_rows(size)])


def leaf_in_place_of_others(size: int = 4096, leaves: int = 300) -> bytes:
    """A root that names no more leaves than there are pages, but always the same one."""
    root = interior(size, [(3, 1 << 20)] * leaves)
    rest = [bytes(size)] * (leaves - 1)
    return database(size, [("table", TABLE, 2, _create())], [root, _small_rows(size), *rest])


def shared_root(size: int = 4096) -> bytes:
    """Two tables of the same pages."""
    schema = [("table", name, 2, _create(name)) for name in (TABLE, "CUPTI_ACTIVITY_KIND_KERNEL")]
    return database(size, schema, [_small_rows(size)])


def shared_leaves(size: int = 4096) -> bytes:
    """Two tables whose roots name the same leaf."""
    names = (TABLE, "CUPTI_ACTIVITY_KIND_KERNEL")
    schema = [("table", name, 2 + n, _create(name)) for n, name in enumerate(names)]
    children = [(4, 1 << 20), (5, 1 << 21)]
    rows = [cell(number, record((*_VALUES, None))) for number in range(1 << 20, (1 << 20) + 9)]
    roots = [interior(size, children)] * 2
    return database(size, schema, [*roots, _small_rows(size), page(size, rows[1:])])


def shared_schema(size: int = 4096, leaves: int = 70, chain: int = 200) -> bytes:
    """Rows of the schema that go on in the same overflow pages, behind that of a table."""
    first = 4 + leaves
    row, least = _long_row(size, chain)
    per_leaf = (size - 8) // (least + 16)
    pages = [
        page(size, [_going_on(n * per_leaf + k + 2, row, least, first) for k in range(per_leaf)])
        for n in range(leaves)
    ]
    children = [(2, 1), *((4 + n, (n + 1) * per_leaf + 1) for n in range(leaves))]
    table = page(size, schema_cells([("table", TABLE, 3, _create())]))
    rest = [table, page(size, []), *pages, *_chain(size, first, chain)]
    return joined(interior(size, children, begin=100), rest)


SHARED_LEAVES = "shared leaves"
"""What is only seen where both tables are read."""
SMALL = ("a shared root", SHARED_LEAVES, "a leaf in the place of others")
"""What SQLite may read: no more than the file could hold."""

HOSTILE: dict[str, Callable[[], bytes]] = {
    "overlapping rows": overlapping_rows,
    "overlapping rows that an integer names": lambda: overlapping_rows(
        more=", id INTEGER PRIMARY KEY"
    ),
    "overlapping rows without rowids": overlapping_without_rowids,
    "a shared chain of overflow pages": shared_overflow,
    "a leaf named too often": repeated_leaf,
    "a leaf in the place of others": leaf_in_place_of_others,
    "a shared root": shared_root,
    SHARED_LEAVES: shared_leaves,
}
