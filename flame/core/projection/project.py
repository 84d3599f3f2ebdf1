"""Project a profile to a stack tree: choose and order levels, filter, weigh, build."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from flame.core.columns import I8, LATEST, Column
from flame.core.errors import NoMatchError, UsageError
from flame.core.model.activities import RankSums, TableCut
from flame.core.model.allocator.recorded import MemoryMoment, MemoryOfDevice
from flame.core.model.meta import Device
from flame.core.model.metrics import WAITING, Metric
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
from flame.core.projection.chosen_metric import at_moment, chosen_metric
from flame.core.projection.filters import (
    At,
    Devices,
    Filter,
    Moment,
    Ranks,
    RowFilter,
    StackFilter,
    Steps,
    Time,
    explain_no_match,
)
from flame.core.projection.labels import Labels, exact_labels
from flame.core.projection.level_columns import StackColumns, arrange_stacks, level_columns
from flame.core.projection.levels import (
    WAIT_LEVEL,
    check_levels,
    default_levels,
    shown_levels,
)
from flame.core.projection.number_folds import labels_of
from flame.core.projection.selection import Selection
from flame.core.projection.splits.sample_split import split_by_samples
from flame.core.projection.splits.wait_split import split_by_waits
from flame.core.projection.splits.weighted_stacks import WeightedStacks
from flame.core.projection.stack_filters import filter_stacks
from flame.core.projection.tree_builder import (
    BreadthFirst,
    build_nodes,
    lay_out_preorder,
    prune_small,
)
from flame.core.projection.weights import check_rows, row_indices, weigh_groups


def project(profile: Profile, selection: Selection | None = None) -> StackTree:
    """Project ``profile`` under ``selection`` to the stack tree of what passes all its filters.

    The order of the filters does not matter: those on activities choose first, then those on
    stacks, which see all of a stack as it is shown from the root down (so collapsing and inverting
    come after them), and a `MinShare` last. They know names with all their numbers, even where
    these are folded. The total of the root is the sum of the metric over the activities that pass,
    exactly. Raises NoMatchError when filters leave nothing, UsageError for unknown levels or
    metrics and for wrong expressions.
    """
    selection = selection or Selection()
    filters, layout = selection.where, selection.layout
    profile = shown_profile(profile, selection)
    check_rows(profile, selection)
    metric, levels = _metric_and_levels(profile, selection)
    labels = exact = labels_of(profile, selection.naming, profile.table(metric))
    if any(isinstance(filter_, StackFilter) for filter_ in filters):
        exact = exact_labels(profile.frames, selection.naming)

    stacks = _weighed_stacks(profile, metric, filters, levels, exact)
    shown = filter_stacks(stacks.columns, filters, profile.frames, exact.text)
    _check_match(profile, filters, shown)
    if exact is not labels:
        shown = shown.rename(labels.shown)
    nodes, node = build_nodes(arrange_stacks(shown, layout), stacks.weights)
    del shown
    stacks = stacks.drop_columns()
    nodes, node = prune_small(nodes, node, filters, profile.grouping.rest)
    key = _sibling_key(profile, selection, metric, labels, nodes, stacks, node)

    tree = lay_out_preorder(nodes, profile.frames, labels.text, metric, levels, layout, key, node)
    unit = stacks.unit if stacks.split else None
    return tree.assign_groups(stacks.unit_of_group, unit, stacks.share)


def empty_tree(profile: Profile, selection: Selection) -> StackTree:
    """Make the tree of a selection that nothing passes: a root."""
    profile = shown_profile(profile, selection)
    metric, levels = _metric_and_levels(profile, selection)
    root, none = np.zeros(1, np.int32), np.zeros(1, np.int64)
    return StackTree(
        profile.frames,
        labels_of(profile, selection.naming, profile.table(metric)).text,
        metric,
        levels,
        root - 1,
        root,
        root,
        root + 1,
        none,
        none,
        selection.layout,
        np.full(len(profile.table(metric).groups), -1, np.int32),
    )


def shown_profile(profile: Profile, selection: Selection) -> Profile:
    """Choose the variant of ``profile`` that ``selection`` shows; its groups are the tree's."""
    if (ranks := profile.ranks) is not None:
        return _with_shown_ranks(profile, ranks, selection)
    if selection.metric == WAITING.key and profile.waiting_builder is not None:
        return profile.within(TableCut(_row_filters(selection)))
    cut = memory_cut(profile, selection)
    if cut is not None:
        return profile.within(cut)
    if "nested" in (selection.levels or ()):
        profile = profile.with_nested
    return profile if selection.forward else profile.unlinked


