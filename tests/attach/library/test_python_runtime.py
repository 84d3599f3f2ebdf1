"""A script is asked for in the memory of a process whose owner may have put anything there.

What stands for a CPython 3.14 here is a file of that name with a table of offsets in it, which a
program has mapped: what is written where can be looked at, and the table may lie.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from flame.attach.discover.maps import REMOTE_VERSIONS
from flame.attach.library.process_memory import ProcessMemory
from flame.attach.library.python_runtime import _SUPPORT_AT, request_script
from flame.core.errors import InputError
from tests.attach.conftest import Start, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the memory of others is in /proc")

SCRIPT = "/tmp/flame-attach-12345678/load.py"
TABLE, INTERPRETER, THREAD, SIZE = 0x1020, 0x2000, 0x3000, 0x4000
MAIN_ID, NEXT, MAIN, ENABLED = 8, 16, 24, 32
BREAKER, SUPPORT, PENDING, PATH = 8, 64, 0, 4
BITS = 0xABCD_EF01_2345_6782
V314, V315, V313, V316, RC = 0x030E0AF0, 0x030F02F0, 0x030D00F0, 0x031000F0, 0x030E00C1

PROGRAM = """
import ctypes, mmap, sys
with open(sys.argv[1], "r+b") as file:
    memory = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
