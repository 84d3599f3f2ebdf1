"""Find the numbers in names, by which steps, layers and requests are told apart."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from flame.core.columns import Bool, Column
from flame.core.lazy_regex import lazy_regex

STAR = "*"
"""Stands for a number, in the name of what differs only in that."""

_COUNTED = "v|layers?|blocks?|steps?|iter|epoch|batch|req"
"""Words that numbers may follow at once: `v20`, `layer12`. In others (`fp16`, `conv1`) the digits
are part of a name."""

_PARTIES = "ranks?|devices?|dev|gpus?|cuda|streams?|nodes?|sm|compute"
"""Words whose numbers say who or what: they are no counters."""

# Longer runs of numbers than ten take a time that grows with their square, and are no paths.
_PATH_GOES_ON = r"(?:\.[0-9]+){0,9}+(?:\.[^\W\d]|/)"

# Parts of a name, each from a place where no letter or digit stands before. Only those in which a
# group matches are numbers; the others keep their digits from being taken for some.
_PART = lazy_regex(
    rf"""(?<![^\W_])(?:
      (?i:{_PARTIES})[ _:=\#\[(-]{{0,2}}[0-9]+(?:\.[0-9]+)*+
    | (?<=\.)[A-Za-z]{{1,3}}[:(][0-9]+                 # model.py:12
    | [0-9]+(?:,[ ]?[0-9]+)+                           # shapes
    | [0-9]+[ ]?(?:->|<-)[ ]?[0-9]+                    # from rank to rank
    | (?i:{_COUNTED})([0-9]+)(?![^\W_]|\.[0-9])
    | ([0-9]+)(?![^\W_])(?:(?!\.[0-9])|(?={_PATH_GOES_ON}))
    | [^\W_]*[0-9](?:\.[0-9]+){{1,9}}+(?!\.[^\W\d]|/)  # cuda12.4
    | [^\W_]+(?:\.[0-9]+){{2,9}}+(?!\.[^\W\d]|/)     # torch.2.1
    | [^\W_]+
    )""",
    re.VERBOSE,
)


_DIGITS = lazy_regex("([0-9]+)")
_LETTER = lazy_regex(r"[^\W\d_]")


class NumberedName(NamedTuple):
    """Hold a name without its ``numbers``: one stands between each two of the ``texts``."""

    texts: tuple[str, ...]
    numbers: tuple[str, ...]


def split_numbers(name: str) -> NumberedName:
    """Split ``name`` at its numbers: `decode bs=4 v20` has 4 and 20, `sm_90 fp16 2.1` has none.

    Numbers of ranks, devices and streams, versions, shapes and lines of files are none, and nothing
    is in a name without letters.
    """
    parts = _DIGITS.split(name)
    own = own_numbers("0".join(parts[::2]))
    if False not in own:  # most names of many
        return NumberedName(tuple(parts[::2]), tuple(parts[1::2]))
    texts, numbers = [parts[0]], []
    for counts, number, text in zip(own, parts[1::2], parts[2::2], strict=True):
        if counts:
            numbers.append(number)
            texts.append(text)
        else:
            texts[-1] += number + text
    return NumberedName(tuple(texts), tuple(numbers))


@lru_cache(1024)
def own_numbers(name: str) -> tuple[bool, ...]:
    """Tell which runs of digits in ``name`` are numbers, which does not depend on the digits.

    So names that differ in digits alone are told once, and there may be 100,000 of them.
    """
    own = set()
    if _LETTER.search(name):
        matches = _PART.finditer(name)
        own = {match.start(match.lastindex) for match in matches if match.lastindex}
    return tuple(digits.start() in own for digits in _DIGITS.finditer(name))


def are_folded_alike(name: str, other: str) -> bool:
    """Tell whether one of two names has a `*` wherever it has not the number of the other."""
    return _is_folded(name, other) or _is_folded(other, name)


def _is_folded(name: str, folded: str) -> bool:
    return STAR in folded and bool(_folded_pattern(folded).fullmatch(name))


@lru_cache(256)
def _folded_pattern(folded: str) -> re.Pattern[str]:
    """An expression for the names that may be shown as ``folded``."""
    return re.compile(r"(?:[0-9]+|\*)".join(map(re.escape, folded.split(STAR))))


_BEFORE_NUMBERS = np.ones(256, bool)
_BEFORE_NUMBERS[list(b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")] = False
_BEFORE_NUMBERS[list(b"vrskphqVRSKPHQ")] = True  # the last letters of counted words


def may_have_numbers(texts: bytes, start: Column, end: Column) -> Bool:
    """Mark the names, each from ``start`` to ``end`` in ``texts``, that may have a number, bool[n].

    It takes no time for names such as `f123`, of which a file may have millions.
    """
    chars = np.frombuffer(texts, np.uint8)
    digit = (chars >= ord("0")) & (chars <= ord("9"))
    begins = digit[1:] & _BEFORE_NUMBERS[chars[:-1]]
    before = np.concatenate([[0, 0], np.cumsum(begins)])  # starts in the bytes before each
    marked: Bool = before[end] > before[np.minimum(start + 1, end)]
    return marked | (np.append(digit, False)[start] & (start < end))
