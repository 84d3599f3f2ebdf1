"""Find keys of dialogs that no page of keys explains."""

from __future__ import annotations

from collections.abc import Iterable

from textual.binding import Binding


def unexplained(bindings: Iterable[Binding]) -> list[Binding]:
    """Return those of ``bindings`` that say nothing, and for which no binding of their action does.

    ``move(1)`` needs no words of its own beside a ``move(-1)``.
    """
    bindings = list(bindings)
    said = {_name(one) for one in bindings if one.description}
    return [one for one in bindings if _name(one) not in said]


def _name(binding: Binding) -> str:
    return binding.action.partition("(")[0]
