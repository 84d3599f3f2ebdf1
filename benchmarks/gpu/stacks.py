"""Write down what all threads of hanging processes are doing, with what this machine has for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

PATIENCE = 15.0
MOST_PROCESSES = 6
MOST_TEXT = 200_000
DEBUGGERS = ("cuda-gdb", "gdb")
COMMANDS = ("-ex", "set pagination off", "-ex", "thread apply all bt 40")


def stacks_of(processes: list[psutil.Process]) -> str:
    """Describe the threads of each, of the kernel, C++ and Python; what cannot be had says why."""
    parts: list[str] = []
    for process in processes[:MOST_PROCESSES]:
        with suppress(psutil.Error):
            parts.append(f"=== {process.pid} {' '.join(process.cmdline())[:300]}")
            parts += kernel_side(process.pid)
            parts += [told(command) for command in commands(process.pid)]
    if len(processes) > MOST_PROCESSES:
        parts.append(f"{len(processes) - MOST_PROCESSES} more processes")
    return "\n".join(parts)[:MOST_TEXT] + "\n"


def commands(pid: int) -> Iterator[list[str]]:
    """Programs that tell stacks of a process: a debugger, and py-spy for Python."""
    debugger = next(filter(None, map(shutil.which, DEBUGGERS)), None)
    if debugger:
        yield [debugger, "-nx", "-batch", *COMMANDS, "-p", str(pid)]
    beside = Path(sys.executable).parent
    spy = shutil.which("py-spy", path=os.pathsep.join([str(beside), os.environ.get("PATH", "")]))
    if spy:
        yield [spy, "dump", "--nonblocking", "--pid", str(pid)]


def told(command: list[str]) -> str:
    """Run a command that may hang itself; return what it printed, or why it did not."""
    name = Path(command[0]).name
    environment = {key: value for key, value in os.environ.items() if key != "DEBUGINFOD_URLS"}
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"--- {name}: {error}"
    return f"--- {name}\n{done.stdout.decode('utf-8', 'replace')}"


def kernel_side(pid: int) -> Iterator[str]:
    """Name every thread, its state, and where it waits in the kernel, as far as one may read."""
    for task in sorted(Path(f"/proc/{pid}/task").glob("*")):
        words = [read(task / name) for name in ("comm", "wchan", "syscall")]
        state = read(task / "stat").rpartition(")")[2].split()[:1]
        yield f"thread {task.name} {' '.join(state)} {' | '.join(words)}"


def read(path: Path) -> str:
    """Read a file of /proc in one line, empty where that is not allowed."""
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError:
        return ""
