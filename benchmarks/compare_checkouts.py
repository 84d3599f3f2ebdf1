"""Compare what two checkouts of flame print and export, byte for byte, on the traces given.

    python benchmarks/compare_checkouts.py OLD_CHECKOUT NEW_CHECKOUT TRACE...

Each checkout runs in a process of its own (its `.venv` where there is one) and is told all commands
at once. Exit status 1 where any output, message or exit code differs. A folder of traces stands for
the files in it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

LEVELS = "thread,python,native,launch,nvtx,kernel,sass,stall"
CASES = (
    ("info",),
    ("info", "--json"),
    ("view", "--print"),
    ("view", "--print", "--levels", "nvtx,kernel", "--fold-layers", "--min-percent", "1"),
    ("view", "--print", "--levels", "kernel", "--metric", "count", "--sort", "name"),
    ("view", "--print", "--metric", "host", "--invert"),
    ("export", "-f", "folded", "-o", "-"),
    ("export", "-f", "folded", "-o", "-", "--levels", LEVELS, "--kernel-names", "demangled"),
    ("export", "-f", "folded", "-o", "-", "--metric", "queue", "--collapse-recursion"),
    ("export", "-f", "folded", "-o", "-", "--hide-stacks", "e", "--sort", "start"),
    ("export", "-f", "speedscope", "-o", "-"),
)

# Runs in a checkout: commands as JSON on standard input, what they wrote as files in a folder.
DRIVER = """
import contextlib, json, os, sys
try:
    from flame.cli.main import main
except ImportError:
    from flame.cli import main
folder, commands = json.load(sys.stdin)
for number, words in enumerate(commands):
    for stream in (1, 2):
        flags = os.O_CREAT | os.O_WRONLY | os.O_TRUNC
        target = os.open(f"{folder}/{number}.{stream}", flags, 0o600)
        os.dup2(target, stream)
        os.close(target)
    sys.argv = ["flame", *words]
    try:
        code = main(words)
    except SystemExit as end:
        code = end.code
    sys.stdout.flush()
    sys.stderr.flush()
    with open(f"{folder}/{number}.code", "w") as file:
        print(code, file=file)
"""


def traces_in(paths: list[Path]) -> Iterator[Path]:
    """Name every trace: files as they are, for a folder the files anywhere in it."""
    for path in paths:
        is_recording = path.is_dir() and any(path.glob("*.fdump"))
        if path.is_file() or is_recording:
            yield path.resolve()
        else:
            yield from sorted(each.resolve() for each in path.rglob("*") if each.is_file())


def run(checkout: Path, commands: list[list[str]], folder: Path) -> None:
    """Run all commands in ``checkout``; what each printed lies in ``folder`` by its number."""
    own = checkout / ".venv" / "bin" / "python"
    python = str(own) if own.exists() else sys.executable
    environment = {
        "PYTHONPATH": str(checkout.resolve()),
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder),
        "COLUMNS": "120",
        "LC_ALL": "C.UTF-8",
        "NO_COLOR": "1",
    }
    request = json.dumps([str(folder), commands])
    command = [python, "-P", "-c", DRIVER]
    subprocess.run(command, input=request, text=True, check=True, env=environment, cwd=folder)


def main() -> int:
    """Compare and say what differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("traces", type=Path, nargs="+")
    args = parser.parse_args()
    traces = list(traces_in(args.traces))
    commands = [[case[0], str(trace), *case[1:]] for trace in traces for case in CASES]
    different = written = 0
    with tempfile.TemporaryDirectory() as old, tempfile.TemporaryDirectory() as new:
        run(args.old, commands, Path(old))
        run(args.new, commands, Path(new))
        for number, words in enumerate(commands):
            for part in ("1", "2", "code"):
                before, after = (Path(each, f"{number}.{part}").read_bytes() for each in (old, new))
                written += len(after)
                if before.replace(old.encode(), b"") != after.replace(new.encode(), b""):
                    different += 1
                    print(f"differs ({part}): flame {' '.join(words)}")
    print(
        f"{len(commands)} commands on {len(traces)} traces, {written:,} bytes: {different} differ"
    )
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
