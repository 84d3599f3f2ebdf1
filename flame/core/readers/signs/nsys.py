"""Recognize reports of Nsight Systems, without what reads them."""

from __future__ import annotations

from pathlib import Path

MAGIC = b"NVIDIA Tegra Profiler Report "
"""How ``.qdrep`` files of 2020 and ``.nsys-rep`` files up to today begin."""

SUFFIXES = (".nsys-rep", ".qdrep")


def looks_like_report(path: Path, head: bytes) -> bool:
    """Return whether the file beginning with ``head`` is a report: by content, else by suffix."""
    return head.startswith(MAGIC) or bool(head and path.suffix.lower() in SUFFIXES)
