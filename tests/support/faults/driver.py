"""Run something again and again, each time with another system call that fails.

A program of its own, under LD_PRELOAD of ``failing_calls.c``: it forks for every run, so that a run
costs no start of Python. `tests.support.faults.runs` starts it.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

_MOST = 200
"""Calls of a kind: a run that has more is none to be tried here."""

Work = Callable[[], int]


class Driver:
    """Runs ``work`` in ``folder``, which is as in ``pristine`` before every run."""

    def __init__(self, work: Work, folder: Path, pristine: Path, under: Path) -> None:
        self._work, self._folder, self._pristine, self._under = work, folder, pristine, under
        self._shim = ctypes.CDLL(os.environ["LD_PRELOAD"])
        self._made: dict[str, int] = {}  # calls of a kind in a run in which none fails

    def run_all(self, call: str, error: int, always: bool) -> Iterator[dict[str, Any]]:
        """Let the first call of a kind fail, then the second, until no more is made.

        How many there are is found once: which error another one would have makes no difference.
        """
        for number in range(1, self._made.get(call, _MOST) + 1):
            outcome = self.run(call, number, error, always)
            if not outcome["failed"]:
                self._made[call] = number - 1
                return
            yield outcome
        assert call in self._made, f"more than {_MOST} calls of {call}"

    def run(self, call: str, number: int, error: int, always: bool) -> dict[str, Any]:
        """Run once; kind "none": nothing fails."""
        self._restore()
        told = self._folder.with_name("told")
        with told.open("w+b") as err:
            process = os.fork()
            if not process:
                self._child(err.fileno(), call, number, error, always)
            status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
            err.seek(0)
            *lines, failed = err.read().decode("utf-8", "replace").split("\n")
        shown = {"call": call, "number": number, "error": error, "always": always}
        found = {"code": status, "lines": lines, "failed": int(failed or 1)}
        return {**shown, **found, "files": dict(_contents(self._folder))}

    def _child(self, err: int, call: str, number: int, error: int, always: bool) -> None:
        code = 99
        try:
            os.dup2(os.open(os.devnull, os.O_RDWR), 0)
            os.dup2(0, 1)
            os.dup2(err, 2)
            os.chdir(self._folder)
            self._shim.fail_call(
                call.encode(), number, error, int(always), os.fsencode(self._under)
            )
            code = self._work()
        except BaseException:
            traceback.print_exc()
        finally:
            failed = self._shim.failed_calls()
            self._shim.fail_call(b"none", 0, 0, 0, b"/")
            sys.stderr.flush()
            os.write(2, b"%d" % failed)
            os._exit(code)

    def _restore(self) -> None:
        for path in self._folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(self._pristine, self._folder, dirs_exist_ok=True, symlinks=True)


def _contents(folder: Path) -> Iterator[tuple[str, str]]:
    """What is in the folder: of files the permissions and a digest, by name."""
    for path in sorted(folder.rglob("*")):
        name, mode = str(path.relative_to(folder)), path.lstat().st_mode & 0o777
        what = "folder" if path.is_dir() else sha256(path.read_bytes()).hexdigest()[:16]
        yield name, f"{mode:o} {what}"


def _find_work(named: str, words: list[str]) -> Work:
    module, _, name = named.partition(":")
    function: Callable[..., int] = getattr(import_module(module), name)
    return lambda: function(*words)


def main() -> None:
    """Do what the JSON in the first argument says; write an outcome per line."""
    asked = json.loads(sys.argv[1])
    out = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    places = (Path(asked[name]) for name in ("folder", "pristine", "under"))
    driver = Driver(_find_work(asked["work"], asked["words"]), *places)
    # Twice: what the first one imports and compiles the others find in this process.
    os.chdir(asked["folder"])
    driver._restore()
    driver._work()
    print(json.dumps(driver.run("none", 0, 0, False) | {"failed": 0}), file=out, flush=True)
    for call in asked["calls"]:
        for error in asked["errors"]:
            for always in asked["always"]:
                for outcome in driver.run_all(call, error, always):
                    print(json.dumps(outcome), file=out, flush=True)


if __name__ == "__main__":
    main()
