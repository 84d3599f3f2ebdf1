"""A program that is recorded while a test looks on, and does what the test tells it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from flame.attach.library.control import Control
from tests.support.waiting import PATIENCE

TIMEOUT_S = PATIENCE
Found = TypeVar("Found")
# It says the value of every expression that it is given; a call of `run` is a statement.
LISTENING = """
import json, sys

def run(code):
    exec(code, globals())

for line in sys.stdin:
    print(json.dumps(eval(json.loads(line))), flush=True)
"""


class Program:
    """Runs ``script``, then whatever `do` says."""

    def __init__(self, script: str, env: Mapping[str, str]) -> None:
        self.folder = Path(env["FLAME_DIR"])
        self.process = subprocess.Popen(
            [sys.executable, "-c", script + LISTENING],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.do("None")

    @property
    def pid(self) -> int:
        return self.process.pid

    def say(self, expression: str) -> None:
        """Have it work out ``expression``."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(expression) + "\n")
        self.process.stdin.flush()

    def do(self, expression: str) -> Any:
        """The value of ``expression`` there."""
        self.say(expression)
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def run(self, code: str) -> None:
        """Have it run statements."""
        self.do(f"run({code!r})")

    def dump(self, pid: int | None = None) -> Path:
        """That of this process, or of a child."""
        (found,) = self.folder.glob(f"{pid or self.pid}-*.fdump")
        return found

    def control(self, pid: int | None = None) -> Control:
        """The library in it; its socket appears a moment after the dump."""
        return until(lambda: Control.open(self.dump(pid)))

    def heard(self) -> Path:
        """The dump, as soon as there is a socket beside it."""
        self.control().close()
        return self.dump()

    def end(self) -> int:
        """Its exit code, once it has nothing more to do."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(TIMEOUT_S)

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.wait(TIMEOUT_S)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


def until(look: Callable[[], Found | None]) -> Found:
    """What ``look`` finds, as soon as it finds something."""
    end = time.monotonic() + TIMEOUT_S
    while not (found := look()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return found
