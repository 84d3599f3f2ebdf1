"""Recognize summaries of ranks, without what reads them."""

from __future__ import annotations

SUFFIX = ".flamesum"
MAGIC = b"FLAMESUM"


def is_summary(head: bytes) -> bool:
    """Tell whether a file that begins with ``head`` is a summary, of whatever version."""
    return head.startswith(MAGIC)
