"""What flame opens: which format a file has, told by its first bytes, and who reads it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from flame.core.model.raw import RawStacks, RawTrace
from flame.core.options import LoadOptions, Progress
from flame.core.readers.fdump import reader as fdump
from flame.core.readers.kineto import reader as kineto
from flame.core.readers.stacks import folded, proton, speedscope

HEAD = 1 << 16
"""As many bytes, decompressed, does a format get to be told by."""


@dataclass(frozen=True)
class Format:
    """A format that is no database: how it is told, and its reader."""

    name: str
    looks_like: Callable[[bytes], bool]
    read: Callable[[Path, LoadOptions, Progress], RawTrace | RawStacks]


FORMATS = (
    Format("dump", fdump.looks_like, fdump.read),
    Format("speedscope", speedscope.looks_like, speedscope.read),
    Format("Proton", proton.looks_like, proton.read),
    Format("PyTorch profiler", kineto.looks_like, kineto.read),
    Format("folded stacks", folded.looks_like, folded.read),
)
"""In the order in which they are asked, those that are told most certainly first."""


def format_of(path: Path, head: bytes) -> Format | None:
    """The format of the file at ``path`` that begins with ``head``; None if it is none of these.

    A name such as ``x.speedscope.json`` decides where the content does not.
    """
    for one in FORMATS:
        if one.looks_like(head):
            return one
    if path.name.endswith(".speedscope.json"):
        return next(one for one in FORMATS if one.name == "speedscope")
    return None
