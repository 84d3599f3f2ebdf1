"""Live recordings show what a load of their dumps shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.live.feed import RecordingFeed
from flame.core.live.window import ALL
from flame.core.loading.many import load
from flame.core.options import LoadOptions
from tests.core.live.recordings import LAUNCH, Clock, assert_same, tree_of
from tests.support.tiers import examples
from tests.support.writers.fdumpfile import API, DumpFile
from tests.support.writers.fdumpscripts import Program, Step, scripts


@given(scripts, st.lists(st.integers(0, 30), max_size=4), st.sampled_from([1, 2, None]))
@examples(0.6)
def test_all_of_a_dump_is_what_a_load_of_it_shows(
    tmp_path_factory: pytest.TempPathFactory, script: list[Step], cuts: list[int], rows: int | None
) -> None:
    path = tmp_path_factory.mktemp("live") / "100-1.fdump"
    dump = DumpFile(rows=rows)
    dump.ended = False
    program = Program(dump)
    feed = RecordingFeed(LoadOptions(), Clock())
    feed.add(dump.write(path))
    for at, (name, *values) in enumerate(script):
        getattr(program, name)(*values)
        if at in cuts:
            dump.write(path)
            feed.update()
            feed.snapshot(ALL)
    program.end()
    dump.ended = True
    dump.write(path)
    feed.update(60)
    assert_same(feed.snapshot(ALL).profile, load(path))
    feed.close()


def test_api_calls_over_time_are_those_of_a_load(feed: RecordingFeed, tmp_path: Path) -> None:
    dump = DumpFile()
    dump.name(API, LAUNCH, "cuLaunchKernel")
    for number in range(5):
        start = 10 + 20 * number
        dump.launch(start, start + 10, number + 1, api=LAUNCH, nvtx=dump.nvtx("step"))
    dump.range(["step"], 5, 200)
    feed.add(dump.write(tmp_path / "100-1.fdump"))
    feed.update()
    live, loaded = feed.snapshot(ALL).profile, load(tmp_path / "100-1.fdump")
    assert live.functions is None
    for one in (live, loaded):
        calls = one.calls
        assert calls is not None
        assert calls.start.tolist() == list(range(10, 110, 20))
        assert calls.end.tolist() == list(range(20, 120, 20))
        assert {one.frames[frame].name for frame in calls.frame.tolist()} == {"cuLaunchKernel"}


def test_host_time_of_ended_ranges_is_that_of_a_load(feed: RecordingFeed, tmp_path: Path) -> None:
    dump = DumpFile()
    dump.name(API, LAUNCH, "cuLaunchKernel")
    dump.launch(20, 30, 1, api=LAUNCH, nvtx=dump.nvtx("step", "layer"))
    dump.range(["step", "layer"], 10, 40)
    dump.range(["step"], 5, 70)
    feed.add(dump.write(tmp_path / "100-1.fdump"))
    feed.update()
    loaded = load(tmp_path / "100-1.fdump")
    assert tree_of(feed.snapshot(ALL).profile, "host") == tree_of(loaded, "host")
