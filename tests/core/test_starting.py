"""What a program of flame's own begins with; each in a process of its own."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.waiting import PATIENCE

NAME = "OPENBLAS_NUM_THREADS"
IMPORTED = """
import subprocess, sys
from flame.core.starting import prepare_process
prepare_process()
print("numpy" in sys.modules, flush=True)
said = 'import os; print(os.environ.get("OPENBLAS_NUM_THREADS"))'
subprocess.run([sys.executable, "-c", said], check=True)
"""
HEAPS = """
import mmap, re
from pathlib import Path
from threading import Thread
{begin}
thread = Thread(target=lambda: print(len([bytes(1000 + n) for n in range(1000)]), end=" "))
thread.start()
thread.join()
# What glibc sets aside for a heap of a thread's own, and does not let anybody touch yet.
spans = re.findall("^(\\w+)-(\\w+) ---p 0+ 00:00 0", Path("/proc/self/maps").read_text(), re.M)
print(any(int(high, 16) - int(low, 16) > 1 << 25 for low, high in spans))
"""
BEGIN = "from flame.core.starting import prepare_process; prepare_process()"
LARGE = r"""
import re
from pathlib import Path
import numpy
{begin}
place = (column := numpy.ones(1 << 21)).ctypes.data
(low, high), *_ = re.findall(r"^(\w+)-(\w+) .*\[heap\]$", Path("/proc/self/maps").read_text(), re.M)
print(int(low, 16) <= place < int(high, 16))
"""
COLLECTED = """
import gc
from flame.core.starting import delay_collection, resume_collection
before, seen = gc.get_threshold(), []
gc.callbacks.append(lambda phase, info: seen.append(phase))
{begin}
kept = [[] for _ in range(100_000)]
print(len(seen), end=" ")
{end}
print(gc.get_threshold() == before, gc.get_freeze_count() > 100_000, len(gc.callbacks))
"""


def run(code: str, **environment: str) -> list[str]:
    """What the code prints, word by word."""
    inherited = {name: value for name, value in os.environ.items() if name != NAME}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=inherited | environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    return done.stdout.split()


def test_programs_that_are_run_do_not_inherit_that_numpy_has_one_thread() -> None:
    assert run(IMPORTED) == ["True", "None"]


def test_threads_that_the_user_asks_for_stay_his() -> None:
    assert run(IMPORTED, OPENBLAS_NUM_THREADS="3") == ["True", "3"]


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="no list of threads")
def test_numpy_starts_no_threads() -> None:
    code = "from flame.core.starting import prepare_process; prepare_process(); import os;"
    assert run(f"{code} print(len(os.listdir('/proc/self/task')))") == ["1"]


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
@pytest.mark.parametrize(
    ("begin", "own"),
    [
        ("", "True"),
        (BEGIN, "False"),
    ],
)
def test_threads_have_no_heap_of_their_own(begin: str, own: str) -> None:
    assert run(HEAPS.format(begin=begin)) == ["1000", own]


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
@pytest.mark.parametrize(("begin", "in_heap"), [("", "False"), (BEGIN, "True")])
def test_large_columns_lie_in_the_heap_which_keeps_what_is_freed(begin: str, in_heap: str) -> None:
    assert run(LARGE.format(begin=begin)) == [in_heap]


RELEASED = """
from pathlib import Path
import numpy
from flame.core.starting import prepare_process, release_memory
prepare_process()
def pages(): return int(Path("/proc/self/statm").read_text().split()[1])
columns = [numpy.ones(1 << 23) for _ in range(4)]
held = pages()
del columns[:3]
print(held - pages() < 4096, end=" ")
release_memory()
print(held - pages() > 3 * (1 << 26) // 4096 - 1024)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
@pytest.mark.skipif(os.sysconf("SC_PAGESIZE") != 4096, reason="pages of another size")
def test_what_the_heap_keeps_is_given_back_when_nothing_comes_next() -> None:
    assert run(RELEASED) == ["True", "True"]


def test_nothing_is_collected_before_the_start_is_over() -> None:
    begin, end = "delay_collection()", "resume_collection(); resume_collection()"
    assert run(COLLECTED.format(begin=begin, end=end)) == ["0", "True", "True", "1"]


def test_collection_resumes_by_itself_after_many_objects() -> None:
    end = "more = [[] for _ in range(150_000)]"
    printed = run(COLLECTED.format(begin="delay_collection()", end=end))
    assert printed == ["0", "True", "True", "1"]


def test_where_nothing_was_delayed_nothing_is_resumed() -> None:
    seen, *rest = run(COLLECTED.format(begin="", end="resume_collection()"))
    assert int(seen) > 0
    assert rest == ["True", "False", "1"]


def test_in_the_end_nothing_is_looked_through() -> None:
    code = "import gc; from flame.core.starting import end_collection; end_collection();"
    assert run(f"{code} print(len(gc.get_objects()) < 20)") == ["True"]


ENDED = """
import atexit, sys, threading
from flame.core.starting import end_process
class Taken:
    def __del__(self): print("taken apart", file=sys.stderr)
kept = Taken()
atexit.register(print, "registered")
{end}
"""


def ended(end: str) -> tuple[int, list[str], bool]:
    """Exit code, what was printed, and whether Python took the program apart."""
    command = [sys.executable, "-c", ENDED.format(end=end)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    return done.returncode, done.stdout.split(), "taken apart" in done.stderr


def test_a_program_ends_at_once_after_what_is_registered_for_its_end() -> None:
    end = "def main():\n    print('said')\n    return end_process(3)\nsys.exit(main())"
    assert ended(end) == (3, ["said", "registered"], False)


@pytest.mark.parametrize(
    "end",
    [
        "import runpy, timeit\ndef main(): return end_process(3)\ntimeit.timeit(main, number=1)",
        "threading.Thread(target=threading.Event().wait, args=(0.2,)).start()\n"
        "def main(): return end_process(3)\nmain()",
    ],
    ids=["called by another module", "threads are waited for"],
)
def test_where_something_waits_for_its_return_it_returns(end: str) -> None:
    assert ended(f"{end}\nprint('went on')\nsys.exit(4)") == (4, ["went", "on", "registered"], True)
