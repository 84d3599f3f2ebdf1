"""Seal summaries: what they are, that they are whole, and which file they were made of, if one."""

from __future__ import annotations

import hashlib

from flame.core.errors import InputError
from flame.core.rank_summary.signs import MAGIC, is_summary

VERSION = 1

_DIGEST, _NUMBER = 16, 4
_ORIGIN = len(MAGIC) + _NUMBER + _DIGEST
HEAD = _ORIGIN + _DIGEST
"""Bytes before the contents."""

NO_ORIGIN = bytes(_DIGEST)
"""What stands for the file that a summary was made of, where there is not just one."""


def seal(body: bytes, origin: bytes) -> bytes:
    """Put a head before ``body``; ``origin`` (16 bytes) stands for the file it was made of."""
    sealed = origin + body
    return b"".join((MAGIC, VERSION.to_bytes(_NUMBER, "little"), _digest(sealed), sealed))


def unseal(data: bytes, name: str) -> bytes:
    """Return the body of what `seal` made; InputError, of the file ``name``, where it is not."""
    if not is_summary(data):
        raise InputError(f"{name}: it is no summary of ranks")
    version = int.from_bytes(data[len(MAGIC) : len(MAGIC) + _NUMBER], "little")
    if version != VERSION:
        raise InputError(f"{name}: a summary of version {version}, this flame reads {VERSION}")
    if _digest(data[_ORIGIN:]) != data[_ORIGIN - _DIGEST : _ORIGIN] or len(data) < HEAD:
        raise InputError(f"{name}: the summary is damaged or cut off: make it again")
    return data[HEAD:]


def origin_in(head: bytes) -> bytes:
    """Return what stands for the file that the summary of this ``head`` was made of, or b''."""
    origin = head[_ORIGIN:HEAD] if is_summary(head) else b""
    return b"" if origin == NO_ORIGIN else origin


def _digest(sealed: bytes) -> bytes:
    return hashlib.blake2b(sealed, digest_size=_DIGEST).digest()
