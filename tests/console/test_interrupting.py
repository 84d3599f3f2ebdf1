"""Ctrl+c during a load: its thread is asked to end, and not waited for where it does not."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, main_thread

import pytest

from flame.console import interrupting
from flame.console.interrupting import load_interruptibly
from flame.core.errors import CancelledError, InputError
from flame.core.model.profile import Profile
from flame.core.options import Progress
from tests.support.profiles.recorded import Recorded


class Shown:
    """Progress that is shown, and what has been told of it."""

    def __init__(self) -> None:
        self.told: list[str] = []

    @contextmanager
    def bar(self) -> Iterator[Progress]:
        try:
            yield lambda stage, done, expected: self.told.append(stage)
        finally:
            self.told.append("removed")


def press_ctrl_c() -> None:
    """Interrupt the main thread, as the terminal does."""
    signal.pthread_kill(main_thread().ident or 0, signal.SIGINT)


def test_what_is_loaded_is_returned_and_its_progress_shown() -> None:
    profile, shown = Recorded().profile(), Shown()

    def load(progress: Progress) -> Profile:
        progress("reading", 1, 2)
        return profile

    assert load_interruptibly(load, shown.bar()) is profile
    assert shown.told == ["reading", "removed"]


@pytest.mark.parametrize("error", [InputError("no trace"), MemoryError(), KeyboardInterrupt()])
def test_what_a_load_raises_is_raised(error: BaseException) -> None:
    def load(progress: Progress) -> Profile:
        raise error

    with pytest.raises(type(error)) as raised:
        load_interruptibly(load, Shown().bar())
    assert raised.value is error


def test_a_load_that_is_interrupted_is_told_when_it_next_reports() -> None:
    ended: list[type[BaseException]] = []

    def load(progress: Progress) -> Profile:
        press_ctrl_c()
        try:
            while True:
                progress("reading", 1, 2)
        except CancelledError as error:
            ended.append(type(error))  # here it cleans up
            raise

    with pytest.raises(KeyboardInterrupt):
        load_interruptibly(load, Shown().bar())
    assert ended == [CancelledError]


def test_one_that_does_not_report_is_left_after_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    shown, goes_on, codes = Shown(), Event(), list[int]()
    monkeypatch.setattr(interrupting, "_GRACE", 0)

    def end(code: int) -> None:
        codes.append(code)
        shown.told.append("exit")

    monkeypatch.setattr(os, "_exit", end)

    def load(progress: Progress) -> Profile:
        press_ctrl_c()
        goes_on.wait()
        raise CancelledError("too late")

    with pytest.raises(KeyboardInterrupt):
        load_interruptibly(load, shown.bar())
    goes_on.set()
    assert codes == [130]
    assert shown.told == ["removed", "exit"], "the terminal is as it was"
