"""Folded stacks; where all lines are plain, their numbers add up to the total."""

from __future__ import annotations

import re

from tests.fuzz.checks import FoundError, opens_or_refuses, unpacked_size, write
from tests.fuzz.mutations import mutate_lines
from tests.fuzz.target import Target
from tests.support.hostile.bad_texts import WHOLE, deep

_PLAIN = re.compile(rb"(?:[a-z]+(?:;[a-z]+)* [0-9]{1,9}\n)+")


def check(data: bytes) -> None:
    profile = opens_or_refuses(write("stacks.folded", data))
    if profile and _PLAIN.fullmatch(data):
        expected = sum(int(line.rsplit(b" ", 1)[1]) for line in data.splitlines())
        (metric, *_) = profile.metrics
        found = int(metric.values(profile.table(metric)).sum())
        if found != expected:
            raise FoundError(f"{found} of {expected} samples")


def seeds() -> list[bytes]:
    more = (
        b"a;b;c 3\na;b 4\nx 5\n",
        b"f (a.py:3);g [libc.so.6];h_[k] 1e3\n",
        b"main;a;\t7\r\nall 3\n",
    )
    return [WHOLE["folded"], WHOLE["differential"], deep(12)["folded"], *more]


TARGET = Target("folded", seeds, check, mutate_lines, 1 << 12, unpacked_size)
