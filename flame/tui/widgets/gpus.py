"""Name GPUs in few cells: how many of which model."""

from __future__ import annotations

import re
from collections.abc import Iterable

from flame.core.lazy_regex import lazy_regex
from flame.tui.toolkit.text import cut

_BESIDES = lazy_regex(r"[ -](SXM|PCIE|NVL|\d+GB).*", re.IGNORECASE)


def count_models(names: Iterable[str]) -> str:
    """``H100``, ``2×H100``: GPUs of these names, counted by model."""
    models = [_model(name) for name in names]
    counted = [(models.count(model), model) for model in dict.fromkeys(models)]
    return ", ".join(f"{number}×{model}" if number > 1 else model for number, model in counted)


def _model(name: str) -> str:
    """``H100`` of ``NVIDIA H100 80GB HBM3``: what comes before the memory and the socket."""
    return cut(_BESIDES.sub("", name.removeprefix("NVIDIA ")) or name, 24) or "GPU"
