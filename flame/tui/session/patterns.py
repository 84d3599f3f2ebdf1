"""Regular expressions for names in full, and the names back from them."""

from __future__ import annotations

import re
from functools import lru_cache

_SPECIAL = re.compile(r"[.^$*+?{}\[\]\\|()]|[^\x20-\x7e]")
_ESCAPED = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|(.))", re.DOTALL)


def exact(name: str) -> str:
    """A regular expression that finds ``name`` and nothing else, printable and on one line."""
    return f"^{_SPECIAL.sub(_escape, name)}$"


@lru_cache(256)
def plain(pattern: str) -> str | None:
    """The name for which `exact` gives ``pattern``; None for any other pattern."""
    name = _ESCAPED.sub(_unescape, pattern[1:-1])
    return name if exact(name) == pattern else None


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
