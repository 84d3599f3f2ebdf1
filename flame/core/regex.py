"""Compile regular expressions that users type, and find names by them within a time limit.

An expression such as ``(a+)+$`` may take years. `re` cannot be stopped: it is given an expression
only with names that are short enough for it (`longest_within`), and the clock is looked at between
them. The package `regex` can be stopped, and is given the others. It takes 2 µs for each name, `re`
0.1 to 0.8 µs.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from time import monotonic, thread_time
from typing import Any

from flame.core.columns import I8
from flame.core.errors import UsageError
from flame.core.expression_syntax import longest_within, spell_for_regex
from flame.core.lazy_regex import lazy_regex

LONGEST_SEARCH = 2.0
"""Seconds after which an expression is given up."""

_PER_NAME = 50e-6
"""Seconds more for each name that is done: what is only slow comes to its end."""

_STEPS = 5_000_000
"""Steps that `re` may need for one name: 30 ms."""

_AT_ONCE = 32
"""Names that are searched before the clock is looked at again."""

_SLOW = 20e-6
"""Processor seconds for a name from which on `regex` is tried: it may see that none can match."""

_PLAIN = lazy_regex(r"[A-Za-z0-9_ ,:;<>=%&@!~'\"/-]+")
"""Expressions without a special character: they are looked for as they stand, twice as fast."""

_UNUSUAL = lazy_regex(r"[^\x00-\x1b\x20-\x7f]")
"""Characters of which `re` and `regex` may think differently."""


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


class Limit:
    """Limit the time of a search that begins now, by how many names are ``done``."""

    def __init__(self) -> None:
        self.done = 0
        self._begin = monotonic()

    def left(self, pattern: re.Pattern[str]) -> float:
        """Return the seconds that are left; UsageError where ``pattern`` has used them up."""
        left = self._begin + LONGEST_SEARCH + self.done * _PER_NAME - monotonic()
        if left <= 0:
            raise _too_long(pattern)
        return left


def _too_long(pattern: re.Pattern[str]) -> UsageError:
    return UsageError(f"'{pattern.pattern}' takes too long: try a simpler expression")


def is_quick(pattern: re.Pattern[str], names: Iterable[str]) -> bool:
    """Return whether ``pattern`` takes no more than a moment for each of ``names``."""
    return max(map(len, names), default=0) <= longest_within(_STEPS, pattern)


def fits(pattern: re.Pattern[str], name: str, limit: Limit) -> bool:
    """Return whether ``name`` holds a match of ``pattern``; UsageError after the ``limit``."""
    left = limit.left(pattern)
    limit.done += 1
    if len(name) <= longest_within(_STEPS, pattern):
        return bool(pattern.search(name))
    return _fits_in_time(pattern, name, left)


def _fits_in_time(pattern: re.Pattern[str], name: str, seconds: float) -> bool:
    try:
        return bool(_stoppable(pattern, name).search(name, timeout=seconds))
    except TimeoutError:
        raise _too_long(pattern) from None


def substitute(pattern: re.Pattern[str], replacement: str, name: str, limit: Limit) -> str:
    """Replace the matches of ``pattern`` as `re.sub`; UsageError after the ``limit``."""
    left = limit.left(pattern)
    limit.done += 1
    if len(name) <= longest_within(_STEPS, pattern):
        return pattern.sub(replacement, name)
    try:
        return str(_stoppable(pattern, name).sub(replacement, name, timeout=left))
    except TimeoutError:
        raise _too_long(pattern) from None


def find_matching(text: Sequence[str], frames: I8, pattern: re.Pattern[str]) -> list[int]:
    """Find those of ``frames`` whose ``text`` holds a match of ``pattern``.

    UsageError where that takes too long.
    """
    ids: Sequence[int] = frames.tolist()
    limit, quick, found = Limit(), _matcher(pattern), list[int]()
    longest = longest_within(_STEPS, pattern)

    def stoppable(name: str) -> bool:
        return _fits_in_time(pattern, name, limit.left(pattern))

    for first in range(0, len(ids), _AT_ONCE):
        some, begin = ids[first : first + _AT_ONCE], thread_time()
        limit.left(pattern)
        found += [
            frame
            for frame in some
            if (quick if len(name := text[frame]) <= longest else stoppable)(name)
        ]
        if thread_time() - begin > len(some) * _SLOW:
            longest = 0  # not less: in an empty name `re` finds no \B, and `regex` does
        limit.done += len(some)
    return found


def _matcher(pattern: re.Pattern[str]) -> Callable[[str], object]:
    if not _PLAIN.fullmatch(pattern.pattern):
        return pattern.search
    wanted = pattern.pattern
    if not pattern.flags & re.IGNORECASE:
        return lambda name: wanted in name
    wanted = wanted.lower()
    # Beyond ASCII lower() and IGNORECASE differ: ſ matches s, but is no capital of it.
    return lambda name: wanted in name.lower() if name.isascii() else pattern.search(name)


def _stoppable(pattern: re.Pattern[str], name: str) -> Any:
    return _compile_stoppable(pattern, not _UNUSUAL.search(name))


@lru_cache(64)
def _compile_stoppable(pattern: re.Pattern[str], names_are_usual: bool) -> Any:
    """Compile ``pattern`` with the package `regex`, which takes 9 ms to import.

    Its matches and substitutions take a ``timeout`` in seconds, and let other threads run.
    """
    import regex

    known = ((re.IGNORECASE, regex.IGNORECASE), (re.VERBOSE, regex.VERBOSE))
    flags = sum(theirs for ours, theirs in known if pattern.flags & ours)
    try:
        with warnings.catch_warnings(action="ignore"):
            text = spell_for_regex(pattern, names_are_usual)
            return regex.compile(text, flags | regex.VERSION0)
    except regex.error as error:
        raise UsageError(f"not a regular expression for long names: {error}") from None


def compile_glob(pattern: str) -> re.Pattern[str]:
    """Compile a glob: ``*`` and ``?`` stand for any text and any character.

    Brackets stand for themselves: they are part of many names.

    What follows a ``*`` is taken where it comes first, once and for all, as by `fnmatch`: a pattern
    with many of them would take years otherwise.
    """
    first, *others = (
        "".join("." if char == "?" else re.escape(char) for char in part)
        for part in re.sub(r"\*+", "*", pattern).split("*")
    )
    if not others:
        return re.compile(first, re.DOTALL)
    *middle, last = others
    found = "".join(f"(?>.*?{part})" for part in middle)
    return re.compile(f"{first}{found}.*{last}", re.DOTALL)
