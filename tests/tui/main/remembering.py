"""What an earlier start of the app may have remembered, and how it is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flame.options import preferences
from flame.options.preferences import Memory, Preferences, ShownLevels
from tests.support.paths import SAMPLES
from tests.support.waiting import PATIENCE

TORCH = SAMPLES / "torch_small.pt.trace.json.gz"
KERNELS = ShownLevels(("kernel",))

REMEMBERED: dict[str, Any] = {
    "theme": "flame-light",
    "details": False,
    "kernel_names": "base",
    "colours": "category",
    "hide_framework": True,
    "fold_numbers": False,
}
ALL = Preferences(**REMEMBERED, levels={"kineto": KERNELS})


@pytest.fixture(autouse=True)
def _writing_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is; an app that is left waits for a second."""
    monkeypatch.setattr(preferences, "_TIMEOUT", PATIENCE)


def keep(path: Path, **settings: Any) -> None:
    """Remember ``settings`` as an earlier session would have."""
    memory = Memory(path)
    for kind, levels in settings.pop("levels", {}).items():
        memory.remember_levels(kind, levels)
    memory.remember(**settings)
    memory.settle()
