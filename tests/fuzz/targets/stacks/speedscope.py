"""Files of speedscope, its own format."""

from __future__ import annotations

from tests.fuzz.checks import opens_or_refuses, packed, unpacked_size, write
from tests.fuzz.mutations import mutate_json
from tests.fuzz.target import Target
from tests.support.hostile.bad_texts import WHOLE, deep
from tests.support.writers.speedscopefile import document, evented, sampled


def check(data: bytes) -> None:
    opens_or_refuses(write("profile.speedscope.json", data))


def seeds() -> list[bytes]:
    two = document(
        sampled([[0], [1, 0], []], [1, 2.5, 3], unit="bytes"),
        evented(("O", 0, 1), ("C", 0, 2), ("O", 2, 2), ("C", 2, 9)),
        frames=["a", {"name": "f", "file": "a.py", "line": 3, "col": 1}, "c"],
        activeProfileIndex=1,
        exporter="py-spy@0.3.14",
    )
    nested = deep(5)
    whole = WHOLE["speedscope"]
    return [whole, two, nested["samples"], nested["events"], packed(whole)]


TARGET = Target("speedscope", seeds, check, mutate_json, 1 << 13, unpacked_size)
