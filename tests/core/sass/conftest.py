"""What tests of the code of functions share: a recording with cubins."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.sass.cubin_recordings import Recording


@pytest.fixture
def recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recording:
    return Recording(tmp_path, monkeypatch)
