"""Fuzz one target in this process, with atheris: ``child.py TARGET [ARGUMENT OF LIBFUZZER …]``."""

from __future__ import annotations

import random
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import atheris

if TYPE_CHECKING:
    from tests.fuzz.target import Target

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

_BEGIN = time.monotonic()
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


def main() -> None:
    name, *arguments = sys.argv[1:]
    target = prepare(name)
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

    options = [f"-max_len={target.longest}", *map(_shorten, arguments)]
    # libFuzzer starts itself again to merge corpora, by a shell.
    itself = shlex.join([sys.executable, sys.argv[0], name])
    atheris.Setup([itself, *options], check, custom_mutator=mutate)
    atheris.Fuzz()


def _shorten(argument: str) -> str:
    """The time for all, less what importing has taken of it."""
    if not argument.startswith(_TIME):
        return argument
    rest = int(argument.removeprefix(_TIME)) - (time.monotonic() - _BEGIN)
    return f"{_TIME}{max(int(rest), 1)}"


if __name__ == "__main__":
    main()
