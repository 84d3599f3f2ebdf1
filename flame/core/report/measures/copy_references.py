"""Find what the rates of copies are to be compared with: bandwidths that are known, or the best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from flame.core.columns import I8
from flame.core.errors import UsageError
from flame.core.lazy_regex import lazy_regex
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile

LINKS = {
    "pcie": ("HtoD", "DtoH"),
    "c2c": ("HtoD", "DtoH"),
    "nvlink": ("PtoP",),
}
"""What copies go over a link, by its name in ``--link``."""

ENOUGH = 10
"""Copies of a group from which on the p90 of its rates can be what others are compared with."""

_LINK = lazy_regex(r"([a-z0-9]{1,16})=([0-9]{1,9}(?:\.[0-9]{1,9})?)")


class Reference(NamedTuple):
    """Say what a rate is compared with: bytes per second, and what that is.

    ``traffic`` is how many bytes move for each that is copied.
    """

    rate: int
    what: str
    traffic: int = 1

    def percent(self, rate: int) -> float | None:
        """Compute what ``rate`` is of it, in percent; None of no rate."""
        return round(100 * rate * self.traffic / self.rate, 3) if rate else None


def read_links(texts: Sequence[str]) -> dict[str, int]:
    """Understand ``--link NAME=GB/s``: bytes per second by direction; UsageError if wrong."""
    found: dict[str, int] = {}
    for text in texts:
        match = _LINK.fullmatch(text)
        rate = round(float(match[2]) * 1e9) if match and match[1] in LINKS else 0
        if match is None or not rate:
            names = ", ".join(LINKS)
            raise UsageError(f"--link '{text}': use NAME=GB/s, such as pcie=55; names: {names}")
        found |= dict.fromkeys(LINKS[match[1]], rate)
    return found


def references(
    profile: Profile, links: Mapping[str, int], rows: I8, place: I8, best: I8
) -> list[Reference | None]:
    """Find the reference of each group of copies.

    ``rows`` (of activities) are in groups ``place``, whose p90 rates are ``best`` i8[groups], in
    bytes per second, 0 unknown. Sets have none: they write what need not be read.
    """
    frame = np.zeros(len(best), np.int64)
    frame[place] = profile.activities.frame[rows]
    names = [profile.frames[at].name for at in frame.tolist()]
    usual = np.where(np.bincount(place, minlength=len(best)) >= ENOUGH, best, 0).tolist()
    memory = _bandwidths(profile, rows, place, len(best))
    found: list[Reference | None] = []
    for at, name in enumerate(names):
        direction = name.rpartition(" ")[2]
        is_copy = profile.frames[int(frame[at])].kind == Kind.MEMCPY
        if is_copy and direction == "DtoD" and memory[at]:
            found.append(Reference(memory[at], "memory", traffic=2))
        elif is_copy and direction in links:
            found.append(Reference(links[direction], "--link"))
        elif is_copy:
            most = max(rate for one, rate in zip(names, usual, strict=True) if one == name)
            found.append(Reference(most, "best p90") if most else None)
        else:
            found.append(None)
    return found


def _bandwidths(profile: Profile, rows: I8, place: I8, size: int) -> list[int]:
    """The memory bandwidth of the GPUs of each group; 0 where it is unknown, or they differ."""
    known = [device.facts.bandwidth or 0 for device in profile.devices]
    of_row = np.array([*known, 0], np.int64)[profile.activities.device[rows]]
    low, high = np.full(size, np.iinfo(np.int64).max), np.zeros(size, np.int64)
    np.minimum.at(low, place, of_row)
    np.maximum.at(high, place, of_row)
    found: list[int] = np.where(low == high, low, 0).tolist()
    return found
