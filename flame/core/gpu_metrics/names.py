"""Name the GPU metrics that are told of frames, and the units that names tell."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from flame.core.columns import I8, Bool


class MetricKey(StrEnum):
    """Name a metric that is told of frames, all in percent of what the GPU can do."""

    SM = "sm_active"
    TENSOR = "tensor_active"
    READ = "dram_read"
    WRITE = "dram_write"


NAMES: dict[MetricKey, str] = {
    MetricKey.SM: "SMs Active [Throughput %]",
    MetricKey.TENSOR: "Tensor Active [Throughput %]",
    MetricKey.READ: "DRAM Read Bandwidth [Throughput %]",
    MetricKey.WRITE: "DRAM Write Bandwidth [Throughput %]",
}
"""How Nsight Systems calls them, exactly: ``[Avg]`` and others behind the same words are units."""

_PERCENT, _MEGAHERTZ = "%]", "[MHz]"
_MOST_PERCENT = 105
"""More is damage; a little more than all is how a GPU rounds."""
_MOST_MEGAHERTZ = 10_000
_HERTZ_PER_MEGAHERTZ = 1_000_000


class Scale(NamedTuple):
    """Say what values of a metric mean: ``factor`` makes its ``unit`` of them."""

    unit: str
    factor: float = 1.0


def scale_of(name: str, value: I8) -> tuple[Scale, Bool]:
    """Tell what samples of a metric mean, and which of them make sense, bool[n].

    Clocks in ``[MHz]`` are recorded in Hz by some versions: values say which it is.
    """
    if name.endswith(_PERCENT):
        return Scale("%"), (value >= 0) & (value <= _MOST_PERCENT)
    if not name.endswith(_MEGAHERTZ):
        return Scale(""), value == value
    sane = (value >= 0) & (value <= _MOST_MEGAHERTZ * _HERTZ_PER_MEGAHERTZ)
    are_hertz = value > _MOST_MEGAHERTZ
    if not (are_hertz & sane).any():
        return Scale("MHz"), sane
    sane &= are_hertz & (value >= _HERTZ_PER_MEGAHERTZ) | (value == 0)
    return Scale("MHz", 1 / _HERTZ_PER_MEGAHERTZ), sane


def short_name(name: str) -> str:
    """Leave out the unit behind the name of a metric: ``SMs Active [Throughput %]``."""
    return name.partition(" [")[0] if name.endswith(("[Throughput %]", _MEGAHERTZ)) else name
