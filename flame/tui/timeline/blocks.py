"""Say what stands in the cells between bars, and in which style."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from rich.style import Style

from flame.core.columns import I8
from flame.core.model.calls import CallClass, IdleCause, StateKind
from flame.core.model.frames import Kind
from flame.core.names.kernel_category import CATEGORIES
from flame.core.timeline.highlight import CATEGORY_LOOKS
from flame.core.timeline.raster import Shading
from flame.core.units import BLOCKS
from flame.tui.toolkit.palette import Palette

_ROUNDING = 1e-9

QUIET = -1
BLANK = -2
TINTED = 100
HATCHED = 500
CALLS = frozenset(map(int, CallClass))
STATES_OF_THREADS = frozenset(map(int, StateKind))


def looks_of(shading: Shading) -> I8:
    """What decides on the style of each cell between bars: see `block_style`."""
    looks = np.where(shading.lit > 0, shading.look.astype(np.int64), QUIET)
    looks[shading.cover <= 0] = BLANK
    return looks


def blocks_of(shading: Shading) -> str:
    """One block for each cell, as high as it is busy with what is bright, if anything is."""
    height = np.where(shading.lit > 0, shading.lit, shading.cover)
    eighths = np.ceil(height * (len(BLOCKS) - 1) - _ROUNDING)
    return "".join(map(BLOCKS.__getitem__, np.clip(eighths, 0, 8).astype(np.int64).tolist()))


@lru_cache(1024)
def block_style(palette: Palette, base: Style, look: int, searching: bool) -> Style:
    """The style of blocks that mostly have the ``look``, quiet, blank or hatched; tinted or not."""
    hatched = look >= HATCHED
    look -= HATCHED if hatched else 0
    if look >= TINTED + BLANK:
        base += palette.tint
        look -= TINTED
    if hatched:
        return base + (palette.quiet if searching else palette.cause_ink(IdleCause(look)))
    if look == BLANK:
        return base
    if look == QUIET:
        return base + palette.quiet
    if searching:
        return base + palette.match_ink
    if look >= CATEGORY_LOOKS:
        return base + palette.category_ink(CATEGORIES[look - CATEGORY_LOOKS])
    if look in CALLS:
        return base + palette.call_ink(CallClass(look))
    if look in STATES_OF_THREADS:
        return base + palette.state_ink(StateKind(look))
    return base + palette.ink(Kind(look))
