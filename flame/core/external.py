"""Find other programs, run them within limits, not outliving flame, and find out why they fail.

Nothing is looked for in the current folder, which may be hostile.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import site
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from flame.core.lazy_regex import lazy_regex

HOME = Path(__file__).parents[2]
"""The folder that flame itself is imported from."""

_LONGEST_REASON = 200

_LONGEST_OUTPUT = 1 << 16
_POLL = 0.05
_SHELL = "/bin/sh"
_ON_LINE = 'read -r line && exec "$@" </dev/null'
_GUARD = 'read -r nothing; kill -9 "-$1"'
_NO_GROUP = 65534

_TELLING = lazy_regex("error|fail|cannot|can't|could not|unable|denied|no space", re.IGNORECASE)


def find_program(name: str) -> str | None:
    """Find the program called ``name`` in the absolute folders of PATH."""
    return shutil.which(name, path=search_path())


def search_path() -> str:
    """Return the absolute folders of PATH, as it is written.

    An empty or relative entry means the current folder, and is left out.
    """
    folders = (folder for folder in os.get_exec_path() if Path(folder).is_absolute())
    return os.pathsep.join(folders)


def python_command(*words: str) -> list[str]:
    """Return the command that runs this Python with ``words``, isolated from the current folder.

    Without ``-P`` it would import modules from there before its own.
    """
    return [sys.executable, "-P", *words]


def flame_command(*words: str) -> list[str]:
    """Return the command that runs this flame with ``words``, isolated from the current folder."""
    return python_command("-m", "flame", *words)


def import_path() -> list[str]:
    """List the absolute folders of ``sys.path``, that of flame among them, for a child to use."""
    folders = [folder for folder in sys.path if Path(folder).is_absolute()]
    return folders if str(HOME) in folders else [*folders, str(HOME)]


def package_folders() -> list[Path]:
    """List the folders that packages are installed in, beside flame, for this Python, this user.

    Not ``sys.path``: ``python -m`` and ``python -c`` put the current folder there.
    """
    user = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    folders = [str(HOME), *site.getsitepackages(), *user]
    return [Path(folder) for folder in dict.fromkeys(folders) if Path(folder).is_absolute()]


class ResourceLimits(NamedTuple):
    """Bound what each process of a program may take.

    ``file``: bytes of a file that it writes; ``memory``: bytes of address space; ``cpu``: seconds
    of all its threads.
    """

    file: int
    memory: int | None = None
    cpu: int | None = None


def limit_resources(pid: int, limits: ResourceLimits) -> None:
    """Have the kernel hold the process ``pid``, and what it starts from now on, to ``limits``."""
    if sys.platform == "linux":
        import resource

        kinds = (resource.RLIMIT_FSIZE, resource.RLIMIT_AS, resource.RLIMIT_CPU)
        for kind, most in zip(kinds, limits, strict=True):
            with suppress(OSError, ValueError):
                if most is not None:
                    resource.prlimit(pid, kind, (most, most))


def run_limited(
    command: list[str],
    out: BinaryIO,
    errors: BinaryIO,
    limits: ResourceLimits,
    look: Callable[[], None],
    uid: int | None = None,
    passed: tuple[int, ...] = (),
) -> int:
    """Run ``command`` as `start_group` does, to its end; returns its exit code.

    ``look`` is called twenty times a second; what it raises ends the program.
    """
    with start_group(command, out, errors, uid, passed, limits) as process:
        while process.returncode is None:
            look()
            with _delay_signals(), suppress(subprocess.TimeoutExpired):
                process.wait(_POLL)
    return process.returncode


@contextmanager
def start_group(
    command: list[str],
    out: BinaryIO,
    errors: BinaryIO,
    uid: int | None = None,
    passed: tuple[int, ...] = (),
    limits: ResourceLimits | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run ``command``, all of whose paths are absolute, in a process group of its own.

    nsys is a launcher: stopping the group stops it all, which is done if this process is killed,
    too. ncu reads a configuration from the current folder, which is none of the user's where that
    holds a stranger's files. ``uid``: root runs it as that user, who may then do with it what he
    likes: it gets nothing of root's environment, groups or terminal. It gets the descriptors
    ``passed``, under their numbers, and is held to ``limits`` from its beginning.

    Its exit code is 126 or 127, and ``errors`` say why, if it cannot be run. Raises OSError where
    no process can be started.
    """
    guarded = os.access(_SHELL, os.X_OK)  # An image of a container may have no shell.
    with ExitStack() as started:
        with _delay_signals():
            process = subprocess.Popen(
                _begin_on_line(command) if guarded else command,
                bufsize=0,
                stdin=subprocess.PIPE if guarded else subprocess.DEVNULL,
                stdout=out,
                stderr=errors,
                cwd="/",
                start_new_session=True,
                pass_fds=passed,
                **({} if uid is None else _run_as(uid)),
            )
            guard = _start_guard(process.pid) if guarded else None
            started.callback(_end_group, process, guard)
        if limits:
            limit_resources(process.pid, limits)
        if process.stdin:
            with suppress(BrokenPipeError):
                process.stdin.write(b"\n")
        yield process


def _end_group(process: subprocess.Popen[bytes], guard: subprocess.Popen[bytes] | None) -> None:
    """End a program where it still runs, and what it has started, and its guard."""
    with _delay_signals():
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if process.stdin:
            process.stdin.close()
        if guard:
            guard.kill()
            guard.communicate()


def _begin_on_line(command: list[str]) -> list[str]:
    """Return a command that becomes ``command`` when it reads a line, and ends where none comes.

    This process may be killed after it has started a program, and before the guard: what it has
    started is not the program yet, then, and never will be.
    """
    return [_SHELL, "-c", _ON_LINE, "sh", *command]


def _start_guard(group: int) -> subprocess.Popen[bytes] | None:
    """Start a process that ends the process ``group`` if this one dies, by any signal.

    It hears of that by the end of a pipe. PR_SET_PDEATHSIG would end the first process of the group
    only, and that with the thread that has started it.
    """
    try:
        return subprocess.Popen(
            [_SHELL, "-c", _GUARD, "sh", str(group)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={},
            start_new_session=True,
        )
    except OSError:  # At the limit of processes: rather without a guard than not at all.
        return None


def _run_as(uid: int) -> dict[str, Any]:
    try:
        group = pwd.getpwuid(uid).pw_gid
    except KeyError:
        group = _NO_GROUP
    environment = {"PATH": os.defpath, "LANG": "C.UTF-8"}
    return {"user": uid, "group": group, "extra_groups": [], "env": environment}


@contextmanager
def _delay_signals() -> Iterator[None]:
    """Have the signals that would end this process do so when the block is left.

    A program whose start they interrupt would go on without anybody who knows of it. One that is
    waited for would be for ever: Popen keeps its lock where an exception comes just as it takes it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # Only the main thread runs handlers.
        return
    held: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _: held.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for delayed, handler in before.items():
            signal.signal(delayed, handler)
        for number in held:
            signal.raise_signal(number)


def read_head(output: BinaryIO) -> str:
    """Read the beginning of a program's ``output``: it may have printed without end."""
    output.seek(0)
    return output.read(_LONGEST_OUTPUT).decode("utf-8", "replace")


def find_reason(output: str) -> str:
    """Find the line of ``output`` that tells most: the first about a failure, or the last."""
    lines = [line.strip() for line in re.split(r"[\r\n]+", output) if line.strip()]
    telling = next(filter(_TELLING.search, lines), lines[-1] if lines else "")
    return telling[:_LONGEST_REASON]
