"""Weigh the frames below a kernel by its PC samples, the most sampled instructions first."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np

from flame.core.columns import I4, I8, Column, expand_ranges, sum_by, unique_rows
from flame.core.lazy_dataclass import dataclass
from flame.core.model.pc_samples import Sampling


@dataclass(frozen=True, eq=False)
class SampleWeights:
    """Hold the samples of each distribution d by frames: entries ``bounds[d]`` to ``bounds[d+1]``.

    ``frames`` (i4 each) by level. The entries of an instruction stand together, and those of
    instructions with more samples first. Those of an entry's instruction end before ``last`` (i8).
    ``whole`` are the weights without instructions, in which an entry is a part of the entry
    ``of_whole`` (i8); None where there are no instructions.
    """

    bounds: I8
    frames: dict[str, Column]
    samples: I8
    last: I8
    whole: SampleWeights | None
    of_whole: I8

    def keep_heaviest(self, limit: int, wanted: I8, rest: int) -> SampleWeights:
        """Keep the first instructions of the distributions ``wanted``, up to ``limit`` entries.

        Samples of the others go to the instruction ``rest``. Behind all distributions they stand
        once more, each with ``rest`` alone.
        """
        assert self.whole is not None
        kept, whole, owner = self._first_entries(limit, wanted), self.whole, self.whole.owner
        left = whole.samples - sum_by(self.of_whole[kept], self.samples[kept], len(owner))
        others = expand_ranges(whole.bounds[wanted], np.diff(whole.bounds)[wanted])
        others = others[left[others] > 0]
        owners = np.concatenate([self.owner[kept], owner[others], owner + len(self.bounds) - 1])
        order = np.argsort(owners, kind="stable")
        bounds = np.searchsorted(owners[order], np.arange(2 * len(self.bounds) - 1))
        frames = whole.frames | {"sass": np.full(len(owner), rest, np.int32)}
        parts = {
            level: np.concatenate([column[kept], frames[level][others], frames[level]])[order]
            for level, column in self.frames.items()
        }
        samples = np.concatenate([self.samples[kept], left[others], whole.samples])[order]
        return SampleWeights(bounds, parts, samples, self.last[:0], None, self.of_whole[:0])

    def _first_entries(self, limit: int, wanted: I8) -> I8:
        """The entries of the instructions that fit."""
        begin = self.bounds[wanted]
        end = np.searchsorted(self.last, begin + limit, "right")
        return expand_ranges(begin, np.minimum(end, self.bounds[wanted + 1]) - begin)

    @property
    def owner(self) -> I8:
        """Distribution of every entry, i8."""
        return _owners(self.bounds)


_Kept = dict[tuple[str, ...], tuple[I4, SampleWeights]]
_KEPT: WeakKeyDictionary[Sampling, _Kept] = WeakKeyDictionary()


def sample_weights(sampling: Sampling, shown: I4, levels: tuple[str, ...]) -> SampleWeights:
    """Weigh the frames of ``levels`` (as ``shown`` for the recorded ones) by ``sampling``.

    The result is kept: projections differ far more often in what the samples are split over.
    """
    kept = _KEPT.setdefault(sampling, {})
    pair = kept.get(levels)
    if pair is None or pair[0] is not shown:
        pair = kept[levels] = shown, _weigh(sampling, shown, levels)
    return pair[1]


def _weigh(sampling: Sampling, shown: I4, levels: tuple[str, ...]) -> SampleWeights:
    owner = _owners(sampling.bounds)
    columns = [shown[getattr(sampling, level)] for level in levels]
    first, kind = unique_rows([owner, *columns])
    samples = sum_by(kind, sampling.samples, len(first))
    owner, columns = owner[first], [column[first] for column in columns]
    order, last = np.argsort(owner, kind="stable"), np.zeros(0, np.int64)
    whole, of_whole = None, first
    if "sass" in levels:
        whole = sample_weights(sampling, shown, tuple(level for level in levels if level != "sass"))
        order, last = _heaviest_first(owner, columns[levels.index("sass")], samples)
    frames = {level: column[order] for level, column in zip(levels, columns, strict=True)}
    if whole is not None:
        of_whole = _find_entries(whole, owner[order], frames)
    bounds = np.searchsorted(owner[order], np.arange(len(sampling.bounds)))
    return SampleWeights(bounds, frames, samples[order], last, whole, of_whole)


def _heaviest_first(owner: I8, sass: Column, samples: I8) -> tuple[I8, I8]:
    """The order of entries by samples of their instruction, and where that ends in it."""
    first, instruction = unique_rows([owner, sass])
    heavy = np.lexsort((-sum_by(instruction, samples, len(first)), owner[first]))
    place = np.empty(len(heavy), np.int64)
    place[heavy] = np.arange(len(heavy))
    size = np.bincount(instruction, minlength=len(first))[heavy]
    return np.argsort(place[instruction], kind="stable"), np.repeat(np.cumsum(size), size)


def _find_entries(whole: SampleWeights, owner: I8, frames: dict[str, Column]) -> I8:
    """For each entry with ``frames`` of the distribution ``owner`` its entry in ``whole``."""
    both = [np.concatenate([whole.owner, owner])]
    both += [np.concatenate([column, frames[level]]) for level, column in whole.frames.items()]
    first, kind = unique_rows(both)
    return first[kind][len(whole.samples) :]


def _owners(bounds: I8) -> I8:
    """The distribution of every entry."""
    return np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
