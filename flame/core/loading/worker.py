"""Read traces in another process: both ends of the pipes between it and this one."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar, cast

import numpy as np

from flame.core.errors import CancelledError, FlameError, InputError
from flame.core.external import import_path, python_command
from flame.core.loading.file import load_file
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions, Progress

if TYPE_CHECKING:
    from flame.core.reopening.profile_cache import ProfileCache

T = TypeVar("T")

Work = Callable[[Path, LoadOptions, Progress], T]
"""What a process does with a file: a function of a module, or a partial of one."""

GRACE = 2.0
"""Seconds that a process that is stopped has to clean up: one that is killed leaves files."""

_PIPE = 1 << 20
_INTERVAL = 0.05
_LONGEST_REASON = 200
_PROGRAM = """\
import sys; sys.path[:] = {path}
from flame.core.starting import prepare_process; prepare_process()
from flame.core.loading.worker import serve; serve()
"""


class EndedError(InputError):
    """Report that the process that read a file has died."""


class LoadProcess:
    """A process that reads traces, one after another; OSError where none can be started.

    It is the program anew and no fork: those with threads must not be forked. Ctrl+c in a terminal
    does not reach it, `stop` does; it also ends when nobody reads what it says. ``environment`` is
    added to this process's.
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `end`)
        try:
            self._process = subprocess.Popen(
                python_command("-c", _PROGRAM.format(path=ascii(import_path()))),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                pipesize=_PIPE,
                process_group=0,
                env=None if environment is None else {**os.environ, **environment},
            )
        except OSError:
            self._stderr.close()
            raise
        self._requests = cast("BinaryIO", self._process.stdin)
        self._answers = cast("BinaryIO", self._process.stdout)

    def load(
        self,
        path: Path,
        options: LoadOptions,
        progress: Progress,
        cache: ProfileCache | None = None,
    ) -> Profile:
        """Load the profile of the trace at ``path``; ``progress`` is handed on.

        It is kept in ``cache``. Raises as `run` does.
        """
        return self.run(partial(_load, cache=cache), path, options, progress)

    def run(self, work: Work[T], path: Path, options: LoadOptions, progress: Progress) -> T:
        """Return what ``work`` makes of the file at ``path`` there; ``progress`` is handed on.

        Raises what ``work`` raises, EndedError where the process has died.
        """
        try:
            pickle.dump((work, path, options), self._requests)
            self._requests.flush()
            return cast("T", self._read_answers(progress))
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            raise self._explain_death(path) from None

    def _read_answers(self, progress: Progress) -> object:
        while True:
            what, *details = pickle.load(self._answers)
            if what == "progress":
                progress(*details)
            elif what == "result":
                return _receive_result(self._answers, *details)
            else:
                raise details[0]

    def _explain_death(self, path: Path) -> EndedError:
        """Say why there is no answer."""
        code = self._process.wait()
        if code < 0:
            name = signal.strsignal(-code) or f"signal {-code}"
            hint = ": is there enough memory?" if -code == signal.SIGKILL else ""
            return EndedError(f"{path}: the process reading it was ended: {name}{hint}")
        self._stderr.seek(0)
        lines = self._stderr.read().decode("utf-8", "replace").split("\n")
        reason = next((line.strip() for line in reversed(lines) if line.strip()), f"exit {code}")
        return EndedError(f"{path}: the process reading it failed: {reason[:_LONGEST_REASON]}")

    def stop(self) -> None:
        """Ask the process to clean up and end."""
        self._process.terminate()

    def kill(self, patience: float) -> None:
        """End the process for certain, after ``patience`` seconds."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(max(patience, 0))
        self._process.kill()

    def close(self) -> None:
        """Wait for the end of the process, which has been seen to."""
        self._process.wait()
        for file in (self._stderr, self._requests, self._answers):
            with suppress(BrokenPipeError):
                file.close()


def _receive_result(answers: BinaryIO, size: int, sizes: list[int]) -> object:
    """Receive the result whose pickle of ``size`` bytes and columns of ``sizes`` follow."""
    data, *columns = (_receive_bytes(answers, number) for number in (size, *sizes))
    return pickle.loads(data, buffers=columns)


def _receive_bytes(answers: BinaryIO, size: int) -> Any:
    """Receive the next ``size`` bytes, into memory that nothing has been written to before."""
    buffer = np.empty(size, np.uint8).data
    at = 0
    while at < size:
        length = answers.readinto(buffer[at:])  # type: ignore[attr-defined]
        if not length:
            raise EOFError
        at += length
    return buffer


# The other end


def serve() -> None:
    """Read the traces that standard input names, and answer on standard output; never returns."""
    stop = _Stop()
    signal.signal(signal.SIGTERM, stop)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # Whatever else is printed is no answer.
    with suppress(KeyboardInterrupt, CancelledError, BrokenPipeError, EOFError):
        while True:
            _answer_request(answers, stop, *pickle.load(sys.stdin.buffer))
            answers.flush()
    # As it is: what is still buffered is for nobody.
    os._exit(0)


class _Stop:
    """Ends a load by an exception where a signal comes, and notes that: Python ignores some.

    Such as one that is raised while a generator is closed.
    """

    called = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.called = True
        raise KeyboardInterrupt


def _answer_request(
    answers: BinaryIO, stop: _Stop, work: Work[object], path: Path, options: LoadOptions
) -> None:
    try:
        result = work(path, options, _ProgressSender(answers, stop))
    except (CancelledError, BrokenPipeError):
        raise
    except FlameError as error:
        pickle.dump(("error", error), answers)
    except Exception as error:
        crash = RuntimeError(f"{path}: {type(error).__name__}: {error}")
        crash.add_note(traceback.format_exc())
        pickle.dump(("error", crash), answers)
    else:
        _send_result(answers, result)


def _load(
    path: Path, options: LoadOptions, progress: Progress, cache: ProfileCache | None
) -> Profile:
    if cache is None:
        return load_file(path, options, progress)
    profile = cache.load(path, options, load_file, progress)
    cache.write()
    return profile


def _send_result(answers: BinaryIO, result: object) -> None:
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(result, protocol=5, buffer_callback=buffers.append)
    columns = [buffer.raw() for buffer in buffers]
    pickle.dump(("result", len(data), [column.nbytes for column in columns]), answers)
    answers.write(data)
    answers.writelines(columns)


class _ProgressSender:
    """Sends how far the load is: every new stage, else twenty times a second."""

    def __init__(self, answers: BinaryIO, stop: _Stop) -> None:
        self._answers, self._stop = answers, stop
        self._stage = ""
        self._due = 0.0

    def __call__(self, stage: str, done: int, expected: int) -> None:
        if self._stop.called:
            raise CancelledError("stopped")
        now = time.monotonic()
        if stage != self._stage or now >= self._due:
            self._stage, self._due = stage, now + _INTERVAL
            pickle.dump(("progress", stage, done, expected), self._answers)
            self._answers.flush()
