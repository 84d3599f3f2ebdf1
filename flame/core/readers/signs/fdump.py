"""Recognize dumps, without what reads them."""

from __future__ import annotations

MAGIC = b"FLAMEDMP"


def is_dump(head: bytes) -> bool:
    """Return whether a file that begins with ``head`` is a dump."""
    return head.startswith(MAGIC)