print(address, flush=True)
for line in sys.stdin:
    place, data = line.split()
    if data != "-":
        memory[int(place):int(place) + len(data) // 2] = bytes.fromhex(data)
    print(memory[int(place):int(place) + 600].hex(), flush=True)
"""


class Remote:
    """The program; its memory by place in the file."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        assert process.stdin and process.stdout
        self._in, self._out = process.stdin, process.stdout
        self.base = int(self._out.readline())

    def put(self, place: int, data: bytes) -> bytes:
        """Put ``data`` there; what is there now."""
        self._in.write(f"{place} {data.hex() or '-'}\n".encode())
        self._in.flush()
        return bytes.fromhex(self._out.readline().decode())

    def at(self, place: int) -> bytes:
        return self.put(place, b"")

    def word(self, place: int, number: int) -> None:
        self.put(place, struct.pack("<Q", number % (1 << 64)))

    def table(self, version: int = V314, **offsets: int) -> None:
        """Write a table, an interpreter and its main thread; ``offsets`` differ from what is so."""
        known = {
            "head": 0x500,
            "id": MAIN_ID,
            "next": NEXT,
            "main": MAIN,
            "breaker": BREAKER,
            "support": SUPPORT,
            "enabled": ENABLED,
            "pending": PENDING,
            "path": PATH,
            "size": 512,
        } | offsets
        head, number, following, main, *support = known.values()
        words = (version, 0, 9, 9, head, 9, number, following, 9, main)
        self.put(TABLE, b"xdebugpy" + struct.pack("<10Q", *words))
        place = _SUPPORT_AT.get((version >> 24, version >> 16 & 0xFF), 712)
        self.put(TABLE + place, struct.pack("<6Q", *support))
        self.word(TABLE + 0x500, self.base + INTERPRETER)
        self.word(INTERPRETER + MAIN, self.base + THREAD)
        self.put(INTERPRETER + ENABLED, struct.pack("<i", 1))
        self.word(THREAD + BREAKER, BITS)

    def ask(self, script: str = SCRIPT) -> None:
        with ProcessMemory(self.process.pid) as memory:
            request_script(memory, self.process.pid, script)


@pytest.fixture
def remote(start: Start, tmp_path: Path) -> Iterator[Remote]:
    """A program with room for a table that lies; skips where it has one that tells the truth."""
    if sys.version_info >= (3, 13):
        pytest.skip("this Python has a table of its own: older ones test what another's may say")
    file = tmp_path / "libpython3.14.so.1.0"
    file.write_bytes(bytes(SIZE))
    words = (sys.executable, "-c", PROGRAM, str(file))
    process = start(*words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    yield Remote(process)


@pytest.mark.parametrize("version", [V314, V315])
def test_what_is_written_is_the_path_a_flag_and_one_bit(remote: Remote, version: int) -> None:
    remote.table(version)
    before = remote.at(THREAD)
    remote.ask()
    after = remote.at(THREAD)
    support = struct.pack("<i", 1) + os.fsencode(SCRIPT) + b"\0"
    assert after[SUPPORT : SUPPORT + len(support)] == support
    assert after[BREAKER : BREAKER + 8] == struct.pack("<Q", BITS | 32)
    changed = [place for place in range(len(after)) if after[place] != before[place]]
    assert set(changed) <= {BREAKER, *range(SUPPORT, SUPPORT + len(support))}


def test_the_first_interpreter_is_asked_and_not_a_later_one(remote: Remote) -> None:
    remote.table()
    later = 0x2800
    remote.word(TABLE + 0x500, remote.base + later)
    remote.word(later + MAIN_ID, 1)
    remote.word(later + NEXT, remote.base + INTERPRETER)
    remote.word(later + MAIN, remote.base + 0x3800)
    remote.ask()
    assert SCRIPT.encode() in remote.at(THREAD)
    assert SCRIPT.encode() not in remote.at(0x3800)


def test_the_versions_are_those_that_are_offered() -> None:
    assert _SUPPORT_AT.keys() == REMOTE_VERSIONS


@pytest.mark.parametrize("version", [V313, V316, RC, 0, (1 << 64) - 1])
def test_a_table_of_another_layout_is_not_read(remote: Remote, version: int) -> None:
    remote.table(version)
    before = remote.at(THREAD)
    with pytest.raises(InputError, match="only releases of CPython"):
        remote.ask()
    assert remote.at(THREAD) == before


Change = Callable[[Remote], None]


def offset(name: str, value: int) -> Change:
    return lambda remote: remote.table(**{name: value})


def word(place: int, value: int) -> Change:
    return lambda remote: remote.word(place, value)


def loop(remote: Remote) -> None:
    remote.word(INTERPRETER + MAIN_ID, 1)
    remote.word(INTERPRETER + NEXT, remote.base + INTERPRETER)


LIES: Mapping[str, Change] = {
    "no interpreter": word(TABLE + 0x500, 0),
    "an interpreter that is nowhere": word(TABLE + 0x500, 0x10),
    "an interpreter beyond all memory": word(TABLE + 0x500, -8),
    "interpreters in a circle": loop,
    "no main thread": word(INTERPRETER + MAIN, 0),
    "a thread that is nowhere": word(INTERPRETER + MAIN, 1 << 46),
    "a thread in the kernel": word(INTERPRETER + MAIN, 0xFFFF_8000_0000_0000),
    "not enabled": word(INTERPRETER + ENABLED, 0),
    "no room": offset("size", len(SCRIPT)),
    **{
        f"{name} far away": offset(name, (1 << 64) - 1)
        for name in ("head", "id", "main", "support", "enabled", "path", "pending", "breaker")
    },
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_memory_that_makes_no_sense_is_refused(remote: Remote, lie: Change) -> None:
    remote.table()
    lie(remote)
    with pytest.raises((InputError, OSError)):
        remote.ask()
    assert remote.process.poll() is None


def test_a_memory_without_a_python_is_refused(remote: Remote) -> None:
    with pytest.raises(InputError, match="nothing of a Python"):
        remote.ask()


def test_a_word_that_is_nowhere_aligned_is_no_table(remote: Remote) -> None:
    remote.put(TABLE + 4, b"xdebugpy")
    with pytest.raises(InputError, match="nothing of a Python"):
        remote.ask()


def test_what_a_process_becomes_has_another_memory(start: Start) -> None:
    code = "import os; print('ready', flush=True); input(); os.execvp('sleep', ['sleep', '600'])"
    process = start(sys.executable, "-c", code, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    python = Path(f"/proc/{process.pid}/exe").readlink()
    assert process.stdin and process.stdout
    assert process.stdout.readline() == b"ready\n"
    maps = Path(f"/proc/{process.pid}/maps").read_text().splitlines()
    place = next(int(line.partition("-")[0], 16) for line in maps if " rw-p " in line)
    with ProcessMemory(process.pid) as memory:
        assert memory.read(place, 8)
        process.stdin.write(b"\n")
        process.stdin.flush()
        wait_until(lambda: Path(f"/proc/{process.pid}/exe").readlink().name != python.name)
        with pytest.raises(OSError):
            memory.read(place, 8)
