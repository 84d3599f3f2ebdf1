"""Compile regular expressions that users type, and find frames by them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Sequence

from flame.core.columns import I8
from flame.core.errors import UsageError

_PLAIN = re.compile(r"[A-Za-z0-9_ ,:;<>=%&@!~'\"/-]+")
"""Expressions without a special character: they are looked for as they stand, twice as fast."""


def compile_expression(text: str, flags: int = 0) -> re.Pattern[str]:
    """Compile ``text``; UsageError says what is wrong with it.

    What Python merely warns of (``[[`` may mean something else one day) is taken as it is: a
    warning would be printed into the app.
    """
    try:
        with warnings.catch_warnings(action="ignore"):
            return re.compile(text, flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise UsageError(f"not a regular expression: {error}") from None


def find_matching(text: Sequence[str], frames: I8, pattern: re.Pattern[str]) -> list[int]:
    """Find those of ``frames`` whose ``text`` holds a match of ``pattern``."""
    fits = _matcher(pattern)
    ids: Iterable[int] = frames.tolist()
    return [frame for frame in ids if fits(text[frame])]


def _matcher(pattern: re.Pattern[str]) -> Callable[[str], object]:
    if not _PLAIN.fullmatch(pattern.pattern):
        return pattern.search
    wanted = pattern.pattern
    if not pattern.flags & re.IGNORECASE:
        return lambda name: wanted in name
    wanted = wanted.lower()
    # Beyond ASCII lower() and IGNORECASE differ: ſ matches s, but is no capital of it.
    return lambda name: wanted in name.lower() if name.isascii() else pattern.search(name)
