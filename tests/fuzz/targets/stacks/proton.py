"""Profiles of Triton's profiler."""

from __future__ import annotations

from tests.fuzz.checks import opens_or_refuses, unpacked_size, write
from tests.fuzz.mutations import mutate_json
from tests.fuzz.target import Target
from tests.support.hostile.bad_texts import WHOLE, deep


def check(data: bytes) -> None:
    opens_or_refuses(write("profile.hatchet", data))


def seeds() -> list[bytes]:
    return [WHOLE["proton"], deep(5)["proton"]]


TARGET = Target("proton", seeds, check, mutate_json, 1 << 13, unpacked_size)
