"""Describe what is fuzzed: a kind of input, where mutating starts, and what is checked of each."""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
CORPUS = FOLDER / "corpus"
"""A folder of committed inputs per target."""

Mutate = Callable[[bytes, random.Random], bytes]


@dataclass(frozen=True)
class Target:
    """One kind of input.

    ``check`` raises where an input shows a fault. ``mutate`` changes an input without losing its
    structure: it makes this ``share`` of the new inputs; of others bytes are changed. Inputs are at
    most ``longest`` bytes. ``room`` is the size that memory is compared with: for what unpacks to
    more than it is.
    """

    name: str
    seeds: Callable[[], Iterable[bytes]]
    check: Callable[[bytes], None]
    mutate: Mutate | None = None
    longest: int = 1 << 13
    room: Callable[[bytes], int] = len
    share: float = 0.6

    def committed(self) -> list[Path]:
        """The committed inputs."""
        return sorted((CORPUS / self.name).glob("*"))


_MODULES = {
    path.stem: ".".join(("tests.fuzz", *path.relative_to(FOLDER).with_suffix("").parts))
    for path in (FOLDER / "targets").rglob("*.py")
}
NAMES = tuple(sorted(_MODULES))


def find_target(name: str) -> Target:
    """The target in the module of that name."""
    target: Target = importlib.import_module(_MODULES[name]).TARGET
    return target
