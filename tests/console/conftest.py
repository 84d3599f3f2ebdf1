"""The profile of a trace that a test arranges."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from flame.core.loading.many import load
from flame.core.model.profile import Profile
from tests.console.printed import Arrange
from tests.support.writers.nsysfile import NsysFile


@pytest.fixture
def profile_of(tmp_path: Path) -> Callable[[Arrange], Profile]:
    """The profile of a trace that a function arranges."""

    def arranged(arrange: Arrange) -> Profile:
        with NsysFile(tmp_path / "trace.sqlite") as file:
            arrange(file)
        return load(tmp_path / "trace.sqlite")

    return arranged
