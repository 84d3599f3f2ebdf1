"""Report the stages of a load as one bar, which never goes back and is full at the very end."""

from __future__ import annotations

from flame.core.options import Progress

WHOLE = 10_000
"""What the whole of a load counts up to, whatever its parts count."""


class LoadPart:
    """Report a part of a load, which is from ``begin`` to ``end`` (0 to 1) of the whole.

    It is called as any `Progress`. A stage of which it is unknown how far it is stays so: (stage,
    0, 0).
    """

    def __init__(self, report: Progress, begin: float, end: float) -> None:
        self._report = report
        self._begin = begin
        self._length = end - begin

    def __call__(self, stage: str, done: int, expected: int) -> None:
        if expected <= 0:
            self._report(stage, 0, 0)
            return
        share = min(max(done / expected, 0.0), 1.0)
        self._report(stage, int((self._begin + share * self._length) * WHOLE), WHOLE)


class WholeLoad:
    """Report a load to ``report``: never less than before, and all of it only when it has ended."""

    def __init__(self, report: Progress) -> None:
        self._report = report
        self._done = 0

    def __call__(self, stage: str, done: int, expected: int) -> None:
        if expected > 0:
            share = min(max(done / expected, 0.0), 1.0)
            self._done = max(self._done, min(int(share * WHOLE), WHOLE - 1))
            self._report(stage, self._done, WHOLE)
        else:
            self._report(stage, self._done, 0)

    def end(self) -> None:
        """Report that all is done."""
        self._report("done", WHOLE, WHOLE)
