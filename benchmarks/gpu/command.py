"""The command: which checks run, in which order, and what is printed and kept of them."""

from __future__ import annotations

import argparse
import errno
import importlib
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from benchmarks.gpu.check import FAIL, HANG, PASS, SKIP, Check, Result
from benchmarks.gpu.needs import Needs
from benchmarks.gpu.results import Results
from benchmarks.gpu.runner import Runner

BUDGETS = {"quick": 180.0, "full": 1500.0}
"""Seconds for all checks."""
RUN_BUDGET = 540.0
"""Seconds for one of the three runs."""
LEAST = 5.0
"""Seconds: with less left no check is begun."""
OK, FAILED, USAGE, NOT_KEPT, INTERRUPTED = 0, 1, 2, 3, 130
OURS = ("FLAME_", "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "PROBE_")
OURS_TO_KEEP = ("FLAME_LIBRARY", "FLAME_CUPTI_PATH", "FLAME_CUDA_INCLUDE")
DESCRIPTION = """Checks on a machine with a GPU what flame takes for granted of CUPTI, and that what
flame records there is right. Each check is a process of its own: one that hangs or crashes stops no
other."""
EPILOG = """DIR/results.json is what to send: it has no environment, and no names of host and user.
The recordings beside it have both, and your command lines: keep them until somebody asks.
exit codes: 0 all pass or were left out, 1 some fail or hang, 2 usage, 3 DIR cannot be written,
130 interrupted"""


def main(argv: Sequence[str] | None = None, table: str = "benchmarks.gpu.checks") -> int:
    """Run the checks of the module ``table``; return the exit code."""
    checks: Sequence[Check] = importlib.import_module(table).CHECKS
    args = parsed(argv, checks)
    wanted = chosen(checks, args)
    if args.list:
        for check in wanted:
            print(line_of(check))
        return OK
    for name in [name for name in os.environ if is_ours(name)]:
        del os.environ[name]
    try:
        out = folder(args.out)
    except OSError as error:
        print(f"error: {error.filename}: {error.strerror}", file=sys.stderr)
        return NOT_KEPT
    signal.signal(signal.SIGTERM, interrupt)
    options = {"tier": args.tier, "run": args.run, "only": args.only, "budget": args.budget}
    results = Results(out, options)
    return Session(Runner(table, out, args.tier), results, budget_of(args)).run(wanted)


class Session:
    """Run checks one after the other until they are done, or ``budget`` seconds are over."""

    def __init__(self, runner: Runner, results: Results, budget: float) -> None:
        self.runner, self.results, self.needs = runner, results, Needs()
        self.end = time.monotonic() + budget

    def run(self, checks: Sequence[Check]) -> int:
        """Run them; return the exit code."""
        begin = time.monotonic()
        interrupted = False
        try:
            for check in checks:
                self.keep(self.result_of(check))
        except KeyboardInterrupt:
            interrupted = True
        self.results.write(interrupted=interrupted, seconds=round(time.monotonic() - begin, 1))
        print(self.summary(interrupted), flush=True)
        if self.results.fault:
            print(f"error: {self.results.fault}", file=sys.stderr)
        return self.exit_code(interrupted)

    def result_of(self, check: Check) -> Result:
        """Run one check, or say why it is left out."""
        left = self.end - time.monotonic()
        if left < LEAST:
            return Result(check.name, check.topic, SKIP, error="no time left (--budget)")
        if lacking := self.needs.lacking(check.needs):
            words = f"needs {'; '.join(lacking)}"
            return Result(check.name, check.topic, SKIP, error=words)
        result = self.runner.run(check, min(check.seconds, left))
        if result.verdict == HANG and left < check.seconds:
            result.verdict, result.error = SKIP, "cut off: no time left (--budget)"
        return result

    def keep(self, result: Result) -> None:
        """Print a line, and write it down."""
        self.results.add(result)
        took = f"{result.seconds:.1f} s" if result.seconds else "-"
        text = self.results.masked(result.said)
        print(f"{result.verdict}  {result.name} ({result.topic}, {took}): {text}", flush=True)

    def summary(self, interrupted: bool) -> str:
        """One line: how many of each verdict, and where the results are."""
        found = [one.verdict for one in self.results.found]
        counts = ", ".join(f"{found.count(one)} {one}" for one in (PASS, FAIL, HANG, SKIP))
        return f"{'interrupted: ' * interrupted}{counts}; send {self.results.path}"

    def exit_code(self, interrupted: bool) -> int:
        """What the command ends with."""
        if interrupted:
            return INTERRUPTED
        if any(one.verdict in (FAIL, HANG) for one in self.results.found):
            return FAILED
        return NOT_KEPT if self.results.fault else OK


def parsed(argv: Sequence[str] | None, checks: Sequence[Check]) -> argparse.Namespace:
    """Read the command line; it ends the process where that is wrong."""
    parser = argparse.ArgumentParser(
        "gpu_check.py",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    tier = parser.add_mutually_exclusive_group()
    tier.add_argument(
        "--quick", dest="tier", action="store_const", const="quick", help="3 minutes (default)"
    )
    tier.add_argument("--full", dest="tier", action="store_const", const="full", help="25 minutes")
    parser.add_argument(
        "--run", type=int, choices=(1, 2, 3), help="of the full tier: CUPTI, flame, or others"
    )
    parser.add_argument("--only", metavar="NAME,…", default="", help="these checks, of any tier")
    parser.add_argument("--list", action="store_true", help="print the checks, and run none")
    parser.add_argument("--budget", type=float, metavar="SECONDS", help="for all of them together")
    parser.add_argument(
        "--out", metavar="DIR", type=Path, help="keep everything there; new or empty"
    )
    args = parser.parse_args(argv)
    if args.tier is None and (args.run or not args.list):
        args.tier = "full" if args.run else "quick"
    unknown = set(words(args.only)) - {check.name for check in checks}
    if unknown:
        parser.error(f"no check {', '.join(sorted(unknown))}: see --list")
    return args


def words(text: str) -> list[str]:
    """Split a list."""
    return [word for word in text.split(",") if word]


def chosen(checks: Sequence[Check], args: argparse.Namespace) -> list[Check]:
    """The checks that were asked for."""
    only = words(args.only)
    if only:
        return [check for check in checks if check.name in only]
    if args.list and args.tier is None:
        return list(checks)
    of_run = [check for check in checks if args.run in (None, check.run)]
    return [check for check in of_run if check.quick or args.tier == "full"]


def budget_of(args: argparse.Namespace) -> float:
    """Seconds for all checks together."""
    if args.budget is not None:
        return float(args.budget)
    return RUN_BUDGET if args.run else BUDGETS[args.tier]


def line_of(check: Check) -> str:
    """One check for --list."""
    tier = "quick" if check.quick else "full"
    needs = ", ".join(check.needs)
    return f"{check.name:32} {check.topic:16} run {check.run}  {tier:5}  needs {needs}"


def is_ours(name: str) -> bool:
    """Whether a variable of the user's own shell would change what is checked."""
    return name.startswith(OURS) and name not in OURS_TO_KEEP


def folder(named: Path | None) -> Path:
    """Make the folder for everything; OSError where that cannot be."""
    if named is None:
        return Path(tempfile.mkdtemp(prefix="gpu-check-"))
    named.mkdir(mode=0o700, parents=True, exist_ok=True)
    if any(named.iterdir()):
        raise FileExistsError(errno.EEXIST, "not empty: name a new folder", str(named))
    return named.resolve()


def interrupt(number: int, frame: FrameType | None) -> None:
    """End as ctrl+c does."""
    raise KeyboardInterrupt
