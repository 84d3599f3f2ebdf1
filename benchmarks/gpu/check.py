"""Describe a check, and what it found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.gpu.bench import Bench

PASS, FAIL, SKIP, HANG = "PASS", "FAIL", "SKIP", "HANG"
"""Verdicts: what a line begins with."""


class CheckSkippedError(Exception):
    """Tell what a check lacks here; found out only while it ran."""


@dataclass(frozen=True)
class Criterion:
    """Hold one thing that must be so, whether it is, and what was found in its place."""

    name: str
    ok: bool
    said: str


@dataclass
class Finding:
    """Collect what a check found: criteria that hold or not, and numbers with no right value."""

    criteria: list[Criterion] = field(default_factory=list)
    numbers: dict[str, Any] = field(default_factory=dict)

    def hold(self, name: str, ok: bool, said: object = "") -> None:
        """Add a criterion."""
        self.criteria.append(Criterion(name, bool(ok), str(said)))

    def tell(self, **numbers: Any) -> None:
        """Add numbers, which must go into JSON."""
        self.numbers |= numbers


@dataclass
class Result:
    """Hold what became of a check; ``seconds`` of wall time, ``error`` why it broke off."""

    name: str
    topic: str
    verdict: str
    seconds: float = 0.0
    error: str = ""
    criteria: list[Criterion] = field(default_factory=list)
    numbers: dict[str, Any] = field(default_factory=dict)
    left_behind: int = 0
    log: str = ""
    stacks: str = ""

    @property
    def said(self) -> str:
        """One line: the error, else the criteria that do not hold, else all, and the numbers."""
        wrong = [one for one in self.criteria if not one.ok]
        parts = [self.error] if self.error else []
        parts += [f"{one.name}: {one.said}" if one.said else one.name for one in wrong]
        if not parts:
            parts = [f"{one.name} {one.said}".strip() for one in self.criteria]
        named = {one.name for one in self.criteria}
        parts += [
            f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}"
            for key, value in self.numbers.items()
            if key not in named and is_short(value)
        ]
        parts += [f"{self.left_behind} processes left behind"] if self.left_behind else []
        return "; ".join(parts)

    def as_json(self) -> dict[str, Any]:
        """Make an object of it, for the file of results."""
        return asdict(self)


def is_short(value: Any) -> bool:
    """Whether a number has its place on a line."""
    return isinstance(value, (int, float)) or (isinstance(value, str) and len(value) < 60)


@dataclass(frozen=True)
class Check:
    """Describe a check; ``look`` raises what it likes, and CheckSkippedError where something lacks.

    ``topic`` is what it is about, in words, ``run`` which of the three runs it
    belongs to, ``seconds`` when it counts as hanging, with one that takes less in the quick tier.
    ``needs`` are names of `needs.py`. Only those of the ``quick`` tier run there.
    """

    name: str
    topic: str
    run: int
    look: Callable[[Bench], Finding]
    needs: tuple[str, ...] = ("gpu",)
    seconds: float = 60.0
    quick: bool = False
