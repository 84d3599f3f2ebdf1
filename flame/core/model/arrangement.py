"""How stacks are laid out: from which end, with recursion or without, and in which order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from flame.core.errors import UsageError

Order = Literal["weight", "name", "start"]
ORDERS: tuple[Order, ...] = get_args(Order)


@dataclass(frozen=True)
class Arrangement:
    """``inverted``: bottom-up, the leaf first; ``collapsed``: a frame right below itself is one.

    ``order`` is that of siblings: the widest first, by name (numbers by value), or by the first
    start of an activity below them.
    """

    inverted: bool = False
    collapsed: bool = False
    order: Order = "weight"

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            choices = ", ".join(ORDERS)
            raise UsageError(f"--sort: unknown order '{self.order}': choose from {choices}")
