"""Hold a run of a kept base, which is compared as a trace is, as far as it was kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from flame.core.compare.kept.base_file import KeptPart, KeptRunData, KeptSteps, read_base
from flame.core.compare.kept.kept_profile import kept_profile
from flame.core.compare.sides import Run
from flame.core.errors import InputError, UsageError
from flame.core.projection.filters import (
    Devices,
    Filter,
    Pids,
    Ranks,
    RowFilter,
    Steps,
    Streams,
    Tids,
)
from flame.core.projection.selection import Selection

_NOT_KEPT = (Devices, Streams, Pids, Tids, Ranks)


@dataclass(frozen=True, eq=False)
class KeptRun(Run):
    """Hold a run of a kept base: ``data``, and the ``part`` of it that ``profile`` is of."""

    data: KeptRunData
    part: KeptPart

    @property
    def steps(self) -> KeptSteps | None:
        """The iterations after the warm-up; None where there were none."""
        return self.data.steps

    def selection(self, common: Selection) -> Selection:
        """Choose under ``common``; UsageError for filters on what was not kept."""
        for one in common.where:
            if isinstance(one, RowFilter) or isinstance(one, _NOT_KEPT):
                raise UsageError(
                    f"{self.label} is a kept base, which has neither times nor places: filters by "
                    "time, step, GPU, stream, process, thread and rank need the trace"
                )
        return super().selection(common)

    def narrowed(self, where: tuple[Filter, ...]) -> KeptRun:
        """Choose the iterations after the warm-up, the only part that is kept by itself."""
        if not any(isinstance(one, Steps) for one in where) or self.data.steady is None:
            return self
        steady = self.data.steady
        return replace(self, profile=kept_profile(self.data, steady), part=steady)


def open_kept_base(path: Path, side: str) -> tuple[KeptRun, ...]:
    """Open the runs of a kept base, which are called after their ``side``; InputError if damaged."""
    base = read_base(path)
    if not base.runs:
        raise InputError(f"{path}: holds no run")
    many = len(base.runs) > 1
    try:
        return tuple(
            KeptRun(
                kept_profile(data, data.whole),
                f"{side} {number}" if many else side,
                data=data,
                part=data.whole,
            )
            for number, data in enumerate(base.runs, 1)
        )
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
