"""Run commands of flame for an answer: bounded in time and length."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from tempfile import TemporaryFile

from flame.core.errors import InputError
from flame.core.external import start_group

MOST = 30_000
"""Characters of an answer."""

SECONDS = 300
_LONGEST_COMPLAINT = 2_000


def run_flame(words: Sequence[str]) -> str:
    """Run the command ``words`` of this flame, and return what it printed, cut to `MOST`.

    Each command is a process of its own: a trace that takes too much memory ends no server. Raises
    InputError with what it complained of where it fails, or takes longer than `SECONDS`.
    """
    command = [sys.executable, "-P", "-m", "flame", *words]
    with TemporaryFile() as out, TemporaryFile() as errors:
        with start_group(command, out, errors) as process:
            try:
                code = process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                raise InputError(
                    f"not done after {SECONDS} s: choose a part of the trace"
                ) from None
        if code:
            raise InputError(_read(errors, _LONGEST_COMPLAINT) or f"failed with exit code {code}")
        return _read(out, MOST)


def _read(file: object, most: int) -> str:
    file.seek(0)  # type: ignore[attr-defined]
    text: str = file.read(4 * most + 4).decode("utf-8", "replace")  # type: ignore[attr-defined]
    if len(text) <= most:
        return text.strip()
    return text[:most].rpartition("\n")[0] + "\n… cut: ask for fewer rows, or a part of it"
