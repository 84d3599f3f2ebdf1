#!/usr/bin/env python3
"""Runs the benchmarks and writes what they found to `docs/performance.md`: `make bench`.

    python benchmarks/run_all.py [--size small|large] [--only NAME…]

Scripts run one after the other. What each found is kept in `build/bench` until it is measured
again, so that the page also has what another size, or a run of other scripts, has found before.
A script with the option `--json` tells rows (`support/rows.py`); any other is shown as it printed.
Exit status 1 where a script failed; the page says so, too.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.support import machine, page, rows
from benchmarks.support.page import Result
from benchmarks.support.peers import FOLDER, PEERS

ROOT = Path(__file__).resolve().parents[1]
HERE = ROOT / "benchmarks"
KEPT = ROOT / "build" / "bench"
PAGE = ROOT / "docs" / "performance.md"
LIMITS = {"small": 300, "large": 3600}
"""Seconds after which a script is ended."""


class Job(NamedTuple):
    """What a script is told for each size, in words; None where that size has nothing to add."""

    small: str | None = ""
    large: str | None = None


JOBS = {
    "bench_attach": Job("--seconds 12", "--seconds 70"),
    "bench_diff": Job("", "--kernels 1M"),
    "bench_dump": Job("", "--large"),
    "bench_folded": Job("--megabytes 30"),
    "bench_inject": Job("--launches 200000", "--launches 1000000"),
    "bench_kineto": Job("--mib 100", "--mib 1024"),
    "bench_load": Job("--kernels 100k 1M 1M-unique 1M-chains", "--kernels 10M"),
    "bench_many": Job("", "--kernels 1M"),
    "bench_memory": Job("", "--megabytes 1000 --rounds 1"),
    "bench_ncu": Job("", "--large"),
    "bench_peers": Job("", "--kernels 1M"),
    "bench_projection": Job("--nodes 250k --names 100k --kernels 1M", "--nodes 1M --names 1M"),
    "bench_ranks": Job("", None),
    "bench_reopen": Job("", "--kernels 10M"),
    "bench_report": Job("", "--kernels 1M --rounds 1"),
    "bench_sass": Job("", "--kernels 1M"),
    "bench_slow_link": Job("--only 'Nsight Systems,diff' --rows 10", ""),
    "bench_speedscope": Job("--samples 200000", "--samples 1000000"),
    "bench_stacks": Job("--stacks 200000 --most 25", "--stacks 1000000"),
    "bench_start": Job("--rounds 5"),
    "bench_tui": Job("--nodes 1M --no-peers", "--nodes 10k,250k --diff"),
}
"""A script that is not here runs small, as it runs without arguments."""


def jobs(size: str, only: list[str]) -> Iterator[tuple[str, str]]:
    """Scripts and their arguments; SystemExit where one is asked for that there is not."""
    names = sorted(path.stem for path in HERE.glob("bench_*.py"))
    if unknown := set(only) - set(names):
        raise SystemExit(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    for name in only or names:
        words = getattr(JOBS.get(name, Job()), size)
        if words is not None:
            yield name, words


def tells_rows(script: Path) -> bool:
    """Whether the script has the option of `rows.add_option`."""
    done = subprocess.run([sys.executable, str(script), "--help"], capture_output=True, text=True)
    return "--json FILE" in done.stdout


def measure(name: str, words: str, size: str) -> Result:
    """Runs one script to its end."""
    command = f"benchmarks/{name}.py {words}".strip()
    print(f"\n== {command}", flush=True)
    begin, before = time.perf_counter(), machine.load()
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "rows.json"
        script = HERE / f"{name}.py"
        option = ["--json", str(told)] if tells_rows(script) else []
        failure, text = watched([str(script), *shlex.split(words), *option], LIMITS[size])
        found = rows.read(told) if told.exists() else []
    return Result(
        script=name,
        command=command,
        size=size,
        state=machine.state(),
        date=f"{datetime.now(UTC):%Y-%m-%d %H:%M}",
        load=before,
        seconds=time.perf_counter() - begin,
        failure=failure,
        rows=found,
        text="" if found else page.without_paths(text, ROOT, Path.home()),
    )


def watched(words: list[str], limit: float) -> tuple[str, str]:
    """Why the script failed, or "", and what it printed, which is shown meanwhile."""
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # or every start would compile flame anew
    process = subprocess.Popen(
        [sys.executable, *words],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    end = threading.Timer(limit, kill, [process])
    end.start()
    lines = []
    try:
        assert process.stdout is not None
        with process.stdout as output:
            for line in output:
                print(line, end="", flush=True)
                lines.append(line)
        code = process.wait()
    finally:
        late = not end.is_alive()
        end.cancel()
        kill(process)
    reason = f"ended after {limit:.0f} s" if late else f"exit code {code}"
    return reason if code else "", "".join(lines)


def kill(process: subprocess.Popen[str]) -> None:
    """Ends a script and all that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def keep(result: Result) -> None:
    """Keeps it for later pages."""
    KEPT.mkdir(parents=True, exist_ok=True)
    plain = result._asdict() | {"rows": [row._asdict() for row in result.rows]}
    path = KEPT / f"{result.script}.{result.size}.json"
    path.write_text(json.dumps(plain, indent=1), "utf-8")


def kept() -> list[Result]:
    """All that was kept, sorted by script, the small size first."""
    found = []
    for path in KEPT.glob("*.json"):
        plain = json.loads(path.read_text("utf-8"))
        found.append(Result(**plain | {"rows": [rows.Row(**row) for row in plain["rows"]]}))
    return sorted(found, key=lambda one: (one.script, list(LIMITS).index(one.size)))


def parts() -> dict[str, str]:
    """The measured parts of the page, of all that was kept."""
    results = kept()
    peers = (
        (one.name, one.version() or ("found" if one.found() else "absent"), one.how)
        for one in PEERS
    )
    return {
        "machine": page.table(("", ""), machine.facts()),
        "goals": page.goal_table(results),
        "peers": page.table(("peer", "version", "where it comes from"), peers),
        "figures": page.figures(results),
    }


def main() -> int:
    """Runs what is asked for and writes the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", choices=LIMITS, default="small", help="default: %(default)s")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="only these scripts")
    args = parser.parse_args()
    print(f"peers: {FOLDER}" if FOLDER.exists() else f"no peers in {FOLDER}")
    failed = []
    for name, words in jobs(args.size, args.only):
        result = measure(name, words, args.size)
        keep(result)
        failed += [name] if result.failure else []
    PAGE.write_text(page.written(PAGE.read_text("utf-8"), parts()), "utf-8")
    print(
        f"\n{PAGE.relative_to(ROOT)}: written"
        + (f"; failed: {', '.join(failed)}" if failed else "")
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
