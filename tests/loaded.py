"""Run both tiers of the tests beside busy loops, several times: `make test-loaded RUNS=5`.

What hurries in a test, or in flame, shows on a busy machine first. The loops are of the session
of the tests: Linux shares processors out by session (sched_autogroup), so that loops of another
terminal would take as much as all the tests together.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOGS = ROOT / "build" / "loaded"
TIERS = ("test", "test-deep")
_LOOPS = 2
# Ends with its parent, however that ends.
_LOOP = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"


def main(words: list[str]) -> int:
    """Run the tests as often as ``words`` say; returns the exit code."""
    LOGS.mkdir(parents=True, exist_ok=True)
    with _busy_loops():
        codes = [_run(number, tier) for number in range(1, int(words[0]) + 1) for tier in TIERS]
    print(f"{len(codes) - sum(map(bool, codes))} of {len(codes)} passed, logs in {LOGS}")
    return int(any(codes))


@contextmanager
def _busy_loops() -> Iterator[None]:
    loops = [subprocess.Popen([sys.executable, "-S", "-c", _LOOP]) for _ in range(_LOOPS)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def _run(number: int, tier: str) -> int:
    """Run ``tier`` and tell in a line how that ended; returns the exit code."""
    log = LOGS / f"{number}-{tier}.log"
    begin = time.monotonic()
    with log.open("wb") as output:
        code = subprocess.run(
            ["make", tier], cwd=ROOT, stdout=output, stderr=output, stdin=subprocess.DEVNULL
        ).returncode
    ended = "passed" if code == 0 else f"failed (exit {code}): {log}"
    print(f"run {number}, {tier}: {ended}, {time.monotonic() - begin:.0f} s", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
