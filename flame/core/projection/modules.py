"""Find the frames that are modules of a model: calls of ``nn.Module``, layer-wise ranges."""

from __future__ import annotations

import numpy as np

from flame.core.columns import Bool, is_any
from flame.core.kept_results import kept
from flame.core.lazy_regex import lazy_regex
from flame.core.model.activities import Activities
from flame.core.model.frames import Frame, FrameTable, Kind
from flame.core.model.profile import Profile
from flame.core.names.rename import NN_MODULE

_PATH = lazy_regex(r"[A-Za-z_]\w*+(?:\.\w++)++")
"""A path, ``model.layers.3.mlp``; no name has two ways to match, so that none takes long."""
_DETAILS = ("TrainableParams=", "StaticParams=")
"""What layer-wise tracing says besides of a module: then its path needs no number."""


def is_module(frame: Frame) -> bool:
    """Tell whether ``frame`` is the call of a module."""
    if frame.kind == Kind.PYTHON:
        return frame.name.startswith(NN_MODULE)
    if frame.kind != Kind.NVTX:
        return False
    return _is_numbered_path(frame.name) or frame.get("detail").startswith(_DETAILS)


def _is_numbered_path(name: str) -> bool:
    """Tell whether ``name`` is a path with the number of a layer."""
    return bool(_PATH.fullmatch(name)) and any(map(str.isdecimal, name.split(".")))


@kept
def modules_among(frames: FrameTable) -> Bool:
    """Tell which ``frames`` are modules, bool[frames + 1], the last (no frame) is none.

    Worked out once per table.
    """
    known = np.zeros(len(frames) + 1, bool)
    for index in np.flatnonzero(is_any(frames.kind, (Kind.PYTHON, Kind.NVTX))).tolist():
        known[index] = is_module(frames[index])
    return known


def has_modules(profile: Profile, table: Activities) -> Bool:
    """Tell which groups of ``table`` have a module in their stacks, bool[groups]."""
    modules = modules_among(profile.frames)
    if not modules.any():
        return np.zeros(len(table.groups), bool)
    within = table.stacks.contain_any(modules)
    found: Bool = within[table.groups.python] | within[table.groups.nvtx]
    return found
