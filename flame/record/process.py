"""Start the recorded command, pass signals on to it, and wait for it."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from flame.core.errors import FlameError

_PASSED_ON = {
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGTSTP,
    signal.SIGCONT,
}
# SIGTTOU: a blocked one lets flame take its line from the terminal when it is in the background.
_WATCHED = {*_PASSED_ON, signal.SIGCHLD, signal.SIGTTOU}
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_RESET = (signal.SIGPIPE, signal.SIGXFSZ)  # Python ignores them; no program expects that.
_NOT_FOUND = (errno.ENOENT, errno.ENOTDIR)


class NotFoundError(FlameError):
    """Report that there is no such command."""

    exit_code = 127


class NotExecutableError(FlameError):
    """Report that the command exists, but cannot be run."""

    exit_code = 126


_PAUSE = 0.5
"""Seconds."""


def _nothing() -> None:
    pass


@contextmanager
def signals_held() -> Iterator[set[int]]:
    """Hold signals back for `wait_for`; yield those that were blocked before.

    Threads that are started inside hold them back as well; there must be none from before.
    """
    # Where the parent ignored it, the kernel would forget how the command ended.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    try:
        yield set(map(int, before))
    finally:
        # What came too late for the command must not end the summary.
        while signal.sigtimedwait(_WATCHED, 0):
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Have what asks flame to end raise KeyboardInterrupt, once; after that it asks in vain.

    So flame ends with the exit code of the command, whatever it does after that has ended.
    """

    def end(number: int, frame: FrameType | None) -> None:
        for one in _ENDING:
            signal.signal(one, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {one: signal.signal(one, end) for one in _ENDING if _is_heard(one)}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _is_heard(number: signal.Signals) -> bool:
    return signal.getsignal(number) not in (signal.SIG_IGN, None)


def start(command: tuple[str, ...], environment: Mapping[str, str], blocked: set[int]) -> int:
    """Start ``command`` in flame's streams, session and process group; return its pid.

    Raises NotFoundError and NotExecutableError, which have the exit codes of a shell.
    """
    try:
        return os.posix_spawnp(
            command[0], command, environment, setsigmask=blocked, setsigdef=_RESET
        )
    except OSError as error:
        if error.errno in _NOT_FOUND:
            raise NotFoundError(f"{command[0]}: {_missing(command[0])}") from None
        reason = (error.strerror or str(error)).lower()
        raise NotExecutableError(f"{command[0]}: cannot be run: {reason}") from None


def _missing(program: str) -> str:
    if "/" in program and Path(program).exists():
        return "the interpreter that its first line names is not there"
    return "no such program" if "/" in program else "no such command on PATH"


def wait_for(
    child: int, every: Callable[[], None] | None = None, suspend: Callable[[], None] = _nothing
) -> int:
    """Wait until ``child`` has ended; return its wait status.

    What another process tells flame is passed on to ``child``; what the terminal says, both have
    heard. ``every`` is called twice a second, ``suspend`` before flame stops with the job.
    """
    while True:
        info = signal.sigtimedwait(_WATCHED, _PAUSE) if every else signal.sigwaitinfo(_WATCHED)
        if info is None:
            if every:
                every()
        elif info.si_signo == signal.SIGCHLD:
            status = _reaped(child)
            if status is not None:
                return status
        elif info.si_signo in _PASSED_ON:
            _pass_on(info, child)
            if info.si_signo == signal.SIGTSTP:
                suspend()
                _stop()


def _reaped(child: int) -> int | None:
    """The wait status of ``child`` if it has ended; others come to flame where it is process 1."""
    ended = None
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                break
            if pid == child:
                ended = status
    return ended


def _pass_on(info: signal.struct_siginfo, child: int) -> None:
    by_kernel = info.si_code > 0
    if not by_kernel and not _is_below(info.si_pid):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(child, info.si_signo)


def _is_below(pid: int) -> bool:
    """Whether ``pid`` belongs to what is recorded: ``kill 0`` in a script means its own group."""
    own = os.getpid()
    while pid > 1 and pid != own:
        pid = _parent(pid)
    return pid == own


def _parent(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return 0
    return int(text.rpartition(")")[2].split()[1])


def _stop() -> None:
    """Stop as the terminal has asked, until the shell says to go on.

    By the signal itself: the kernel drops it where nobody could continue the job.
    """
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTSTP})
    os.kill(os.getpid(), signal.SIGTSTP)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTSTP})


def exit_code_of(status: int) -> int:
    """Return what a shell makes of a wait status: the exit code, or 128 and the signal's number."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def death_of(status: int) -> str:
    """Say as a shell which signal killed the command; empty where a shell would say nothing."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0 or -code in (signal.SIGINT, signal.SIGPIPE):
        return ""
    core = " (core dumped)" if os.WCOREDUMP(status) else ""
    return f"{signal.strsignal(-code) or f'signal {-code}'}{core}"
