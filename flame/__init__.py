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
    from flame.core.arrangement import Arrangement
    from flame.core.load import load
    from flame.core.load_many import load_all
    from flame.core.options import LoadOptions
    from flame.core.profile import Profile
    from flame.core.tree import StackTree
    from flame.core.where import where

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
    "Arrangement": "flame.core.arrangement",
    "LoadOptions": "flame.core.options",
    "Profile": "flame.core.profile",
    "StackTree": "flame.core.tree",
    "load": "flame.core.load",
    "load_all": "flame.core.load_many",
    "where": "flame.core.where",
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
