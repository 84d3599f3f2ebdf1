"""Programs without the library, sampled by the real py-spy."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest

from flame.attach.pyspy import run as pyspy
from flame.attach.pyspy.feed import CpuFeed
from flame.core.errors import FlameError, InputError, UsageError
from flame.core.live.status import SourceState
from flame.core.live.window import ALL, LAST_10, SINCE_MARK
from flame.core.model.profile import Profile
from tests.attach.conftest import Start, as_nobody, needs_root, wait_until
from tests.support.project_tree import project_tree

WORK = """
import subprocess, sys, threading, time

def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass

def often(): spin(0.03)
def seldom(): spin(0.01)

def work(end):
    while time.monotonic() < end:
        often()
        seldom()

threading.Thread(target=time.sleep, args=[60], daemon=True).start()
end = time.monotonic() + float(sys.argv[1])
"""
ALONE = f"{WORK}\nwork(end)"
FAMILY = f"""{WORK}
child = subprocess.Popen([sys.executable, "-c", "x = 1; y = 2\\n" + '''{ALONE}''', sys.argv[1]])
work(end)
child.wait()
"""


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """No file and no process is left behind."""
    before = folders()
    yield
    assert folders() == before
    assert not sampling()


def folders() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob("flame-cpu-*"))


def sampling() -> list[psutil.Process]:
    """The py-spys that this test has started."""
    children = psutil.Process().children()
    return [one for one in children if one.name() == "py-spy" and one.status() != "zombie"]


@pytest.fixture(scope="module", autouse=True)
def needs_pyspy() -> None:
    try:
        pyspy.program()
    except UsageError as error:
        pytest.skip(str(error))


@pytest.fixture
def feeds() -> Iterator[list[CpuFeed]]:
    """What is closed in the end."""
    opened: list[CpuFeed] = []
    yield opened
    for one in opened:
        one.close()


def functions(profile: Profile) -> dict[str, int]:
    """How often each function was seen with others that it called, or alone."""
    tree = project_tree(profile, "stack")
    found: dict[str, int] = {}
    names = [profile.frames[frame].name for frame in tree.frame]
    for name in set(names[1:]):
        # What a module imports is a module in a module.
        mask = np.array([one == name for one in names])
        found[name] = int(tree.total[tree.outermost(mask)].sum())
    return found


def total(feed: CpuFeed) -> int:
    return int(feed.snapshot(ALL).profile.activities.measures["samples"].sum())


def test_who_runs_is_seen_for_as_long_as_it_runs(start: Start, feeds: list[CpuFeed]) -> None:
    begin = time.monotonic()
    feed = CpuFeed(start(sys.executable, "-c", ALONE, "4").pid)
    feeds.append(feed)
    assert feed.status().sources[0].state is SourceState.RUNNING
    wait_until(lambda: feed.status().sources[0].state is SourceState.ENDED)
    lasted = time.monotonic() - begin
    seen = functions(feed.snapshot(ALL).profile)
    # Of a machine that does other things too; without a gap between the runs.
    assert 0.15 * pyspy.RATE * lasted < seen["<module>"] < 1.1 * pyspy.RATE * lasted
    assert 2 < seen["often"] / seen["seldom"] < 4.5
    assert seen["<module>"] <= total(feed)
    assert "sleep" not in seen


def test_nobody_takes_it_for_gpu_time(start: Start, feeds: list[CpuFeed]) -> None:
    feed = CpuFeed(start(sys.executable, "-c", ALONE, "30").pid)
    feeds.append(feed)
    assert feed.title.startswith("[cpu] ")
    wait_until(lambda: total(feed) > 0)
    profile = feed.snapshot(LAST_10).profile
    assert profile.resolved
    assert [(one.title, one.unit) for one in profile.metrics] == [("CPU samples", "count")]
    assert profile.warnings[0].startswith("[cpu] Python samples")
    assert "no GPU time" in profile.warnings[0]
    assert feed.status().notes == profile.warnings
    assert not len(feed.status().rates.busy)


def test_what_came_since_the_mark(start: Start, feeds: list[CpuFeed]) -> None:
    feed = CpuFeed(start(sys.executable, "-c", ALONE, "30").pid)
    feeds.append(feed)
    wait_until(lambda: total(feed) > 0)
    feed.mark()
    before = total(feed)
    assert not len(feed.snapshot(SINCE_MARK).profile.activities)
    wait_until(lambda: len(feed.snapshot(SINCE_MARK).profile.activities))
    since = feed.snapshot(SINCE_MARK).profile.activities.measures["samples"].sum()
    assert 0 < since < total(feed)
    assert since <= total(feed) - before


def test_an_update_says_whether_there_is_something_new(start: Start, feeds: list[CpuFeed]) -> None:
    process = start(sys.executable, "-c", ALONE, "30")
    feed = CpuFeed(process.pid)
    feeds.append(feed)
    assert feed.update()
    assert not feed.update()
    versions = {feed.snapshot(ALL).version}
    wait_until(feed.update)
    versions.add(feed.snapshot(ALL).version)
    assert len(versions) == 2
    process.kill()
    process.wait()
    wait_until(lambda: feed.status().sources[0].state is SourceState.ENDED)
    assert feed.update()
    ended = feed.snapshot(ALL)
    assert ended.end == feed.snapshot(ALL).end
    assert feed.status().elapsed == ended.end


def test_children_are_sampled_too(start: Start, feeds: list[CpuFeed]) -> None:
    # Its command line has line breaks and semicolons in it.
    feed = CpuFeed(start(sys.executable, "-c", FAMILY, "4").pid)
    feeds.append(feed)
    wait_until(lambda: feed.status().sources[0].state is SourceState.ENDED)
    profile = feed.snapshot(ALL).profile
    assert len(profile.processes) == 2
    by_process = project_tree(profile, "process,stack")
    shares = [
        int(by_process.total[node])
        for node in range(len(by_process))
        if by_process.depth[node] == 1
    ]
    assert len(shares) == 2
    assert min(shares) > 0.3 * max(shares)


def test_a_run_that_is_killed_is_missed_and_said(start: Start, feeds: list[CpuFeed]) -> None:
    feed = CpuFeed(start(sys.executable, "-c", ALONE, "60").pid)
    feeds.append(feed)
    wait_until(lambda: total(feed) > 0)
    for one in sampling():
        one.kill()
    wait_until(lambda: "not written: " in feed.status().notes[-1])
    before = total(feed)
    wait_until(lambda: total(feed) > before)
    assert feed.status().sources[0].state is SourceState.RUNNING


def test_without_py_spy_it_says_how_to_get_it(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/usr/bin/nothing")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UsageError, match=r"pip install 'flame-view\[cpu\]'"):
        CpuFeed(start("/bin/sleep", "60").pid)


def put_py_spy(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Another program under its name."""
    (folder / "py-spy").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "py-spy").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo 'Error: no luck' >&2; exit 1", "py-spy has failed (no luck)"),
        ("exit 3", "py-spy has failed (exit code 3)"),
        ("kill -SEGV $$", "py-spy has failed (Segmentation fault)"),
    ],
)
def test_a_py_spy_that_fails(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: str
) -> None:
    put_py_spy(tmp_path, monkeypatch, script)
    pid = start("sleep", "60").pid
    with pytest.raises(InputError) as caught:
        CpuFeed(pid)
    assert str(caught.value) == f"{pid}: {said}"


