"""Decode JSON that is nested as deep as a stack is: deeper than decoders recurse."""

from __future__ import annotations

import re

import msgspec

from flame.core.lazy_regex import lazy_regex

_TOKEN = lazy_regex(rb'[][{}]|"(?:[^"\\]|\\.)*"|[^][{},:\s"]+|"', re.DOTALL)
_DEEPEST = 100_000
"""Levels: more than stacks have. Each takes 140 times the memory of its bracket."""
_CLOSING = {b"]": b"[", b"}": b"{"}


def decode_json(data: bytes) -> object:
    """Decode ``data`` as `msgspec.json.decode` does; ValueError, of one line, where it is no JSON.

    Where that gives up, brackets are matched here, without recursion: 10 times slower, and without
    a look at commas and colons.
    """
    try:
        return msgspec.json.decode(data)
    except RecursionError:
        return _decode_deep(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from None


def _decode_deep(data: bytes) -> object:
    opened: list[tuple[bytes, list[object]]] = [(b"", [])]
    for match in _TOKEN.finditer(data):
        token = match[0]
        if token in (b"[", b"{"):
            opened.append((token, []))
            if len(opened) > _DEEPEST:
                raise ValueError(f"nested deeper than {_DEEPEST:,} levels")
            continue
        if token in _CLOSING:
            bracket, items = opened.pop()
            if bracket != _CLOSING[token]:
                raise ValueError(f"brackets do not match (byte {match.start()})")
            value: object = items if token == b"]" else _pair_items(items)
        else:
            value = _decode_scalar(token)
        opened[-1][1].append(value)
    if len(opened) != 1 or len(opened[0][1]) != 1:
        raise ValueError("input data was truncated")
    return opened[0][1][0]


def _pair_items(items: list[object]) -> dict[str, object]:
    keys, values = items[::2], items[1::2]
    if len(keys) != len(values):
        raise ValueError("a key without a value")
    if not all(isinstance(key, str) for key in keys):
        raise ValueError("a key that is no text")
    return dict(zip(keys, values, strict=True))  # type: ignore[arg-type]


def _decode_scalar(token: bytes) -> object:
    try:
        return msgspec.json.decode(token)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from None
