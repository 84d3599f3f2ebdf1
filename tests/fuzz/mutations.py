"""Change inputs without losing their structure: values of JSON, lines of text, cells, records."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

Json = Any

INTEGERS = (0, 1, 2, 3, 7, 8, 127, 255, 4096, 65535, 2**31 - 1, 2**31, 2**32 - 1, 2**53 + 1)
LARGE = (2**61, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 10**30)
TEXTS = ("", " ", ";", "all", "ROOT", "nan", "7", "stream 7", "a\nb", "\0", "\ud800", "\u202ea")
MORE = ("\x1b[2J", "[red]x[/]", "_Z3addPf", "x" * 300, "py::f:a.py", "a.py:1", "f (a.py:3)", "é")
_FLOATS = (0.1, -0.0, 1e-300, 1e308, 1.7e15 + 0.123, float("nan"), float("inf"), -1.5)


def odd_value(draw: random.Random) -> Json:
    """A value that few files hold."""
    kind = draw.randrange(6)
    if kind == 0:
        return draw.choice(INTEGERS) * draw.choice((1, 1, -1))
    if kind == 1:
        return draw.choice(LARGE) * draw.choice((1, -1))
    if kind == 2:
        return draw.choice(_FLOATS)
    if kind == 3:
        return draw.choice(TEXTS + MORE)
    return draw.choice((None, True, False, [], {}, [[]], [{}], [1, 2]))


def mutate_json(data: bytes, draw: random.Random) -> bytes:
    """Change some values of a document; bytes that are none as they are."""
    try:
        whole = json.loads(data)
        for _ in range(draw.choice((1, 1, 2, 5))):
            _change_value(whole, draw)
        text = json.dumps(whole, ensure_ascii=draw.random() < 0.5)
    except (ValueError, RecursionError):
        return mutate_lines(data, draw)
    return text.encode("utf-8", "surrogatepass")


def _change_value(whole: Json, draw: random.Random) -> None:
    places = list(_places(whole))
    if not places:
        return
    holder, key = draw.choice(places)
    how = draw.randrange(6)
    if how == 0 and isinstance(holder, dict):
        del holder[key]
    elif how == 1 and isinstance(holder, list):
        holder.insert(key, holder[draw.randrange(len(holder))])
    elif how == 2:
        other, where = draw.choice(places)
        holder[key] = json.loads(json.dumps(other[where]))
    elif how == 3 and isinstance(holder[key], int):
        holder[key] += draw.choice((-1, 1, 1000, -1000))
    else:
        holder[key] = odd_value(draw)


def _places(value: Json) -> Iterator[tuple[Json, Json]]:
    """Every (list or object, index or key) inside of ``value``."""
    pending = [value]
    while pending:
        holder = pending.pop()
        if isinstance(holder, (list, dict)):
            for key in holder if isinstance(holder, dict) else range(len(holder)):
                yield holder, key
                pending.append(holder[key])


def mutate_lines(data: bytes, draw: random.Random) -> bytes:
    """Repeat, exchange, join or drop lines, and change words and numbers in them."""
    lines = data.split(b"\n")
    for _ in range(draw.choice((1, 1, 2, 5))):
        at = draw.randrange(len(lines))
        how = draw.randrange(5)
        if how == 0:
            lines.insert(at, lines[draw.randrange(len(lines))])
        elif how == 1 and len(lines) > 1:
            del lines[at]
        elif how == 2:
            lines[at] += lines[draw.randrange(len(lines))]
        else:
            lines[at] = _change_word(lines[at], draw)
    return b"\n".join(lines)


def _change_word(line: bytes, draw: random.Random) -> bytes:
    separator = draw.choice((b" ", b";", b",", b'"', b":"))
    words = line.split(separator)
    new = str(odd_value(draw)).encode("utf-8", "surrogatepass")
    words[draw.randrange(len(words))] = draw.choice((new, new, draw.choice(words), b""))
    return separator.join(words)
