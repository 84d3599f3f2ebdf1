"""Numbers of threads, whatever places a trace names."""

from __future__ import annotations

from flame.core.options import LoadOptions
from flame.core.readers.kineto.context import AnyEvent, KinetoContext, Place, ThreadNumbers
from flame.core.readers.kineto.events import EventArgs, TraceEvent
from flame.core.readers.kineto.forward import ForwardFlows
from tests.support.generated.colliding import colliding_rows

ALIKE = [each * ((1 << 61) - 1) for each in range(-4, 5)]
"""Numbers that have one hash."""


def test_places_whose_hashes_collide_are_kept_by_other_hashes() -> None:
    places: list[Place] = [*colliding_rows(1_000)]
    numbers = ThreadNumbers()
    for _ in range(2):
        assert [numbers[place] for place in places] == list(range(len(places)))
    assert numbers.places == places
    assert len(numbers) < len(places) / 2


def test_places_of_numbers_and_texts_are_told_apart() -> None:
    numbers = ThreadNumbers()
    places: list[Place] = [("1 2", 3), (1, "2 3"), ("a' 'b", "c"), ("a", "b' 'c"), (1, 2)]
    assert [numbers[place] for place in [*places, ("1", "2"), (1, "2")]] == [0, 1, 2, 3, 4, 4, 4]


def test_names_and_arrows_of_places_whose_hashes_collide_are_kept_by_texts() -> None:
    context = KinetoContext(LoadOptions())
    flows = ForwardFlows(context)
    rows, known = colliding_rows(20), EventArgs(name="loader")
    named: list[AnyEvent] = [
        TraceEvent(name="thread_name", pid=a, tid=b, args=known) for a, b in rows
    ]
    context.learn_names(named)
    processes: list[AnyEvent] = [
        TraceEvent(name="process_name", pid=pid, args=known) for pid in ALIKE
    ]
    context.learn_names(processes)
    arrows: list[AnyEvent] = [
        TraceEvent[int | float](ph="s", ts=1, pid=a, tid=1, id=b) for a, b in rows
    ]
    flows.add(arrows)
    assert len(set(map(hash, context.thread_names))) == len(rows)
    assert len(set(map(hash, context.process_names))) == len(ALIKE)
    assert len(set(map(hash, flows._ends["s"]))) == len(rows)
