"""Runs the cases of Python stacks, once for the tests of a module."""

from __future__ import annotations

import functools
import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.inject.python.stack_recording import Record, Recording, lines_of, python
from tests.support.waiting import PATIENCE

CASES = Path(__file__).with_name("python_cases.py")


@pytest.fixture(scope="module")
def record(probe: Path, tmp_path_factory: pytest.TempPathFactory) -> Record:
    """Runs cases in a Python 3.``minor``."""

    @functools.cache
    def recorded(minor: int, *cases: str, **env: str) -> Recording:
        folder = tmp_path_factory.mktemp("dumps")
        env |= {"FLAME_DIR": str(folder), "PYTHONIOENCODING": "utf-8:surrogatepass"}
        # Since 3.12 Python warns of a fork beside other threads, such as the library's.
        quiet = "-Wignore::DeprecationWarning"
        process = subprocess.Popen(
            [python(minor), quiet, str(CASES), str(probe), *cases],
            env=os.environ | env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        output, _ = process.communicate(timeout=5 * PATIENCE)
        assert process.returncode == 0, output
        says = {name: each for line in lines_of(output) for name, each in json.loads(line).items()}
        dumps = {int(path.name.split("-")[0]): path for path in folder.glob("*.fdump")}
        return Recording(says, dumps, process.pid, output)

    return recorded
