"""Live recordings: dumps that grow, seen through snapshots."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from flame.core.errors import InputError
from flame.core.live.feed import RecordingFeed
from flame.core.live.window import ALL, LAST_10, SECOND
from flame.core.loading.many import load_all
from flame.core.projection.labels import Naming
from flame.core.projection.number_folds import labels_of
from tests.core.live.recordings import LEVELS, Clock, at, running, tree_of
from tests.support.writers.fdumpfile import START, DumpFile


def test_a_snapshot_stays_what_it_was(feed: RecordingFeed, clock: Clock, tmp_path: Path) -> None:
    dump, path = at(running(), 100, 400), tmp_path / "100-1.fdump"
    feed.add(dump.write(path))
    clock.now = START + SECOND
    feed.update()
    before = feed.snapshot(ALL)
    # This one began before those that are known, and ended after them.
    at(dump, 50, length=500, first=3).write(path)
    assert feed.update()
    after = feed.snapshot(ALL)
    assert before.version < after.version
    assert before.profile.gpu_time == 20 and after.profile.gpu_time == 520
    assert before.profile.activities.start.tolist() == [100, 400]
    assert before.profile.activities.idle.tolist() == [0, 290]
    assert after.profile.activities.start.tolist() == [50, 100, 400]
    assert after.profile.activities.idle.tolist() == [0, 0, 0]
    assert tree_of(before.profile, "idle")


def test_nothing_new_is_no_change(feed: RecordingFeed, clock: Clock, tmp_path: Path) -> None:
    feed.add(at(running(), 100).write(tmp_path / "100-1.fdump"))
    assert feed.update()
    clock.now += SECOND
    feed.update()
    assert not feed.update()
    assert feed.snapshot(ALL).version == feed.snapshot(LAST_10).version
    one, other = feed.snapshot(ALL).profile, feed.snapshot(ALL).profile
    assert one.frames is other.frames and one.grouping is other.grouping
    for naming in (Naming(), Naming(numbers=True)):
        labels = labels_of(one, naming, one.activities)
        assert labels_of(other, naming, other.activities) is labels


def test_several_dumps_are_called_what_a_load_calls_them(
    feed: RecordingFeed, tmp_path: Path
) -> None:
    for rank in (1, 0):
        dump = at(DumpFile(100 + rank, start=START + rank), 100, 200 + rank)
        dump.meta("rank", str(rank))
        feed.add(dump.write(tmp_path / f"{100 + rank}-{START + rank:x}.fdump"))
    DumpFile(300).write(tmp_path / "300-1.fdump")
    feed.add(tmp_path / "300-1.fdump")
    feed.update()
    live, loaded = feed.snapshot(ALL).profile, load_all([tmp_path])
    assert [one.label for one in live.sources] == ["rank 0", "rank 1"]
    assert [one.label for one in loaded.sources] == ["rank 0", "rank 1"]
    assert [one.pid for one in live.processes] == [100, 101]
    for metric in ("gpu", "count", "launch", "queue", "idle"):
        assert tree_of(live, metric, LEVELS) == tree_of(loaded, metric, LEVELS)
    assert {path[1][1] for path in tree_of(live, "gpu") if path[1:]} == {"rank 0", "rank 1"}
    assert [one.pid for one in feed.status().sources] == [101, 100, 300]


def test_no_level_for_ranks_before_a_second_process_has_done_anything(
    feed: RecordingFeed, clock: Clock, tmp_path: Path
) -> None:
    feed.add(at(running(), 100).write(tmp_path / "100-1.fdump"))
    second, path = running(200), tmp_path / "200-2.fdump"
    feed.add(second.write(path))
    clock.now += SECOND
    feed.update()
    assert len(feed.snapshot(ALL).profile.sources) == 1
    at(second, 50).write(path)
    feed.update()
    assert len(feed.snapshot(ALL).profile.sources) == 2


def test_a_dump_is_followed_once(feed: RecordingFeed, tmp_path: Path) -> None:
    path = at(DumpFile(), 100).write(tmp_path / "100-1.fdump")
    feed.add(path)
    (tmp_path / "other.fdump").hardlink_to(path)
    feed.add(tmp_path / "other.fdump")
    with path.open("rb") as file:
        feed.add(path, file.fileno())
    feed.update()
    assert len(feed.sources) == 1 and feed.snapshot(ALL).profile.size == 1


def test_what_is_no_dump_is_refused_and_may_become_one(feed: RecordingFeed, tmp_path: Path) -> None:
    path = tmp_path / "100-1.fdump"
    with pytest.raises(InputError, match="100-1"):
        feed.add(path)
    path.write_bytes(b"")
    with pytest.raises(InputError, match="100-1"):
        feed.add(path)
    feed.add(at(DumpFile(), 100).write(path))
    feed.update()
    assert feed.snapshot(ALL).profile.size == 1


def test_what_others_have_put_there_is_neither_unpacked_nor_followed(
    feed: RecordingFeed, tmp_path: Path
) -> None:
    path = at(DumpFile(), 100).write(tmp_path / "100-1.fdump")
    (tmp_path / "link.fdump").symlink_to(path)
    (tmp_path / "packed.fdump").write_bytes(gzip.compress(path.read_bytes()))
    for name, reason in (("link", "not a regular file"), ("packed", "packed")):
        with pytest.raises(InputError, match=reason):
            feed.add(tmp_path / f"{name}.fdump")
    with (
        (tmp_path / "packed.fdump").open("rb") as file,
        pytest.raises(InputError, match="packed"),
    ):
        feed.add(path, file.fileno())
    assert not feed.sources


def test_a_feed_of_nothing(feed: RecordingFeed) -> None:
    assert not feed.update()
    profile = feed.snapshot(LAST_10).profile
    assert profile.size == 0 and profile.gpu_time == 0
    assert feed.status().sources == () and feed.status().elapsed == 0


def test_times_of_centuries_end_the_reading_of_that_dump_only(
    feed: RecordingFeed, tmp_path: Path
) -> None:
    dump = DumpFile()
    for number in range(200):
        dump.kernel("gemm", number, number + (1 << 52) + (1 << 51), number + 1)
    feed.add(dump.write(tmp_path / "100-1.fdump"))
    feed.add(at(DumpFile(200), 100).write(tmp_path / "200-1.fdump"))
    feed.update()
    assert feed.snapshot(ALL).profile.size == 1
    (note,) = feed.status().notes
    assert "100-1.fdump" in note and "century" in note
