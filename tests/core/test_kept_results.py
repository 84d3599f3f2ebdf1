"""Results are kept for an object as long as it lives, and no longer."""

from __future__ import annotations

import gc
import weakref

from flame.core.kept_results import kept


class Thing:
    """Something that results are kept for."""


def test_a_result_is_worked_out_once_for_each_object() -> None:
    calls: list[Thing] = []

    @kept
    def number(thing: Thing) -> int:
        """Count."""
        calls.append(thing)
        return len(calls)

    one, other = Thing(), Thing()
    assert [number(one), number(other), number(one)] == [1, 2, 1]
    assert number.__doc__ == "Count."


def test_what_is_kept_does_not_keep_the_object() -> None:
    @kept
    def name(thing: Thing) -> str:
        return type(thing).__name__

    one = Thing()
    assert name(one) == "Thing"
    gone = weakref.ref(one)
    del one
    gc.collect()
    assert gone() is None
