"""Instructions of two codes: the same ones are paired wherever they stand, the others are not."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flame.core.sampling.align_code as align_module
from flame.core.sampling.align_code import align_code

WORDS = st.lists(st.sampled_from(["FMUL R1", "FMUL R2", "LDG R1", "BRA 0x10", "NOP"]), max_size=9)


def opcode(text: str) -> str:
    return text.split()[0]


def worth(one: list[str], other: list[str]) -> int:
    """What the best pairs are worth: by the textbook's table."""
    best = np.zeros((len(one) + 1, len(other) + 1), int)
    for at, first in enumerate(one):
        for to, second in enumerate(other):
            pair = 3 if first == second else 2 if opcode(first) == opcode(second) else -1
            best[at + 1, to + 1] = max(best[at, to] + pair, best[at, to + 1], best[at + 1, to])
    return int(best[-1, -1])


@given(WORDS, WORDS)
def test_pairs_are_worth_most(one: list[str], other: list[str]) -> None:
    here, there = (places.tolist() for places in align_code(one, other))
    assert here == sorted({*here}) and there == sorted({*there})
    pairs = [(one[at], other[to]) for at, to in zip(here, there, strict=True)]
    assert all(opcode(first) == opcode(second) for first, second in pairs)
    assert sum(3 if first == second else 2 for first, second in pairs) == worth(one, other)


def listing(chance: random.Random, size: int) -> list[str]:
    opcodes = ["FFMA", "LDS.U.128", "IMAD", "STG.E", "LDG.E.128"]
    return [f"{chance.choice(opcodes)} R{chance.randrange(96)}" for _ in range(size)]


@pytest.mark.parametrize("other_registers", [False, True])
@pytest.mark.parametrize("size", [2_000, 20_000])
def test_a_long_code_that_was_shifted(size: int, other_registers: bool) -> None:
    """Every hundredth instruction is new, and 50 stand before the first."""
    one = listing(random.Random(size), size)
    more = [f"BAR.SYNC 0x{at:x}" for at in range(size // 100)]
    other, place = [f"MOV R{at}, RZ" for at in range(50)], []
    for at, text in enumerate(one):
        if at % 100 == 7:
            other.append(more[at // 100])
        place.append(len(other))
        other.append(f"{opcode(text)} R{at % 97 + 100}" if other_registers else text)
    here, there = align_code(one, other)
    assert here.tolist() == [*range(size)] and there.tolist() == place


def test_a_long_code_of_one_instruction(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes too long is paired at the same places, and ends."""
    monkeypatch.setattr(align_module, "_MOST_CELLS", 1 << 10)
    here, there = align_code(["IADD R1", *["NOP"] * 400], [*["NOP"] * 200, "FMUL R1"])
    assert here.tolist() == there.tolist() == [*range(1, 200)]


def test_nothing_is_paired_with_nothing() -> None:
    assert [places.tolist() for places in align_code([], ["NOP"])] == [[], []]
