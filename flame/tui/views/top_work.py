"""Tell in the top table how near the kernels below each frame are to the peak of the GPU."""

from __future__ import annotations

from flame.core.efficiency.columns import WorkColumns
from flame.core.efficiency.sums import count_frames
from flame.core.errors import InputError
from flame.tui.session.session import Projection


def work_of_frames(shown: Projection) -> WorkColumns | None:
    """Work out the columns of the frames of ``shown``, rows as those of `frame_totals`.

    None where no operator has shapes. May read the file.
    """
    profile = shown.profile
    if shown.metric.table != "gpu" or not profile.sized_operators:
        return None
    try:
        counts = count_frames(profile, shown.view.tree, shown.selection.where)
    except InputError:
        return None  # the details say so
    return WorkColumns(counts) if counts is not None and counts.covered.any() else None
