#!/usr/bin/env python3
"""Fuzz flame: each target in turn for its share of the time, in a process of its own.

Those in Python are forks of one process, which has imported flame (``child.py``).

What is found lies in ``build/fuzz/TARGET/faults``; ``--replay`` runs such a file again. What has
reached more than before is kept in ``build/fuzz/TARGET/corpus``, for the next time.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha1
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from csrc.build import BuildError as CoreBuildError  # noqa: E402
from inject.build import BuildError  # noqa: E402
from tests.fuzz.target import CORPUS, FOLDER, NAMES, find_target  # noqa: E402

BUILD = ROOT / "build" / "fuzz"
SLOWEST = 30
"""Seconds after which an input ends its process; what takes 10 s of it is a fault before."""
LEAST = 1
"""Seconds that every target gets, however late it is."""
MOST_FAULTS = 5
"""Faults after which a target is left alone."""
MOST_MEMORY = 2048
_ASAN = "alloc_dealloc_mismatch=0"
"""libFuzzer of Debian's clang 14 frees by one library what it has allocated by another."""
_INTERRUPTED = 72
"""Exit code of libFuzzer after a signal: somebody wants it to end."""
_RUNS = re.compile(r"stat::number_of_executed_units:\s+(\d+)")
_AT = re.compile(r"^#(\d+)\s", re.M)
_COVERAGE = re.compile(r"\bcov: (\d+)")
_SUMMARY = re.compile(r"^(?:SUMMARY|ERROR|==\d+== ?ERROR|\w+(?:\.\w+)*Error): ?.*", re.M)


@dataclass
class Outcome:
    """What came of fuzzing a target: inputs tried, branches reached, faults and their inputs."""

    inputs: int = 0
    coverage: int = 0
    faults: list[tuple[str, Path]] = field(default_factory=list)


@dataclass(frozen=True)
class Job:
    """A target to fuzz, how to start that, and its folders.

    ``start`` is given libFuzzer's arguments, the folder to run in and the file for what is said
    there; it returns the exit code.
    """

    name: str
    start: Callable[[Sequence[str], Path, Path], int]
    committed: Path
    folder: Path

    @property
    def corpus(self) -> Path:
        """Where inputs are kept from run to run."""
        return self.folder / "corpus"

    def run(self, seconds: float) -> Outcome:
        """Fuzz for so long; go on after a fault."""
        outcome, until = Outcome(), time.monotonic() + seconds
        for folder in (self.corpus, self.folder / "faults"):
            folder.mkdir(parents=True, exist_ok=True)
        while self._run_once(max(until - time.monotonic(), LEAST), outcome):
            if time.monotonic() > until or len(outcome.faults) == MOST_FAULTS:
                break
        return outcome

    def _run_once(self, seconds: float, outcome: Outcome) -> bool:
        """Fuzz until the time is over or a fault is found; whether it was a fault."""
        faults = self.folder / "faults"
        before = set(faults.iterdir())
        options = [
            f"-max_total_time={int(seconds)}",
            f"-timeout={SLOWEST}",
            f"-rss_limit_mb={MOST_MEMORY}",
            f"-artifact_prefix={faults}/",
            "-print_final_stats=1",
        ]
        folders = [str(folder) for folder in (self.corpus, self.committed) if folder.exists()]
        log = self.folder / "log"
        code = self.start([*options, *folders], self.folder, log)
        said = log.read_text(errors="replace")
        outcome.inputs += max(
            (int(n) for n in (*_RUNS.findall(said), *_AT.findall(said))), default=0
        )
        outcome.coverage = max([outcome.coverage, *map(int, _COVERAGE.findall(said))])
        if code in (0, _INTERRUPTED):
            return False
        new = sorted(set(faults.iterdir()) - before)
        summary = _SUMMARY.search(said)
        words = summary[0] if summary else f"exit {code}, see {log}"
        outcome.faults.append((words, new[0] if new else log))
        return bool(new)


