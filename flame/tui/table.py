"""What the top table shows: its columns and how they fit, its rows in any order, kind and search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, Bool, Column
from flame.core.frames import Kind
from flame.core.stats import FrameTotals, Spread, spread, totals
from flame.core.tree import StackTree
from flame.core.units import format_count, format_percent, format_value
from flame.tui.query import Found
from flame.tui.session import Projection

LEAST_NAME = 32
"""Cells that the name and its kind keep when columns are chosen."""

_BARS = " ▏▎▍▌▋▊▉█"


class Head(NamedTuple):
    """A column: ``key`` is what it sorts by, ``width`` its cells with the gap on the left."""

    key: str
    title: str
    width: int


HEADS = (
    Head("own", "self", 9),
    Head("own", "%", 8),
    Head("total", "total", 9),
    Head("total", "%", 8),
    Head("total", "", 7),
    Head("count", "count", 9),
    Head("mean", "mean", 9),
    Head("p50", "p50", 9),
    Head("p95", "p95", 9),
    Head("p99", "p99", 9),
    Head("maximum", "max", 9),
    Head("tail", "tail", 7),
)
