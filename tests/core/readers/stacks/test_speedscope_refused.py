"""speedscope files that are refused, with the place of what is wrong; how others are told."""

from __future__ import annotations

import gzip

import pytest

from flame.core.attribution.resolved import resolve_stacks
from flame.core.errors import InputError
from flame.core.readers.signs import stacks as signs
from tests.support.writers.speedscopefile import document, evented, opened, refusal, sampled

GOOD = evented(("O", 0, 0), ("C", 0, 1))

REFUSED = {
    "no JSON": (b"{", "damaged or cut off"),
    "cut off": (document(sampled([[0, 1]], [1]))[:-40], "damaged or cut off"),
    "cut gzip": (gzip.compress(document(sampled([[0, 1]], [1])))[:-9], "not a whole gzip file"),
    "a list": (b"[]", "Expected `object`"),
    "no profiles": (document(), "profiles: there is none"),
    "a value missing": (b'{"shared": {}, "profiles": []}', "missing required field `frames`"),
    "nested too deep": (b'{"x":' * 100_000, "damaged or cut off"),
    "not a number": (document(sampled([[0]], [float("nan")])), "damaged or cut off"),
    "unknown type": (
        document({**GOOD, "type": "odd"}),
        "Invalid value 'odd' - at `$.profiles[0].type`",
    ),
    "unknown unit": (
        document(GOOD, {**GOOD, "unit": "hours"}),
        "profiles[1].unit: 'hours' is none of",
    ),
    "negative weight": (
        document(sampled([[0], [0]], [1, -2])),
        "profiles[0].weights[1]: -2 is negative",
    ),
    "weights missing": (document(sampled([[0], [0]], [1])), "profiles[0].weights: 1 of them for 2"),
    "samples missing": (document(sampled([], [1])), "profiles[0].weights: 1 of them for 0"),
    "frame beyond": (
        document(sampled([[0], [0, 4]], [1, 1])),
        "profiles[0].samples[1]: frame 4 of shared.frames, which has 4",
    ),
    "frame of many digits": (document(sampled([[10**40]], [1])), "profiles[0].samples[0]: frame "),
    "negative frame": (
        document(sampled([[0], [-1]], [1, 1])),
        "samples[1]: no list of frame numbers",
    ),
    "samples no list": (document({**sampled([], []), "samples": {"a": 1}}), "samples: no list"),
    "sample no list": (document(sampled([[0], 1, [0]], [1, 1, 1])), "samples[1]: no list of"),  # type: ignore[list-item]
    "samples all no lists": (document(sampled([1, 2], [1, 1])), "samples[0]: no list of"),  # type: ignore[list-item]
    "last sample no list": (document(sampled([[0], 1], [1, 1])), "samples[1]: no list of"),  # type: ignore[list-item]
    "list in a sample": (document(sampled([[0], [0, [1]]], [1, 1])), "samples[1]: no list of"),  # type: ignore[list-item]
    "fraction of a frame": (document(sampled([[0], [0.5]], [1, 1])), "samples[1]: no list of"),  # type: ignore[list-item]
    "name in a sample": (document(sampled([["[0],[1]"]], [1])), "samples[0]: no list of"),  # type: ignore[list-item]
    "event with a frame beyond": (
        document(evented(("O", 0, 0), ("O", 9, 1))),
        "profiles[0].events[1]: frame 9 of shared.frames, which has 4",
    ),
    "event with a negative frame": (document(evented(("O", -1, 0))), "events[0]: frame -1 of"),
    "event of another type": (document(evented(("X", 0, 0))), "Invalid enum value 'X'"),
    "crossing": (
        document(evented(("O", 0, 0), ("O", 1, 1), ("C", 0, 2), ("C", 1, 3))),
        "profiles[0].events[2]: closes frame 0, but frame 1 was opened last",
    ),
    "closed too often": (
        document(evented(("O", 0, 0), ("C", 0, 1), ("C", 1, 2), ("C", 0, 3))),
        "profiles[0].events[2]: closes frame 1, but none is open",
    ),
    "never closed": (
        document(GOOD, evented(("O", 2, 0), ("C", 2, 1), ("O", 0, 1), ("O", 1, 1), ("C", 1, 2))),
        "profiles[1].events[2]: opens frame 0, which is never closed",
    ),
    "backwards": (
        document(evented(("O", 0, 5), ("C", 0, 4.5))),
        "profiles[0].events[1]: at an earlier value than the event before it",
    ),
    "deep sample": (
        document(sampled([[0], [0] * 50_001], [1, 1])),
        "profiles[0].samples[1]: a stack of more than 50,000 frames",
    ),
    "deep events": (
        document(evented(*[("O", 0, 0)] * 50_001, *[("C", 0, 1)] * 50_001)),
        "profiles[0].events[50000]: a stack of more than 50,000 frames",
    ),
    "huge time": (document(sampled([[0]], [1e12])), "holds the value 1e+12, which is too large"),
    "huge number": (document(sampled([[0]], [10**400])), "more than 300 digits"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_said_in_one_line_with_its_place(case: str) -> None:
    data, expected = REFUSED[case]
    assert expected in refusal(data)


def test_a_sum_beyond_64_bits_is_refused() -> None:
    raw = opened(document(sampled([[0]] * 3, [2**61] * 3, unit="none")))
    with pytest.raises(InputError, match="more than 64 bits"):
        resolve_stacks(raw)


@pytest.mark.parametrize(
    "head",
    [
        document(GOOD),
        b'\xef\xbb\xbf\n{ "profiles" : [ { "type":"evented",',
        b'{"name":"x","shared":{"frames":[{"name":"a"}',
        b'{"version":"0.0.1","$schema":"https://www.speedscope.app/file-format-schema.json"',
        b'{"exporter": "x", "profiles": [{"name": "a", "type": "sampled"',
    ],
)
def test_is_recognised_by_its_beginning(head: bytes) -> None:
    assert signs.is_speedscope(head)


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"main;step 12\n",
        b'[{"name": "a"}]',
        b'{"traceEvents": [{"name": "\\"shared\\":{\\"frames\\":[", "ph": "X"}]}',
        b'{"meta": {}, "shared": {"stringArray": []}}',
        b'{"nodes": [{"id": 1, "callFrame": {}}]}',
        b'"$schema":"https://www.speedscope.app/file-format-schema.json"',
    ],
)
def test_others_are_not_taken_for_it(head: bytes) -> None:
    assert not signs.is_speedscope(head)


def test_profiles_that_flame_has_not_written_are_no_measures_of_all_stacks() -> None:
    """Each measure has a value for every stack: a few bytes could take as many as there are."""
    stacks = [[first, second] for first in range(100) for second in range(100)]
    large = sampled(stacks, [1] * len(stacks), name="large", unit="none")
    small = sampled([[0]], [1], unit="none")
    data = document(
        large, *[small] * 200, frames=[str(at) for at in range(100)], exporter="flame@1"
    )
    assert "too many of them are of other stacks" in refusal(data)


def test_as_many_profiles_as_there_are_of_the_same_stacks_are_measures() -> None:
    stacks = [[first, second] for first in range(100) for second in range(100)]
    same = sampled(stacks, [1] * len(stacks), unit="none")
    data = document(*[same] * 120, frames=[str(at) for at in range(100)], exporter="flame@1")
    assert len(opened(data).measures) == 120
