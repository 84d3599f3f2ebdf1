"""Sort more lines than fit in memory, and add up the values of equal ones."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import BinaryIO, cast

AT_ONCE = 1 << 16
"""Lines in memory at the same time."""


def sum_sorted(lines: Iterable[tuple[bytes, int]]) -> Iterator[tuple[bytes, int]]:
    """Yield each different line of ``lines``, ascending, with the sum of its values.

    Lines hold no line break. What does not fit in memory is sorted in parts, which wait in
    temporary files without a name; raises OSError where these cannot be written.
    """
    rest = iter(lines)
    part = _sum_part(rest)
    with ExitStack() as stack:
        files: list[BinaryIO] = []
        while ahead := list(islice(rest, 1)):
            files.append(_write_part(part, stack.enter_context(_temporary_file())))
            part.clear()
            part = _sum_part(chain(ahead, rest))
        if not files:
            yield from part
            return
        parts = [*map(_read_part, files), iter(part)]
        for line, equal in groupby(heapq.merge(*parts), itemgetter(0)):
            yield line, sum(value for _, value in equal)


def _sum_part(lines: Iterator[tuple[bytes, int]]) -> list[tuple[bytes, int]]:
    """The next lines, as many as may be in memory; equal ones among them are one."""
    sums: defaultdict[bytes, int] = defaultdict(int)
    for line, value in islice(lines, AT_ONCE):
        sums[line] += value
    return sorted(sums.items())


def _temporary_file() -> BinaryIO:
    from tempfile import TemporaryFile  # takes as long as a tenth of numpy, and few need it

    return cast("BinaryIO", TemporaryFile())


def _write_part(part: list[tuple[bytes, int]], file: BinaryIO) -> BinaryIO:
    file.writelines(b"%b %d\n" % pair for pair in part)
    file.seek(0)
    return file


def _read_part(file: BinaryIO) -> Iterator[tuple[bytes, int]]:
    for record in file:
        line, _, value = record.rpartition(b" ")
        yield line, int(value)
