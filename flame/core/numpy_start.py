"""Import numpy as a program of its own needs it; a library leaves that to the program it is in."""

from __future__ import annotations

import os

_THREADS = "OPENBLAS_NUM_THREADS"


def import_numpy() -> None:
    """Import numpy without the threads that its BLAS starts, for nothing here multiplies matrices.

    With two processors they take 40 % of the processor time of the import. The environment is left
    as it was: programs that are run from here have nothing to do with it.
    """
    if _THREADS in os.environ:
        return
    os.environ[_THREADS] = "1"
    try:
        import numpy  # noqa: F401
    finally:
        del os.environ[_THREADS]
