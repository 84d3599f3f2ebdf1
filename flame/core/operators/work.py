"""Hold the work of operators by the activities that did it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from flame.core.columns import I4, I8, Bool, Column
from flame.core.lazy_dataclass import dataclass
from flame.core.operators.cost import Cost

WORK_KEYS = ("flops", "bytes", "waste")
"""Columns of `OperatorWork` that are metrics, by their keys."""

_NONE = -1


@dataclass(frozen=True)
class WorkOptions:
    """Hold what the user says of GPUs and of the program, which goes before what is known of them.

    ``tflops`` are peaks by precision, TFLOP/s, ``bandwidth`` is that of the memory in bytes/s.
    ``dtype`` is what tensors are whose type was not recorded, ``model_flops`` how many FLOPs the
    model needs in a step. None, or empty, where the user does not say.
    """

    tflops: Mapping[str, float] = field(default_factory=dict)
    bandwidth: float | None = None
    dtype: str = ""
    model_flops: int | None = None


class SharedWork(NamedTuple):
    """Hold the work of operators by kernel, whatever the peaks are: of the activities ``rows``.

    ``rows`` i8[k] rise; ``operator`` i4[k], ``flops`` and ``bytes`` i8[k] are as in `OperatorWork`.
    ``counts`` i8[3] are ``calls``, ``bare`` and ``bare_flops`` there.
    """

    rows: I8
    operator: I4
    flops: I8
    bytes: I8
    counts: I8


class KnownWork(NamedTuple):
    """Hold what all activities did together, so that nobody has to read them.

    ``sums`` i8[columns, k], columns of `WorkCounts`, are by operator: one of ``frames`` i8[k].
    ``counts`` i8[3] and ``memory_known`` are as in `OperatorWork`.
    """

    frames: I8
    sums: I8
    counts: I8
    memory_known: bool


class Rating(NamedTuple):
    """Hold how long the work of some activities takes at the peak: columns of `OperatorWork`."""

    rated: Bool
    compute_ps: I8
    fast_compute_ps: I8
    memory_ps: I8
    waste: I8


@dataclass(frozen=True, eq=False)
class OperatorWork:
    """Hold what each activity of a profile did of the work of operators with a formula.

    ``share`` finds what those did that are of one, ``rate`` tells how long a slice of them takes at
    the peak, and ``knows_memory`` whether the bandwidth is known of all GPUs that ran what is
    rated: for sums, which need no more at once. Where not ``can_rate``, no peak of a GPU is known
    for any of the types: nothing is rated. ``known`` is what has been worked out before of all, at
    the same peaks; None where nothing has. Columns by activity are made when one asks:

    | column | dtype | meaning |
    |---|---|---|
    | operator | i4[n] | frame of the operator, a key of ``costs``; -1 without one |
    | flops, bytes | i8[n] | its part of the operator's; 0 without one, and where not known |
    | rated | bool[n] | whether it took time, has an operator, and the peak for it is known |
    | compute_ps | i8[n] | time that the FLOPs take at the peak, ps; 0 where not ``rated`` |
    | fast_compute_ps | i8[n] | the same, by the peak of TF32 where FP32 may have been that |
    | memory_ps | i8[n] | time that the bytes take at the bandwidth, ps; a lower bound |
    | waste | i8[n] | time above the larger of the two, ns; 0 where not ``rated`` |

    A causal mask is in the times at the peak: what it leaves of the FLOPs. The FLOPs themselves are
    by the convention, without any mask. ``calls`` operators had kernels; ``bare`` had none, and are
    in no column, nor are their ``bare_flops``: they ran on the CPU, were only captured, or what
    they launched was not recorded.
    """

    size: int
    share: Callable[[], SharedWork]
    rate: Callable[[SharedWork, slice], Rating]
    knows_memory: Callable[[SharedWork], bool]
    costs: Mapping[int, Cost]
    can_rate: bool
    known: KnownWork | None = None

    @cached_property
    def shared(self) -> SharedWork:
        """What those activities did that are of an operator with a formula; kept."""
        return self.share()

    def shared_once(self) -> SharedWork:
        """`shared`, but not kept for this: for sums, which are kept themselves, and far smaller."""
        known: SharedWork | None = self.__dict__.get("shared")
        shared = self.share() if known is None else known
        if "counts" not in self.__dict__:  # both are small, and asked for beside any sums
            known_memory = self.knows_memory(shared)
            self.__dict__.update(counts=shared.counts, memory_known=known_memory)
        return shared

    @cached_property
    def counts(self) -> I8:
        """``calls``, ``bare`` and ``bare_flops``, i8[3]."""
        return self.shared.counts if self.known is None else self.known.counts

    @cached_property
    def memory_known(self) -> bool:
        """Whether the bandwidth is known of all GPUs that ran what is ``rated``."""
        return self.knows_memory(self.shared) if self.known is None else self.known.memory_known

    @property
    def calls(self) -> int:
        """How many operators had kernels."""
        return int(self.counts[0])

    @property
    def bare(self) -> int:
        """How many had none."""
        return int(self.counts[1])

    @property
    def bare_flops(self) -> int:
        """What these would have computed."""
        return int(self.counts[2])

    @cached_property
    def operator(self) -> I4:
        """The column of that name, as all below."""
        return self._placed(self.shared.operator, _NONE)

    @cached_property
    def flops(self) -> I8:
        return self._placed(self.shared.flops)

    @cached_property
    def bytes(self) -> I8:
        return self._placed(self.shared.bytes)

    @cached_property
    def rated(self) -> Bool:
        return self._placed(self._rating.rated)

    @cached_property
    def compute_ps(self) -> I8:
        return self._placed(self._rating.compute_ps)

    @cached_property
    def fast_compute_ps(self) -> I8:
        return self._placed(self._rating.fast_compute_ps)

    @cached_property
    def memory_ps(self) -> I8:
        return self._placed(self._rating.memory_ps)

    @cached_property
    def waste(self) -> I8:
        return self._placed(self._rating.waste)

    @property
    def _rating(self) -> Rating:
        return self.rate(self.shared, slice(None))

    def _placed(self, values: Column, none: int = 0) -> Column:
        column = (
            np.full(self.size, none, values.dtype) if none else np.zeros(self.size, values.dtype)
        )
        column[self.shared.rows] = values
        return column

    def column(self, metric: str) -> I8:
        """Values of the ``metric``, one of `WORK_KEYS`."""
        values: I8 = getattr(self, metric)
        return values
