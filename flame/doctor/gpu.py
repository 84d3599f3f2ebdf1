"""Check the driver, its GPUs, and whether their samples may be read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from flame.core.readers.shared.cupti import ALLOW_PROFILING
from flame.doctor.check import Check, probe

_VERSION = Path("/proc/driver/nvidia/version")
_PARAMETERS = Path("/proc/driver/nvidia/params")
_STATUS = Path("/proc/self/status")
_CAP_SYS_ADMIN = 21
_INSTALL = "install NVIDIA's driver; a container has to be started with its GPUs (--gpus all)"
_LISTED = 4


def checks() -> Iterator[Check]:
    """Check driver, GPUs and sampling."""
    driver = probe("driver")
    version, gpus = driver.get("version", 0), driver.get("gpus", [])
    error = driver.get("error", "")
    if version:
        text = f"CUDA {cuda_version(version)}{_kernel_driver()}"
        yield Check("driver", "driver", "ok", text)
    else:
        yield Check("driver", "driver", "missing", error or "it has no version", _INSTALL)
    yield _gpus(gpus, error if version else "no driver")
    yield _sampling()


def cuda_version(number: int) -> str:
    """Write 13000, as cuDriverGetVersion counts, as ``13.0``."""
    return f"{number // 1000}.{number % 1000 // 10}"


def _kernel_driver() -> str:
    match = re.search(r"Module\D*\s(\d+[\d.]+)", _read(_VERSION))
    return f", {match[1]}" if match else ""


def _gpus(names: list[str], error: str) -> Check:
    if not names:
        fix = "" if error == "no driver" else "nvidia-smi has to list one; see its message"
        return Check("gpus", "GPUs", "missing", f"none: {error or 'the driver has none'}", fix)
    counted = [f"{names.count(name)} × {name}" for name in dict.fromkeys(names)]
    more = f" and {len(counted) - _LISTED} other kinds" if len(counted) > _LISTED else ""
    return Check("gpus", "GPUs", "ok", ", ".join(counted[:_LISTED]) + more)


def _sampling() -> Check:
    check = partial(Check, "pc_sampling", "PC sampling")
    restricted = re.search(r"^RmProfilingAdminOnly: *(\d+)", _read(_PARAMETERS), re.MULTILINE)
    if not restricted:
        return check("absent", "not known without NVIDIA's kernel driver")
    if restricted[1] == "0":
        return check("ok", "allowed for everyone")
    if _may_administer():
        return check("ok", "allowed for this user, who may administer the system")
    return check("limited", "for administrators only (flame record --pc)", ALLOW_PROFILING)


def _may_administer() -> bool:
    match = re.search(r"^CapEff:\s*([0-9a-f]+)", _read(_STATUS), re.MULTILINE)
    return bool(match and int(match[1], 16) >> _CAP_SYS_ADMIN & 1)


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
