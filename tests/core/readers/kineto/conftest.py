"""What tests of the reader of PyTorch traces share: a trace, and the reader on it."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from flame.core.model.frames import Frame
from flame.core.model.raw import RawTrace
from flame.core.options import LoadOptions, silent
from flame.core.readers.kineto import reader as kineto
from flame.core.readers.kineto.trace import shift_to_zero
from tests.support.writers.kinetofile import KinetoFile

Read = Callable[..., RawTrace]


@pytest.fixture
def trace() -> KinetoFile:
    return KinetoFile()


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def decode(trace: KinetoFile, options: LoadOptions | None = None) -> RawTrace:
        path = trace.write(tmp_path / "trace.json")
        raw = kineto.read_kineto(path, options or LoadOptions(), silent)
        return shift_to_zero(raw, -first_time(trace))  # the builder's own times again

    return decode


_UNSEEN = ("overhead", "Trace")


def first_time(trace: KinetoFile) -> int:
    """When the first event that flame shows begins, ns."""
    shown = [one for one in trace.events if one.get("ph") == "X" and one.get("cat") not in _UNSEEN]
    times = [one.get("ts") for one in shown if 0 <= (one.get("dur") or 0) < 1e16]
    known = [Decimal(at) for at in times if at is not None and abs(at) < 1e16]
    return round(min(known, default=Decimal(0)) * 1000)


def frames(raw: RawTrace, ids: object) -> list[Frame]:
    return [raw.frames[index] for index in ids.tolist()]  # type: ignore[attr-defined]
