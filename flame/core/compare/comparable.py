"""Tell whether two sides can be compared at all, and what is to be minded: facts with numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import chain
from typing import Literal, NamedTuple

import numpy as np

from flame.core.compare.basis import periods_of
from flame.core.compare.comparison import Comparison
from flame.core.compare.levels import unlike_coverage
from flame.core.compare.over_ranks.rank_facts import (
    are_same,
    gpu_times,
    gpus_of_a_rank,
    lost_words,
    models_of,
)
from flame.core.compare.samples import compared_weights
from flame.core.compare.sides import BASE, NEW, SIDES, KeptRun, Run
from flame.core.kept_results import kept
from flame.core.lazy_dataclass import dataclass
from flame.core.lazy_regex import lazy_regex
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from flame.core.names.overheads import is_of_profiler
from flame.core.projection.number_folds import labels_of
from flame.core.timeline.busy_time import BusyTime, TimeWindow
from flame.core.units import format_count, format_counted, format_percent

_FEW_MATCHED, _SOME_MATCHED = 50, 80
_USED = 1
"""Percent of the GPU time from which on a GPU counts."""

_MORE_PROFILER = 2
_TIMES_MORE, _TIMES_ALIKE = 2, 1.02

_LOST = lazy_regex("could not be written|dropped|damaged|cut off|not whole", re.IGNORECASE)


class Note(NamedTuple):
    """Say something on the comparison: with a ``no`` there is none, a ``warn`` is to be minded."""

    kind: Literal["no", "warn"]
    text: str


@dataclass(frozen=True)
class Comparability:
    """Hold the ``notes`` on two sides, and whether they are ``identical`` in what is compared."""

    notes: tuple[Note, ...]
    identical: bool

    @property
    def is_comparable(self) -> bool:
        """Whether nothing says no."""
        return all(note.kind != "no" for note in self.notes)


@dataclass(frozen=True)
class SideActivity:
    """Hold of one side what ran on GPUs: times in ns, of all that is compared.

    ``kernels`` has the GPU time by name, ``gpus`` how many each run used, ``models`` their names.
    ``graphs`` counts those traced as a whole, ``nodes`` activities of those traced node by node.
    """

    kernels: Counter[str]
    gpus: int
    models: frozenset[str]
    graphs: int
    nodes: int
    serialized: bool

    @cached_property
    def time(self) -> int:
        """All of the GPU time."""
        return self.kernels.total()

    def matched(self, other: SideActivity) -> float:
        """How much of the GPU time is in kernels whose names ``other`` has, too, in percent."""
        known = sum(time for name, time in self.kernels.items() if name in other.kernels)
        return 100 * known / self.time if self.time else 100.0


@kept
def compare_facts(comparison: Comparison) -> Comparability:
    """Check what has to be alike on both sides, and what should be."""
    notes = [Note("no", text) for text in _obstacles(comparison)]
    notes += [Note("warn", text) for text in _differences(comparison)]
    return Comparability(tuple(notes), _are_identical(comparison))


def _are_identical(comparison: Comparison) -> bool:
    """Whether runs in pairs have the same sums in all nodes, lengths and iterations."""
    base, new = comparison.sides
    if len(base) != len(new):
        return False
    union, half = comparison.union, len(base)
    same = (union.own[:half] == union.own[half:]).all()
    same &= (union.own_count[:half] == union.own_count[half:]).all()
    for one, other in zip(base, new, strict=True):
        if one.summary is not None and other.summary is not None:
            same &= are_same(one.summary, other.summary)
    return bool(same) and all(
        _took_as_long(comparison, one, other) for one, other in zip(base, new, strict=True)
    )


def _took_as_long(comparison: Comparison, one: Run, other: Run) -> bool:
    """Whether two runs are equally long, and so are all their iterations."""
    periods, others = (periods_of(run, comparison.selection).period for run in (one, other))
    return one.profile.duration == other.profile.duration and np.array_equal(periods, others)


# GPUs


@kept
def gpu_facts(comparison: Comparison) -> tuple[SideActivity, SideActivity] | None:
    """Collect what ran on the GPUs of each side; None where something else is compared."""
    runs_compared = comparison.sides.runs
    if any(map(_has_no_facts, runs_compared)) or comparison.union.tree.metric.table != "gpu":
        return None
    runs = [gpu_facts_of(comparison, at) for at in range(len(runs_compared))]
    split = len(comparison.sides.base)
    return _joined(runs[:split]), _joined(runs[split:])


def _joined(runs: list[SideActivity]) -> SideActivity:
    return SideActivity(
        sum((one.kernels for one in runs), Counter()),
        max(one.gpus for one in runs),
        frozenset().union(*(one.models for one in runs)),
        sum(one.graphs for one in runs),
        sum(one.nodes for one in runs),
        any(one.serialized for one in runs),
    )


def _has_no_facts(run: Run) -> bool:
    return not (run.has_rows or isinstance(run, KeptRun) or run.summary is not None)


def gpu_facts_of(comparison: Comparison, at: int) -> SideActivity:
    """Collect what ran on the GPUs in the run ``at`` that place, which has activities."""
    run = comparison.sides.runs[at]
    if isinstance(run, KeptRun):
        return _kept_facts(comparison, at, run)
    if run.summary is not None:
        kernels, graphs = gpu_times(comparison, at)
        models = models_of(run.summary)
        return SideActivity(kernels, gpus_of_a_rank(run.summary), models, graphs, 0, False)
    profile, (table, (time, count)) = run.profile, compared_weights(comparison, at)
    text = labels_of(profile, comparison.selection.naming, table).text
    by_frame = _sums(table.groups.frame, time, len(profile.frames))
    kernels = Counter[str]()
    for frame in np.flatnonzero(by_frame).tolist():
        kernels[text[frame]] += int(by_frame[frame])
    by_device = _sums(table.groups.device, time, len(profile.devices))
    used = np.flatnonzero(100 * by_device >= _USED * max(float(time.sum()), 1)).tolist()
    names = (profile.devices[device].name for device in used)
    graphs = int(count[table.groups.kind == Kind.GRAPH].sum())
    nodes, gpus = profile.graph_nodes.activities, len(used)
    if comparison.sides.has_summary:  # of which there are the GPUs of a rank
        gpus = -(-gpus // max(len(run.rank_places(comparison.selection)), 1))
    return SideActivity(
        kernels, gpus, frozenset(filter(None, names)), graphs, nodes, _is_serialized(profile)
    )


def _kept_facts(comparison: Comparison, at: int, run: KeptRun) -> SideActivity:
    profile, facts = run.profile, run.data.facts
    table = profile.activities
    shown = np.flatnonzero(comparison.trees[at].node_of_group >= 0)
    text = labels_of(profile, comparison.selection.naming, table).text
    kernels = Counter[str]()
    for frame, time in zip(table.groups.frame[shown], profile.gpu_by_group[0][shown], strict=True):
        kernels[text[frame]] += int(time)
    models = frozenset(facts.models)
    return SideActivity(kernels, facts.gpus, models, facts.graphs, facts.nodes, facts.serialized)


def _sums(place: np.ndarray, time: np.ndarray, size: int) -> np.ndarray:
    """The times by place, f8[size], without those of none (-1)."""
    return np.bincount(place + 1, time, minlength=size + 1)[1:]


def _is_serialized(profile: Profile) -> bool:
    """Whether kernels ran one by one for their PC samples, in flame's own recordings."""
    own = any(source.meta.format == "fdump" for source in profile.sources)
    own |= profile.meta.format == "fdump"
    return own and profile.sampling is not None and bool(profile.sampling.exact.any())


