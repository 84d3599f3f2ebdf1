"""What the app shows of traces in several cases, and what a plain computation says of each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from flame.core.errors import NoMatchError
from flame.core.loading.many import load
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree, TreeLayout
from flame.core.options import LoadOptions
from flame.core.projection.filter_options import where
from flame.core.projection.selection import Selection
from flame.core.timeline.intervals import timeline
from flame.tui.session.session import Projection, project
from tests.conftest import TRACES, is_small
from tests.support.oracles.facts import CAPTURED
from tests.support.oracles.naive import Row, naive
from tests.support.oracles.naive_tree import Label, Shape
from tests.support.oracles.naive_views import Seen, seen
from tests.support.tiers import deep_except

LEVELS = ("native", "launch", "nvtx", "kernel")
REAL = (
    "a100_llm_nvtx",
    "cuda_backtraces_mpi",
    "cuda_graph_small",
    "h100_2gpu_window",
    "rtx3070_train_17k",
    "ten_streams",
    "two_processes_colliding_ids",
)
SMALL = [name for name in REAL if is_small(TRACES / "nsys" / f"{name}.sqlite")]
on_real = pytest.mark.parametrize("trace", deep_except(SMALL, REAL))
_LONG = 3_000


@dataclass(frozen=True)
class Case:
    """A way to look at a trace."""

    metric: str
    shape: Shape = field(default_factory=Shape)
    chosen: dict[str, Any] = field(default_factory=dict)

    def shown(self, profile: Profile) -> Projection:
        layout = TreeLayout(self.shape.inverted, self.shape.collapsed)
        filters = where(**self.shape.filters, **self.chosen)
        return project(profile, Selection(LEVELS, filters, self.metric, layout=layout))

    def plain(self, rows: Iterable[Row]) -> list[Seen]:
        return seen(rows, LEVELS, self.metric, self.shape, self.chosen)


class Looked(NamedTuple):
    """What one case shows, and what a plain computation says of it."""

    case: Case
    shown: Projection
    plain: list[Seen]

    @property
    def tree(self) -> StackTree:
        return self.shown.view.tree


def path_of(trace: str) -> Path:
    path = TRACES / "nsys" / f"{trace}.sqlite"
    if not path.exists():
        pytest.skip(f"no real trace {path}")
    return path


@cache
def loaded(trace: str) -> tuple[Profile, list[Row]]:
    path = path_of(trace)
    return load(path, LoadOptions("raw")), naive(path)


def cases(rows: list[Row]) -> Iterator[Case]:
    """Metrics, filters and arrangements in turn, chosen so that something is left of `rows`."""
    starts = sorted(row.start for row in rows)
    third = f"{starts[len(starts) // 3]}ns/{starts[-len(starts) // 3] + 1}ns"
    streams = Counter(row.stream for row in rows).most_common(1)
    [(kernel, _)] = Counter(row.name for row in rows).most_common(1)
    ranges = Counter(text for row in rows for text in set(row.ranges)).most_common(1)
    yield Case("gpu")
    yield Case("queue", Shape(), {"time": third})
    yield Case("idle", Shape(inverted=True), {"stream": (streams[0][0],)})
    yield Case("launch", Shape(hide_stacks=(f"^{re.escape(kernel)}$",), collapsed=True))
    yield Case("gpu", Shape(show_stacks=(re.escape(kernel),), inverted=True), {"time": third})
    yield Case("gpu", Shape(hide_frames=("^cuda", f"^{re.escape(kernel)}$")))
    yield Case("count", Shape(show_from=(re.escape(ranges[0][0] if ranges else kernel),)))
    if ranges and ranges[0][0] and not set("*?@\\") & set(ranges[0][0]):
        yield Case("gpu", Shape(), {"nvtx": ranges[0][0]})


def looked_at(profile: Profile, rows: list[Row]) -> Iterator[Looked]:
    """All cases, or of a long trace every third."""
    for case in islice(cases(rows), 0, None, 3 if len(rows) > _LONG else 1):
        plain = case.plain(rows)
        try:
            shown = case.shown(profile)
        except NoMatchError:
            assert not plain
        else:
            yield Looked(case, shown, plain)


@cache
def looked(trace: str) -> list[Looked]:
    return list(looked_at(*loaded(trace)))


def label_of(tree: StackTree, frame: int) -> Label:
    known = tree.frames[frame]
    mark = CAPTURED if known.get("captured") else ""
    return known.kind.title, tree.text[frame] + mark


def labels_of(tree: StackTree) -> dict[Label, int]:
    """The frame of every label; a label stands for one frame."""
    frames = np.unique(tree.frame[1:]).tolist()
    found = {label_of(tree, frame): frame for frame in frames}
    assert len(found) == len(frames)
    return found


def nodes_of(tree: StackTree, most: int) -> list[int]:
    """The heaviest nodes, and some others."""
    heaviest = np.argsort(-tree.total, kind="stable")[:most].tolist()
    return sorted({*heaviest, *range(1, len(tree), max(len(tree) // most, 1))})


over_time = cache(timeline)
