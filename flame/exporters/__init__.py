"""Write stack trees, and tables of them, for other tools: one module per format.

They are loaded when first named.

May import: core.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flame.exporters import chrome as chrome
    from flame.exporters import folded as folded
    from flame.exporters import pprof as pprof
    from flame.exporters import speedscope as speedscope
    from flame.exporters.pictures import html as html
    from flame.exporters.pictures import svg as svg

_MODULES = {
    "chrome": "chrome",
    "folded": "folded",
    "html": "pictures.html",
    "pprof": "pprof",
    "speedscope": "speedscope",
    "svg": "pictures.svg",
}

__all__ = ["chrome", "folded", "html", "pprof", "speedscope", "svg"]

SUFFIXES = {
    "folded": ".collapsedstack.txt",
    "speedscope": ".speedscope.json",
    "pprof": ".pb.gz",
    "chrome": ".chrome.json.gz",
    "svg": ".svg",
    "html": ".html",
    "csv": ".csv",
    "json": ".top.json",
    "parquet": ".parquet",
}
"""How files are called, by format."""

BINARY = ("pprof", "parquet")
"""Formats that are no text."""

PACKED = ("pprof",)
"""Formats that are packed, whatever files are called."""

PICTURES = ("svg", "html")
"""Formats for people, who read names as the app has them."""


def __getattr__(name: str) -> ModuleType:
    if name in _MODULES:
        return import_module(f"{__name__}.{_MODULES[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
