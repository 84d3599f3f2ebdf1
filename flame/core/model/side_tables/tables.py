"""Say how to read the tables of a trace that are read when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from flame.core.model.side_tables.device_memory import DeviceMemory
from flame.core.model.side_tables.gpu_metrics import GpuMetrics
from flame.core.model.side_tables.os_calls import OsCalls


class SideTables(NamedTuple):
    """Say how to read each of the tables, which takes as long as it is; None where there is none.

    They raise InputError where the trace has changed.
    """

    os_calls: Callable[[], OsCalls] | None = None
    gpu_metrics: Callable[[], GpuMetrics] | None = None
    device_memory: Callable[[], DeviceMemory] | None = None
