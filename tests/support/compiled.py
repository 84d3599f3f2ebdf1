"""Do without the compiled library for a while, as where none was built."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def only_numpy() -> Iterator[None]:
    """Leave the compiled library out."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLAME_NO_NATIVE", "1")
        yield
