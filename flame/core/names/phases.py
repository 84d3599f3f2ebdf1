"""Tell phases by the names of ranges, and read those that a user names by patterns of frames."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from flame.core.errors import InputError, UsageError
from flame.core.frame import Kind
from flame.core.lazy_regex import lazy_regex
from flame.core.names.nvtx import clean_range
from flame.core.regex import compile_expression

_KINDS = {"kernel": Kind.KERNEL, "nvtx": Kind.NVTX, "python": Kind.PYTHON}
_EXPRESSION = "re:"
_MOST_BYTES = 1 << 20

UNMAPPED = "unmapped"
"""The phase of what is of none."""

PREFILL, DECODE, MIXED = "prefill", "decode", "mixed"

TOLD_BY_RANGES: dict[str, tuple[str, ...]] = {
    MIXED: (r"phase=mixed\b", r"phase=context, .*\b[1-9]\d* gen reqs\b", r"step\[MIXED\b"),
    PREFILL: (r"phase=context\b", r"step\[EXTEND\b"),
    DECODE: (r"phase=generation\b", r"step\[DECODE\b"),
}
"""What begins the names of ranges of each phase, the first phase that fits; or their details.

Details are what `clean_range` sets aside: ``phase=`` of vLLM and TensorRT-LLM, counts of requests
behind it. SGLang writes ``step[DECODE bs=16]``.
"""

TELLING = {MIXED: "phase=mixed", PREFILL: "phase=context", DECODE: "phase=generation"}
"""The shortest detail that tells each phase."""

_TOLD = lazy_regex("|".join(f"(?P<{name}>{'|'.join(p)})" for name, p in TOLD_BY_RANGES.items()))
_WORDS = lazy_regex(rf"({PREFILL}|{DECODE})(?:[ _-]?(?:step|phase|batch|[0-9]++))*+", re.IGNORECASE)


class PhasePattern(NamedTuple):
    """Match the names of frames of one kind, or of any."""

    expression: re.Pattern[str]
    kind: Kind | None = None


class Phase(NamedTuple):
    """Name a phase: work with a frame on its path that any of ``patterns`` matches."""

    name: str
    patterns: tuple[PhasePattern, ...]


def told_phase(name: str, detail: str) -> str:
    """Tell the phase of a range by its name, or its ``detail`` where that was set aside; or ``""``.

    Takes time linear in the text.
    """
    match = _TOLD.match(detail or clean_range(name).detail) or _TOLD.match(name)
    return (match and match.lastgroup) or ""


def worded_phase(name: str) -> str:
    """Tell the phase of a range that is called after it alone: ``decode``, ``Prefill step 3``.

    ``decode`` alone may be of anything: this is for traces that have both.
    """
    match = _WORDS.fullmatch(name)
    return match[1].lower() if match else ""


def read_phases(path: str) -> tuple[Phase, ...]:
    """Read a file of phases.

    Raises InputError where it cannot be read, UsageError where it is none.
    """
    try:
        with Path(path).open("rb") as file:
            text = file.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"--phases {path}: {reason}") from None
    if len(text) > _MOST_BYTES:
        raise UsageError(f"--phases {path}: larger than 1 MiB")
    try:
        return parse_phases(text.decode())
    except UnicodeDecodeError:
        raise UsageError(f"--phases {path}: not UTF-8") from None
    except UsageError as error:
        raise UsageError(f"--phases {path}: {error}") from None


def parse_phases(text: str) -> tuple[Phase, ...]:
    """Parse ``{"prefill": ["prefill", "re:ctx_[0-9]+", "kernel:flash"], …}``, the first first.

    A pattern is a part of a name, in small letters or capitals, or after ``re:`` a regular
    expression; ``kernel:``, ``nvtx:`` and ``python:`` before it restrict it to such frames. Raises
    UsageError where it is anything else.
    """
    import json  # most commands need none

    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"not JSON: {error}") from None
    if not isinstance(found, dict) or not found:
        raise UsageError('not an object such as {"prefill": ["prefill"]}')
    return tuple(_phase(name, patterns) for name, patterns in found.items())


def _phase(name: str, patterns: object) -> Phase:
    if not isinstance(patterns, list) or not all(isinstance(one, str) for one in patterns):
        raise UsageError(f"'{name}' has no list of patterns")
    return Phase(name, tuple(map(_pattern, patterns)))


def _pattern(text: str) -> PhasePattern:
    word, colon, rest = text.partition(":")
    kind = _KINDS.get(word) if colon else None
    pattern = text if kind is None else rest
    if not pattern.removeprefix(_EXPRESSION):
        raise UsageError(f"'{text}' matches everything")
    if pattern.startswith(_EXPRESSION):
        expression = compile_expression(pattern.removeprefix(_EXPRESSION), re.IGNORECASE)
    else:
        expression = re.compile(re.escape(pattern), re.IGNORECASE)
    return PhasePattern(expression, kind)