def test_a_py_spy_that_fails_later(
    start: Start, feeds: list[CpuFeed], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = start(sys.executable, "-c", ALONE, "60")
    worn_out = f"[ -e {tmp_path}/used ] && echo 'Error: worn out' && exit 1"
    put_py_spy(
        tmp_path, monkeypatch, f'{worn_out}\ntouch {tmp_path}/used\nexec {pyspy.program()} "$@"'
    )
    feed = CpuFeed(process.pid)
    feeds.append(feed)
    wait_until(lambda: feed.status().sources[0].state is SourceState.STOPPED)
    assert "nothing more is sampled: py-spy has failed (worn out)" in feed.status().notes
    assert total(feed) > 0
    assert process.poll() is None


def test_a_program_that_is_no_python(start: Start) -> None:
    with pytest.raises(InputError, match="it is no Python program"):
        CpuFeed(start("sleep", "60").pid)


def test_no_such_process() -> None:
    with pytest.raises(InputError, match="there is no such process"):
        CpuFeed(1 << 22)


@needs_root
def test_a_process_of_another_user(start: Start) -> None:
    pid = start("sleep", "60").pid

    def refused() -> str:
        try:
            CpuFeed(pid)
        except FlameError as error:
            return str(error)
        return ""

    assert as_nobody(refused) == f"{pid}: it belongs to root: run flame as root"


def test_the_program_is_never_stopped(start: Start, feeds: list[CpuFeed]) -> None:
    process = start(sys.executable, "-c", ALONE, "60")
    feed = CpuFeed(process.pid)
    feeds.append(feed)
    end = time.monotonic() + 1
    status = Path(f"/proc/{process.pid}/status")
    while time.monotonic() < end:
        lines = dict(line.split(":\t", 1) for line in status.read_text().splitlines())
        assert lines["TracerPid"] == "0"
        assert lines["State"][0] not in "tT"
    assert os.getpgid(sampling()[0].pid) != os.getpgid(0)
