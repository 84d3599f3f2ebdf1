"""Recognize reports of Nsight Compute, without what reads them."""

from __future__ import annotations

from pathlib import Path

MAGIC = b"NVR\0"
"""How reports of all versions begin (Nsight Compute, Customization Guide)."""

SUFFIXES = (".ncu-rep", ".nsight-cuprof-report")


def looks_like_report(path: Path, head: bytes) -> bool:
    """Return whether the file beginning with ``head`` is a report: by content, else by suffix."""
    return head.startswith(MAGIC) or bool(head and path.suffix.lower() in SUFFIXES)
