"""What is worked out of the selected frame, and when."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from textual.message import Message

from flame.core.analysis.sandwich import callees_of, callers_of
from flame.core.loading.many import load
from flame.core.model.frames import NO_LAUNCH
from flame.core.model.launches import LaunchConfig
from flame.core.model.meta import Process, Source
from flame.core.model.tree import TreeLayout
from flame.core.projection.filters import Filter, Streams, Time
from flame.core.projection.selection import Selection
from flame.tui.details.collector import Collected, Collector
from flame.tui.details.facts import Facts, collect
from flame.tui.details.labels import Label
from flame.tui.session.session import Projection, project
from tests.support.waiting import wait_until
from tests.support.writers.nsysfile import HTOD, NsysFile
from tests.tui import sources
from tests.tui.trees import node


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Four gemms in two ranges on two streams and GPUs, a copy, and a kernel nobody launched."""
    with NsysFile(tmp_path / "trace.sqlite") as trace:
        trace.gpu(0, "H100", pid=100)
        trace.gpu(1, "H100", pid=100)
        trace.thread(100, 100, "main")
        for place, name in enumerate(("step", "step", "warmup", "step")):
            begin, corr = 1_000 * place, place + 1
            trace.nvtx(name, begin, begin + 900)
            trace.api("cudaLaunchKernel_v7000", begin + 100, begin + 150, corr)
            start = begin + 150 + 10 * place
            trace.kernel(
                "gemm",
                start,
                start + 100 * corr,
                corr,
                stream=7 if place else 13,
                device=place // 3,
                grid=(8, 1, 1) if place < 3 else (8, 2, 1),
                block=(128, 1, 1),
            )
        trace.api("cudaMemcpyAsync", 5_000, 5_010, 9)
        trace.memcpy(HTOD, 5_100, 5_200, 9, bytes=2_000)
        trace.kernel("stray", 9_000, 9_001, None)
    return tmp_path / "trace.sqlite"


def shown_of(path: Path, *where: Filter, **selected: str) -> Projection:
    return project(load(path), Selection(where=where, **selected))  # type: ignore[arg-type]


def facts_of(shown: Projection, *names: str) -> Facts:
    """The facts of the frame at the end of ``names``, complete."""
    tree = shown.view.tree
    *_, last = collect(shown, tree, node(tree, *names))
    return last


STEP = ("cudaLaunchKernel", "step")


def test_the_spread_of_what_is_below_a_frame(path: Path) -> None:
    found = facts_of(shown_of(path), *STEP).spread
    assert found is not None
    assert (found.count, found.minimum, found.p50, found.maximum) == (3, 100, 200, 400)
    assert found.total == 700


def test_only_what_passes_the_filters_counts(path: Path) -> None:
    found = facts_of(shown_of(path, Streams((7,)), Time(None, 3_000)), *STEP).spread
    assert found is not None
    assert (found.count, found.total) == (1, 200)


def test_a_metric_that_counts_shows_the_time_of_each(path: Path) -> None:
    found = facts_of(shown_of(path, metric="count"), *STEP).spread
    assert found is not None
    assert (found.count, found.total) == (3, 700)


def test_the_queue_delay_of_what_was_launched(path: Path) -> None:
    found = facts_of(shown_of(path)).queue
    assert found is not None
    # The kernel without a launch does not count; the copy waited for 90 ns.
    assert (found.count, found.total) == (5, 0 + 10 + 20 + 30 + 90)
    assert facts_of(shown_of(path, metric="queue")).queue is None


def test_parents_are_those_of_all_places(path: Path) -> None:
    shown = shown_of(path)
    parents = facts_of(shown, *STEP, "gemm").parents
    assert [(part.name, part.value) for part in parents.heaviest] == [
        ("step", 700),
        ("warmup", 300),
    ]
    assert parents.heaviest[0].node == node(shown.view.tree, *STEP)
    assert (parents.number, parents.whole) == (2, 1_000)


def test_the_root_has_no_parents(path: Path) -> None:
    assert facts_of(shown_of(path)).parents.number == 0


def test_in_an_inverted_tree_the_same_activities_count(path: Path) -> None:
    selection = Selection(layout=TreeLayout(inverted=True))
    shown = project(load(path), selection)
    found = facts_of(shown, "gemm", "step")
    assert found.spread is not None
    assert found.spread.total == 700


def test_where_it_ran_if_on_several(path: Path) -> None:
    found = facts_of(shown_of(path), *STEP).on
    named = {title: [(one.name, one.value) for one in on.heaviest] for title, on in found.items()}
    assert named == {
        "GPUs": [("GPU 1 H100", 400), ("GPU 0 H100", 300)],
        "streams": [("7", 600), ("13", 100)],
    }


