"""Weigh the frames below a kernel by its PC samples, the most sampled instructions first."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from flame.core.columns import I4, I8, Column, stretches, sum_by, unique_rows
from flame.core.model.pc_samples import Sampling


@dataclass(frozen=True, eq=False)
class SampleWeights:
    """Entries ``bounds[d]`` to ``bounds[d + 1]`` are those of distribution d, one for each frames.

    ``frames`` (i4 each) by level. The entries of an instruction stand together, and those of
    instructions with more samples first. In the order of all entries, the one of an entry's
    instruction ends before ``last`` (i8). ``whole`` are the weights without instructions, in which
    an entry is a part of ``of_whole`` (i8); None where there are no instructions.
    """

    bounds: I8
    frames: dict[str, Column]
    samples: I8
    last: I8
    whole: SampleWeights | None
    of_whole: I8

    def first(self, room: int, wanted: I8, rest: int) -> SampleWeights:
        """Of the distributions ``wanted`` the instructions that fit ``room`` entries.

        The samples of their others are the instruction ``rest``. Behind all distributions they
        stand once more, each with ``rest`` alone.
        """
        assert self.whole is not None
        kept, whole, all_of = self._kept(room, wanted), self.whole, _owners(self.whole.bounds)
        left = whole.samples - sum_by(self.of_whole[kept], self.samples[kept], len(all_of))
        others = stretches(whole.bounds[wanted], np.diff(whole.bounds)[wanted])
        others = others[left[others] > 0]
        of = [_owners(self.bounds)[kept], all_of[others], all_of + len(self.bounds) - 1]
        order = np.argsort(np.concatenate(of), kind="stable")
        bounds = np.searchsorted(np.concatenate(of)[order], np.arange(2 * len(self.bounds) - 1))
        frames = whole.frames | {"sass": np.full(len(all_of), rest, np.int32)}
        parts = {
            level: np.concatenate([column[kept], frames[level][others], frames[level]])[order]
            for level, column in self.frames.items()
        }
        samples = np.concatenate([self.samples[kept], left[others], whole.samples])[order]
        return SampleWeights(bounds, parts, samples, self.last[:0], None, self.of_whole[:0])

    def _kept(self, room: int, wanted: I8) -> I8:
        """The entries of the instructions that fit."""
        begin = self.bounds[wanted]
        end = np.searchsorted(self.last, begin + room, "right")
        return stretches(begin, np.minimum(end, self.bounds[wanted + 1]) - begin)


_Kept = dict[tuple[str, ...], tuple[I4, SampleWeights]]
_KEPT: WeakKeyDictionary[Sampling, _Kept] = WeakKeyDictionary()


def sample_weights(sampling: Sampling, shown: I4, levels: tuple[str, ...]) -> SampleWeights:
    """Weigh the frames of ``levels`` (as ``shown`` for the recorded ones) by ``sampling``.

    The result is kept: projections differ far more often in what the samples are split over.
    """
    kept = _KEPT.setdefault(sampling, {})
    known = kept.get(levels)
    if known is None or known[0] is not shown:
        known = kept[levels] = shown, _weigh(sampling, shown, levels)
    return known[1]


def _weigh(sampling: Sampling, shown: I4, levels: tuple[str, ...]) -> SampleWeights:
    of = _owners(sampling.bounds)
    columns = [shown[getattr(sampling, level)] for level in levels]
    first, kind = unique_rows([of, *columns])
    samples = sum_by(kind, sampling.samples, len(first))
    of, columns = of[first], [column[first] for column in columns]
    order, last, whole, of_whole = np.argsort(of, kind="stable"), np.zeros(0, np.int64), None, first
    if "sass" in levels:
        whole = sample_weights(sampling, shown, tuple(level for level in levels if level != "sass"))
        order, last = _heaviest_first(of, columns[levels.index("sass")], samples)
    frames = {level: column[order] for level, column in zip(levels, columns, strict=True)}
    if whole is not None:
        of_whole = _places(whole, of[order], frames)
    bounds = np.searchsorted(of[order], np.arange(len(sampling.bounds)))
    return SampleWeights(bounds, frames, samples[order], last, whole, of_whole)


def _heaviest_first(of: I8, sass: Column, samples: I8) -> tuple[I8, I8]:
    """The order of entries by samples of their instruction, and where that ends in it."""
    first, instruction = unique_rows([of, sass])
    heavy = np.lexsort((-sum_by(instruction, samples, len(first)), of[first]))
    place = np.empty(len(heavy), np.int64)
    place[heavy] = np.arange(len(heavy))
    size = np.bincount(instruction, minlength=len(first))[heavy]
    return np.argsort(place[instruction], kind="stable"), np.repeat(np.cumsum(size), size)


def _places(whole: SampleWeights, of: I8, frames: dict[str, Column]) -> I8:
    """For each entry with ``frames`` of the distribution ``of`` the one of ``whole``."""
    both = [np.concatenate([_owners(whole.bounds), of])]
    both += [np.concatenate([column, frames[level]]) for level, column in whole.frames.items()]
    first, kind = unique_rows(both)
    return first[kind][len(whole.samples) :]


def _owners(bounds: I8) -> I8:
    """The distribution of every entry."""
    return np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
