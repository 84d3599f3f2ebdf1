"""Records scripts that run on the test double."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.inject.cupti.cupti_recorded import PRELUDE, Record, Recorded
from tests.support.waiting import PATIENCE
from tests.support.writers.fdumprecords import header

TIMEOUT_S = 2 * PATIENCE


@pytest.fixture
def record(injected_env: Callable[..., dict[str, str]], tmp_path: Path) -> Record:
    """Runs a script after PRELUDE, recorded; the script must end well."""

    def run(script: str, before: str = "", **more: str | Path) -> Recorded:
        program = tmp_path / "program.py"
        program.write_text(before + PRELUDE + script)
        folder = tmp_path / "dumps"
        result = subprocess.run(
            [sys.executable, str(program)],
            env=injected_env(folder, **more),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert (result.returncode, result.stderr) == (0, "")
        (path,) = folder.glob("*.fdump")
        assert header(path)["state"] == 1
        return Recorded(path, json.loads(result.stdout or "{}"))

    return run
