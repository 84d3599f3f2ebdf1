"""Serve a trace by `flame view --web` in a process, and know its address."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from tests.support.paths import ROOT
from tests.support.waiting import PATIENCE


class Served:
    """A running server; ``url`` is its page, on ``port``."""

    def __init__(self, *words: str, folder: Path = ROOT) -> None:
        command = [sys.executable, "-u", "-P", "-m", "flame", "view", *words, "--web", "--port=0"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "FLAME_CONFIG": os.devnull}
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            env=environment,
            cwd=folder,
        )
        assert self.process.stdout
        line = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/[\w-]{20,}/", line)
        assert found, line
        self.url, self.port = found[0], int(found[1])

    def interrupt(self) -> int:
        """End it by ctrl+c; returns its exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.communicate()