def test_what_no_thread_launched_is_on_an_unknown_one(path: Path) -> None:
    threads = facts_of(shown_of(path)).on[Label.THREADS]
    assert [part.name for part in threads.heaviest] == ["main [100]", "unknown"]


def test_how_a_kernel_was_launched(path: Path) -> None:
    launched = facts_of(shown_of(path), *STEP, "gemm").launched
    assert launched is not None
    shapes = [(one.config.grid, one.times, one.ns) for one in launched.used]
    assert shapes == [((8, 2, 1), 1, 400), ((8, 1, 1), 2, 300)]
    assert (launched.number, launched.ns) == (2, 700)
    assert isinstance(launched.used[0].config, LaunchConfig)


def test_what_a_copy_moved(path: Path) -> None:
    moved = facts_of(shown_of(path), "cudaMemcpyAsync", "memcpy HtoD").moved
    assert moved is not None
    assert (moved.sizes.total, moved.ns) == (2_000, 100)


def test_a_file_that_has_gone_leaves_the_rest(path: Path) -> None:
    shown = shown_of(path)
    path.unlink()
    found = facts_of(shown, *STEP, "gemm")
    assert "no such file" in found.unread
    assert found.spread is not None


def test_a_frame_of_another_tree_has_the_facts_of_all_its_places(path: Path) -> None:
    shown = shown_of(path)
    tree = shown.view.tree
    frame = int(tree.frame[node(tree, *STEP, "gemm")])
    others = [half(tree, frame) for half in (callers_of, callees_of)]
    found = [list(collect(shown, one, 0))[-1] for one in others]
    assert [one.spread.total for one in found if one.spread] == [1_000, 1_000]
    assert all(one.everywhere for one in found)


def test_the_notes_that_apply(path: Path) -> None:
    shown = shown_of(path)
    assert facts_of(shown, NO_LAUNCH).notes[0].startswith("Launched before the capture began")
    assert facts_of(shown, *STEP).notes == ()


def test_low_coverage_is_noted_at_the_frames_of_its_level(path: Path) -> None:
    with NsysFile(path.with_name("other.sqlite")) as trace:
        trace.nvtx("step", 0, 100)
        for corr, begin in ((1, 10), (2, 200)):
            trace.api("cudaLaunchKernel_v7000", begin, begin + 5, corr)
            trace.kernel("gemm", begin, begin + 50, corr)
    shown = shown_of(path.with_name("other.sqlite"))
    assert facts_of(shown, *STEP).notes == (
        "NVTX ranges cover 50 % of GPU time, the rest was launched outside any.",
    )
    assert facts_of(shown, *STEP, "gemm").notes == ()


def test_coverage_is_of_operators_in_traces_of_pytorch(path: Path) -> None:
    with NsysFile(path.with_name("other.sqlite")) as trace:
        trace.nvtx("step", 0, 100)
        for corr, begin in ((1, 10), (2, 200)):
            trace.api("cudaLaunchKernel_v7000", begin, begin + 5, corr)
            trace.kernel("gemm", begin, begin + 50, corr)
    profile = load(path.with_name("other.sqlite"))
    meta = replace(profile.meta, format="kineto")
    shown = project(replace(profile, sources=(Source("", meta),)), Selection())
    said = "Operators cover 50 % of GPU time, the rest was launched outside any."
    assert facts_of(shown, *STEP).notes == (said,)


def test_pytorch_does_not_know_what_a_graph_was_captured_from(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "graph.sqlite") as trace:
        trace.api("cudaGraphLaunch_v10000", 0, 10, 1)
        trace.kernel("gemm", 20, 30, 1)
    profile, names = load(tmp_path / "graph.sqlite"), ("cudaGraphLaunch",)
    torch = (Source("", replace(profile.meta, format="kineto")),)
    of_torch = facts_of(project(replace(profile, sources=torch), Selection()), *names)
    assert [note[:22] for note in of_torch.notes] == ["Replayed from a graph:"]
    assert facts_of(project(profile, Selection()), *names).notes == ()


def test_samples_are_no_activities() -> None:
    shown = project(sources.stacks(), Selection())
    facts = facts_of(shown)
    assert facts.spread is None and facts.histogram is None and facts.notes == ()
    assert {title: parts.number for title, parts in facts.on.items()} == {"threads": 2}
    assert facts.on[Label.THREADS].heaviest[0].name == "main [7]"


def test_of_several_files_it_says_in_which_it_is() -> None:
    one = replace(sources.stacks(), processes=(Process(7, "a"), Process(7, "b", source=1)))
    meta = one.meta
    two = replace(
        one,
        sources=(Source("rank 0", meta), Source("rank 1", meta)),
        activities=replace(one.activities, process=np.array([0, 1], np.int32)),
    )
    facts = facts_of(project(two, Selection(levels=("stack",))))
    assert [part[:2] for part in facts.on[Label.FILES].heaviest] == [("rank 0", 30), ("rank 1", 10)]


