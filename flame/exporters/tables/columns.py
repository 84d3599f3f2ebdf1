"""Lay out a tree, and the activities of a trace, in columns for data frames."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from flame.core.columns import I4, I8, Column
from flame.core.model.activities import NONE
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
from flame.exporters.stacks import encodable

_BETWEEN = " › "


class Categories(NamedTuple):
    """Hold texts of which few differ: ``names``, and the place of each row's, -1: none, i4[n]."""

    code: I4
    names: Sequence[str]


class Numbers(NamedTuple):
    """Hold numbers; of rows that are not ``known`` (bool[n]; None: all are) there is none."""

    values: Column
    known: Column | None = None


Columns = Mapping[str, Categories | Numbers]


def tree_columns(tree: StackTree) -> Columns:
    """Lay out the nodes of ``tree`` in preorder, the root first.

    ``parent`` is the row of the node above, -1 for the root; ``self`` and ``total`` are in the
    metric's unit, which is the end of their names where it is ``ns`` or ``bytes``.
    """
    unit = tree.metric.unit
    ending = f"_{unit}" if unit in ("ns", "bytes") else ""
    used, code = np.unique(tree.frame, return_inverse=True)
    frames = [tree.frames[frame] for frame in used.tolist()]
    lines = np.array([frame.line for frame in frames], np.int64)[code]
    return {
        "parent": Numbers(tree.parent),
        "depth": Numbers(tree.depth),
        "name": _categories(code, [tree.text[frame] for frame in used.tolist()]),
        "level": _categories(code, [frame.kind.title for frame in frames]),
        "file": _categories(code, [frame.file for frame in frames]),
        "line": Numbers(lines, lines > 0),
        f"self{ending}": Numbers(tree.own),
        f"total{ending}": Numbers(tree.total),
        "self_count": Numbers(tree.own_count),
        "count": Numbers(tree.count),
    }


def activity_columns(profile: Profile) -> Columns:
    """Lay out the GPU activities of ``profile``, a row each, in the order of the trace.

    Times are ns on the trace's clock. ``nvtx`` and ``python`` are the stacks around the launch,
    outermost first.
    """
    table, frames = profile.activities, profile.frames
    launched = table.launched & (table.launch_start != NONE)
    stacks = table.stacks

    def paths(ids: I4) -> Categories:
        return _looked_up(ids, lambda one: _BETWEEN.join(frames[f].name for f in stacks.path(one)))

    return {
        "kind": _looked_up(table.kind.astype(np.int32), lambda kind: Kind(kind).title),
        "name": _looked_up(table.frame, lambda frame: frames[frame].name),
        "kernel": _looked_up(table.frame, lambda frame: frames[frame].get("demangled")),
        "start_ns": Numbers(table.start),
        "duration_ns": Numbers(table.duration),
        "device": _numbered(table.device, [device.id for device in profile.devices]),
        "stream": Numbers(table.stream, table.stream >= 0),
        "pid": _numbered(table.process, [process.pid for process in profile.processes]),
        "tid": _numbered(table.thread, [thread.tid for thread in profile.threads]),
        "launch": _looked_up(np.where(launched, table.launch, NONE), lambda f: frames[f].name),
        "launch_start_ns": Numbers(table.launch_start, launched),
        "launch_end_ns": Numbers(table.launch_end, launched),
        "idle_before_ns": Numbers(table.idle),
        "nvtx": paths(table.nvtx),
        "python": paths(table.python),
    }


def _categories(code: Column, texts: Sequence[str]) -> Categories:
    """Number ``texts`` by what they say, ``code`` being the place of each row's; empty is none."""
    names = {encodable(text): 0 for text in texts if text}
    number = {name: place for place, name in enumerate(names)}
    places = [number[encodable(text)] if text else NONE for text in texts]
    return Categories(np.array([*places, NONE], np.int32)[code], [*names])


def _looked_up(ids: Column, text: Callable[[int], str]) -> Categories:
    """Look up the text of each of ``ids`` (-1: none), once for each that occurs."""
    used, code = np.unique(ids, return_inverse=True)
    return _categories(code, [text(one) if one != NONE else "" for one in used.tolist()])


def _numbered(places: I4, numbers: Sequence[int]) -> Numbers:
    values: I8 = np.array([*numbers, 0], np.int64)[places]
    return Numbers(values, places >= 0)
