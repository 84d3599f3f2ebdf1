"""Options, selections and states of the app, drawn by hypothesis from what they may be."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from hypothesis import strategies as st

from flame.core.errors import UsageError
from flame.core.frame import COLOURS
from flame.core.model.frames import ACTIVITY_KINDS
from flame.core.model.metrics import METRICS
from flame.core.model.tree import ORDERS, TreeLayout
from flame.core.names.rename import parse_rename
from flame.core.options import LoadOptions
from flame.core.projection.filters import (
    MOMENTS,
    At,
    Devices,
    HideFrames,
    HideFramework,
    HideStacks,
    Include,
    Kernel,
    MinShare,
    NvtxRange,
    Pids,
    Ranks,
    ShowFrom,
    ShowStacks,
    Steps,
    Streams,
    Tids,
    Time,
)
from flame.core.projection.labels import KERNEL_NAMES, Naming
from flame.core.projection.levels import LEVELS
from flame.core.projection.named_levels import NAMED_LEVELS
from flame.core.projection.selection import Selection
from flame.options.state import AppState, ViewName

HOSTILE = "a7 @\\'\"$`!;&|<>*?[]{}()-=,./~#%\n\t\x1b\x7f\u202eé火🔥\udc80"
texts = st.text(st.sampled_from(HOSTILE) | st.characters(exclude_characters="\0"), max_size=6)
names = texts.filter(lambda text: text not in ("", "--"))
files = names.filter(lambda name: not os.path.isdir(name)).map(Path)  # noqa: PTH112 (any text)
"""Of the name ``-``, too: a file, where that text alone is standard input."""
expressions = (
    texts.map(re.escape) | st.sampled_from(["-a", "--a", "", "^(gemm|-x)$", "(?x) a "])
).filter(lambda text: "\0" not in text and text != "--")
moments = st.integers(-(10**19), 10**19)
windows = st.one_of(
    st.tuples(moments, st.integers(1, 10**12)).map(lambda at: Time(at[0], at[0] + at[1])),
    st.builds(Time, begin=moments),
    st.builds(Time, end=moments),
)
ids = st.lists(st.integers(0, 10**17), min_size=1, max_size=3).map(tuple)
kinds = st.lists(st.sampled_from(ACTIVITY_KINDS), min_size=1, max_size=3).map(tuple)


def several(filters: st.SearchStrategy[Any], most: int = 2) -> st.SearchStrategy[list[Any]]:
    return st.lists(filters, max_size=most, unique=True)


rank_names = texts.map(str.strip).filter(lambda text: text and "," not in text)

# In the order in which options make them.
wheres = st.tuples(
    several(windows),
    several(st.builds(At, moments | st.sampled_from(MOMENTS)), 1),
    several(st.lists(st.integers(0, 99), min_size=1, max_size=9).map(Steps.of)),
    several(st.builds(Ranks, st.lists(rank_names, min_size=1, max_size=3).map(tuple))),
    several(st.builds(NvtxRange, names, st.none() | texts)),
    *(several(st.builds(kind, ids), 1) for kind in (Devices, Streams, Pids, Tids)),
    several(st.builds(Kernel, expressions)),
    several(st.builds(Include, kinds), 1),
    *(
        several(st.builds(kind, expressions))
        for kind in (ShowStacks, HideStacks, ShowFrom, HideFrames)
    ),
    several(st.just(HideFramework()) | st.builds(HideFramework, expressions), 1),
    several(st.builds(MinShare, st.floats(0, 100)), 1),
).map(lambda groups: tuple(one for group in groups for one in group))
rules = st.tuples(expressions.filter(bool), texts).map("=".join)


@st.composite
def renames(draw: st.DrawFn) -> Any:
    try:
        return parse_rename(draw(rules))
    except UsageError:
        return parse_rename(r"layers\.(\d+)(?=\.)=-\1=")


named = st.sampled_from([named.levels for named in NAMED_LEVELS])
levels = named | st.lists(st.sampled_from(LEVELS), min_size=1, unique=True).map(tuple)
namings = st.builds(
    Naming,
    kernel_names=st.sampled_from(KERNEL_NAMES),
    shapes=st.booleans(),
    rename=st.lists(renames(), max_size=2).map(tuple),
    fold=st.booleans(),
    numbers=st.booleans(),
)
USUAL = Naming("short", numbers=True)
USUAL_SELECTION = Selection(naming=USUAL)
layouts = st.builds(TreeLayout, st.booleans(), st.booleans(), st.sampled_from(ORDERS))
selections = st.builds(
    Selection,
    levels,
    wheres,
    st.none() | st.sampled_from([metric.key for metric in METRICS]),
    namings,
    layouts,
    st.sampled_from(COLOURS),
    st.booleans(),
)
load_options = st.builds(
    LoadOptions,
    st.sampled_from(["clean", "raw"]),
    st.booleans(),
    st.just(True),  # links to forward operators are always read, to be switched on
    st.lists(names, max_size=2).map(tuple),
    peak=st.none() | st.sampled_from(["bf16=989,mem=3350", "fp8=1.5"]),
    dtype=st.none() | st.just("bf16"),
    model_flops=st.none() | st.just("6.2e15"),
)
stacks = st.lists(st.text(max_size=4) | texts, max_size=3)
states = st.builds(
    AppState,
    view=st.sampled_from(get_args(ViewName)),
    zoom=stacks,
    selected=stacks,
    search=texts,
    exact=st.booleans(),
    all_open=st.booleans(),
    chains=st.lists(st.tuples(st.integers(1, 99), stacks), max_size=2),
    section=texts,
    row=st.integers(-1, 99),
)


def normal(selection: Selection) -> Selection:
    """``selection`` without `--shapes` where the levels, given without it, have the last word."""
    naming = selection.naming
    if selection.levels is None or "shapes" in selection.levels:
        return selection
    return replace(selection, naming=replace(naming, shapes=False))
