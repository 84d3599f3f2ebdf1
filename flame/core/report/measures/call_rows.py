"""Choose API calls as they were recorded: those within others, and those that failed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, Bool
from flame.core.model.threads.call_rows import CallRows, FailedCalls
from flame.core.report.scope import Scope


class ShownCalls(NamedTuple):
    """Hold calls by the frame that each is ``shown`` as, i8[n]; ``start``, ``end`` i8[n] in ns.

    ``inside`` bool[n] marks those within others.
    """

    shown: I8
    start: I8
    end: I8
    inside: Bool


class ShownFailures(NamedTuple):
    """Hold calls that did not return 0 by the frame that each is ``shown`` as, all i8[n].

    ``known`` is of how many calls of the trace it was recorded what they returned.
    """

    shown: I8
    start: I8
    end: I8
    value: I8
    known: int


def shown_calls(scope: Scope) -> ShownCalls:
    """Choose all calls of ``scope``."""
    rows = scope.profile.callrows
    if rows is None:
        none = np.zeros(0, np.int64)
        return ShownCalls(none, none, none, none.astype(bool))
    shown, kept = _chosen(scope, rows)
    return ShownCalls(shown, rows.start[kept], rows.end[kept], rows.inside[kept])


def shown_failures(scope: Scope) -> ShownFailures | None:
    """Choose the calls of ``scope`` that failed; None where the trace does not tell."""
    rows = scope.profile.failures
    if rows is None or not rows.known:
        return None
    shown, kept = _chosen(scope, rows)
    return ShownFailures(shown, rows.start[kept], rows.end[kept], rows.value[kept], rows.known)


def _chosen(scope: Scope, rows: CallRows | FailedCalls) -> tuple[I8, I8]:
    """(what those that pass are shown as, their rows)."""
    kept = np.flatnonzero(scope.passes(rows.thread, rows.start))
    return scope.labels.shown[rows.frame[kept]].astype(np.int64), kept
