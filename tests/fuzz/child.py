"""Fuzz targets with atheris, each in a process of its own: ``child.py --serve SOCKET``.

flame is imported, and made to count the branches that it takes, once for all of them: that takes
longer than many a target is fuzzed for. What to fuzz is a line of JSON on the socket, the answer
the exit code. ``child.py TARGET [ARGUMENT OF LIBFUZZER …]`` fuzzes in this process: so libFuzzer
starts itself again.
"""

from __future__ import annotations

import json
import os
import random
import shlex
import signal
import socket
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

import atheris

if TYPE_CHECKING:
    from tests.fuzz.target import Target

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

_TIME = "-max_total_time="


def prepare(name: str) -> Target:
    """Import the target and all that it needs, so that flame counts the branches that it takes.

    Its seeds are checked here: flame imports some modules when it needs them.
    """
    with atheris.instrument_imports(include=["flame"]):
        from tests.fuzz.target import find_target

        target = find_target(name)
        for data in target.seeds():
            target.check(data)
    return target


def fuzz(target: Target, arguments: list[str]) -> None:
    """Fuzz until libFuzzer ends this process."""
    from tests.fuzz.checks import run

    def check(data: bytes) -> None:
        run(target, data)

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        draw = random.Random(seed)
        if target.mutate is not None and draw.random() < target.share:
            changed = target.mutate(data, draw)
            if 0 < len(changed) <= most:
                return changed
        return bytes(atheris.Mutate(data, most))

    # libFuzzer starts itself again to merge corpora, by a shell.
    itself = shlex.join([sys.executable, str(Path(__file__).resolve()), target.name])
    options = [f"-max_len={target.longest}", *arguments]
    atheris.Setup([itself, *options], check, custom_mutator=mutate)
    atheris.Fuzz()


def serve(asked: socket.socket) -> None:
    """Fuzz what is asked for, until nobody is there to ask."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl+c is for the one that fuzzes
    with asked.makefile("rw") as lines:
        for line in lines:
            print(_fuzzed(**json.loads(line)), file=lines, flush=True)


def _fuzzed(name: str, arguments: list[str], folder: str, log: str) -> int:
    """The exit code of a process that fuzzes in ``folder``; what it says is in ``log``."""
    begin = time.monotonic()
    with Path(log).open("wb") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    try:
        target = prepare(name)
    except Exception:
        traceback.print_exc()
        return 1
    child = os.fork()
    if not child:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.chdir(folder)
        fuzz(target, [_shorten(each, time.monotonic() - begin) for each in arguments])
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _shorten(argument: str, seconds: float) -> str:
    """The time for all, less what importing has taken of it."""
    if not argument.startswith(_TIME):
        return argument
    rest = int(argument.removeprefix(_TIME)) - seconds
    return f"{_TIME}{max(int(rest), 1)}"


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve(socket.socket(fileno=int(sys.argv[2])))
    else:
        fuzz(prepare(sys.argv[1]), sys.argv[2:])
