"""Find where JSON values begin and end in a piece of text, without decoding it."""

from __future__ import annotations

import re

from flame.core.lazy_regex import lazy_regex

NEAR = 256
"""White space between two objects is shorter than this, in bytes."""

ENDLESS = 1 << 62
"""Bytes: more than any file has."""

_TOKEN = lazy_regex(rb'"(?:[^"\\]++|\\.)*+"|[{\[]++|[}\]]++|"', re.DOTALL)
_SCALAR = lazy_regex(rb"[^\s,\]}]*+")
# `}, {"ph` cannot stand in a JSON string: its quote would end the string, and then no letter can
# follow. It may stand in an array inside an object: then the piece does not decode.
_OPENS = lazy_regex(rb'\{\s*+"\w')
_BEFORE = lazy_regex(rb"\}\s*+,\s*+\Z")


def find_value_end(text: bytes, start: int, stop: int = ENDLESS) -> int | None:
    """Return the end of the JSON value at ``start``; None if it is beyond ``stop`` or ``text``.

    Only brackets and strings are looked at, so that it finds the end of what is no JSON as well.
    """
    if text[start : start + 1] not in (b"{", b"[", b'"'):
        match = _SCALAR.match(text, start, stop)
        end = match.end() if match else start
        return end if end < min(len(text), stop) else None
    end, depth = skip_brackets(text, start, stop)
    return end if depth == 0 else None


def skip_brackets(text: bytes, start: int, stop: int = ENDLESS, depth: int = 0) -> tuple[int, int]:
    """Return where a value ends, or how far it is all there, and how many brackets are open there.

    ``start`` is in ``depth`` brackets. Where no bracket is open the value ends; -1 says that not
    even a first string is there to its end.
    """
    at = start
    for token in _TOKEN.finditer(text, start, stop):
        sign = token[0]
        if sign == b'"':
            return token.start(), depth or -1  # a string without an end
        at = token.end()
        if sign[:1] in (b"{", b"["):
            depth += len(sign)
        elif sign[:1] != b'"':
            if depth <= len(sign):
                return token.start() + depth, 0
            depth -= len(sign)
        elif depth == 0:
            return at, 0
    return at, depth or -1


def find_last_boundary(text: bytes, start: int, end: int) -> int | None:
    """Return the end of the last object in ``text[start:end]`` that another surely follows."""
    while (end := text.rfind(b"{", start, end)) > start:
        if _OPENS.match(text, end):
            before = _BEFORE.search(text, max(end - NEAR, start), end)
            if before:
                return before.start() + 1
    return None
