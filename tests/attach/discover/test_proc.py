"""What the kernel shows of a process may be any memory of that process, and any amount of it."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from flame.attach.discover import maps, proc
from flame.attach.discover.maps import is_prepared, mappings_of
from flame.attach.discover.proc import command_of, read_or_raise
from flame.attach.discover.process_table import ProcessTable
from tests.attach.conftest import Start

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are listed in /proc")

SIZE = 1 << 26

# Words and environment of the process are a mapping that has taken no memory yet. No privilege is
# needed for it: prctl(PR_SET_MM, PR_SET_MM_MAP, …) with struct prctl_mm_map of linux/prctl.h.
SHOWING = """
import ctypes, mmap, re, sys

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = libc.sbrk.restype = ctypes.c_void_p
size = int(sys.argv[1])
flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
begin = libc.mmap(None, ctypes.c_size_t(size), mmap.PROT_READ, flags, -1, ctypes.c_long(0))
fields = open("/proc/self/stat").read().rpartition(")")[2].split()
field = {number: int(text) for number, text in enumerate(fields[1:], 4)}
brk = libc.sbrk(0)
places = [field[26], field[27], field[45], field[46], field[47], brk, field[28]]
shown = [begin, begin + size - 1] * 2
table = (ctypes.c_uint64 * 13)(*places, *shown, 0, 0xFFFFFFFF << 32)
failed = libc.prctl(35, 14, table, ctypes.c_ulong(ctypes.sizeof(table)), ctypes.c_ulong(0))
print(ctypes.get_errno() if failed else "ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def showing(start: Start) -> int:
    """A process that shows 64 MiB of its memory as its words and as its environment; its pid."""
    words = (sys.executable, "-c", SHOWING, str(SIZE))
    process = start(*words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout
    if (said := process.stdout.readline()) != b"ready\n":
        pytest.skip(f"a process cannot say here what its words are ({os.strerror(int(said))})")
    return process.pid


def test_neither_words_nor_environment_fill_memory(showing: int) -> None:
    for name in ("environ", "cmdline"):
        with Path(f"/proc/{showing}/{name}").open("rb") as shown:
            assert shown.read(1 << 20) == bytes(1 << 20)
    tracemalloc.start()
    try:
        assert not is_prepared(showing)
        assert command_of(showing) == ()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < SIZE // 2


@pytest.mark.parametrize("name", ["environ", "maps"])
def test_what_is_larger_is_not_read(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(read_or_raise(os.getpid(), name))
    limit = "_LARGEST_MAPS" if name == "maps" else "_LARGEST"
    monkeypatch.setattr(proc, limit, size // 2)
    with pytest.raises(OSError, match=os.strerror(errno.EFBIG)):
        read_or_raise(os.getpid(), name)


def test_a_process_with_too_much_mapped_is_left_alone(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = start("sleep", "600").pid
    monkeypatch.setattr(proc, "_LARGEST_MAPS", 100)
    with pytest.raises(OSError, match=os.strerror(errno.EFBIG)):
        mappings_of(pid)
    processes = ProcessTable()
    processes.update()
    assert pid in processes.table and not processes.inspection(pid).mapped.dumps


def test_of_dumps_without_number_some_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"{n:x}-{n + 1:x} rw-s 0 00:01 {n // 2} /tmp/{n // 2}.fdump\n" for n in range(200)]
    monkeypatch.setattr(maps, "read_or_raise", lambda pid, name: "".join(lines).encode())
    dumps = mappings_of(1).dumps
    assert [dump.file.inode for dump in dumps] == list(range(16))