# What stands against it


def _obstacles(comparison: Comparison) -> Iterator[str]:
    sides = gpu_facts(comparison)
    if sides is None:
        return
    base, new = sides
    changes = comparison.changes
    if not (changes.base.count[0] and changes.new.count[0]):
        lacking = NEW if changes.base.count[0] else BASE
        yield f"{SIDES[lacking]} has no GPU activity that is compared"
        return
    for one, other in _alone(base, new, lambda side: side.graphs > 0):
        graphs = format_counted(sides[one].graphs, "launch of a graph", "launches of graphs")
        yield f"{SIDES[one]} has {graphs} traced as a whole, {SIDES[other]} none"
    for one, _ in _alone(base, new, lambda side: side.serialized):
        yield f"PC sampling ran the kernels of {SIDES[one]} one by one, and only of that"
    if (matched := base.matched(new)) < _FEW_MATCHED:
        yield _matching(matched)
    if base.gpus != new.gpus:
        yield f"BASE used {format_counted(base.gpus, 'GPU', 'GPUs')}, NEW {format_count(new.gpus)}"


def _matching(matched: float) -> str:
    part = f"only {format_percent(matched, 100)}" if matched else "nothing"
    return f"{part} of the GPU time of BASE is in kernels that NEW has"


def _alone(
    base: SideActivity, new: SideActivity, has: Callable[[SideActivity], bool]
) -> Iterator[tuple[int, int]]:
    """The side that alone has something, and the other one; none where both have it, or none."""
    if has(base) != has(new):
        yield (BASE, NEW) if has(base) else (NEW, BASE)


# What is to be minded


