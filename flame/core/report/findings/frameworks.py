"""Recognize the framework that a traced program uses, from the names in its trace."""

from __future__ import annotations

from typing import Literal

import numpy as np

from flame.core.kept_results import kept
from flame.core.lazy_regex import lazy_regex
from flame.core.model.frames import Frame, Kind
from flame.core.report.scope import Scope

Framework = Literal["vllm", "sglang", "megatron", "torch", ""]

_SIGNS: tuple[tuple[Framework, str], ...] = (
    ("vllm", r"\bvllm\b"),
    ("sglang", r"\bsglang\b|\bsgl kernel\b"),
    ("megatron", r"\bmegatron\b"),
    ("torch", r"\btorch\b|\bat::|\baten::|\bc10::|\bProfilerStep\b|\bnn\.Module"),
)
"""What tells a framework; one that is built on another comes first."""

_COMPILED = tuple((name, lazy_regex(pattern)) for name, pattern in _SIGNS)
_TELLING = (Kind.PROCESS, Kind.PYTHON, Kind.NATIVE, Kind.NVTX, Kind.KERNEL)


@kept
def framework_of(scope: Scope) -> Framework:
    """Recognize the framework by names of functions, files, ranges and kernels; empty: none."""
    frames = scope.profile.frames
    chosen = np.flatnonzero(np.isin(frames.kind, _TELLING)).tolist()
    different = {_parts(frames[at]) for at in chosen}
    # Separators of paths and of names are none of words.
    text = "\n".join(map(" ".join, different)).replace("_", " ")
    return next((name for name, pattern in _COMPILED if pattern.search(text)), "")


def _parts(frame: Frame) -> tuple[str, ...]:
    """What of a frame may tell."""
    if not frame.extra:
        return frame.name, frame.file, "", "", ""
    more = (frame.get(key) for key in ("domain", "demangled", "module"))
    return frame.name, frame.file, *more
