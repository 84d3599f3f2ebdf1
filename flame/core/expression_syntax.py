"""Take regular expressions apart: how long `re` may take for one, and the same for `regex`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from math import factorial
from typing import NamedTuple

from flame.core.lazy_regex import lazy_regex

_TOKEN = lazy_regex(
    r"""(?P<escape> \\(?:N\{[^}]*\}|.) )
      | (?P<set> \[\^?\]?(?:[^\]\\]++|\\.)*+\] )
      | (?P<atom> \(\?P=\w+\) | \(\?\#[^)]*\) | \(\?[aiLmsux]+\) )
      | (?P<open> \( (?: \?(?: P<\w+> | <?[=!] | > | [aiLmsux]*(?:-[imsx]+)?: | \(\w+\) ) )? )
      | (?P<repeat> (?: [*+?] | \{(?:\d+(?:,\d*)?|,\d*)\} ) [?+]? )
      | (?P<close> \) )
      | (?P<bar> \| )
      | (?P<other> . )""",
    re.VERBOSE | re.DOTALL,
)
_VERBOSE_GROUP = lazy_regex(r"\(\?[aiLmsu]*x")
_ASCII_GROUP = lazy_regex(r"\(\?[iLmsux]*[aL]")
_SET_PART = lazy_regex(r"\\(?:N\{[^}]*\}|.)|\[", re.DOTALL)


class _Cost(NamedTuple):
    """Bound the ways of matching from one place: ``ways`` × length ** ``repeats``."""

    ways: int = 1
    repeats: int = 0

    @property
    def varies(self) -> bool:
        return self.ways > 1 or self.repeats > 0

    def then(self, other: _Cost) -> _Cost:
        return _Cost(self.ways * other.ways, self.repeats + other.repeats)

    def or_else(self, other: _Cost) -> _Cost:
        return _Cost(self.ways + other.ways, max(self.repeats, other.repeats))


class _Group:
    """Add up the cost of a group: of its branches those before, and the one that is read."""

    def __init__(self) -> None:
        self._before: _Cost | None = None
        self._branch = self.last = _Cost()

    def add(self, part: _Cost) -> None:
        self._branch, self.last = self._branch.then(self.last), part

    def end_branch(self) -> None:
        branch = self._branch.then(self.last)
        self._before = branch if self._before is None else self._before.or_else(branch)
        self._branch = self.last = _Cost()

    def whole(self) -> _Cost:
        self.end_branch()
        assert self._before is not None
        return self._before


@lru_cache(256)
def longest_within(steps: int, pattern: re.Pattern[str]) -> int:
    """Return the length of names for which `re` needs at most ``steps``; 0 where it may be any.

    What is repeated may not itself match in several ways, or their number grows exponentially.
    Without that each repeat, and the search itself, chooses one of the places in the name, in
    order.
    """
    if _is_verbose(pattern):
        return 0
    groups = [_Group()]
    for kind, token in _tokens(pattern.pattern):
        if kind == "open":
            groups.append(_Group())
        elif kind == "close":
            cost = groups.pop().whole()
            groups[-1].add(cost)
        elif kind == "bar":
            groups[-1].end_branch()
        elif kind != "repeat":
            groups[-1].add(_Cost(repeats=_refers_back(token)))
        elif (repeated := _repeated(token, groups[-1].last)) is None:
            return 0
        else:
            groups[-1].last = repeated
    ways, repeats = groups[-1].whole()
    places = repeats + 1
    return max(int((steps * factorial(places) / ways) ** (1 / places)) - places, 0)


def _repeated(token: str, what: _Cost) -> _Cost | None:
    """The cost of ``what`` repeated; None where that grows exponentially."""
    if token[0] == "?":
        return _Cost(what.ways + 1, what.repeats)
    return None if what.varies else _Cost(repeats=1)


def _refers_back(token: str) -> bool:
    return bool(re.match(r"\\\d|\(\?P=", token))


def _is_verbose(pattern: re.Pattern[str]) -> bool:
    """Whether there may be comments, in which nothing is what it looks like."""
    return bool(pattern.flags & re.VERBOSE or _VERBOSE_GROUP.search(pattern.pattern))


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    for match in _TOKEN.finditer(text):
        yield match.lastgroup or "", match[0]


def spell_for_regex(pattern: re.Pattern[str], names_are_usual: bool = True) -> str:
    r"""Spell ``pattern`` so that the package `regex` finds by it what `re` does.

    Braces that repeat nothing are no fuzzy matching there, and brackets in a set no class of
    POSIX. ``\w``, ``\d``, ``\s`` and ``\b`` differ for characters beyond ASCII and for separators
    (``\x1c`` to ``\x1f``): unless ``names_are_usual``, which have none, they are written out. An
    ``i`` that ignores case is never a dotless ``ı``. Verbose expressions stay as they are.
    """
    if _is_verbose(pattern):
        return pattern.pattern
    written_out = not names_are_usual and not pattern.flags & re.ASCII
    if _ASCII_GROUP.search(pattern.pattern):
        written_out = False
    return "".join(_respell(kind, token, written_out) for kind, token in _tokens(pattern.pattern))


def _respell(kind: str, token: str, written_out: bool) -> str:
    if kind == "other":
        return f"\\{token}" if token in "{}" else token
    if kind == "set":
        begin = 2 if token[1] == "^" else 1
        parts = _SET_PART.sub(lambda part: _respell_member(part[0], written_out), token[begin:])
        return token[:begin] + parts
    if kind == "escape" and written_out:
        return _write_out(token)
    return token


def _respell_member(token: str, written_out: bool) -> str:
    if token == "[":
        return r"\["
    return _ranges(token) if written_out and token[1] in "wWdDsS" else token


def _write_out(token: str) -> str:
    """Spell an escape outside of sets with all characters that it matches."""
    if token[1] in "bB":
        word = f"[{_ranges(chr(92) + 'w')}]"
        after, before = "!=" if token == r"\b" else "=!"
        return f"(?:(?<={word})(?{after}{word})|(?<!{word})(?{before}{word}))"
    return f"[{_ranges(token)}]" if token[1] in "wWdDsS" else token


@lru_cache
def _ranges(escape: str) -> str:
    r"""List all characters that ``escape``, such as ``\w``, matches in `re`, as ranges of a set."""
    fits = re.compile(escape).match
    every = map(chr, range(sys.maxunicode + 1))
    runs = [bool(fits(char)) for char in every]
    starts = [0, *(at for at, (one, other) in enumerate(pairwise(runs), 1) if one != other)]
    ends = [*starts[1:], len(runs)]
    pairs = [(a, b - 1) for a, b in zip(starts, ends, strict=True) if runs[a]]
    return "".join(rf"\U{first:08x}-\U{last:08x}" for first, last in pairs)
