"""The single file of ``make pyz``, run by a bare Python from an empty home."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from flame._version import __version__
from tests.support.paths import ROOT, SAMPLES
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.deep


@pytest.fixture
def packed() -> Path:
    """What has been packed for this Python and machine."""
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    found = list((ROOT / "dist").glob(f"flame-{__version__}-{python}-*.pyz"))
    if not found:
        pytest.skip("make pyz has not been run")
    return found[0]


def test_it_runs_without_anything_installed(packed: Path, tmp_path: Path) -> None:
    def flame(*words: str) -> str:
        python = Path(sys.base_prefix, "bin", "python3")
        done = subprocess.run(
            [python, "-I", packed, *words],
            env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            timeout=4 * PATIENCE,
            check=False,
        )
        assert "Traceback" not in done.stderr
        return done.stdout

    assert flame("--version") == f"flame {__version__}\n"
    shown = flame("view", "--print", str(SAMPLES / "decode_small.sqlite"))
    assert "GPU time 371 ms" in shown
    assert str(tmp_path / ".shiv") in flame("doctor", "--json")
