"""Results are kept for an object as long as it lives, and no longer."""

from __future__ import annotations

import gc
import weakref
from threading import Event, Thread

import pytest

from flame.core.kept_results import kept
from tests.support.waiting import PATIENCE


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


def test_threads_wait_for_the_one_that_works() -> None:
    calls, begun, go_on = [], Event(), Event()

    @kept
    def slow(thing: Thing) -> str:
        calls.append(thing)
        begun.set()
        assert go_on.wait(PATIENCE)
        return "done"

    thing, found = Thing(), []
    threads = [Thread(target=lambda: found.append(slow(thing)), daemon=True) for _ in range(2)]
    threads[0].start()
    assert begun.wait(PATIENCE)
    threads[1].start()
    go_on.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert found == ["done", "done"] and len(calls) == 1


def test_what_fails_is_tried_again() -> None:
    tried = []

    @kept
    def fails_once(thing: Thing) -> int:
        tried.append(thing)
        if len(tried) == 1:
            raise ValueError
        return 5

    thing = Thing()
    with pytest.raises(ValueError):
        fails_once(thing)
    assert fails_once(thing) == 5
