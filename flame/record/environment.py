"""Make the environment in which the CUDA driver and NVTX load the injection library."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from flame.core.errors import UsageError
from flame.record.plan import Plan

INJECTIONS = ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH")
LIBRARY = "libflameinject.so"

_PACKAGE = Path(__file__).absolute().parents[1]
_OWN = (
    "FLAME_DIR",
    "FLAME_PYTHON",
    "FLAME_CALLS",
    "FLAME_GRAPHS",
    "FLAME_MEMORY_EVENTS",
    "FLAME_MAX_MB",
    "FLAME_DURATION_MS",
    "FLAME_CLOCK",
    "FLAME_PC",
    "FLAME_KEEP_SECRETS",
)
_TOOLS = {
    LIBRARY: "another flame record",
    "toolsinjection": "Nsight Systems",
    "nsight-systems": "Nsight Systems",
    "nsight-compute": "Nsight Compute",
    "cuda-injection": "Nsight Compute",
    "sanitizer": "Compute Sanitizer",
}
_CLOCK_READINGS = 20


def library_path() -> Path:
    """Find the injection library, as an absolute path; UsageError says why there is none."""
    if named := os.environ.get("FLAME_LIBRARY"):
        path = Path(named).absolute()
        if not path.is_file():
            raise UsageError(f"{named}: no such library (FLAME_LIBRARY names it)")
        return path
    if sys.platform != "linux":
        raise UsageError("recording works on Linux only; this machine can view what was recorded")
    path = _PACKAGE / LIBRARY
    if not path.is_file():
        raise UsageError(
            f"this flame can only view: {LIBRARY} was not built; in a checkout: make inject, "
            "else install g++, and flame again from its sources"
        )
    return path


def environment_for(
    plan: Plan, library: Path, folder: Path, base: Mapping[str, str]
) -> dict[str, str]:
    """Return ``base`` with what the library has to know, without what another recording set."""
    environment = {key: value for key, value in base.items() if key not in _OWN}
    environment |= dict.fromkeys(INJECTIONS, str(library))
    # The library follows no link: somebody else may have made it.
    environment["FLAME_DIR"] = str(folder.resolve())
    environment["FLAME_PYTHON"] = str(int(plan.python))
    environment["FLAME_CALLS"] = str(int(plan.calls))
    environment["FLAME_GRAPHS"] = "whole" if plan.whole_graphs else "node"
    environment["FLAME_MEMORY_EVENTS"] = str(int(plan.memory))
    environment["FLAME_PC"] = plan.pc
    environment["FLAME_CLOCK"] = str(unix_minus_monotonic())
    if plan.keep_secrets:
        environment["FLAME_KEEP_SECRETS"] = "1"
    if plan.duration_ms is not None:
        environment["FLAME_DURATION_MS"] = str(plan.duration_ms)
    if plan.max_mb is not None:
        environment["FLAME_MAX_MB"] = str(plan.max_mb)
    return environment


def replaced(base: Mapping[str, str]) -> Iterator[str]:
    """Say which injections that were set in ``base`` give way."""
    for path in dict.fromkeys(base.get(name, "") for name in INJECTIONS):
        if path:
            names = " and ".join(name for name in INJECTIONS if base.get(name) == path)
            yield f"{names} named {owner(path)}: replaced, it gets nothing of this run"


def owner(path: str) -> str:
    """Name the program that an injection library at ``path`` belongs to, and the path."""
    lower = path.lower()
    known = next((title for part, title in _TOOLS.items() if part in lower), "")
    return f"{known} ({path})" if known else path


def unix_minus_monotonic() -> int:
    """Return Unix time minus monotonic time, ns: from the reading that was disturbed least."""
    return min(_readings())[1]


def _readings() -> Iterator[tuple[int, int]]:
    """How long each reading took, and what it says."""
    for _ in range(_CLOCK_READINGS):
        before, unix, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        yield after - before, unix - (before + after) // 2
