"""Choose API calls as they were recorded: those within others, and those that failed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flame.core.attribution.thread_pieces import calls_within
from flame.core.columns import I8
from flame.core.model.threads.call_rows import CallRows, FailedCalls
from flame.core.report.scope import Scope


class ShownCalls(NamedTuple):
    """Hold calls by the frame that each is ``shown`` as, and how long they took, i8[n] in ns."""

    shown: I8
    length: I8


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
    """Choose all calls of ``scope``, those within others too."""
    rows = scope.profile.callrows
    if rows is None:
        return ShownCalls(np.zeros(0, np.int64), np.zeros(0, np.int64))
    shown, kept = _chosen(scope, rows)
    return ShownCalls(shown, rows.end[kept] - rows.start[kept])


def nested_calls(scope: Scope) -> I8:
    """Tell what the calls of ``scope`` that lie within others are shown as, i8[n]."""
    rows, outermost = scope.profile.callrows, scope.profile.calls
    if rows is None or outermost is None:
        return np.zeros(0, np.int64)
    if np.count_nonzero(rows.in_threads) == len(outermost):
        return np.zeros(0, np.int64)
    within = calls_within(rows)
    kept = within[scope.passes(rows.thread[within], rows.start[within])]
    return scope.labels.shown[rows.frame[kept]].astype(np.int64)


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
