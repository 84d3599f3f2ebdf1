"""Programs that are run: none is left behind, however early it is stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from typing import Any

import pytest

from flame.core.external import start_group
from tests.support.waiting import wait_until


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_a_program_starts_ends_it(
    monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    started: list[subprocess.Popen[bytes]] = []
    start = subprocess.Popen

    def interrupted(*command: Any, **how: Any) -> subprocess.Popen[bytes]:
        started.append(start(*command, **how))
        os.kill(os.getpid(), number)
        return started[0]

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    before = signal.signal(number, signal.default_int_handler)
    try:
        with (
            tempfile.TemporaryFile() as output,
            pytest.raises(KeyboardInterrupt),
            start_group(["sleep", "1000"], output, output),
        ):
            pytest.fail("was not interrupted")
    finally:
        assert signal.signal(number, before) is signal.default_int_handler
    wait_until(lambda: started[0].poll() is not None)
    assert started[0].returncode == -signal.SIGKILL


def test_the_program_of_a_block_that_is_left_is_ended() -> None:
    with tempfile.TemporaryFile() as output:
        with start_group(["sleep", "1000"], output, output) as process:
            assert process.poll() is None
        assert process.returncode == -signal.SIGKILL
