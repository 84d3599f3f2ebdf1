"""Check what runs with failing calls have left and said."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path

from tests.support.faults.runs import FaultRuns, Outcome

SCENARIOS = "tests.support.faults.scenarios"


def flame(folder: Path, *words: str | Path, under: Path | None = None) -> FaultRuns:
    """Run the command line in ``folder``."""
    return FaultRuns(folder, f"{SCENARIOS}:flame", [*map(str, words)], under)


def scenario(folder: Path, name: str, *words: str | Path) -> FaultRuns:
    """Run a function of ``scenarios.py`` in ``folder``."""
    return FaultRuns(folder, f"{SCENARIOS}:{name}", [*map(str, words)])


def check(
    outcomes: Iterable[Outcome], target: str, before: dict[str, str], after: dict[str, str]
) -> None:
    """Each left what was there or what is to be there, and complained if it was not the latter."""
    for outcome in outcomes:
        complaints = [line for line in outcome.lines if target in line and "cannot" in line]
        assert not any("Traceback" in line for line in outcome.lines), outcome
        if outcome.code == 0:
            assert (outcome.left, complaints) == (after, []), outcome
            continue
        # The name may not have reached the disk, though the file is there.
        assert outcome.left == before or (outcome.call == "sync" and outcome.left == after)
        assert outcome.code == 3, outcome
        assert complaints == [line for line in outcome.lines if line], outcome
        assert os.strerror(outcome.error) in complaints[0], outcome


def kinds(outcomes: Iterable[Outcome]) -> set[str]:
    """The calls that failed a run."""
    return {outcome.call for outcome in outcomes if outcome.code}


def once_full(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Those in which a single call found the disk full."""
    return [one for one in outcomes if one.error == errno.ENOSPC and not one.always]


def files_of(outcome: Outcome) -> dict[str, str]:
    """What an outcome left, without folders."""
    return {name: text for name, text in outcome.left.items() if text[4:] != "folder"}
