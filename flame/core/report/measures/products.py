"""Measure matrix products: what they move at least, and in which time on the GPU."""

from __future__ import annotations

import numpy as np

from flame.core.attribution.open_at import OpenIntervals
from flame.core.columns import I8, distinct, sum_by
from flame.core.lazy_dataclass import dataclass
from flame.core.model.frames import Kind
from flame.core.names.products import PRODUCTS, least_bytes
from flame.core.report.scope import Scope

_AT_ONCE = 1 << 18
"""Activities that are looked for at once: more take more memory, and no less time."""


@dataclass(frozen=True, eq=False)
class ProductWork:
    """Hold operators that multiply matrices by their frames: equal names, shapes and types.

    ``frame`` i8[n]; ``calls`` i8[n] is how many of them launched what passes, ``time`` i8[n] the
    GPU time of that, ns. ``least`` are the bytes that one call moves at least, None where shapes or
    types do not tell.
    """

    frame: I8
    calls: I8
    time: I8
    least: tuple[int | None, ...]


def product_work(scope: Scope) -> ProductWork | None:
    """Measure the matrix products of ``scope``; None where no operator with shapes is one.

    An activity is of the innermost of them in which its thread launched it.
    """
    profile, frames = scope.profile, scope.profile.frames
    ranges = np.flatnonzero(frames.kind == Kind.NVTX).tolist()
    chosen = [at for at in ranges if frames[at].name in PRODUCTS and frames[at].get("shapes")]
    if not chosen or profile.spans_finder is None:
        return None
    spans, table = profile.spans_finder(chosen), profile.activities
    rows = scope.rows[table.launched[scope.rows]]
    opened = OpenIntervals(spans.thread, spans.start, spans.end)
    parts = np.array_split(rows, len(rows) // _AT_ONCE + 1)
    call = np.concatenate(
        [opened.innermost(table.thread[part], table.launch_start[part]) for part in parts]
    )
    rows, call = rows[call >= 0], call[call >= 0]
    called, _ = distinct(call)
    frame, place = distinct(spans.frame[call].astype(np.int64))
    of_call = np.searchsorted(frame, spans.frame[called])
    told = (frames[at] for at in frame.tolist())
    return ProductWork(
        frame,
        np.bincount(of_call, minlength=len(frame)).astype(np.int64),
        sum_by(place, table.duration[rows], len(frame)),
        tuple(
            least_bytes(one.name, one.get("shapes"), one.get("types"), scope.dtype) for one in told
        ),
    )
