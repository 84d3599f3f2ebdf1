"""Start flame as a program of its own; as a library it leaves these settings to the program."""

from __future__ import annotations

import gc
import os
from contextlib import suppress

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
    a million numbers come and go; where each is new from the system, that clears its pages first,
    which took a tenth of the processor time of a load.
    """
    import ctypes

    with suppress(OSError, AttributeError):  # not glibc
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_ARENA_MAX, 1)
        mallopt(_M_MMAP_THRESHOLD, 32 * _MIB)
        mallopt(_M_TRIM_THRESHOLD, 64 * _MIB)


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
