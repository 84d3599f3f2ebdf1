"""Programs without the library, sampled by the real py-spy."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import psutil
import pytest

from flame.attach.pyspy import run as pyspy
from flame.attach.pyspy.feed import CpuFeed
from flame.core.errors import FlameError, InputError, UsageError
from flame.core.live.status import SourceState
from flame.core.live.window import ALL, LAST_10, SECOND, SINCE_MARK
from flame.core.model.profile import Profile
from tests.attach.conftest import Start, as_nobody, needs_root, wait_until
from tests.attach.trees import Tree
from tests.attach.trees import tree as tree
from tests.support.profiles.project_tree import project_tree

pytestmark = pytest.mark.deep

WORK = """
import subprocess, sys, threading, time

def spin(seconds):
    # However busy the machine is, one function needs three times as much of it as the other.
    end = time.thread_time() + seconds
    while time.thread_time() < end:
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
def nothing_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No file and no process is left behind."""
    temporary = tmp_path / "temporary"  # other tests sample at the same time
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    yield
    assert not list(temporary.iterdir())
    assert not sampling()


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


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """From when to when each run of py-spy has sampled, ns."""
    times: list[tuple[int, int]] = []
    take = CpuFeed._take

    def record(feed: CpuFeed, data: bytes, begin: int, end: int) -> None:
        times.append((begin, end))
        take(feed, data, begin, end)

    monkeypatch.setattr(CpuFeed, "_take", record)
    return times


@pytest.mark.deep
def test_who_runs_is_seen_for_as_long_as_it_runs(
    start: Start, feeds: list[CpuFeed], taken: list[tuple[int, int]]
) -> None:
    process = start(sys.executable, "-c", ALONE, "600")
    feed = CpuFeed(process.pid)
    feeds.append(feed)
    assert feed.status().sources[0].state is SourceState.RUNNING
    wait_until(lambda: len(taken) > 2 and functions(feed.snapshot(ALL).profile)["<module>"] > 200)
    process.kill()
    process.wait()
    wait_until(lambda: feed.status().sources[0].state is SourceState.ENDED)
    assert all(later[0] <= sooner[1] for sooner, later in pairwise(taken))  # without a gap
    sampled = sum(end - begin for begin, end in taken) / SECOND
    seen = functions(feed.snapshot(ALL).profile)
    # Of a machine that does other things too; a run goes on until it has heard that it shall end.
    assert 0.15 * pyspy.RATE * sampled < seen["<module>"] < 1.5 * pyspy.RATE * sampled
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


@pytest.mark.deep
def test_children_are_sampled_too(tree: Tree, feeds: list[CpuFeed]) -> None:
    # Its command line has line breaks and semicolons in it.
    feed = CpuFeed(tree(sys.executable, "-c", FAMILY, "600").pid)
    feeds.append(feed)
    # The child begins later, and is seen as often from then on.
    wait_until(lambda: len(shares(feed)) == 2 and min(shares(feed)) > 0.3 * max(shares(feed)))
    assert len(feed.snapshot(ALL).profile.processes) == 2


def shares(feed: CpuFeed) -> list[int]:
    """How many samples there are of each process."""
    if not total(feed):
        return []
    tree = project_tree(feed.snapshot(ALL).profile, "process,stack")
    return [int(tree.total[node]) for node in range(len(tree)) if tree.depth[node] == 1]


def test_a_run_that_is_killed_is_missed_and_said(start: Start, feeds: list[CpuFeed]) -> None:
    feed = CpuFeed(start(sys.executable, "-c", ALONE, "60").pid)
    feeds.append(feed)
    wait_until(lambda: total(feed) > 0)

    def is_said() -> bool:
        return any("not written: " in note for note in feed.status().notes)

    def is_killed() -> bool:
        """Whether a run was killed in time: one that has written its samples is not missed."""
        before = total(feed)
        for one in sampling():
            one.kill()
        wait_until(lambda: is_said() or total(feed) > before)
        return is_said()

    wait_until(is_killed)
    before = total(feed)
    wait_until(lambda: total(feed) > before)
    assert feed.status().sources[0].state is SourceState.RUNNING


def test_without_py_spy_it_says_how_to_get_it(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/usr/bin/nothing")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UsageError, match="pip install py-spy"):
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


LIMITED = "until [ $(ulimit -f) != unlimited ]; do sleep 0.01; done"


def test_a_file_without_end_is_cut_off_and_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pyspy, "_LARGEST", 1 << 20)
    put_py_spy(tmp_path, monkeypatch, f'{LIMITED}\nexec cat /dev/zero >"$5"')
    run = pyspy.PySpyRun(pyspy.program(), 1, tmp_path, 1)
    try:
        wait_until(lambda: not run.running)
    finally:
        run.kill()
    assert (tmp_path / "1.json").stat().st_size == 1 << 20
    assert run.take() == b""
    assert run.error == "py-spy has failed (File size limit exceeded)"


def test_of_a_long_log_the_beginning_and_the_end_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = "echo Sampling process; yes | head -c 1000000; echo Samples: 9 Errors: 7; echo Error: bad"
    put_py_spy(tmp_path, monkeypatch, f"{log}; exit 1")
    run = pyspy.PySpyRun(pyspy.program(), 1, tmp_path, 1)
    wait_until(lambda: not run.running)
    assert (run.unread, run.error) == (7, "py-spy has failed (bad)")
    assert len(run._said()) < 200_000


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
    status = Path(f"/proc/{process.pid}/status")
    while not total(feed):
        lines = dict(line.split(":\t", 1) for line in status.read_text().splitlines())
        assert lines["TracerPid"] == "0"
        assert lines["State"][0] not in "tT"
    assert os.getpgid(sampling()[0].pid) != os.getpgid(0)
