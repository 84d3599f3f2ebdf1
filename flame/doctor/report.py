"""Run all checks and write them, as text for people and as JSON for scripts."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from flame._version import __version__
from flame.core.shown_text import printable
from flame.doctor import gpu, library, machine
from flame.doctor.check import Check

_MARKS = {"ok": "✓", "limited": "!", "missing": "✗", "absent": "·"}
_ASCII_MARKS = {"ok": "ok", "limited": "!!", "missing": "NO", "absent": "--"}
_TITLE = 14


def examine() -> list[Check]:
    """Run all checks, slow ones side by side."""
    parts: list[Callable[[], Iterable[Check]]] = [machine.tools, _quick]
    if foreign := machine.system():
        parts.insert(0, lambda: [foreign])
    else:
        parts[:0] = [gpu.checks, library.checks]
    with ThreadPoolExecutor(len(parts)) as pool:
        return [check for checks in pool.map(lambda part: list(part()), parts) for check in checks]


def _quick() -> Iterator[Check]:
    yield machine.injections(os.environ)
    yield machine.nvtx()
    yield from machine.folders()
    yield machine.cache()
    yield machine.compiled_part()
    yield machine.terminal(os.environ)


def is_ready(checks: Sequence[Check]) -> bool:
    """Tell whether a GPU can be recorded here."""
    return not any(check.state == "missing" for check in checks)


def as_json(checks: Sequence[Check]) -> str:
    """Return the contract of ``flame doctor --json``, in plain ASCII."""
    facts = {
        "version": __version__,
        "can_record": is_ready(checks),
        "checks": [vars(check) for check in checks],
    }
    return json.dumps(facts, indent=2) + "\n"


def as_text(checks: Sequence[Check]) -> str:
    """Write a line per check, and another where something is to be done."""
    lines = [line for check in checks for line in _lines(check, _marks())]
    return "\n".join([*lines, "", _verdict(checks)]) + "\n"


def _marks() -> dict[str, str]:
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    plain = os.environ.get("FLAME_ASCII") == "1" or "utf" not in encoding.lower()
    return _ASCII_MARKS if plain else _MARKS


def _lines(check: Check, marks: dict[str, str]) -> Iterator[str]:
    mark = marks[check.state]
    yield f"{mark} {check.title:<{_TITLE}} {printable(check.text)}"
    if check.fix:
        yield f"{'':{len(mark)}} {'':<{_TITLE}} -> {printable(check.fix)}"


def _verdict(checks: Sequence[Check]) -> str:
    missing = [check.title for check in checks if check.state == "missing"]
    if not missing:
        return "A GPU can be recorded here: flame record -- CMD"
    verdict = f"A GPU cannot be recorded here ({', '.join(missing)})"
    if any(check.key == "library" and check.state != "missing" for check in checks):
        return f"{verdict}; NVTX ranges can."
    return f"{verdict}; traces can be viewed."
