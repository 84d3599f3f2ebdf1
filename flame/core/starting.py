"""Start flame as a program of its own; as a library it leaves these settings to the program."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress
from types import FrameType

_MIB = 1 << 20
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8  # of malloc.h
_THREADS = "OPENBLAS_NUM_THREADS"
_OBJECTS = 200_000
_usual: list[tuple[int, int, int]] = []


def prepare_process() -> None:
    """Import numpy as a program of its own does, and have all threads allocate from one heap."""
    _import_numpy()
    _set_heap()


def _import_numpy() -> None:
    """Import numpy without the threads that its BLAS starts, for nothing here multiplies matrices.

    With two processors they take 40 % of the processor time of the import. The environment is left
    as it was: programs that are run from here have nothing to do with it.
    """
    is_said = _THREADS in os.environ
    os.environ.setdefault(_THREADS, "1")
    try:
        import numpy  # noqa: F401
    finally:
        if not is_said:
            del os.environ[_THREADS]


def _set_heap() -> None:
    """Have glibc allocate from one heap, which keeps some of what is freed for what comes next.

    Threads, nearly all of which load files, get no heap of their own: what is free in one serves no
    other, and of a million different stacks a load in a thread took a third more memory. Columns of
    millions of numbers come and go; where each is new from the system, that clears its pages first,
    which took a tenth of the processor time of a load of a million kernels, and a quarter of ten.
    """
    import ctypes

    with suppress(OSError, AttributeError):  # not glibc
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_ARENA_MAX, 1)
        if not mallopt(_M_MMAP_THRESHOLD, 1024 * _MIB):
            mallopt(_M_MMAP_THRESHOLD, 32 * _MIB)  # all that glibc 2.34 and older take
        mallopt(_M_TRIM_THRESHOLD, 256 * _MIB)


def release_memory() -> None:
    """Give what the heap keeps free back to the system, for what runs on after a load."""
    import ctypes

    with suppress(OSError, AttributeError):  # not glibc
        ctypes.CDLL(None).malloc_trim(0)


def delay_collection() -> None:
    """Have no garbage collected up to 200,000 objects, or until `resume_collection`.

    What is imported stays: to look through it again and again takes a tenth of the time in which
    the app appears.
    """
    _usual.append(gc.get_threshold())
    gc.set_threshold(_OBJECTS)
    gc.callbacks.append(resume_collection)


def resume_collection(*_: object) -> None:
    """Have garbage collected as usual, among what is new from now on, if that was delayed."""
    if _usual:
        gc.set_threshold(*_usual.pop())
        gc.callbacks.remove(resume_collection)
        gc.freeze()


def end_collection() -> None:
    """Have nothing that is there now looked through for garbage, as Python does twice at its exit.

    That takes 5 ms after a small trace, and more with the size of what is there.
    """
    gc.freeze()


def end_process(code: int) -> int:
    """End this process with exit ``code`` at once, or return it where that is for Python to do.

    Python would take everything apart first, which after a small trace is 20 ms of 150. What was
    registered for the end is called before.
    """
    if not _is_outermost(sys._getframe(1)) or sys.flags.inspect or _threads_are_waited_for():
        return code
    import atexit

    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # none, closed, nobody reads it
            stream.flush()
    os._exit(code)


def _is_outermost(frame: FrameType) -> bool:
    """Tell whether what called ``frame`` is a program's module, and nothing waits for its end.

    A profiler or debugger that runs the program does.
    """
    callers = []
    while frame.f_back is not None:
        frame = frame.f_back
        callers.append(frame.f_globals.get("__name__"))
    return callers[:1] == ["__main__"] and set(callers[1:]) <= {"runpy"}


def _threads_are_waited_for() -> bool:
    threading = sys.modules.get("threading")
    if threading is None:
        return False
    others = set(threading.enumerate()) - {threading.main_thread()}
    return not all(thread.daemon for thread in others)
