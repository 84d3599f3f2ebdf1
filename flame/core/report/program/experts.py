"""Tell what a mixture of experts takes, and what of it is routing, by names."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8, Bool, distinct, sum_by
from flame.core.kept_results import kept
from flame.core.lazy_regex import lazy_regex
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from flame.core.projection.matching import groups_with
from flame.core.report.labels import frame_place, shown_as
from flame.core.report.program.iteration_measures import iteration_work
from flame.core.report.program.layers import measure_layers, sum_families
from flame.core.report.scope import Scope
from flame.core.report.table import Section, Table, TableColumn, share

NAME, TITLE = "experts", "What the mixture of experts takes, by names"

FRAMES = lazy_regex(r"experts?\b|\bmoe\b|FusedMoE|fused_moe")
KERNELS = lazy_regex(r"matmul_ogs|moe|grouped_gemm")
ROUTING_FRAMES = lazy_regex(r"router|routing|make_routing_data|topk|gate(?!_proj|_up)")
ROUTING_KERNELS = lazy_regex(r"_topk_|routing|bitmatrix|moe_align")
"""Kernels that are routing wherever they run, once there are experts at all."""
ROUTING_INSIDE = lazy_regex(r"permute|scatter.*expert")
"""Kernels that are routing only below frames of experts."""

PRODUCTS, ROUTING = 1, 2
"""What groups of activities are, in `Experts.parts`."""

_CODE = (Kind.PYTHON, Kind.NVTX)

_COLUMNS = (
    TableColumn("part", "part"),
    TableColumn("gpu_time_ns", "GPU time", "ns"),
    TableColumn("percent", "of GPU time", "percent"),
    TableColumn("experts_percent", "of experts", "percent"),
    TableColumn("kernels", "kernels", "count"),
)
_KERNELS = (TableColumn("kernel", "kernel"), TableColumn("part", "part"), *_COLUMNS[1:])


class Experts(NamedTuple):
    """Sum up the work of experts: ``routing`` is a part of ``time``, ns; the rest are products.

    ``whole`` is all GPU time that passes. ``parts`` marks the groups: `PRODUCTS`, `ROUTING`.
    ``per_layer`` is the number of kernels of a layer in an iteration, None where either is unknown.
    """

    whole: int
    time: int
    routing: int
    kernels: int
    routing_kernels: int
    parts: I8
    per_layer: float | None


@kept
def measure_experts(scope: Scope) -> Experts:
    """Sum up what passes and is of experts."""
    parts, weights = _parts(scope.profile), scope.own_weights
    time = sum_by(parts, weights.value, 3)
    kernel = scope.profile.activities.groups.kind == Kind.KERNEL
    kernels = sum_by(parts[kernel], weights.activities[kernel], 3)
    return Experts(
        int(time.sum()),
        int(time[1:].sum()),
        int(time[2]),
        int(kernels[1:].sum()),
        int(kernels[2]),
        parts,
        _per_layer(scope, parts) if time[1:].any() else None,
    )


def _parts(profile: Profile) -> I8:
    """What each group of activities is: products of experts, their routing, 0: neither."""
    below = groups_with(profile.activities, _matching(profile, FRAMES, _CODE))
    products = _run(profile, KERNELS)
    experts = below | products
    if not experts.any():
        return np.zeros(len(experts), np.int64)
    inside = groups_with(profile.activities, _matching(profile, ROUTING_FRAMES, _CODE))
    routing = _run(profile, ROUTING_KERNELS) | (below & _run(profile, ROUTING_INSIDE))
    routing |= experts & inside
    return np.where(routing, ROUTING, np.where(experts, PRODUCTS, 0))


def _matching(profile: Profile, pattern: re.Pattern[str], kinds: tuple[Kind, ...]) -> Bool:
    frames, fits = profile.frames, cache(pattern.search)  # many frames have one name
    marks = np.zeros(len(frames), bool)
    for at in np.flatnonzero(np.isin(frames.kind, kinds)).tolist():
        marks[at] = fits(frames[at].name) is not None
    return marks


def _run(profile: Profile, pattern: re.Pattern[str]) -> Bool:
    """Which groups are of kernels whose name matches, bool[groups]."""
    marks = np.append(_matching(profile, pattern, (Kind.KERNEL,)), False)
    found: Bool = marks[profile.activities.groups.frame]
    return found


def _per_layer(scope: Scope, parts: I8) -> float | None:
    """How many kernels of experts a layer has in an iteration."""
    work, families = iteration_work(scope), sum_families(measure_layers(scope))
    if work is None or not len(families.family):
        return None
    counted = (parts > 0) & (scope.profile.activities.groups.kind == Kind.KERNEL)
    count = int(work.weights.activities[counted].sum())
    return round(count / work.iterations / int(families.number[0]), 2)


def experts_section(scope: Scope) -> Section:
    """Tell what the experts of a model take."""
    if scope.profile.resolved or not len(scope.profile.activities):
        return Section(NAME, TITLE, why="no GPU activity was recorded")
    found = measure_experts(scope)
    if not found.time:
        return Section(NAME, TITLE, why="no frame or kernel is called after experts")
    products = found.time - found.routing
    rows = (
        ("experts", found.time, found.kernels),
        ("products and all else", products, found.kernels - found.routing_kernels),
        ("routing", found.routing, found.routing_kernels),
    )
    cells = [
        (part, ns, share(ns, found.whole), share(ns, found.time), number)
        for part, ns, number in rows
    ]
    facts = {
        "gpu_time_ns": found.time,
        "routing_ns": found.routing,
        "routing_percent": share(found.routing, found.time),
        "kernels_per_layer": found.per_layer,
    }
    tables = (Table.of("rows", "", _COLUMNS, cells), _kernel_table(scope, found))
    return Section(NAME, TITLE, facts, tables)


def _kernel_table(scope: Scope, found: Experts) -> Table:
    """The kernels that are counted, most GPU time first."""
    table, labels = scope.profile.activities, scope.labels
    weights = scope.own_weights
    groups = np.flatnonzero((found.parts > 0) & (weights.activities > 0))
    keys = shown_as(labels, table.groups.frame)[groups] * 3 + found.parts[groups]
    kinds, place = distinct(keys)
    time = sum_by(place, weights.value[groups], len(kinds))
    number = sum_by(place, weights.activities[groups], len(kinds))
    order = np.argsort(-time, kind="stable").tolist()
    cells = [
        (
            labels.text[int(kinds[at]) // 3],
            ("", "products", "routing")[int(kinds[at]) % 3],
            int(time[at]),
            share(int(time[at]), found.whole),
            share(int(time[at]), found.time),
            int(number[at]),
        )
        for at in order
    ]
    places = [frame_place(scope, "kernel", int(kinds[at]) // 3) for at in order]
    return Table.of("by_kernel", "by kernel", _KERNELS, cells, places)
