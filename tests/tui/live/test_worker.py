"""The thread that follows a recording, without any app: what it hands in, and when."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from textual.message import Message

from flame.core.errors import InputError
from flame.core.live.window import ALL, LAST_10, SECOND, LiveWindow
from flame.core.options import LoadOptions
from flame.core.projection.selection import Selection
from flame.tui.live import worker as live_worker
from flame.tui.live.worker import LiveRequest, LiveWorker, Renewed, StatusChanged, WorkerFailed
from flame.tui.session.query import Query
from tests.support.waiting import PATIENCE, wait_until
from tests.tui.recording import MS, Recording

GEMM = ("step", "gemm")


class Desk:
    """A worker and what it posts."""

    def __init__(
        self, recording: Recording, window: LiveWindow = ALL, watch: Watched | None = None
    ) -> None:
        self.inbox: queue.Queue[Message] = queue.Queue()
        self.wish = LiveRequest(Selection())
        feed = recording if watch is None else watch.feed
        options = LoadOptions()
        self.worker = LiveWorker(
            feed, watch, "train.py", options, window, lambda: self.wish, self.inbox.put
        )
        self.worker.start()

    def next(self) -> Renewed:
        """The next picture, which is shown."""
        message = self.until(lambda one: isinstance(one, Renewed))
        assert isinstance(message, Renewed)
        self.worker.taken(shown=True)
        return message

    def until(self, fits: Callable[[StatusChanged | Renewed], bool]) -> StatusChanged | Renewed:
        """The next that ``fits``."""
        end = time.monotonic() + PATIENCE
        while not fits(message := self.message()):
            assert time.monotonic() < end, "it never came"
        return message

    def message(self) -> StatusChanged | Renewed:
        """What comes next, and is not shown."""
        message = self.inbox.get(timeout=PATIENCE)
        if isinstance(message, WorkerFailed):
            raise message.error
        assert isinstance(message, StatusChanged | Renewed)
        return message

    def silent(self) -> bool:
        """Whether no picture comes for so long that it is told several times that none does."""
        known = [self.message() for _ in range(self.inbox.qsize())]
        later = [self.message() for _ in range(3)]
        return not any(isinstance(one, Renewed) for one in (*known, *later))


class Watched:
    """Finds ``paths`` at once; the feed takes a file for a dump from the third time on."""

    over = False

    def __init__(self, recording: Recording, *paths: Path) -> None:
        self._paths = list(paths)
        self.feed = Picky(recording)

    def new(self) -> list[tuple[Path, int | None]]:
        found, self._paths = self._paths, []
        return [(path, None) for path in found]


class Picky:
    """A feed that does not take files for dumps at first; else ``recording``."""

    def __init__(self, recording: Recording) -> None:
        self.tried: list[Path] = []
        self.sources = ()
        self.update, self.snapshot = recording.update, recording.snapshot
        self.mark, self.status, self.close = recording.mark, recording.status, recording.close

    def add(self, path: Path, fd: int | None = None) -> None:
        self.tried.append(path)
        if path.name == "never" or self.tried.count(path) < 3:
            raise InputError(f"{path.name}: no dump")


@pytest.fixture(autouse=True)
def _in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_worker, "STEP", 0.02)
    monkeypatch.setattr(live_worker, "_LOOK", 0.1)
    monkeypatch.setattr(live_worker, "_SHARE", 0)


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    one = Recording(tmp_path)
    one.run(GEMM, GEMM)
    return one


@pytest.fixture
def desks() -> Iterator[list[Desk]]:
    """Workers to be stopped with the test."""
    started: list[Desk] = []
    yield started
    for desk in started:
        desk.worker.stop()


def desk(desks: list[Desk], recording: Recording, *args: LiveWindow | Watched) -> Desk:
    desks.append(Desk(recording, *args))  # type: ignore[arg-type]
    return desks[-1]


def total(message: Renewed) -> int:
    return int(message.latest.view.tree.total[0])


def test_a_picture_comes_only_when_there_is_something_new(
    desks: list[Desk], recording: Recording
) -> None:
    one = desk(desks, recording)
    assert total(one.next()) == 2 * MS
    assert one.silent()
    recording.run(GEMM)
    assert total(one.next()) == 3 * MS
    assert one.silent()


def test_nothing_is_projected_until_the_last_picture_is_shown(
    desks: list[Desk], recording: Recording
) -> None:
    one = desk(desks, recording)
    assert isinstance(one.next(), Renewed)
    recording.run(GEMM)
    one.until(lambda message: isinstance(message, Renewed))
    recording.run(GEMM)
    assert one.silent()
    one.worker.taken(shown=True)
    assert total(one.next()) == 4 * MS


def test_a_picture_that_was_not_wanted_comes_again_as_it_is_wanted(
    desks: list[Desk], recording: Recording
) -> None:
    one = desk(desks, recording)
    assert one.next().latest.metric.key == "gpu"
    one.wish = LiveRequest(Selection(metric="count"), Query("gemm"))
    one.worker.taken(shown=False)
    message = one.next()
    assert (message.latest.metric.key, total(message)) == ("count", 2)
    assert message.found is not None and message.found.matches.total == 2


def test_a_window_moves_on_until_it_is_empty(desks: list[Desk], recording: Recording) -> None:
    one = desk(desks, recording, LAST_10)
    assert total(one.next()) == 2 * MS
    recording.wait(11 * SECOND)
    while total(one.next()):
        pass
    assert one.silent()
    recording.run(GEMM)
    assert total(one.next()) == MS


def test_pictures_that_take_long_delay_no_reading(
    desks: list[Desk], recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_worker, "_SHARE", 1 << 20)
    monkeypatch.setattr(live_worker, "_LONGEST", 10 * PATIENCE)
    one = desk(desks, recording)
    one.next()
    before = recording.updates
    recording.run(GEMM)
    wait_until(lambda: recording.updates > before + 2)
    assert one.silent()
    one.worker.turn(LAST_10)
    assert total(one.next()) == 3 * MS


def test_what_is_left_is_read_at_once(
    desks: list[Desk], recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_worker, "STEP", 10 * PATIENCE)
    watch = Watched(recording)
    watch.feed.status = lambda: replace(recording.status(), behind=max(5 - recording.updates, 0))
    desk(desks, recording, ALL, watch)
    wait_until(lambda: recording.updates >= 5)


def test_nothing_is_shown_before_anything_was_recorded(tmp_path: Path, desks: list[Desk]) -> None:
    recording = Recording(tmp_path)
    one = desk(desks, recording)
    assert isinstance(one.message(), StatusChanged)
    assert one.silent()
    recording.run(GEMM)
    assert total(one.next()) == MS


def test_what_was_recorded_long_ago_is_there_in_an_empty_window(
    desks: list[Desk], recording: Recording
) -> None:
    recording.wait(100 * SECOND)
    one = desk(desks, recording, LAST_10)
    assert one.next().latest.empty
    one.worker.turn(ALL)
    assert total(one.next()) == 2 * MS


def test_the_usual_metric_stays_gpu_time_in_an_empty_window(
    desks: list[Desk], recording: Recording
) -> None:
    one = desk(desks, recording, LAST_10)
    assert one.next().latest.metric.key == "gpu"
    recording.wait(11 * SECOND)
    while not (message := one.next()).latest.empty:
        pass
    assert message.latest.metric.key == "gpu"


def test_files_that_become_dumps_are_read_then(desks: list[Desk], recording: Recording) -> None:
    watch = Watched(recording, Path("late"), Path("never"))
    one = desk(desks, recording, ALL, watch)

    def has_notes(message: StatusChanged | Renewed) -> bool:
        if isinstance(message, Renewed):
            one.worker.taken(shown=True)
        return bool(message.status.notes)

    assert one.until(has_notes).status.notes == ("never: no dump",)
    assert watch.feed.tried.count(Path("late")) == 3


def test_the_feed_is_closed_in_the_end(desks: list[Desk], recording: Recording) -> None:
    one = desk(desks, recording)
    one.next()
    one.worker.stop()
    assert recording.closed


def test_what_is_wrong_is_among_the_warnings(
    desks: list[Desk], recording: Recording, tmp_path: Path
) -> None:
    watch = Watched(recording, tmp_path / "never")
    one = desk(desks, recording, ALL, watch)
    while watch.feed.tried.count(tmp_path / "never") <= live_worker._TRIES:
        recording.run(GEMM)
        one.next()
    recording.run(GEMM)
    said = one.next().session.profile.warnings
    assert said[-1] == "never: no dump"