def shown_moments(profile: Profile, selection: Selection) -> Sequence[MemoryMoment]:
    """Tell at which moment the memory of each GPU is that ``selection`` shows; none over a time."""
    cut = memory_cut(profile, selection)
    if cut is None or profile.memory is None:
        return ()
    return profile.memory.moments(chosen_metric(profile, selection.metric).key, cut)


def memory_cut(profile: Profile, selection: Selection) -> TableCut | None:
    """What of the memory ``selection`` shows; None where it shows something else."""
    moment = _moment(profile, selection)
    if profile.memory_builder is None:
        return None
    if chosen_metric(profile, selection.metric).table != "memory":
        return None
    begin, end = _window(profile, selection)
    return TableCut((), _devices(profile, selection, moment), begin, end, moment)


def _moment(profile: Profile, selection: Selection) -> Moment | int | None:
    """The moment that is asked for; UsageError for several, and where no memory is known."""
    moments = {one.moment for one in selection.where if isinstance(one, At)}
    if moments and profile.memory_builder is None:
        raise UsageError("--at: it is not recorded here who allocated memory of the GPU")
    if len(moments) > 1:
        raise UsageError("--at: only one moment can be shown")
    return next(iter(moments), None)


def _row_filters(selection: Selection) -> tuple[Filter, ...]:
    return tuple(one for one in selection.where if isinstance(one, RowFilter))


def _window(profile: Profile, selection: Selection) -> tuple[int | None, int | None]:
    """From when to when the memory is that is shown, ns: of several steps from first to last."""
    begins, ends = list[int](), list[int]()
    for one in _row_filters(selection):
        if isinstance(one, Steps):
            steps = profile.iterations
            chosen = one.chosen(steps.number)
            begins.append(int(steps.start[chosen].min(initial=profile.end)))
            ends.append(int(steps.end[chosen].max(initial=profile.begin)))
        elif isinstance(one, Time):
            begins += [one.begin] if one.begin is not None else []
            ends += [one.end] if one.end is not None else []
    return max(begins, default=None), min(ends, default=None)


def _devices(
    profile: Profile, selection: Selection, moment: Moment | int | None
) -> tuple[int, ...] | None:
    """The devices whose memory is shown, each at its own peak; None: the fullest alone.

    Of several files it is the fullest of each, where these are a level, as is usual; at a request
    that failed that on which the last one did.
    """
    filters = [one for one in selection.where if isinstance(one, Devices | Ranks)]
    levels = selection.levels
    by_rank = len(profile.sources) > 1 and (levels is None or "rank" in levels)
    by_device = "device" in (levels or ()) or any(isinstance(one, Devices) for one in filters)
    if not filters and not by_rank and not by_device:
        return None
    passing = [
        place
        for place, device in enumerate(profile.devices)
        if all(_chooses(profile, one, device) for one in filters)
    ]
    if by_device:
        return tuple(passing)
    assert profile.memory is not None
    weights = {one.device: _weight(one, moment) for one in profile.memory.devices}
    return _heaviest(profile, passing, by_rank, weights)


def _chooses(profile: Profile, one: Devices | Ranks, device: Device) -> bool:
    if isinstance(one, Devices):
        return device.id in one.ids
    return one.fits(profile.sources[device.source])


