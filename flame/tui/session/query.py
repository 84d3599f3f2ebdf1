"""Compile searches as typed: regular expressions that ignore case until a capital is typed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from flame.core.analysis.search import Matches, search
from flame.core.columns import I8
from flame.core.errors import UsageError
from flame.core.lazy_dataclass import dataclass
from flame.core.lazy_regex import lazy_regex
from flame.core.model.frames import Kind
from flame.core.model.tree import StackTree
from flame.core.names.numbers import STAR
from flame.core.regex import compile_expression

_ESCAPE = lazy_regex(r"\\.")
_SPECIAL = lazy_regex(r"[.^$*+?{}\[\]\\|()]|[^\x20-\x7e]")
_ESCAPED = lazy_regex(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|(.))", re.DOTALL)


@dataclass(frozen=True)
class Query:
    """A search: what the user typed, or one name in full."""

    text: str
    exact: bool = False

    def compile(self) -> re.Pattern[str]:
        """Return the expression to look for; UsageError says what is wrong with it."""
        if self.exact:
            return re.compile(r"\A" + re.escape(self.text) + r"\Z")
        capital = any(map(str.isupper, _ESCAPE.sub("", self.text)))
        return compile_expression(self.text, 0 if capital else re.IGNORECASE)


@dataclass(frozen=True)
class SearchResult:
    """A search and what it matches in one tree; ``order`` holds the matches that have any width."""

    query: Query
    matches: Matches
    order: I8


def find(tree: StackTree, query: Query) -> SearchResult:
    """Run ``query`` over ``tree``; UsageError where that takes too long."""
    matches = search(tree, query.compile(), query.exact)
    order = (matches.mask & (tree.total > 0)).nonzero()[0]
    return SearchResult(query, matches, order)


def find_in_time(tree: StackTree, query: Query | None) -> SearchResult | None:
    """Run ``query``, if there is one, over ``tree``; None where that takes too long."""
    if query is None:
        return None
    try:
        return find(tree, query)
    except UsageError:
        return None


# Names in full, as expressions of filters


def exact_pattern(name: str) -> str:
    """Return a regular expression, printable and on one line, that finds ``name`` alone."""
    return f"^{_SPECIAL.sub(_escape, name)}$"


@lru_cache(256)
def exact_name(pattern: str) -> str | None:
    """Return the name for which `exact_pattern` gives ``pattern``; None for any other pattern."""
    name = _ESCAPED.sub(_unescape, pattern[1:-1])
    return name if exact_pattern(name) == pattern else None


class SelectedName(NamedTuple):
    """The name of a frame, its kind, and its ``stars``: the parts between numbers that fold."""

    name: str
    kind: Kind
    stars: Sequence[str] = ()

    @property
    def pattern(self) -> str:
        """An expression for the name in full, with any numbers where they fold."""
        return folded_pattern(self.stars) if self.stars else exact_pattern(self.name)


_ANY_NUMBER = r"(?:[0-9]+|\*)"


def folded_pattern(parts: Sequence[str]) -> str:
    """Return an expression like `exact_pattern`: for ``parts`` of a name with numbers between."""
    return f"^{_ANY_NUMBER.join(_SPECIAL.sub(_escape, part) for part in parts)}$"


@lru_cache(256)
def folded_name(pattern: str) -> str | None:
    """Return the name, with stars, for which `folded_pattern` gives ``pattern``; None if none."""
    parts = [_ESCAPED.sub(_unescape, part) for part in pattern[1:-1].split(_ANY_NUMBER)]
    return STAR.join(parts) if folded_pattern(parts) == pattern else None


def _escape(match: re.Match[str]) -> str:
    char = match.group()
    code = ord(char)
    if char.isascii() and char.isprintable():
        return f"\\{char}"
    if char.isprintable():
        return char
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _unescape(match: re.Match[str]) -> str:
    *codes, char = match.groups()
    code = next(filter(None, codes), None)
    return chr(int(code, 16)) if code else char
