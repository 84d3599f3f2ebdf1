"""Searches as typed: regular expressions that ignore case until a capital is typed."""

from __future__ import annotations

import re
from dataclasses import dataclass

from flame.core.analysis.search import Matches, search
from flame.core.columns import I8
from flame.core.model.tree import StackTree
from flame.core.regex import compile_expression

_ESCAPE = re.compile(r"\\.")


@dataclass(frozen=True)
class Query:
    """A search: what the user typed, or one name in full."""

    text: str
    exact: bool = False

    def compile(self) -> re.Pattern[str]:
        """The expression to look for; UsageError says what is wrong with it."""
        if self.exact:
            return re.compile(r"\A" + re.escape(self.text) + r"\Z")
        capital = any(map(str.isupper, _ESCAPE.sub("", self.text)))
        return compile_expression(self.text, 0 if capital else re.IGNORECASE)


@dataclass(frozen=True)
class Found:
    """A search and what it matches in one tree; ``order`` holds the matches that have any width."""

    query: Query
    matches: Matches
    order: I8


def find(tree: StackTree, query: Query) -> Found:
    """Run ``query`` over ``tree``."""
    matches = search(tree, query.compile())
    order = (matches.mask & (tree.total > 0)).nonzero()[0]
    return Found(query, matches, order)
