"""The one bar of a load: over all stages, of all files, of every format."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.errors import CancelledError
from flame.core.load_progress import WHOLE, LoadPart, WholeLoad
from flame.core.loading.inputs import Inputs
from flame.core.loading.many import load_all
from flame.core.options import LoadOptions
from flame.core.projection.selection import select
from flame.tui.session.session import open_session
from tests.conftest import TRACES
from tests.support.paths import ROOT

SAMPLES = ROOT / "samples"
ALL = [
    SAMPLES / "decode_small.sqlite",
    SAMPLES / "torch_small.pt.trace.json.gz",
    SAMPLES / "six_levels",
    *sorted(TRACES.glob("nsys/*.sqlite"))[:3],
    *sorted(TRACES.glob("kineto/*.json.gz"))[:3],
    *TRACES.glob("proton/*"),
    *TRACES.glob("ncu/*.csv"),
]


class Recorder:
    """Keep what a load has told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int, int]] = []

    def __call__(self, stage: str, done: int, expected: int) -> None:
        self.told.append((stage, done, expected))

    def check(self, ended: bool = True) -> None:
        """One count that grows, and is full once, when all has ended."""
        counts = [done for _, done, _ in self.told]
        assert all(before <= after for before, after in pairwise(counts))
        assert not ended or self.told[-1] == ("done", WHOLE, WHOLE)
        assert all(done < WHOLE for done in counts[: -1 if ended else None])
        assert {expected for _, _, expected in self.told} <= {0, WHOLE}


def loaded(*paths: Path, options: LoadOptions | None = None) -> Recorder:
    recorder = Recorder()
    load_all(paths, options, recorder)
    recorder.check()
    return recorder


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_a_load_is_one_bar(path: Path) -> None:
    stages = [stage for stage, _, _ in loaded(path).told]
    assert stages == sorted(stages, key=stages.index), "no stage comes twice"


@pytest.mark.parametrize("suffix", ["folded", "speedscope"])
def test_a_load_of_stacks_is_one_bar(suffix: str, tmp_path: Path) -> None:
    from flame.cli.main import main

    path = tmp_path / f"stacks.{suffix}"
    assert main(["export", str(ALL[0]), "-f", suffix, "-o", str(path)]) == 0
    loaded(path)


def test_the_tree_of_the_app_is_part_of_the_bar() -> None:
    recorder = Recorder()
    open_session(Inputs((ALL[0],)), LoadOptions(), select(), recorder)
    recorder.check(ended=False)  # the screen is still to be drawn
    stages = [stage for stage, _, _ in recorder.told]
    assert stages[-1] == "building the tree" and "nesting ranges" in stages


def test_stages_after_decoding_count() -> None:
    begun: dict[str, int] = {}
    for stage, done, _ in loaded(ALL[0]).told:
        begun.setdefault(stage, done)
    after = [begun[stage] for stage in ("joining launches", "nesting ranges", "attributing")]
    assert 0.5 * WHOLE < after[0] < after[1] < after[2] < 0.95 * WHOLE


def test_several_files_are_one_bar_and_merging_is_part_of_it() -> None:
    recorder = loaded(ALL[0], ALL[1], ALL[2])
    merging = next(done for stage, done, _ in recorder.told if stage == "merging")
    assert 0.5 * WHOLE < merging < WHOLE


@pytest.mark.skipif(not list(TRACES.glob("ncu/*.csv")), reason="no real traces")
def test_files_of_nsight_compute_are_part_of_the_bar() -> None:
    page = next(TRACES.glob("ncu/*.csv"))
    recorder = loaded(ALL[0], options=LoadOptions(ncu=(str(page),)))
    first = next(done for stage, done, _ in recorder.told if stage == "joining launches")
    assert first > 0.3 * WHOLE


def test_it_can_be_stopped_at_the_end_too() -> None:
    def stop(stage: str, done: int, expected: int) -> None:
        if done == WHOLE:
            raise CancelledError("stopped")

    with pytest.raises(CancelledError):
        load_all([ALL[0]], None, stop)


told = st.tuples(
    st.sampled_from("ab"), st.integers(-(2**70), 2**70), st.integers(-5, 2**70) | st.just(0)
)


@given(st.lists(told), st.floats(0, 1), st.floats(0, 1))
def test_whatever_stages_count_the_bar_never_goes_back(
    calls: Sequence[tuple[str, int, int]], one: float, other: float
) -> None:
    recorder = Recorder()
    whole = WholeLoad(recorder)
    part = LoadPart(LoadPart(whole, *sorted((one, other))), 0.25, 1)
    for call in calls:
        part(*call)
        whole(*call)
    whole.end()
    recorder.check()
