"""The GPU flame graph in your terminal.

``load`` reads a trace as a `Profile` (`LoadOptions` say how), ``load_all`` several as one,
``Profile.tree`` projects it to a `StackTree`, ``where`` makes filters, ``exporters`` holds one
module per format. Each is imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from flame._version import __version__

if TYPE_CHECKING:
    from flame import exporters
    from flame.core.loading.file import load
    from flame.core.loading.many import load_all
    from flame.core.model.profile import Profile
    from flame.core.model.tree import Arrangement, StackTree
    from flame.core.options import LoadOptions
    from flame.core.projection.filter_options import where

__all__ = [
    "Arrangement",
    "LoadOptions",
    "Profile",
    "StackTree",
    "__version__",
    "exporters",
    "load",
    "load_all",
    "where",
]

_HOMES = {
    "Arrangement": "flame.core.model.arrangement",
    "LoadOptions": "flame.core.options",
    "Profile": "flame.core.model.profile",
    "StackTree": "flame.core.model.tree",
    "load": "flame.core.loading.file",
    "load_all": "flame.core.loading.many",
    "where": "flame.core.projection.filters",
}


def __getattr__(name: str) -> object:
    if name == "exporters":
        return import_module("flame.exporters")
    if name not in _HOMES:
        raise AttributeError(f"module 'flame' has no attribute '{name}'")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return __all__
