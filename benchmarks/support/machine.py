"""What figures were measured on: machine and versions, without names of hosts, users or folders."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from benchmarks.support.measuring import ROOT


def facts() -> Iterator[tuple[str, str]]:
    """What it is, and its value."""
    yield "processor", f"{_processor()}, {os.cpu_count()} cores, {_memory()}"
    yield "system", f"{_system()}, {platform.machine()}"
    yield "flame", f"{version('flame-view')}, {_reader()}"
    yield "Python", platform.python_version()
    yield from ((name, version(name)) for name in ("numpy", "textual", "msgspec"))


def load() -> str:
    """How many processes wanted a core in the last minute."""
    return f"{os.getloadavg()[0]:.1f}"


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    text = path.read_text("utf-8") if path.exists() else ""
    found = re.search(r"^model name\s*: (.+)$", text, re.MULTILINE)
    return found[1].strip() if found else platform.processor() or "unknown"


def _memory() -> str:
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return f"{pages / 2**30:.0f} GiB of memory"


def _system() -> str:
    try:
        name = platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:
        name = platform.system()
    return f"{name}, {platform.system()} {platform.release().partition('-')[0]}"


def state() -> str:
    """The commit of the checkout, else its version; the page is no part of what is measured."""
    git = ("git", "-C", str(ROOT))
    try:
        commit = subprocess.check_output([*git, "rev-parse", "--short", "HEAD"], text=True)
        changed = subprocess.check_output(
            [*git, "status", "--porcelain", "--", "flame", "csrc", "inject"], text=True
        )
    except (OSError, subprocess.CalledProcessError):
        return version("flame-view")
    return f"{commit.strip()}{' with changes' if changed else ''}"


def _reader() -> str:
    built = (ROOT / "flame" / "libflamecore.so").exists()
    return "with its compiled reader" if built else "without its compiled reader"
