"""The GPU flame graph in your terminal.

``load`` opens a trace as a `Trace` (`LoadOptions` say how), ``load_all`` several as one,
``Trace.tree`` projects it to a `StackTree`, ``where`` makes filters, ``exporters`` holds one
module per format. Each is imported on first use.
"""

from __future__ import annotations

from flame._version import __version__

TYPE_CHECKING = False  # The module typing takes a third of the time of `flame --version`.
if TYPE_CHECKING:
    from flame import exporters
    from flame.core.model.profile import Profile
    from flame.core.model.tree import StackTree, TreeLayout
    from flame.core.options import LoadOptions
    from flame.core.projection.filter_options import where
    from flame.trace import Trace, load, load_all

__all__ = [
    "LoadOptions",
    "Profile",
    "StackTree",
    "Trace",
    "TreeLayout",
    "__version__",
    "exporters",
    "load",
    "load_all",
    "where",
]

_HOMES = {
    "TreeLayout": "flame.core.model.tree",
    "LoadOptions": "flame.core.options",
    "Profile": "flame.core.model.profile",
    "StackTree": "flame.core.model.tree",
    "Trace": "flame.trace",
    "load": "flame.trace",
    "load_all": "flame.trace",
    "where": "flame.core.projection.filter_options",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name == "exporters":
        return import_module("flame.exporters")
    if name not in _HOMES:
        raise AttributeError(f"module 'flame' has no attribute '{name}'")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return __all__
