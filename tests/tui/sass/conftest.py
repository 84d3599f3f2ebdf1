"""A trace whose kernels have PC samples."""

from __future__ import annotations

import pytest

from flame.core.model.profile import Profile
from tests.tui.sampled import sampled


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    return sampled(tmp_path_factory.mktemp("sampled") / "decode.sqlite")