class Forks:
    """The process whose forks fuzz the targets in Python; another one once it has ended."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, name: str, arguments: Sequence[str], folder: Path, log: Path) -> int:
        """Fuzz a target in a fork; return its exit code."""
        if self._process is None or self._process.poll() is not None:
            self._begin()
        asked = {"name": name, "arguments": arguments, "folder": str(folder), "log": str(log)}
        with suppress(ConnectionError):
            print(json.dumps(asked), file=self._lines, flush=True)
            if answer := self._lines.readline():
                return int(answer)
        assert self._process is not None
        return self._process.wait() or 1

    def _begin(self) -> None:
        ours, theirs = socket.socketpair()
        child = ROOT / "tests" / "fuzz" / "child.py"
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, str(child), "--serve", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env={"ASAN_OPTIONS": _ASAN} | os.environ,
            )
        with ours:
            self._lines = ours.makefile("rw")

    def end(self) -> None:
        """Let the process go: nothing more is asked of it."""
        if self._process is not None:
            self._lines.close()
            self._process.wait()


FORKS = Forks()


def run_program(command: Sequence[str], arguments: Sequence[str], folder: Path, log: Path) -> int:
    """Run a program of libFuzzer's options; return its exit code."""
    with log.open("w") as file:
        return subprocess.call(
            [*command, *arguments],
            stdout=file,
            stderr=file,
            cwd=folder,
            env={"ASAN_OPTIONS": _ASAN} | os.environ,
        )


def python_job(name: str) -> Job:
    """The job of a target in Python; its seeds are written where its corpus is."""
    job = Job(name, partial(FORKS.start, name), CORPUS / name, BUILD / name)
    job.corpus.mkdir(parents=True, exist_ok=True)
    for data in find_target(name).seeds():
        (job.corpus / sha1(data).hexdigest()).write_bytes(data)
    return job


def native_makers() -> dict[str, Callable[[], Job | None]]:
    """How to build the jobs of the targets in C and C++, by name; none where there are none."""
    folders = ("core", "native")
    there = [name for name in folders if (FOLDER / name / "targets.py").exists()]
    modules = [importlib.import_module(f"tests.fuzz.{name}.targets") for name in there]
    targets = [target for module in modules for target in module.TARGETS]
    return {target.name: partial(_native_job, target) for target in targets}


def _native_job(target: Any) -> Job | None:
    folder = BUILD / target.name
    folder.mkdir(parents=True, exist_ok=True)
    try:
        binary = target.build(folder)
    except (BuildError, CoreBuildError) as error:
        sys.exit(f"{target.name}: {error}")
    except RuntimeError as error:
        print(f"{target.name}: left out: {error}")
        return None
    return Job(target.name, partial(run_program, [str(binary)]), CORPUS / target.name, folder)


def replay(name: str, paths: Iterable[Path]) -> None:
    """Check files as the target does, without atheris."""
    from tests.fuzz.checks import run

    target = find_target(name)
    for path in paths:
        run(target, path.read_bytes())
        print(f"{path}: no fault")


def fuzz(jobs: Sequence[Job], minutes: float) -> int:
    """Run all jobs and print what came of each; 1 where there was a fault."""
    begin, found = time.monotonic(), 0
    total = 0
    for number, job in enumerate(jobs):
        rest = 60 * minutes - (time.monotonic() - begin)
        outcome = job.run(rest / (len(jobs) - number))
        total += outcome.inputs
        found += len(outcome.faults)
        faults = f"{len(outcome.faults)} faults" if outcome.faults else "no fault"
        print(f"{job.name:24} {outcome.inputs:>9,} inputs  cov {outcome.coverage:>5,}  {faults}")
        for words, path in outcome.faults:
            print(f"    {words}\n    {path}", flush=True)
    print(f"{'all':24} {total:>9,} inputs  {found} faults")
    return 1 if found else 0


def parse(native: Iterable[str]) -> argparse.Namespace:
    """Parse the command line."""
    names = (*NAMES, *native)
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10, help="for all targets together")
    parser.add_argument("--target", choices=names, action="append", help="only these")
    parser.add_argument("--replay", type=Path, nargs="+", metavar="FILE", help="of one --target")
    args = parser.parse_args()
    if args.replay and (not args.target or args.target[0] not in NAMES):
        parser.error("--replay needs the --target in Python that the files are for")
    args.target = args.target or names
    return args


def main() -> int:
    makers = native_makers()
    args = parse(makers)
    if args.replay:
        replay(args.target[0], args.replay)
        return 0
    if importlib.util.find_spec("atheris") is None:
        print("atheris is not installed: make fuzz installs it", file=sys.stderr)
        args.target = [name for name in args.target if name in makers]
    jobs = [makers[name]() if name in makers else python_job(name) for name in args.target]
    try:
        return fuzz([job for job in jobs if job is not None], args.minutes)
    finally:
        FORKS.end()


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main())
