"""Parse conditions such as `step.p95 > 45ms and not findings.high > 0`."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from flame.core.errors import UsageError
from flame.core.lazy_dataclass import dataclass
from flame.core.lazy_regex import lazy_regex

Operator = Literal["<", "<=", ">", ">="]

_TOKEN = lazy_regex(
    r"\s*(?:(?P<word>[A-Za-z_]\w*(?:\.\w+)*)|(?P<text>\"[^\"]*\")|(?P<operator>[<>]=?)"
    r"|(?P<value>[+-]?\d+(?:\.\d+)?)\s?(?P<unit>%|ns|us|µs|ms|s|kB|MB|GB)?"
    r"|(?P<sign>[()]|\.\w+)|(?P<other>\S))"
)
_KINDS = ("word", "text", "operator", "value", "sign", "other")
_UNITS = {
    "": ("count", 1),
    "%": ("percent", 1),
    "ns": ("ns", 1),
    "us": ("ns", 1_000),
    "µs": ("ns", 1_000),
    "ms": ("ns", 1_000_000),
    "s": ("ns", 1_000_000_000),
    "kB": ("bytes", 1_000),
    "MB": ("bytes", 1_000_000),
    "GB": ("bytes", 1_000_000_000),
}
_WHOLE = ("new", "gone")
"""Quantities of names that have no parts."""

_DEEPEST = 50
"""Brackets within brackets."""

_EXAMPLE = "such as 'idle > 30% or step.p95 > 45ms'"


class Threshold(NamedTuple):
    """Hold what a quantity is compared with, in the unit of ``kind``; ``change`` is of a base."""

    value: float
    kind: str
    change: bool


@dataclass(frozen=True)
class Term:
    """Compare a quantity: ``name``, with the text of ``name("text").part`` where it has one."""

    name: str
    text: str | None
    operator: Operator
    limit: Threshold
    place: int


@dataclass(frozen=True)
class Not:
    """Hold where a condition does not."""

    inner: Condition


@dataclass(frozen=True)
class All:
    """Hold where all conditions do."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True)
class Any:
    """Hold where one of the conditions does."""

    parts: tuple[Condition, ...]


Condition = Term | Not | All | Any


def parse_condition(text: str) -> Condition:
    """Parse ``text``; UsageError, with the place of what is wrong, where it is no condition."""
    return _Parser(text).parse()


def terms_of(condition: Condition) -> tuple[Term, ...]:
    """List the terms of a condition, as they are written."""
    if isinstance(condition, Term):
        return (condition,)
    inner = (condition.inner,) if isinstance(condition, Not) else condition.parts
    return tuple(term for part in inner for term in terms_of(part))


class _Token(NamedTuple):
    kind: str
    text: str
    unit: str
    place: int


def _token(match: re.Match[str]) -> _Token:
    kind = next(name for name in _KINDS if match[name] is not None)
    return _Token(kind, match[kind], match["unit"] or "", match.start(kind))


class _Parser:
    """Parses by recursive descent: or, and, not, a term or a condition in brackets."""

    def __init__(self, text: str) -> None:
        self._tokens = [_token(match) for match in _TOKEN.finditer(text)]
        self._at = 0

    def parse(self) -> Condition:
        found = self._any(0)
        if self._at < len(self._tokens):
            raise self._error("'and', 'or' or the end")
        return found

    def _any(self, depth: int) -> Condition:
        parts = [self._all(depth)]
        while self._takes("word", "or"):
            parts.append(self._all(depth))
        return parts[0] if len(parts) == 1 else Any(tuple(parts))

    def _all(self, depth: int) -> Condition:
        parts = [self._one(depth)]
        while self._takes("word", "and"):
            parts.append(self._one(depth))
        return parts[0] if len(parts) == 1 else All(tuple(parts))

    def _one(self, depth: int) -> Condition:
        if depth > _DEEPEST:
            raise UsageError(f"--fail-on: more than {_DEEPEST} conditions within each other")
        if self._takes("word", "not"):
            return Not(self._one(depth + 1))
        if self._takes("sign", "("):
            inner = self._any(depth + 1)
            if not self._takes("sign", ")"):
                raise self._error("')'")
            return inner
        return self._term()

    def _term(self) -> Term:
        name = self._next("word", "a quantity")
        text = None
        word = name.text
        if self._takes("sign", "("):
            text = self._next("text", "a name in double quotes").text[1:-1]
            if not self._takes("sign", ")"):
                raise self._error("')'")
            if word not in _WHOLE:
                word += self._next("sign", "a part, such as .total").text
        operator = self._next("operator", "<, <=, > or >=").text
        return Term(word, text, operator, self._limit(), name.place)  # type: ignore[arg-type]

    def _limit(self) -> Threshold:
        token = self._next("value", "a number, with %, ns, us, ms, s, kB, MB or GB")
        kind, scale = _UNITS[token.unit]
        return Threshold(float(token.text) * scale, kind, token.text[0] in "+-")

    def _takes(self, kind: str, text: str) -> bool:
        """Go on where the next token is that one."""
        if self._at < len(self._tokens) and self._tokens[self._at][:2] == (kind, text):
            self._at += 1
            return True
        return False

    def _next(self, kind: str, wanted: str) -> _Token:
        if self._at == len(self._tokens) or self._tokens[self._at].kind != kind:
            raise self._error(wanted)
        self._at += 1
        return self._tokens[self._at - 1]

    def _error(self, wanted: str) -> UsageError:
        if self._at < len(self._tokens):
            token = self._tokens[self._at]
            return UsageError(f"--fail-on: {wanted} expected at {token.place + 1}: '{token.text}'")
        return UsageError(f"--fail-on: {wanted} expected at the end; write a condition {_EXAMPLE}")
