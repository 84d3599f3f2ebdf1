"""Describe what was checked on this machine, and ask other programs without waiting for ever."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from flame.core.external import python_command
from flame.core.lazy_dataclass import dataclass
from flame.record.environment import INJECTIONS

TIMEOUT = 30.0
"""Seconds: a driver that nobody else uses takes up to ten to wake eight GPUs."""
_PROBE = Path(__file__).with_name("probe.py")

CheckState = Literal["ok", "limited", "missing", "absent"]
"""``limited``: works, but not all of it; ``missing``: recording a GPU needs it; ``absent``: not
there, and only wanted for something more."""


@dataclass(frozen=True)
class Check:
    """Say what a check found.

    ``key`` is for scripts, ``title`` and ``text`` are for people, ``fix`` says what to do.
    """

    key: str
    title: str
    state: CheckState
    text: str
    fix: str = ""


def probe(*words: str, **environment: str) -> dict[str, Any]:
    """Run ``probe.py`` and return what it finds; ``error`` where it hangs or crashes.

    Run without injections, isolated from the current folder and the user's Python settings.
    """
    try:
        code, out = ask(python_command("-I", str(_PROBE), *words), **environment)
    except OSError as error:
        return {"error": error.strerror or str(error)}
    if code is None:
        return {"error": f"no answer within {TIMEOUT:.0f} s"}
    if code < 0:
        return {"error": f"it crashes ({signal.strsignal(-code)})"}
    try:
        result: dict[str, Any] = json.loads(out)
    except ValueError:
        return {"error": f"it ends with exit code {code}"}
    return result


def ask(words: Sequence[str], **environment: str) -> tuple[int | None, str]:
    """Run a program: its exit code (None: it hangs) and output. OSError if there is none."""
    known = {key: value for key, value in os.environ.items() if key not in INJECTIONS}
    process = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**known, **environment},
        cwd="/",
    )
    try:
        out, _ = process.communicate(timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        _end(process)
        return None, ""
    return process.returncode, out.decode("utf-8", "replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill; a process that is stuck in the driver may not even end by that."""
    process.kill()
    with suppress(subprocess.TimeoutExpired):
        process.wait(1)
    if process.stdout:
        process.stdout.close()
