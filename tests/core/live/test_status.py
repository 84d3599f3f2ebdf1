"""How a live recording is doing: its rates, and the states of its dumps."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from pathlib import Path

import pytest

from flame.core.live import feed as feed_module
from flame.core.live.feed import RecordingFeed
from flame.core.live.status import SourceState
from flame.core.live.window import ALL, LAST_10, SECOND
from flame.core.options import LoadOptions
from tests.core.live.recordings import Clock, at, running
from tests.inject.conftest import small_file_system
from tests.support.waiting import wait_until
from tests.support.writers.fdumpfile import START, DumpFile


def test_rates_of_the_last_minute(feed: RecordingFeed, clock: Clock, tmp_path: Path) -> None:
    dump = running(start=0)
    at(dump, 2 * SECOND, length=SECOND)
    at(dump, 2 * SECOND + SECOND // 4, length=SECOND // 2, first=2)  # Busy already.
    at(dump, 3 * SECOND + SECOND // 4, length=SECOND // 4, first=3)
    clock.now = 5 * SECOND + 17  # Of the last second not all is known yet.
    feed.add(dump.write(tmp_path / "100-1.fdump"))
    feed.update()
    rates = feed.status().rates
    assert rates.step == SECOND // 2 and len(rates.busy) == len(rates.launches) == 120
    assert rates.busy[-5:].tolist() == [0, 1, 1, 0.5, 0]
    assert rates.launches[-5:].tolist() == [1, 1, 0, 1, 0]
    assert rates.number == 8


def test_a_gpu_is_as_busy_as_before_when_its_process_is_started_again(
    feed: RecordingFeed, clock: Clock, tmp_path: Path
) -> None:
    for pid, begin in ((100, 0), (101, 2 * SECOND)):
        dump = at(running(pid, START + begin), 5, length=2 * SECOND - 10)
        dump.ended, dump.end = True, 2 * SECOND - 10
        feed.add(dump.write(tmp_path / f"{pid}-1.fdump"))
    feed.update()
    clock.now = START + 4 * SECOND
    feed.update()
    assert feed.status().rates.busy[-7:] == pytest.approx([1] * 7, abs=1e-6)


def test_states(feed: RecordingFeed, clock: Clock, tmp_path: Path) -> None:
    for number, (ended, flags) in enumerate([(True, 0), (True, 1), (True, 2), (False, 0)], 1):
        dump = at(DumpFile(number << 22), 100)  # A pid that no process has.
        dump.ended, dump.flags, dump.dropped = ended, flags, number
        feed.add(dump.write(tmp_path / f"{number}.fdump"))
    feed.update()
    status = feed.status()
    assert [one.state for one in status.sources] == [
        SourceState.ENDED,
        SourceState.FULL,
        SourceState.STOPPED,
        SourceState.RUNNING,
    ]
    assert status.dropped == 10 and status.running == 1 and status.behind == 0 and status.lag == 0
    clock.now += 4 * SECOND
    feed.update()
    assert feed.status().sources[-1].state is SourceState.KILLED
    assert feed.snapshot(ALL).end == 110


def test_a_recording_lasts_until_its_last_word(
    feed: RecordingFeed, clock: Clock, tmp_path: Path
) -> None:
    dump = at(DumpFile(), 100)
    dump.end = 5 * SECOND
    feed.add(dump.write(tmp_path / "100-1.fdump"))
    clock.now += 100 * SECOND
    feed.update()
    assert feed.status().elapsed == feed.snapshot(LAST_10).end == 5 * SECOND
    assert feed.snapshot(LAST_10).profile.gpu_time == 10


HOLD = """
import mmap, os, sys, time
file = os.open(sys.argv[1], os.O_RDWR)
held = mmap.mmap(file, 4096)
print("held", flush=True)
sys.stdin.readline()
os.execlp("sleep", "sleep", "60")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_a_file_of_the_same_number_on_another_device_is_another_dump(tmp_path: Path) -> None:
    clock = Clock()
    clock.now = feed_module.monotonic()
    feed = RecordingFeed(LoadOptions(), clock)
    with small_file_system(tmp_path / "a", 1) as a, small_file_system(tmp_path / "b", 1) as b:
        paths = [folder / "1.fdump" for folder in (a, b)]
        for path in paths:
            path.write_bytes(bytes(mmap.PAGESIZE))
        command = [sys.executable, "-c", HOLD, str(paths[0])]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == b"held\n"
                for path in paths:
                    dump = running(process.pid, start=feed_module.monotonic() + SECOND)
                    dump.write(path)
                    feed.add(path)
                assert paths[0].stat().st_ino == paths[1].stat().st_ino
                feed.update()
                clock.now += 20 * SECOND
                feed.update()
                states = [one.state for one in feed.status().sources]
                assert states == [SourceState.RUNNING, SourceState.KILLED]
            finally:
                process.kill()
        feed.close()


def test_a_process_that_is_there_and_says_nothing_is_running_until_an_exec(
    feed: RecordingFeed, tmp_path: Path
) -> None:
    path = tmp_path / "1.fdump"
    clock = Clock()
    clock.now = feed_module.monotonic()
    feed = RecordingFeed(LoadOptions(), clock)
    path.write_bytes(b"x")
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            dump = running(process.pid, start=feed_module.monotonic() + SECOND)
            dump.write(path)
            assert process.stdout is not None and process.stdin is not None
            assert process.stdout.readline() == "held\n"
            feed.add(path)
            assert state_after(feed, clock, 20) is SourceState.RUNNING
            process.stdin.write("\n")
            process.stdin.flush()
            wait_until(lambda: Path(f"/proc/{process.pid}/comm").read_text() == "sleep\n")
            assert state_after(feed, clock, 20) is SourceState.KILLED
        finally:
            process.kill()
    feed.close()


def state_after(feed: RecordingFeed, clock: Clock, seconds: int) -> SourceState:
    """The state once ``seconds`` have passed without a word."""
    feed.update()
    clock.now += seconds * SECOND
    feed.update()
    return feed.status().sources[0].state