def _weight(one: MemoryOfDevice, moment: Moment | int | None) -> tuple[int, ...]:
    """What makes a device the one to show of several."""
    failures = one.out_of_memory if moment == "oom" else ()
    return (*max(((each.time, each.position) for each in failures), default=(-2, 0)), one.peak)


def _heaviest(
    profile: Profile, places: Sequence[int], by_rank: bool, weights: Mapping[int, tuple[int, ...]]
) -> tuple[int, ...]:
    """The device that weighs most, of all ``places`` or of each file."""
    found = dict[int, int]()
    for place in places:
        source = profile.devices[place].source if by_rank else 0
        others = found.get(source, place), place
        found[source] = max(others, key=lambda at: weights.get(at, ()))
    return tuple(sorted(found.values()))


def _with_shown_ranks(profile: Profile, ranks: RankSums[Profile], selection: Selection) -> Profile:
    """Choose the ranks of a summary: of each its own sums only where these are asked for."""
    filters = [one for one in selection.where if isinstance(one, Ranks)]
    if not filters and "rank" not in (selection.levels or ()):
        return profile
    places = range(len(ranks.sources))
    fitting = [at for at in places if all(one.fits(ranks.sources[at]) for one in filters)]
    return ranks.split(profile, fitting or places)


def _weighed_stacks(
    profile: Profile,
    metric: Metric,
    filters: tuple[Filter, ...],
    levels: tuple[str, ...],
    labels: Labels,
) -> WeightedStacks:
    """Lay out the stacks of what passes the ``filters`` on activities, and weigh them."""
    weights = weigh_groups(profile, metric, filters)
    kept = np.flatnonzero(weights.activities)
    levels = shown_levels(profile, metric, levels)
    columns = level_columns(profile, profile.table(metric), kept, levels, labels.shown)
    if WAIT_LEVEL in levels:
        return split_by_waits(profile, metric, columns, kept, weights, labels.shown)
    return split_by_samples(profile, columns, kept, weights, labels.shown)


def _metric_and_levels(profile: Profile, selection: Selection) -> tuple[Metric, tuple[str, ...]]:
    metric = at_moment(chosen_metric(profile, selection.metric), selection.where)
    levels = selection.levels or default_levels(profile, metric, selection.naming)
    check_levels(levels)
    return metric, levels


def _check_match(profile: Profile, filters: tuple[Filter, ...], shown: StackColumns) -> None:
    """NoMatchError, with the reason where it is known, if ``filters`` have left no stack."""
    if filters and not len(shown.rows):
        why = "".join(f": {reason}" for reason in explain_no_match(profile, filters))
        raise NoMatchError(f"nothing in the trace matches the selection{why}")


def _sibling_key(
    profile: Profile,
    selection: Selection,
    metric: Metric,
    labels: Labels,
    nodes: BreadthFirst,
    stacks: WeightedStacks,
    node: Column,
) -> I8 | None:
    """Make the sort key of siblings, i8[nodes]; None: by weight. ``node``: that of every stack."""
    if selection.layout.order == "name":
        return labels.rank[nodes.frame]
    if selection.layout.order == "start":
        return nodes.minima(_first_starts(profile, selection, metric, len(nodes), stacks, node))
    return None


def _first_starts(
    profile: Profile,
    selection: Selection,
    metric: Metric,
    size: int,
    stacks: WeightedStacks,
    node: Column,
) -> I8:
    """Per node the first start of an activity that passes and whose stack ends there, ns."""
    table = profile.table(metric)
    rows = row_indices(profile, table, selection.where)
    group, start = table.groups.of_row, table.start
    if rows is not None:
        group, start = group[rows], start[rows]
    unit = stacks.unit_of_group[group]
    of_unit = np.full(int(stacks.unit.max(initial=-1)) + 1, LATEST)
    np.minimum.at(of_unit, unit[unit >= 0], start[unit >= 0])
    first = np.full(size, LATEST)
    np.minimum.at(first, node[node >= 0], of_unit[stacks.unit[node >= 0]])
    return first