def test_gpus_of_several_files_are_told_by_file(path: Path) -> None:
    profile = load(path)
    devices = tuple(
        replace(device, id=0, source=place) for place, device in enumerate(profile.devices)
    )
    sources = tuple(Source(f"rank {place}", profile.meta) for place in range(2))
    facts = facts_of(project(replace(profile, devices=devices, sources=sources), Selection()))
    assert [part.name for part in facts.on[Label.GPUS].heaviest] == ["rank 0 GPU 0", "rank 1 GPU 0"]


def test_an_operator_called_with_several_shapes_has_its_part_of_each(tmp_path: Path) -> None:
    """Those of the operator itself, whatever stands below it; also where it has none."""
    with NsysFile(tmp_path / "shapes.sqlite") as trace:
        for place, sizes in enumerate(("[[8, 8]]", "[[2, 2]]", "[[8, 8]]", "")):
            begin, corr = 1_000 * place, place + 1
            said = f", op_id = {place}" + (f", sizes = {sizes}" if sizes else "")
            trace.nvtx(f"aten::linear{said}", begin, begin + 900)
            trace.nvtx(f"aten::mm, op_id = {place}, sizes = [[1]]", begin + 10, begin + 800)
            trace.api("cudaLaunchKernel_v7000", begin + 100, begin + 150, corr)
            trace.kernel("gemm", begin + 200, begin + 200 + 10 * corr, corr)
    shown = project(load(tmp_path / "shapes.sqlite"), Selection(levels=("nvtx",)))
    linear = facts_of(shown, "aten::linear").shapes
    assert linear is not None
    assert (linear.number, linear.whole) == (3, 100)
    found = {part.name: part.value for part in linear.heaviest}
    assert found == {"[[8, 8]]": 40, "unknown": 40, "[[2, 2]]": 20}
    assert facts_of(shown, "aten::linear", "aten::mm").shapes is None
    assert facts_of(shown).shapes is None


def test_graphs_as_a_whole_are_noted_above_them(path: Path) -> None:
    with NsysFile(path.with_name("graph.sqlite")) as trace:
        trace.api("cudaGraphLaunch_v10000", 0, 10, 1)
        trace.graph(20, 100, 1)
        trace.kernel("gemm", 200, 220, None)
    shown = shown_of(path.with_name("graph.sqlite"))
    assert "80.0 % of this is in CUDA graphs" in facts_of(shown).notes[0]
    assert facts_of(shown, NO_LAUNCH, "gemm").notes == ()


# -- when -------------------------------------------------------------------------------------


class Desk:
    """Takes what a collector posts."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.collector = Collector(self.messages.append)

    def wait(self) -> None:
        """Until nothing more is worked out."""
        wait_until(self._is_idle)

    def _is_idle(self) -> bool:
        while self.messages:
            message = self.messages.pop(0)
            assert isinstance(message, Collected)
            self.collector.take(message)
        return not self.collector.busy


def test_facts_come_later_and_are_kept(path: Path) -> None:
    shown, desk = shown_of(path), Desk()
    shown.view.cursor.select(node(shown.view.tree, *STEP))
    assert desk.collector.ask(shown, shown.view) is None
    assert desk.collector.busy
    desk.wait()
    first = desk.collector.facts
    assert first is not None
    shown.view.cursor.select(0)
    assert desk.collector.ask(shown, shown.view) is None
    shown.view.cursor.select(node(shown.view.tree, *STEP))
    assert desk.collector.ask(shown, shown.view) is first
    assert not desk.collector.busy


def test_facts_of_a_kernel_come_before_its_launches(path: Path) -> None:
    shown = shown_of(path)
    tree = shown.view.tree
    first, last = collect(shown, tree, node(tree, *STEP, "gemm"))
    assert (first.complete, first.launched) == (False, None)
    assert last.complete
    assert last.launched is not None


def test_facts_of_a_frame_left_behind_are_kept_but_not_news(path: Path) -> None:
    shown = shown_of(path)
    desk = Desk()
    desk.collector.ask(shown, shown.view)
    wait_until(lambda: desk.messages)
    shown.view.cursor.select(1)
    desk.collector.ask(shown, shown.view)
    message = desk.messages.pop(0)
    assert isinstance(message, Collected)
    assert not desk.collector.take(message)
    shown.view.cursor.select(0)
    assert desk.collector.ask(shown, shown.view) is not None


def test_what_should_not_have_happened_is_raised(path: Path) -> None:
    shown, desk = shown_of(path), Desk()
    shown.members().bounds.resize(0, refcheck=False)
    desk.collector.ask(shown, shown.view)
    with pytest.raises(IndexError):
        desk.wait()
