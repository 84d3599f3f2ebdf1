"""Have a running CPython run a script, by writing to its memory what PEP 768 has defined.

Who owns the program may have put anything there: no more comes of that than that other places in
the same memory are written, or none.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

from flame.attach.discover.maps import REMOTE_VERSIONS
from flame.attach.discover.proc import read_or_raise
from flame.attach.library.process_memory import ProcessMemory
from flame.core.errors import InputError
from flame.core.lazy_regex import lazy_regex

_COOKIE = b"xdebugpy"
# Where the table of offsets has what is needed of it (Include/internal/pycore_debug_offsets.h): the
# layout is the same in all releases of a minor version. Behind the cookie: the version, whether it
# is free-threaded, three words of the runtime, those of an interpreter.
_HEAD = struct.Struct("<8s10Q")
_SUPPORT = struct.Struct("<6Q")
_SUPPORT_AT = {(3, 14): 712, (3, 15): 840}
_FINAL = 0xF
_PLEASE_STOP = 1 << 5  # in eval_breaker
_PYTHON = lazy_regex(
    rb"^([0-9a-f]+)-([0-9a-f]+) rw-p \S+ \S+ \d+ +/(?:[^\n]*/)?(?:libpython3|python)[^/\n]*$", re.M
)
_PIECE = 1 << 20
_MOST_SCANNED = 1 << 26
_MOST_INTERPRETERS = 1 << 12


class _Offsets(NamedTuple):
    """Where things lie in the runtime, an interpreter, a thread, and its support of debuggers."""

    interpreters_head: int
    interpreter_id: int
    interpreter_next: int
    threads_main: int
    eval_breaker: int
    support: int
    enabled: int
    pending_call: int
    script_path: int
    script_path_size: int


def request_script(memory: ProcessMemory, pid: int, script: str) -> None:
    """Have the main thread of ``pid``, whose ``memory`` it is, run the file ``script`` soon.

    InputError says why it cannot be asked, OSError where its memory makes no sense.
    """
    runtime, offsets = _find_runtime(memory, pid)
    interpreter = _main_interpreter(memory, runtime, offsets)
    if memory.read(interpreter + offsets.enabled, 4) != b"\1\0\0\0":
        raise InputError(
            "its Python lets nobody load anything into it (-X disable-remote-debug, "
            "PYTHON_DISABLE_REMOTE_DEBUG, or built --without-remote-debug)"
        )
    thread = _word(memory, interpreter + offsets.threads_main)
    path = os.fsencode(script) + b"\0"
    if not thread or offsets.script_path_size < len(path):
        raise InputError("its Python has no main thread, or no room for a path")
    support = thread + offsets.support
    memory.write(support + offsets.script_path, path)
    memory.write(support + offsets.pending_call, b"\1\0\0\0")
    # Of the word only the byte: the thread changes others of its bits meanwhile.
    flags = memory.read(thread + offsets.eval_breaker, 1)[0]
    memory.write(thread + offsets.eval_breaker, bytes([flags | _PLEASE_STOP]))


def _find_runtime(memory: ProcessMemory, pid: int) -> tuple[int, _Offsets]:
    """The address of the runtime, which begins with the table of offsets."""
    found = None
    for address in _cookies(memory, pid):
        _, version, _, _, _, head, _, identity, following, _, main = _HEAD.unpack(
            memory.read(address, _HEAD.size)
        )
        found = (version >> 24, version >> 16 & 0xFF)
        if found in _SUPPORT_AT and version >> 4 & 0xF == _FINAL:
            place = address + _SUPPORT_AT[found]
            support = _SUPPORT.unpack(memory.read(place, _SUPPORT.size))
            return address, _Offsets(head, identity, following, main, *support)
    raise InputError(reason_against(found) if found else "nothing of a Python is in its memory")


def reason_against(version: tuple[int, int]) -> str:
    """Say that nothing can be loaded into a Python of this version, or of its pre-releases."""
    known = " and ".join(f"{major}.{minor}" for major, minor in sorted(REMOTE_VERSIONS))
    found = ".".join(map(str, version))
    return f"its Python is {found}, and only releases of CPython {known} can load anything"


def _cookies(memory: ProcessMemory, pid: int) -> Iterator[int]:
    """Where such a table may begin, in the data of a Python or a libpython."""
    for begin, end in _pieces(pid):
        try:
            data = memory.read(begin, end - begin)
        except OSError:  # the file is shorter than what is mapped of it
            continue
        place = data.find(_COOKIE)
        while place >= 0:
            if place % 8 == 0:
                yield begin + place
            place = data.find(_COOKIE, place + 1)


def _pieces(pid: int) -> Iterator[tuple[int, int]]:
    left = _MOST_SCANNED
    for match in _PYTHON.finditer(read_or_raise(pid, "maps")):
        begin, end = (int(number, 16) for number in match.groups())
        for place in range(begin, min(end, begin + left), _PIECE):
            yield place, min(place + _PIECE, end)
            left -= _PIECE


def _main_interpreter(memory: ProcessMemory, runtime: int, offsets: _Offsets) -> int:
    """The first one that there was; those that began later stand before it."""
    interpreter = _word(memory, runtime + offsets.interpreters_head)
    for _ in range(_MOST_INTERPRETERS):
        if not interpreter:
            break
        if not _word(memory, interpreter + offsets.interpreter_id):
            return interpreter
        interpreter = _word(memory, interpreter + offsets.interpreter_next)
    raise InputError("its Python has not begun yet, or is ending")


def _word(memory: ProcessMemory, address: int) -> int:
    return int.from_bytes(memory.read(address, 8), "little")
