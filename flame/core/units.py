"""Format values for people, and parse what people write: times, sizes, counts, shares."""

from __future__ import annotations

import re
from collections.abc import Iterable

from flame.core.errors import UsageError
from flame.core.lazy_regex import lazy_regex

BLOCKS = " ▁▂▃▄▅▆▇█"
"""From none to eight eighths of a cell."""

MINUS = "−"

FLOP = "FLOP"
"""The unit of metrics and columns that count floating-point operations."""

_STEPS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"))
_SIZES = ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
_WORK = (
    (1e18, "EFLOP"),
    (1e15, "PFLOP"),
    (1e12, "TFLOP"),
    (1e9, "GFLOP"),
    (1e6, "MFLOP"),
    (1e3, "kFLOP"),
)
_PREFIXED = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_AGES = ((1, "s", 120), (60, "min", 7_200), (3_600, "h", 172_800))
"""Seconds of a unit, its name, and the seconds up to which it is used."""

_UP = 0.9995
"""From this part of a unit on it is used: in the next smaller unit 1000 would be written."""


def format_ns(ns: float) -> str:
    """Format a time with three to four digits: ``1.234 s``, ``56.7 ms``, ``890 ns``."""
    for scale, unit in _STEPS:
        if abs(ns) >= scale * _UP:
            return f"{_digits(ns / scale)} {unit}"
    return f"{ns:.0f} ns"


def format_pair(before: float, after: float, unit: str) -> str:
    """Format two metric values, in one unit where they are times: ``41.2 → 44.9 ms``."""
    if unit != "ns":
        return f"{format_value(before, unit)} → {format_value(after, unit)}"
    largest = max(abs(before), abs(after))
    for scale, name in _STEPS:
        if largest >= scale * _UP:
            return f"{_digits(before / scale)} → {_digits(after / scale)} {name}"
    return f"{before:.0f} → {after:.0f} ns"


def format_bytes(size: float) -> str:
    """Format an amount of data, in powers of ten as bandwidths are: ``1.23 GB``, ``512 B``."""
    for scale, unit in _SIZES:
        if size >= scale * _UP:
            return f"{_digits(size / scale)} {unit}"
    return f"{size:.0f} B"


def format_flops(number: float) -> str:
    """Format a number of floating-point operations: ``6.01 TFLOP``, ``512 FLOP``."""
    for scale, unit in _WORK:
        if number >= scale * _UP:
            return f"{_digits(number / scale)} {unit}"
    return f"{number:.0f} FLOP"


def format_count(count: float) -> str:
    """Format a whole number with thousands separated."""
    return f"{count:,.0f}"


def format_counted(number: float, singular: str, plural: str) -> str:
    """Format a whole number with the word for what is counted: ``1 frame``, ``2,000 frames``."""
    return f"{format_count(number)} {singular if number == 1 else plural}"


def one_of(plural: str) -> str:
    """Return what a single one of what is counted is called: ``GPU activity``, ``API call``."""
    words = re.sub(r"ies\b", "y", plural)
    words = re.sub(r"(?<=ch|sh|ss)es\b|(?<!s)s\b", "", words)
    return words.replace(" and ", " or ")


def format_short(count: float) -> str:
    """Format a number in up to five characters below a trillion: ``987``, ``12.4k``, ``3.21M``."""
    for scale, prefix in _PREFIXED:
        if count >= scale * _UP:
            return f"{_digits(count / scale)}{prefix}"
    return f"{count:.0f}"


def format_age(seconds: float) -> str:
    """Format an age, to the unit that matters: ``42 s``, ``7 min``, ``3 h``."""
    for scale, unit, until in _AGES:
        if seconds < until:
            return f"{max(seconds, 0) // scale:.0f} {unit}"
    return f"{seconds // 86_400:,.0f} d"


def format_value(value: float, unit: str) -> str:
    """Format a metric value in its ``unit``; see `flame.core.model.metrics.Metric`."""
    if unit == "ns":
        return format_ns(value)
    if unit == "bytes":
        return format_bytes(value)
    if unit == FLOP:
        return format_flops(value)
    return format_count(value) if unit == "count" else format_parts(value, unit)


def format_parts(value: float, unit: str) -> str:
    """Format a number counted in ``unit`` (``1e-k``), thousands separated, no trailing zeros."""
    digits = int(unit.removeprefix("1e-"))
    return f"{value / 10**digits:,.{digits}f}".rstrip("0").rstrip(".")


def format_percent(part: float, whole: float) -> str:
    """Format a share such as ``12.3 %``; ``<0.1 %`` instead of a wrong zero."""
    if not whole or not part:
        return "0 %"
    percent = 100.0 * part / whole
    return "<0.1 %" if percent < 0.05 else f"{percent:.1f} %"


def format_whole_percent(percent: float) -> str:
    """Format a share in whole per cent: ``47 %``; ``<1 %`` instead of a wrong zero."""
    return "<1 %" if 0 < percent < 0.5 else f"{percent:.0f} %"


def format_shares(shares: Iterable[float]) -> str:
    """Draw a block for each share (0..1), to the nearest eighth; all but a zero leaves a mark."""
    eighths = (max(round(8 * share), int(share > 0)) for share in shares)
    return "".join(BLOCKS[number] for number in eighths)


def sign_of(change: float) -> str:
    """The sign of a change, none of 0."""
    return "+" if change > 0 else MINUS if change < 0 else ""


def _digits(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


_UNITS = {"h": 3_600_000_000_000, "m": 60_000_000_000, "s": 1_000_000_000}
_UNITS |= {"ms": 1_000_000, "us": 1_000, "µs": 1_000, "ns": 1}
_PART = lazy_regex(r"(\d+(?:\.\d+)?)(h|ms|m|s|us|µs|ns)?")


def parse_time(text: str) -> int:
    """Parse a time as nsys spells it to ns: ``5s``, ``1s2ms``, ``0.5s``, ``-20ms``.

    A number without a unit is seconds, as in ``nsys stats --timeline``.
    """
    sign, rest = (-1, text[1:]) if text.startswith("-") else (1, text)
    total, at = 0, 0
    for part in _PART.finditer(rest):
        if part.start() != at:
            break
        total += _scale_decimal(part.group(1), _UNITS[part.group(2) or "s"])
        at = part.end()
    if at != len(rest) or not rest:
        raise UsageError(f"'{text}' is not a time: use forms like 5s, 500ms, 1s2ms, 0.25s")
    return sign * total


_PREFIXES = "kMGT"
_SIZE = lazy_regex(r"(\d+(?:\.\d+)?) ?([kKMGT])(i?)B?")


def parse_size(text: str) -> int:
    """Parse an amount of data to bytes: ``500MB``, ``1.5G`` (powers of ten), ``4GiB`` (of two)."""
    match = _SIZE.fullmatch(text)
    if not match:
        raise UsageError(f"'{text}' is not an amount of data: use forms like 500MB, 4GB, 1.5GiB")
    number, prefix, binary = match.groups()
    power = _PREFIXES.index(prefix.replace("K", "k")) + 1
    return _scale_decimal(number, (1024 if binary else 1000) ** power)


def _scale_decimal(number: str, scale: int) -> int:
    """``number``, whole or decimal, times ``scale``, without the errors of floating point."""
    whole, _, fraction = number.partition(".")
    part = int(fraction) * scale // 10 ** len(fraction) if fraction else 0
    return int(whole) * scale + part
