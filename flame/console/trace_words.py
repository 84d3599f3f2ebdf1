"""Write what the printed view and `flame info` both tell of a trace: its GPUs, and notes on it."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from flame.core.model.meta import Device
from flame.core.shown_text import printable


def notes(warnings: Sequence[str], width: int) -> list[str]:
    """Wrap warnings into lines of at most ``width``, the following lines of each indented."""
    lines = []
    for warning in warnings:
        text = f"note: {printable(warning)}"
        lines += textwrap.wrap(text, width, subsequent_indent="      ", break_on_hyphens=False)
    return lines


def gpus(devices: Sequence[Device]) -> str:
    """Write GPUs in short: ``2 × NVIDIA H100 80GB HBM3``; ``GPU`` where there is no name."""
    names = [device.name or "GPU" for device in devices]
    counted = [(names.count(name), name) for name in dict.fromkeys(names)]
    return printable(" + ".join(f"{n} × {name}" if n > 1 else name for n, name in counted))
