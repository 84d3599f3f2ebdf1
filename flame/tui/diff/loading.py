"""Load two sides for the app, as one load with one bar."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from flame.core.compare.kept.base_file import is_kept_base
from flame.core.compare.sides import BASE, NEW, SIDES, Run, Sides, open_runs
from flame.core.load_progress import LoadPart, WholeLoad
from flame.core.loading.inputs import Inputs
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions, Progress
from flame.core.projection.filters import Filter
from flame.core.reopening.profile_cache import ProfileCache
from flame.core.report.options import with_given_iteration
from flame.core.starting import release_memory
from flame.tui.diff.selection import DiffSelection
from flame.tui.diff.session import DiffProjection, DiffSession, metrics_of_both

_LOADED = 0.9
"""Share of loading in the time until there is a tree."""


class RunInputs(NamedTuple):
    """Name the traces of one run, of which ``where`` chooses a ``part``, as the user wrote it."""

    inputs: Inputs
    where: tuple[Filter, ...] = ()
    part: str = ""


class SideInputs(NamedTuple):
    """Name the runs of both sides, one each at least; ``iteration`` matches the ranges of steps."""

    base: Sequence[RunInputs]
    new: Sequence[RunInputs]
    iteration: str | None = None

    @property
    def each(self) -> tuple[Sequence[RunInputs], Sequence[RunInputs]]:
        """The runs of either side."""
        return self.base, self.new

    @property
    def both(self) -> Inputs:
        """All traces, under a title for both sides."""
        paths = tuple(path for run in (*self.base, *self.new) for path in run.inputs.paths)
        base, new = map(_titles, (self.base, self.new))
        if base == new and len({*paths}) > 1:
            base, new = map(_folders, (self.base, self.new))
        parts = self.base[0].part, self.new[0].part
        if base == new and all(parts):
            return Inputs(paths, f"{base}  {parts[0]} → {parts[1]}")
        base, new = (" ".join(filter(None, pair)) for pair in zip((base, new), parts, strict=True))
        return Inputs(paths, f"{base} → {new}")


def _titles(runs: Sequence[RunInputs]) -> str:
    return _first_of(run.inputs.title for run in runs)


def _folders(runs: Sequence[RunInputs]) -> str:
    """The title with the folder before it, for files of one name in different folders."""
    return _first_of("/".join(run.inputs.paths[0].absolute().parts[-2:]) for run in runs)


def _first_of(titles: Iterable[str]) -> str:
    """The first title, and how many others there are."""
    first, *others = dict.fromkeys(titles)
    return f"{first} and {len(others)} more" if others else first


class Loader:
    """Load each trace once; `keep` has the ``caches`` keep those that they have not."""

    def __init__(self, options: LoadOptions, use_cache: bool) -> None:
        self.caches: list[ProfileCache] = []
        self._options = options
        self._use_cache = use_cache
        self._known: dict[tuple[Path, ...], Profile] = {}

    def open(
        self, sides: SideInputs, selection: DiffSelection, progress: Progress
    ) -> tuple[DiffSession, DiffProjection]:
        """Load ``sides`` and compare them; raises what loading and comparing raise."""
        whole = WholeLoad(progress)
        base, new = ([*self._runs(at, sides, whole)] for at in (BASE, NEW))
        loaded = Sides(tuple(base), tuple(new))
        whole("comparing", round(100 * _LOADED), 100)
        profile = loaded.new[0].profile
        session = DiffSession(
            sides.both, profile, metrics_of_both(loaded), self._options,
            sides=loaded, given=selection.per,
        )  # fmt: skip
        shown = session.project([selection])
        assert isinstance(shown, DiffProjection)
        return session, shown

    def keep(self) -> None:
        """Keep what has been loaded, for the next time."""
        for cache in self.caches:
            cache.write()
        release_memory()

    def _runs(self, side: int, sides: SideInputs, progress: Progress) -> Iterator[Run]:
        runs = sides.each[side]
        if kept := _kept_base(runs):
            where = runs[0].where
            yield from open_runs(kept, SIDES[side], where, self._options.phases)
            return
        loaded = [one for one in sides.each if not _kept_base(one)]
        different = [*dict.fromkeys(run.inputs.paths for side in loaded for run in side)]
        share = _LOADED / len(different)
        for run in runs:
            at = different.index(run.inputs.paths)
            part = LoadPart(progress, at * share, (at + 1) * share)
            label = run.inputs.title if len(runs) > 1 else SIDES[side]
            yield Run(self._load(run.inputs, part, sides.iteration), label, run.where)

    def _load(self, inputs: Inputs, progress: Progress, iteration: str | None) -> Profile:
        from flame.core.loading.many import load_inputs

        paths = inputs.paths
        if paths not in self._known:
            cache = ProfileCache() if self._use_cache else None
            loaded = load_inputs(inputs, self._options, progress, cache)
            self._known[paths] = with_given_iteration(loaded, iteration)
            self.caches += [cache] if cache is not None else []
        return self._known[paths]


def _kept_base(runs: Sequence[RunInputs]) -> Path | None:
    """The kept base that is all of a side; None of traces."""
    paths = [path for run in runs for path in run.inputs.paths]
    return paths[0] if len(paths) == 1 and is_kept_base(paths[0]) else None
