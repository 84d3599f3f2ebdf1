"""Signal handlers of the program in the middle of what the library keeps for a thread alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import PATIENCE
from tests.support.writers import fdumprecords

Call = Callable[[str], Any]

BEGIN = """
import ctypes, json, sys
probe = ctypes.PyDLL(sys.argv[1])  # with the GIL held
say = lambda value: print(json.dumps(value))
"""


@pytest.fixture
def call(probe: Path, tmp_path: Path) -> Call:
    """Run a script with the library as ``probe``; what it says."""

    def run(script: str) -> Any:
        done = subprocess.run(
            [sys.executable, "-c", BEGIN + script, str(probe)],
            env=os.environ | {"FLAME_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def test_names_of_kernels_are_not_freed_twice(call: Call) -> None:
    assert call("say(probe.interrupted_names())") == 1


STACKS = """
def known(): return probe.probe_begin()
def fresh():
    within = ctypes.c_uint32(12345)
    return probe.interrupted_stack(ctypes.byref(within)), within.value
say([known(), *fresh()])
probe.probe_stop()
"""


def test_a_handler_gets_its_own_stack_or_none(call: Call, tmp_path: Path) -> None:
    known, interrupted, within = call(STACKS)
    (dump,) = tmp_path.glob("*.fdump")
    of = fdumprecords.records(dump)
    innermost = [fdumprecords.stack(of, node)[-1][0] for node in (known, interrupted)]
    assert innermost == ["known", "fresh"]
    assert within in (0, interrupted)


def test_a_handler_does_not_find_what_ends_with_its_thread(call: Call) -> None:
    assert call("say(probe.finds_ended())") == 0
