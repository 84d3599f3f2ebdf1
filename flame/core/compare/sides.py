"""Hold what is compared: two sides, base and new, of one or more runs each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from pathlib import Path

import numpy as np

from flame.core.compare.kept.base_file import KeptPart, KeptRunData, KeptSteps, read_base
from flame.core.compare.kept.kept_profile import check_part, kept_profile
from flame.core.errors import InputError, NoMatchError, UsageError
from flame.core.frame import Kind
from flame.core.lazy_dataclass import dataclass
from flame.core.model.metrics import Metric
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
from flame.core.names.phases import Phase, read_phases
from flame.core.projection.chosen_metric import chosen_metric
from flame.core.projection.filters import (
    Devices,
    Filter,
    MinShare,
    Pids,
    Ranks,
    Steps,
    Streams,
    Tids,
    Time,
)
from flame.core.projection.labels import Naming
from flame.core.projection.phases import name_phases, tell_own_phases
from flame.core.projection.project import empty_tree, project
from flame.core.projection.selection import Selection, moment_of
from flame.core.rank_summary.opened import summary_of
from flame.core.rank_summary.summary import RankSummary

BASE, NEW = 0, 1
SIDES = ("BASE", "NEW")

_NOT_KEPT = Time | Steps | Devices | Streams | Pids | Tids | Ranks
"""Filters that ask when and where something ran."""


@dataclass(frozen=True, eq=False)
class Run:
    """Hold one run: a trace, or the part of it that ``where`` chooses, called ``label``."""

    profile: Profile
    label: str
    where: tuple[Filter, ...] = ()

    @property
    def has_rows(self) -> bool:
        """Whether all of its activities are there, with their times: not so of stacks."""
        return not self.profile.resolved and self.profile.totals is None

    @property
    def summary(self) -> RankSummary | None:
        """The summary of ranks that it is; None of a trace."""
        return summary_of(self.profile)

    def rank_places(self, common: Selection) -> list[int]:
        """List the places of its ranks, or else files, that a ``common`` selection chooses."""
        filters = [one for one in self.selection(common).where if isinstance(one, Ranks)]
        ranks = self.profile.ranks
        sources = self.profile.sources if ranks is None else ranks.sources
        return [at for at, source in enumerate(sources) if all(one.fits(source) for one in filters)]

    def selection(self, common: Selection) -> Selection:
        """Choose of this run what is compared under a ``common`` selection.

        Small siblings are not merged, as the same ones may be large on the other side.
        """
        chosen = tuple(one for one in common.where if not isinstance(one, MinShare))
        return replace(common, where=(*self.where, *chosen))

    def narrowed(self, where: tuple[Filter, ...]) -> Run:
        """Choose less of the run, by more filters."""
        return replace(self, where=(*self.where, *where)) if where else self

    def tree(self, selection: Selection) -> StackTree:
        """Project the run under a common ``selection``; a root of nothing where none of it is.

        UsageError, which names the run, where its memory was not recorded at that moment.
        """
        wanted = self.selection(selection)
        try:
            return project(self.profile, wanted)
        except NoMatchError:
            return empty_tree(self.profile, wanted)
        except UsageError as error:
            if moment_of(wanted) is None:
                raise
            raise UsageError(f"{self.label}: {error}") from None


@dataclass(frozen=True, eq=False)
class KeptRun(Run):
    """Hold a run of a kept base: its ``data``, and the ``part`` of it that ``profile`` is of.

    It has sums of groups and no activities. ``phases`` are those that the user has named.
    """

    data: KeptRunData = field(kw_only=True)
    part: KeptPart = field(kw_only=True)
    phases: Sequence[Phase] = field(kw_only=True, default=())

    @classmethod
    def of(cls, data: KeptRunData, label: str, phases: Sequence[Phase] = ()) -> KeptRun:
        """Make the run of ``data``; InputError where that does not hold together."""
        whole = data.whole
        if data.steady is not None:
            check_part(data, data.steady)  # before the file's name is out of sight
        profile = _with_phases(kept_profile(data, whole), phases)
        return cls(profile, label, data=data, part=whole, phases=phases)

    @property
    def steps(self) -> KeptSteps | None:
        """The iterations after the warm-up; None where none were kept."""
        return self.data.steps

    def selection(self, common: Selection) -> Selection:
        """Choose under ``common``; UsageError for filters on what is not kept."""
        if any(isinstance(one, _NOT_KEPT) for one in common.where):
            raise UsageError(
                f"{self.label} is a kept base: filters by time, step, GPU, stream, process, "
                "thread and rank need the trace"
            )
        return super().selection(common)

    def narrowed(self, where: tuple[Filter, ...]) -> KeptRun:
        """Choose the iterations after the warm-up, the only part that is kept by itself."""
        steady = self.data.steady
        if steady is None or not any(isinstance(one, Steps) for one in where):
            return self
        profile = _with_phases(kept_profile(self.data, steady), self.phases)
        return replace(self, profile=profile, part=steady)


def _with_phases(profile: Profile, phases: Sequence[Phase]) -> Profile:
    """Name the ``phases`` of a kept run, or those that its ranges tell, as of a trace."""
    return name_phases(profile, phases) if phases else tell_own_phases(profile)


def open_runs(
    path: Path, side: str, where: tuple[Filter, ...] = (), phases: str | None = None
) -> tuple[KeptRun, ...]:
    """Open the runs of the kept base at ``path``, which are called after their ``side``.

    ``phases`` is a file that names those. Raises InputError, in a line, where the base or that file
    is damaged, UsageError for filters of that side alone.
    """
    if where:
        raise UsageError(f"--{side.lower()}-select: {path} is a kept base; filter when keeping it")
    runs = read_base(path).runs
    if not runs:
        raise InputError(f"{path}: holds no run")
    named = () if phases is None else read_phases(phases)
    try:
        labelled = zip(runs, _labels(side, len(runs)), strict=True)
        return tuple(KeptRun.of(data, label, named) for data, label in labelled)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _labels(side: str, number: int) -> list[str]:
    return [side] if number == 1 else [f"{side} {at}" for at in range(1, number + 1)]


def runs_of(
    side: str, profiles: Sequence[Profile], where: tuple[Filter, ...] = ()
) -> tuple[Run, ...]:
    """Make the runs of a side, which are called after it, with a number where there are several."""
    return tuple(
        Run(profile, label, where)
        for profile, label in zip(profiles, _labels(side, len(profiles)), strict=True)
    )


@dataclass(frozen=True, eq=False)
class Sides:
    """Hold what is compared; neither side is without a run."""

    base: tuple[Run, ...]
    new: tuple[Run, ...]

    @property
    def runs(self) -> tuple[Run, ...]:
        """All runs, those of the base first."""
        return (*self.base, *self.new)

    @property
    def side_of_run(self) -> tuple[int, ...]:
        """`BASE` or `NEW` for each of ``runs``."""
        return (*([BASE] * len(self.base)), *([NEW] * len(self.new)))

    def __iter__(self) -> Iterator[tuple[Run, ...]]:
        yield from (self.base, self.new)

    @property
    def has_summary(self) -> bool:
        """Whether any run is a summary of ranks."""
        return any(run.summary is not None for run in self.runs)

    @property
    def are_summaries(self) -> bool:
        """Whether all runs are summaries of ranks."""
        return all(run.summary is not None for run in self.runs)

    def check_ranks(self) -> None:
        """Raise UsageError where a summary of ranks meets a kept base, which knows no ranks."""
        kept = [run.label for run in self.runs if isinstance(run, KeptRun)]
        if kept and self.has_summary:
            raise UsageError(
                f"{kept[0]} is a kept base, which knows no ranks: compare a summary of ranks with "
                "another one, or with a trace"
            )

    def narrowed(self, where: tuple[tuple[Filter, ...], ...]) -> Sides:
        """Choose less of each run, by more filters for each of ``runs``."""
        runs = [run.narrowed(more) for run, more in zip(self.runs, where, strict=True)]
        return Sides(tuple(runs[: len(self.base)]), tuple(runs[len(self.base) :]))

    def naming(self, naming: Naming) -> Naming:
        """Name kernels in short as they are told from those of all runs, in each of them alike."""
        if naming.kernel_names != "short":
            return naming
        tables = {id(run.profile): run.profile.frames for run in self.runs}.values()
        kernels = {
            (frames[kernel].name, frames[kernel].get("demangled"))
            for frames in tables
            for kernel in np.flatnonzero(frames.kind == Kind.KERNEL).tolist()
        }
        return replace(naming, beside=frozenset(kernels) if len(tables) > 1 else frozenset())

    def metric(self, key: str | None) -> Metric:
        """Find the metric that all runs have by ``key``, None being the usual one of any of them.

        Raises UsageError where a run has none such, or measures it in another unit.
        """
        usual = [run.profile.default_metric for run in self.runs]
        wanted = key or ("gpu" if "gpu" in usual else usual[-1])
        if key is None:
            self._check_common(wanted)
        found = [chosen_metric(run.profile, wanted) for run in self.runs]
        units = dict.fromkeys(metric.unit for metric in found)
        if len(units) > 1:
            written = " and ".join(units)
            raise UsageError(f"the sides measure {wanted} in different units: {written}")
        return found[-1]

    def _check_common(self, key: str) -> None:
        """Raise UsageError where a run has no metric ``key``."""
        for run in self.runs:
            known = [metric.key for metric in run.profile.metrics]
            if key not in known:
                raise UsageError(
                    f"BASE and NEW have no metric in common: {run.label} has no {key}, but "
                    f"{', '.join(known)}"
                )
