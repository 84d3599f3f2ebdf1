"""PC samples of recordings that go on: below the kernels of snapshots, with code when known."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from flame.core.errors import UsageError
from flame.core.live.feed import RecordingFeed
from flame.core.live.sums import samples as live_samples
from flame.core.live.window import ALL, LAST_10, SECOND
from flame.core.loading.many import load, load_all
from flame.core.model.pc_samples import Code
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions
from flame.core.sass.code_files import write_codes
from flame.core.sass.module_lives import CubinId
from flame.exporters.dumps import copy_dumps
from tests.core.live.recordings import Clock, at, running
from tests.support.profiles.project_tree import project_tree
from tests.support.waiting import wait_until
from tests.support.writers.fdumpfile import START, DumpFile

CRC = 0xAB
LEVELS = "process,kernel,sass,stall"
REASONS = {1: "long_scoreboard", 2: "wait", 3: "wait_not_issued"}
Path_ = tuple[str, ...]


@pytest.fixture
def feed(monkeypatch: pytest.MonkeyPatch) -> Iterator[RecordingFeed]:
    monkeypatch.setattr(live_samples, "_PACE", 0)
    monkeypatch.setattr(live_samples, "_REST", 0)
    feed = RecordingFeed(LoadOptions(), Clock())
    yield feed
    feed.close()


def sampled(pid: int = 100) -> DumpFile:
    """A dump that goes on, with names for the reasons."""
    dump = running(pid)
    for number, name in REASONS.items():
        dump.name(6, number, f"smsp__pcsamp_warps_issue_stalled_{name}")
    return dump


def sample(
    dump: DumpFile, function: str, offset: int, reason: int, samples: int, **when: int
) -> None:
    where = {"crc": CRC, "function": dump.text(function), "offset": offset}
    dump.record("sample", **where, **when, reason=reason, samples=samples, correlation=7)


def paths(profile: Profile, levels: str = LEVELS) -> dict[Path_, int]:
    """GPU time by names from the root down, of what has any of its own."""
    tree = project_tree(profile, levels)
    own = np.flatnonzero(tree.own).tolist()
    return {tree.names(node): int(tree.own[node]) for node in own}


def look(feed: RecordingFeed, dump: DumpFile, path: Path, **ways: object) -> Profile:
    dump.write(path)
    feed.add(path)
    feed.update(60)
    return feed.snapshot(ALL).profile


def test_a_snapshot_shows_what_a_load_shows(tmp_path: Path, feed: RecordingFeed) -> None:
    dump, path = sampled(), tmp_path / "100-1.fdump"
    at(dump, 10, 30, length=11)
    dump.kernel("copy", 60, 75, 0)
    sample(dump, "gemm", 16, 1, 5)
    sample(dump, "gemm", 16, 3, 4)
    sample(dump, "gemm", 32, 2, 2)
    first = look(feed, dump, path)
    assert paths(first)["process [100]", "copy"] == 15
    sample(dump, "gemm", 16, 1, 3)
    sample(dump, "copy", 0, 2, 1)
    sample(dump, "nowhere", 0, 2, 1)
    at(dump, 100, first=3)
    second = look(feed, dump, path)
    dump.ended = True
    dump.write(path)
    feed.update(60)
    # Loaded, samples know their launch: here they are of all launches of their kernel.
    loaded = paths(load(path), "process,kernel")
    assert paths(second, "process,kernel") == loaded
    gemm = {names[2:]: value for names, value in paths(second).items() if names[1] == "gemm"}
    assert gemm == {
        ("gemm+0x10", "Long Scoreboard"): 26,  # 8 of 10 samples in 32 ns, rounded up
        ("gemm+0x20", "Wait"): 6,
    }
    assert second.coverage["sass"].ns == second.gpu_time


def test_samples_that_are_none_leave_the_kernels_whole(tmp_path: Path, feed: RecordingFeed) -> None:
    dump, path = sampled(), tmp_path / "100-1.fdump"
    at(dump, 10)
    dump.record("sample", crc=CRC, function=99, reason=1, samples=3)  # of a function without name
    profile = look(feed, dump, path)
    assert sum(paths(profile).values()) == profile.gpu_time > 0


def test_after_a_look_there_is_a_rest_that_is_several_times_as_long(
    tmp_path: Path, feed: RecordingFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_samples, "_REST", 1e12)
    dump, path = sampled(), tmp_path / "100-1.fdump"
    sample(at(dump, 10), "gemm", 16, 1, 5)
    assert "gemm+0x10" in {names[2] for names in paths(look(feed, dump, path))}
    sample(dump, "gemm", 32, 1, 500)
    assert {names[2] for names in paths(look(feed, dump, path))} == {"gemm+0x10"}


def test_kernels_of_one_name_are_apart_by_process(tmp_path: Path, feed: RecordingFeed) -> None:
    for pid, offset in ((100, 16), (200, 48)):
        dump = sampled(pid)
        at(dump, 10)
        sample(dump, "gemm", offset, 1, 1)
        profile = look(feed, dump, tmp_path / f"{pid}-1.fdump")
    found = {names[0]: names[2] for names in paths(profile)}
    assert found == {"process [100]": "gemm+0x10", "process [200]": "gemm+0x30"}


def test_a_window_splits_what_is_in_it(tmp_path: Path, feed: RecordingFeed) -> None:
    dump, path = sampled(), tmp_path / "100-1.fdump"
    at(dump, 10, 20 * SECOND)
    sample(dump, "gemm", 16, 1, 3)
    sample(dump, "gemm", 32, 2, 1)
    look(feed, dump, path)
    feed._clock.now = START + 21 * SECOND  # type: ignore[attr-defined]
    profile = feed.snapshot(LAST_10).profile
    assert sum(paths(profile).values()) == profile.gpu_time == 10
    assert sorted(paths(profile).values()) == [2, 8]
    with pytest.raises(UsageError, match="PC samples"):
        project_tree(profile, metric="stalls")
    for metric in ("exposed", "waiting"):
        with pytest.raises(UsageError, match="of a recording that goes on not all is kept"):
            project_tree(profile, metric=metric)


def test_code_stands_there_when_it_has_been_found(tmp_path: Path, feed: RecordingFeed) -> None:
    dump, path = sampled(), tmp_path / "100-1.fdump"
    at(dump, 10)
    sample(dump, "gemm", 16, 1, 3)
    (tmp_path / "cubins").mkdir()
    folder = os.open(tmp_path / "cubins", os.O_RDONLY)
    nowhere = np.full(2, -1, np.int32)
    code = Code("gemm", np.array([0, 16]), ("NOP", "EXIT"), nowhere, nowhere * 0)
    write_codes(folder, f"{CRC:016x}.sass", "13.0", {"gemm": code})
    os.close(folder)
    look(feed, dump, path)
    found = ("gemm", "+0x0010 EXIT", "Long Scoreboard")
    wait_until(lambda: [names[1:] for names in paths(feed.snapshot(ALL).profile)] == [found])


def test_cubins_of_one_checksum_are_told_apart_as_in_a_load(
    tmp_path: Path, feed: RecordingFeed
) -> None:
    dump, path = sampled(), tmp_path / "100-1.fdump"
    (tmp_path / "cubins").mkdir()
    folder = os.open(tmp_path / "cubins", os.O_RDONLY)
    nowhere = np.full(2, -1, np.int32)
    for content in (5, 6):
        code = Code("gemm", np.array([0, 16]), ("NOP", f"ADD {content}"), nowhere, nowhere * 0)
        write_codes(folder, f"{CubinId(CRC, content).stem}.sass", "13.0", {"gemm": code})
    os.close(folder)
    at(dump, 10)
    load_module(dump, 5, 1)
    sample(dump, "gemm", 16, 1, 3, time=dump.time(50_000), span=1)
    look(feed, dump, path)
    names = ("gemm", "+0x0010 ADD 5", "Long Scoreboard")
    wait_until(lambda: [one[1:] for one in paths(feed.snapshot(ALL).profile)] == [names])
    dump.record("module_end", time=dump.time(60_000), context=0, module=5)
    load_module(dump, 6, 70_000)
    sample(dump, "gemm", 16, 1, 3, time=dump.time(90_000), span=1)
    sample(dump, "gemm", 0, 1, 3, time=dump.time(90_000), span=50)
    sample(dump, "gemm", 16, 1, 3, time=dump.time(90_000), span=50)
    look(feed, dump, path)
    shown = {"+0x0010 ADD 5", "+0x0010 ADD 6", "+0x0000 NOP", "+0x0010 [2 cubins differ]"}
    wait_until(lambda: {one[2] for one in paths(feed.snapshot(ALL).profile)} == shown)
    copy = tmp_path / "copy.flame"
    copy_dumps(feed.sources, str(copy), lambda copied: None)
    tree = project_tree(load_all([copy]), "sass", metric="stalls")
    assert {tree.name(node) for node in range(1, len(tree))} == shown


def load_module(dump: DumpFile, content: int, time: int) -> None:
    where = {"module": content, "time": dump.time(time)}
    dump.record("module", crc=CRC, hash=content, **where)


def test_without_samples_there_is_no_level_for_them(tmp_path: Path, feed: RecordingFeed) -> None:
    profile = look(feed, at(running(), 10), tmp_path / "100-1.fdump")
    assert profile.sampling is None and "sass" not in project_tree(profile).levels
