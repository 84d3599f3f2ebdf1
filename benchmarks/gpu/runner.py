"""Run a check in a process of its own, for as long as it may take, and end all that it started.

    python -m benchmarks.gpu.runner TABLE NAME FOLDER RESULT_FD TIER

is that process: TABLE is a module with CHECKS, RESULT_FD a pipe for one line of JSON.
"""

from __future__ import annotations

import importlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
import traceback
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.gpu import processes
from benchmarks.gpu.bench import ROOT, Bench
from benchmarks.gpu.check import FAIL, HANG, PASS, SKIP, Check, CheckSkippedError, Criterion, Result
from benchmarks.gpu.stacks import stacks_of

TICK = 0.05
LOG_TAIL, MOST_STACKS = 4000, 30_000
"""Characters of a check's log, and of stacks, that go into the results where it did not pass."""


class Runner:
    """Run checks of the module ``table`` one at a time, each in a folder of its own in ``out``."""

    def __init__(self, table: str, out: Path, tier: str) -> None:
        self.table, self.out, self.tier = table, out, tier
        processes.adopt_orphans()

    def run(self, check: Check, seconds: float) -> Result:
        """Run ``check`` for at most ``seconds``; nothing that it started is left afterwards."""
        result = Result(check.name, check.topic, FAIL)
        begin = time.monotonic()
        try:
            self._run(check, seconds, result)
        except OSError as error:
            result.verdict, result.error = FAIL, f"cannot be run: {error}"
        finally:
            left, unkillable = processes.end_all()
        result.left_behind = left if result.verdict != HANG else 0
        if unkillable:
            result.error += f"; cannot be killed: pid {', '.join(map(str, unkillable))}"
        result.seconds = round(time.monotonic() - begin, 2)
        return result

    def _run(self, check: Check, seconds: float, result: Result) -> None:
        folder = self.out / check.name
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "log").open("wb") as log:
            process, answer = self._start(check, folder, log.fileno())
        with os.fdopen(answer, "rb", buffering=0) as pipe:
            told = answered(pipe.fileno(), process, seconds)
        if process.poll() is None and told is None:
            result.verdict = HANG
            result.error = f"no end after {seconds:.0f} s"
            self._keep_stacks(folder, result)
        elif told is None:
            result.error = f"its process {ending(process.returncode)} without a result"
        else:
            result.criteria = [Criterion(**one) for one in told.pop("criteria", ())]
            vars(result).update(told)
        if result.verdict in (FAIL, HANG):
            result.log = tail(folder / "log")

    def _start(self, check: Check, folder: Path, log: int) -> tuple[subprocess.Popen[bytes], int]:
        """Start the process of a check; return it, and where it will say what it found."""
        answer, says = os.pipe()
        words = [self.table, check.name, str(folder), str(says), self.tier]
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.gpu.runner", *words],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(says,),
                start_new_session=True,
            )
        except BaseException:
            os.close(answer)
            raise
        finally:
            os.close(says)
        return process, answer

    def _keep_stacks(self, folder: Path, result: Result) -> None:
        text = stacks_of(processes.descendants())
        result.stacks = text[:MOST_STACKS]
        try:
            (folder / "stacks.txt").write_text(text, "utf-8")
            result.error += f"; stacks in {check_path(folder)}"
        except OSError as error:
            result.error += f"; stacks not kept: {error.strerror}"


def check_path(folder: Path) -> str:
    """Name the file of stacks within the folder of results."""
    return f"{folder.name}/stacks.txt"


def answered(pipe: int, process: subprocess.Popen[bytes], seconds: float) -> dict[str, Any] | None:
    """Wait for the line of a check's process; None where it ends, or time does, without one.

    A process that it left behind may have the pipe, too: its end is not waited for.
    """
    end = time.monotonic() + seconds
    said = b""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while b"\n" not in said and (left := end - time.monotonic()) > 0:
            ended = process.poll() is not None
            if selector.select(0 if ended else min(TICK, left)):
                part = os.read(pipe, 1 << 16)
                said += part
                if not part:
                    break
            elif ended:
                break
    with suppress(subprocess.TimeoutExpired):
        process.wait(max(0.0, end - time.monotonic()) if b"\n" not in said else 5.0)
    line, newline, _ = said.partition(b"\n")
    found: dict[str, Any] | None = json.loads(line) if newline else None
    return found


def ending(code: int) -> str:
    """Say how a process ended."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def tail(path: Path) -> str:
    """Read the end of a log."""
    try:
        return path.read_text("utf-8", "replace")[-LOG_TAIL:]
    except OSError:
        return ""


# The process of a check


def outcome(check: Check, bench: Bench) -> dict[str, Any]:
    """Look, and make fields of a Result of whatever comes of it."""
    try:
        finding = check.look(bench)
    except CheckSkippedError as error:
        return {"verdict": SKIP, "error": str(error)}
    except Exception as error:
        with suppress(OSError):  # of a full disk
            traceback.print_exc()
        return {"verdict": FAIL, "error": f"{type(error).__name__}: {error}".splitlines()[0]}
    ok = all(one.ok for one in finding.criteria) and (finding.criteria or finding.numbers)
    return {"verdict": PASS if ok else FAIL, **asdict(finding)}


def main(table: str, name: str, folder: str, result: str, tier: str) -> None:
    """Run one check, and say what it found."""
    (check,) = (one for one in importlib.import_module(table).CHECKS if one.name == name)
    found = outcome(check, Bench(Path(folder), quick=tier == "quick"))
    with os.fdopen(int(result), "w") as pipe:
        pipe.write(json.dumps(found, default=str) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
