#!/usr/bin/env python3
"""Measures how long flame takes to start, in interleaved rounds, beside Python and numpy alone.

`flame --version`, `flame --help`, `flame view --print` on a small file of each format, and the app
on a terminal of 200 x 50 cells: until it draws its name, and until it shows the trace. CPU time
and wall time of whole processes, medians; ratios can be compared between machines and under load,
milliseconds cannot.

    python benchmarks/bench_start.py --against OTHER_CHECKOUT

runs the other checkout (its `.venv` where there is one) in the same rounds.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import select
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.support.rows import Row, add_option, tell

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ("decode_small.sqlite", "torch_small.pt.trace.json.gz", "six_levels")
EXPORTS = ("folded", "speedscope")
COLUMNS, ROWS = 200, 50
PATIENCE = 60.0
ENVIRONMENT = {
    "TERM": "xterm-256color",
    "COLORTERM": "truecolor",
    # Neither the settings nor the search history of whoever runs this.
    "XDG_CONFIG_HOME": str(ROOT / "benchmarks"),
    "XDG_STATE_HOME": os.devnull,
}
TEXTS = {"app: first picture": b" flame ", "app: trace shown": b"heaviest"}
"""What the app has drawn when it is at that point."""


class Case(NamedTuple):
    """A command and, for the app, the text that ends the measurement."""

    title: str
    command: list[str]
    until: bytes = b""


class Spent(NamedTuple):
    """Seconds of one process."""

    cpu: float
    wall: float


def python_of(checkout: Path) -> Path:
    """The interpreter that runs ``checkout``."""
    own = checkout / ".venv" / "bin" / "python"
    return own if own.exists() else Path(sys.executable)


def flame_of(checkout: Path) -> list[str]:
    """The command as it is installed, where it is."""
    python = python_of(checkout)
    installed = python.with_name("flame")
    is_own = installed.exists() and (checkout / ".venv") in installed.parents
    return [str(installed)] if is_own else [str(python), "-m", "flame"]


def cases(checkout: Path, traces: list[Path]) -> Iterator[Case]:
    """What is measured of ``checkout``."""
    flame = flame_of(checkout)
    for option in ("--version", "--help"):
        yield Case(option, [*flame, option])
    for trace in traces:
        yield Case(f"--print {trace.name}", [*flame, "view", "--print", str(trace)])
    for title, text in TEXTS.items():
        yield Case(title, [*flame, "view", str(traces[0])], text)


def floors() -> Iterator[Case]:
    """What no command in Python can go below."""
    python = str(python_of(ROOT))
    yield Case("python -c pass", [python, "-c", "pass"])
    yield Case("import numpy", [python, "-c", "import numpy"])


def measure(case: Case, checkout: Path) -> Spent:
    """Run the command once; the app is killed when it has drawn the text."""
    begin = time.perf_counter()
    environment = os.environ | ENVIRONMENT | {"PYTHONPATH": str(checkout)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # or every start compiles flame anew
    if case.until:
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        streams = {"stdin": slave, "stdout": slave, "stderr": slave}
    else:
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    child = subprocess.Popen(case.command, env=environment, cwd=checkout, **streams)  # type: ignore[call-overload]
    if case.until:
        os.close(slave)
        read_until(master, case.until)
        os.kill(child.pid, signal.SIGKILL)
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.perf_counter() - begin
    child.returncode = os.waitstatus_to_exitcode(status)
    if case.until:
        os.close(master)
    elif child.returncode:
        raise SystemExit(f"{' '.join(case.command)}: exit code {child.returncode}")
    return Spent(usage.ru_utime + usage.ru_stime, wall)


def read_until(terminal: int, text: bytes) -> None:
    """Read what is drawn, up to ``text``."""
    drawn, end = b"", time.perf_counter() + PATIENCE
    while text not in drawn:
        if not select.select([terminal], [], [], max(end - time.perf_counter(), 0))[0]:
            raise SystemExit(f"the app has not drawn {text!r} in {PATIENCE:.0f} s")
        drawn += os.read(terminal, 1 << 16)


def export(format_: str, trace: Path, folder: Path) -> Path:
    """Write ``trace`` in another format into ``folder``."""
    path = folder / f"{trace.stem}.{format_}"
    command = [*flame_of(ROOT), "export", "-f", format_, str(trace), "-o", str(path)]
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
    return path


Medians = dict[tuple[str, Path], Spent]


def medians_of(spent: dict[tuple[str, Path], list[Spent]]) -> Medians:
    """The medians in ms."""
    return {
        key: Spent(*(1e3 * statistics.median(part) for part in zip(*times, strict=True)))
        for key, times in spent.items()
    }


def report(medians: Medians, against: Path | None) -> str:
    """The medians as a table; the ratios are of CPU time."""
    bare, numpy = (medians[case.title, ROOT].cpu for case in floors())
    head = f"{'':44} {'CPU ms':>8} {'wall ms':>8} {'x python':>9} {'x numpy':>8}"
    lines = [head + (f" {'other CPU':>10} {'wall':>7} {'CPU ratio':>10}" if against else "")]
    for (title, checkout), one in medians.items():
        if checkout != ROOT:
            continue
        line = f"{title:44} {one.cpu:8.1f} {one.wall:8.1f} {one.cpu / bare:9.2f}"
        line += f" {one.cpu / numpy:8.2f}"
        if against and (other := medians.get((title, against))):
            line += f" {other.cpu:10.1f} {other.wall:7.1f} {one.cpu / other.cpu:10.2f}"
        lines.append(line)
    return "\n".join(lines)


def rows(medians: Medians, small: str) -> Iterator[Row]:
    """CPU time of this checkout, beside that of a Python that does nothing."""
    bare, *_ = (medians[case.title, ROOT].cpu for case in floors())
    for (title, checkout), one in medians.items():
        if checkout == ROOT:
            milliseconds = f"{one.cpu:.0f} of {bare:.1f} ms; wall {one.wall:.0f} ms"
            yield Row(f"start, {title}: CPU", one.cpu / bare, "x python", milliseconds)
    if of_sample := medians.get((f"--print {small}", ROOT)):
        yield Row("start, --print of a small sample: CPU", of_sample.cpu / 1e3, "s", small)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("traces", nargs="*", type=Path, metavar="TRACE", help="default: the bundled samples")
    add("--rounds", type=int, default=9, help="default: %(default)s")
    add("--against", type=Path, metavar="DIR", help="another checkout, to compare with")
    add("--only", default="", metavar="TEXT", help="only what has TEXT in its title")
    add_option(parser)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        traces = [trace.resolve() for trace in args.traces]
        if not traces:
            traces = [ROOT / "samples" / name for name in SAMPLES]
            traces += [export(format_, traces[0], Path(folder)) for format_ in EXPORTS]
        against = args.against.resolve() if args.against else None
        todo = [(case, ROOT) for case in floors()]
        for checkout in (ROOT, *([against] if against else [])):
            todo += [
                (case, checkout) for case in cases(checkout, traces) if args.only in case.title
            ]
        spent: dict[tuple[str, Path], list[Spent]] = {(one.title, of): [] for one, of in todo}
        for number in range(args.rounds + 1):  # the first warms the caches
            for case, checkout in todo:
                once = measure(case, checkout)
                if number:
                    spent[case.title, checkout].append(once)
        medians = medians_of(spent)
        print(report(medians, against))
        tell(rows(medians, traces[0].name), args.json)


if __name__ == "__main__":
    main()
