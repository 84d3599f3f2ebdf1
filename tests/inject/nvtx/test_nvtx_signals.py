"""Annotations of a signal handler, in the middle of those of the thread that it interrupts."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.support.waiting import PATIENCE
from tests.support.writers.fdumprecords import header, records

ENDED = 1


def test_a_handler_that_annotates_is_heard_or_counted(
    compiled: Callable[..., Path], injected_env: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    program, env = compiled("nvtx_signals.cpp"), injected_env(tmp_path, fake=False)
    done = subprocess.run(
        [str(program)], env=env, capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert done.stderr == ""
    (dump,) = tmp_path.glob("*.fdump")
    head, of = header(dump), records(dump)
    assert head["state"] == ENDED
    assert len(of["range"]) + head["dropped"] == int(done.stdout)
    assert (of["range"]["end"] >= of["range"]["start"]).all()
    assert len(of["open_range"]) == 0
