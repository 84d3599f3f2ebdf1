"""Hold the work of operators by the activities that did it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from flame.core.columns import I4, I8, Bool
from flame.core.lazy_dataclass import dataclass
from flame.core.operators.cost import Cost

WORK_KEYS = ("flops", "bytes", "waste")
"""Columns of `OperatorWork` that are metrics, by their keys."""


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


@dataclass(frozen=True, eq=False)
class OperatorWork:
    """Hold what each activity of a profile did of the work of operators with a formula.

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
    by the convention, without any mask. ``memory_known`` tells whether the bandwidth is known of
    all GPUs that ran what is ``rated``. ``calls`` operators had kernels; ``bare`` had none, and are
    in no column, nor are their ``bare_flops``: they ran on the CPU, were only captured, or what
    they launched was not recorded.
    """

    operator: I4
    flops: I8
    bytes: I8
    rated: Bool
    compute_ps: I8
    fast_compute_ps: I8
    memory_ps: I8
    waste: I8
    costs: Mapping[int, Cost]
    memory_known: bool
    calls: int
    bare: int
    bare_flops: int

    @property
    def measures(self) -> dict[str, I8]:
        """Values of the metrics, by key."""
        return {key: getattr(self, key) for key in WORK_KEYS}