def _differences(comparison: Comparison) -> Iterator[str]:
    sides = gpu_facts(comparison)
    if sides is not None:
        yield from _gpu_differences(comparison, *sides)
    # A summary of ranks does not say of which version of a format their files were.
    versions = not comparison.sides.has_summary
    words = [_recorded_by(side, versions) for side in comparison.sides]
    if words[0] != words[1]:
        yield f"BASE was recorded by {words[0]}, NEW by {words[1]}"
    held = [_held_by_profiler(side) for side in comparison.sides]
    if abs(held[0] - held[1]) > _MORE_PROFILER:
        shares = [format_percent(share, 100) for share in held]
        yield f"the profiler held BASE up for {shares[0]} of its time, NEW for {shares[1]}"
    if comparison.sides.has_summary and not comparison.sides.are_summaries:
        yield _ranks_and_trace(comparison)
    for name, side in zip(SIDES, comparison.sides, strict=True):
        for text in dict.fromkeys(chain.from_iterable(map(losses_of, side))):
            yield f"{name}: {text}"


def _gpu_differences(
    comparison: Comparison, base: SideActivity, new: SideActivity
) -> Iterator[str]:
    if base.models and new.models and base.models != new.models:
        yield f"BASE ran on {_listed(base.models)}, NEW on {_listed(new.models)}"
    for one, _ in _alone(base, new, lambda side: side.nodes > 0):
        count = format_counted((base, new)[one].nodes, "activity is", "activities are")
        yield (
            f"graphs were traced node by node in {SIDES[one]} alone: {count} of them, and take 30 "
            "to 60 % too long"
        )
    if _FEW_MATCHED <= (matched := base.matched(new)) < _SOME_MATCHED:
        yield _matching(matched)
    for level, _ in comparison.left_out:
        if why := unlike_coverage(comparison.whole, level):
            yield f"{level} is {why}"
    yield from _unlike_counts(comparison)


def _unlike_counts(comparison: Comparison) -> Iterator[str]:
    """Tell how many activities both sides have: in total already where they are not alike."""
    changes, basis = comparison.changes, comparison.basis
    counts = [float(side.scaled_count[0]) for side in (changes.base, changes.new)]
    told = " and ".join(format_count(count) for count in counts)
    if not max(counts) <= _TIMES_MORE * min(counts):
        yield f"the numbers of activities{basis.words and ' ' + basis.words} are {told}"
    elif basis.kind == "total" and max(counts) > _TIMES_ALIKE * min(counts):
        yield (
            f"the numbers of activities are {told}: --per activity compares their means, and "
            "--iteration says which ranges are steps"
        )


def _ranks_and_trace(comparison: Comparison) -> str:
    """Say what can be compared of a summary of ranks and a trace."""
    runs = comparison.sides.runs
    ranks, trace = (
        next(run for run in runs if (run.summary is None) == is_trace) for is_trace in (False, True)
    )
    return (
        f"{ranks.label} has sums of ranks, {trace.label} is a trace: comparable are their means of "
        "a rank, and no spread, waiting or steps"
    )


def _listed(names: frozenset[str]) -> str:
    return ", ".join(sorted(names))


def _recorded_by(side: tuple[Run, ...], versions: bool) -> str:
    """The producers and formats of the files of a side."""
    return _listed(frozenset(chain.from_iterable(producers_of(run, versions) for run in side)))


def producers_of(run: Run, versions: bool = True) -> list[str]:
    """List the producers and formats of the files of ``run``, with their ``versions``."""
    if isinstance(run, KeptRun):
        return run.data.facts.recorded_by
    if run.summary is not None:
        return sorted({f"{one.producer} ({one.format})".strip() for one in run.summary.info})
    metas = [source.meta for source in run.profile.sources] or [run.profile.meta]
    written = {
        " ".join(filter(None, (meta.producer, f"({meta.format} {meta.schema_version})")))
        if versions
        else f"{meta.producer} ({meta.format})".strip()
        for meta in metas
    }
    return sorted(one.replace(" )", ")") for one in written)


def _held_by_profiler(side: tuple[Run, ...]) -> float:
    """How long the profiler held the runs up, in percent of the time that they took."""
    held = sum(map(held_by_profiler, side))
    return 100 * held / max(sum(run.profile.duration for run in side), 1)


def held_by_profiler(run: Run) -> int:
    """Measure how long the profiler held ``run`` up, ns."""
    if isinstance(run, KeptRun):
        return run.data.facts.held
    profile, known = run.profile, run.profile.overheads
    if known is None:
        return 0
    own = np.array([is_of_profiler(name) for name in known.names], bool)[known.name]
    held = BusyTime.union(known.start[own], known.end[own])
    return held.within(TimeWindow(profile.begin, profile.end))


def losses_of(run: Run) -> list[str]:
    """List the warnings that something of ``run`` was lost."""
    if isinstance(run, KeptRun):
        return run.data.facts.lost
    lost = [] if run.summary is None else lost_words(run.summary)
    return [*lost, *(text for text in run.profile.warnings if _LOST.search(text))]
