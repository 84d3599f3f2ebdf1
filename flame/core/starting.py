"""Start flame as a program of its own; as a library it leaves these settings to the program."""

from __future__ import annotations

import gc
import os
from contextlib import suppress

_M_ARENA_MAX = -8  # of malloc.h
_THREADS = "OPENBLAS_NUM_THREADS"
_OBJECTS = 200_000
_usual: list[tuple[int, int, int]] = []


def prepare_process() -> None:
    """Import numpy as a program of its own does, and have all threads allocate from one heap."""
    _import_numpy()
    _share_heap()


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


def _share_heap() -> None:
    """Have glibc make no heap of its own for a thread, nearly all of which load files.

    What is free in one heap serves no other: of a million different stacks a load in a thread took
    a third more memory.
    """
    import ctypes

    with suppress(OSError, AttributeError):  # not glibc
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)


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
