"""Define the windows of a live recording, of which one is shown."""

from __future__ import annotations

from flame.core.lazy_dataclass import dataclass

SECOND = 1_000_000_000


@dataclass(frozen=True)
class LiveWindow:
    """A window: ``key`` as in options, ``title`` for people; ``length`` ns up to now, 0: all.

    ``marked``: since the mark.
    """

    key: str
    title: str
    length: int = 0
    marked: bool = False


LAST_10 = LiveWindow("10s", "last 10 s", 10 * SECOND)
LAST_60 = LiveWindow("60s", "last 60 s", 60 * SECOND)
ALL = LiveWindow("all", "all")
SINCE_MARK = LiveWindow("mark", "since mark", marked=True)
WINDOWS = (LAST_10, LAST_60, ALL, SINCE_MARK)
LONGEST = LAST_60.length
"""For so long single activities are kept; what is older is only in the sums."""
