"""Write stack trees in other tools' formats: one module per format, loaded when first named."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flame.exporters import folded as folded
    from flame.exporters import pprof as pprof
    from flame.exporters import speedscope as speedscope

__all__ = ["folded", "pprof", "speedscope"]

SUFFIXES = {
    "folded": ".collapsedstack.txt",
    "speedscope": ".speedscope.json",
    "pprof": ".pb.gz",
}
"""How files are called, by format."""


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
