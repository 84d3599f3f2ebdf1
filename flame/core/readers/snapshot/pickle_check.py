"""Check that a pickle holds plain data, and costs no more than its size, before it is unpickled.

A pickle is a program: opcodes name modules and call what is in them. A memory snapshot needs a few
of the opcodes, none of which names, calls or builds anything, so every other one is refused. Two of
those it needs can still do harm and are bounded:

- A tuple as a key of a dictionary is hashed, and a tuple nested a million deep overflows the stack
  of the process then. So a tuple is one of two integers, which stand just before it.
- ``LONG_BINPUT`` makes the unpickler take memory for twice the index that it names. So indices are
  below 2^16, or below the size of the pickle in bytes: there cannot be more objects.

The opcodes are those of CPython's `pickletools`, protocols 2 to 5.
"""

from __future__ import annotations

import re
import struct

from flame.core.errors import InputError
from flame.core.lazy_regex import lazy_regex
from flame.core.readers.shared.stack_rows import Tick

_AT_ONCE = 1 << 16
"""Opcodes that are checked in one call, which nothing can interrupt; some have many bytes."""

_STOP, _BINUNICODE, _LONG_BINPUT = b".", b"X", b"r"
_NUMBER = struct.Struct("<I")


def _counted(opcode: bytes, longest: int) -> bytes:
    """Write the expression for ``opcode``, a byte that counts, and so many bytes after it.

    An expression cannot read a number, so each number up to ``longest`` is spelled.
    """
    bodies = (re.escape(bytes([size])) + b".{%d}" % size for size in range(longest + 1))
    return opcode + b"(?>" + b"|".join(bodies) + b")"


_LONG1 = _counted(rb"\x8a", 9)
_SHORT_BINUNICODE = _counted(rb"\x8c", 255)
_MEMOIZE = rb"\x94?+"

# BININT1, BININT2, BININT, LONG1
_INTEGER = rb"(?>K.|M..|J....|" + _LONG1 + b")" + _MEMOIZE

# Integers, and TUPLE2 only right after two of them.
_INTEGERS = _INTEGER + b"(?:(?:" + _INTEGER + rb")++\x86?+)?+"

# MEMOIZE MARK EMPTY_LIST EMPTY_DICT APPEND APPENDS SETITEM SETITEMS NONE NEWTRUE NEWFALSE
_PLAIN = rb"[\x94(\]}aesuN\x88\x89]++"

# BINGET BINPUT, LONG_BINGET
_MEMO = rb"[hq].|j...."

# BINFLOAT, FRAME, PROTO 2 to 5
_RARE = rb"G.{8}|\x95.{8}|\x80[\x02-\x05]"


def _as_many_as_there_are(numbers: bytes) -> re.Pattern[bytes]:
    """Many allowed opcodes, ``numbers`` among them; the possessive quantifiers never go back."""
    opcodes = [_MEMO, _PLAIN, _INTEGERS, _SHORT_BINUNICODE, _RARE, numbers]
    return lazy_regex(b"(?>" + b"|".join(opcodes) + b"){0,%d}+" % _AT_ONCE, re.DOTALL)


_ALLOWED = {
    1 << 24: _as_many_as_there_are(rb"r...\x00"),
    1 << 20: _as_many_as_there_are(rb"r..[\x00-\x0f]\x00"),
    1 << 16: _as_many_as_there_are(rb"r..\x00\x00"),
}
"""By the number below which LONG_BINPUT is allowed; larger ones are looked at one by one."""


def check_pickle(data: bytes, tick: Tick = lambda: None) -> None:
    """Check all of ``data``; raises InputError, which says where, unless it is plain data.

    ``tick`` is called every few milliseconds of it.
    """
    at, size = 0, len(data)
    most = max(size, min(_ALLOWED))
    allowed = next(regex for bound, regex in _ALLOWED.items() if bound <= most)
    while True:
        tick()
        match = allowed.match(data, at)
        assert match is not None
        begin, at = at, match.end()
        opcode = data[at : at + 1]
        if opcode == _STOP:
            break
        if opcode not in (_BINUNICODE, _LONG_BINPUT):
            if at > begin:
                continue
            raise InputError(_refusal(opcode, at))
        at += 1 + _NUMBER.size
        if at > size:
            raise InputError("it is cut off")
        number = _NUMBER.unpack_from(data, at - _NUMBER.size)[0]
        if opcode == _BINUNICODE:
            at += number
        elif number >= most:
            raise InputError(f"it numbers an object {number:,}, and has {size:,} bytes")
    if at + 1 != size:
        raise InputError(f"there is data after its end, at byte {at + 1}")


def _refusal(opcode: bytes, at: int) -> str:
    if not opcode:
        return "it is cut off"
    what = f"its instruction {opcode[0]:#04x} at byte {at}"
    return f"{what} is cut off, or none that a memory snapshot needs"
