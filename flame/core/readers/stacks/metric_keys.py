"""Give every metric of a file a key of its own."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from functools import partial


class MetricKeys:
    """Numbers the metrics that would have the same key, from the second one on.

    The numbers of a key go on where they ended, so that equal ones, of which a file can have any
    number, are not tried again. ``mark`` stands before the number.
    """

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._taken: set[str] = set()
        self._numbers: dict[str, Iterator[int]] = defaultdict(partial(itertools.count, 2))

    def take(self, key: str) -> str:
        """Return ``key``, or the first one numbered after it that nothing has; it is then taken."""
        own = key
        while own in self._taken:
            own = f"{key}{self._mark}{next(self._numbers[key])}"
        self._taken.add(own)
        return own
