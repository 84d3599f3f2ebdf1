"""Rows of what threads did: which there are, their colours, and how they fold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flame.core.model.calls import CallClass
from flame.tui.session.query import Query
from flame.tui.timeline.rows import TimelineRows
from tests.conftest import TRACES
from tests.support.writers.nsysfile import NsysFile
from tests.tui.timeline.driver import User, open_timeline

MS = 1_000_000
CALLS = [
    ("cudaLaunchKernel", CallClass.LAUNCH),
    ("cudaDeviceSynchronize", CallClass.SYNC),
    ("cudaMemcpy", CallClass.COPY),
    ("cudaMalloc", CallClass.ALLOC),
    ("cuModuleLoadData", CallClass.OTHER),
]


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    """One thread with a call of each class, 10 ms each, and a driver's call within the first."""
    with NsysFile(tmp_path / "calls.sqlite") as trace:
        trace.process(100, "python")
        trace.thread(100, 100, "main")
        for place, (name, _) in enumerate(CALLS):
            trace.api(name, place * 20 * MS, (place * 20 + 10) * MS, place + 1)
        trace.api("cuLaunchKernel", 2 * MS, 4 * MS, 50)
        trace.kernel("gemm", 10 * MS, 100 * MS, 1)
    return tmp_path / "calls.sqlite"


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Five threads, each with a range and a call that launches; the first launches most."""
    with NsysFile(tmp_path / "many.sqlite") as trace:
        trace.process(100, "python")
        for number in range(5):
            tid, start = 100 + number, number * 10 * MS
            trace.thread(100, tid, f"thread{number}")
            trace.nvtx("step", start, start + 5 * MS, tid=tid)
            trace.api("cudaLaunchKernel", start, start + MS, number + 1, tid=tid)
            trace.kernel("gemm", start + MS, start + (9 - number) * MS, number + 1)
    return tmp_path / "many.sqlite"


def python_trace(path: Path) -> Path:
    """A thread with Python functions: main, and step in it, twice; of each a kernel."""

    def event(cat: str, name: str, ts: int, dur: int, **args: object) -> dict[str, object]:
        tid = 7 if cat == "kernel" else 100
        pid = 0 if cat == "kernel" else 100
        common = {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid}
        return {**common, "ts": ts, "dur": dur, "args": args}

    events = [event("python_function", "train.py(1): main", 0, 1000, **{"Python id": 1})]
    for number, start in enumerate((100, 500)):
        ids = {"Python id": number + 2, "Python parent id": 1}
        events += [
            event("python_function", "train.py(9): step", start, 300, **ids),
            event("cuda_runtime", "cudaLaunchKernel", start + 50, 20, correlation=number + 1),
            event("kernel", "gemm", start + 100, 90, correlation=number + 1, device=0, stream=7),
        ]
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


def labels_with_signs(user: User) -> list[str]:
    """The labels that are not empty, as they stand."""
    texts = (line[: user.pane.rows.labels] for line in user.lines())
    return [text for text in texts if text.strip()]


def labels(user: User) -> list[str]:
    """What stands left of the rows, without the mark of the selected one and shares."""
    width = user.pane.rows.labels
    texts = (line[1:width].split("  ", 1) for line in user.lines() if line.strip())
    return [" ".join(part.strip() for part in text if part.strip()) for text in texts]


async def test_outermost_calls_stand_in_the_colours_of_their_classes(calls: Path) -> None:
    async with open_timeline(calls) as user:
        row = user.row("main [100]")
        palette = user.pane.rows.look.palette
        for place, (name, one) in enumerate(CALLS):
            assert user.style(row, user.cell(place * 20 + 5)) == palette.call(one, name)
        assert "cuLaunchKernel" not in user.lines()[row]
        assert user.row("GPU0 stream 7") == row + 1
        inks = {palette.call_ink(one).color for one in CallClass}
        assert len(inks) == len(CallClass)


async def test_dense_calls_have_the_colour_of_what_takes_most(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "t.sqlite") as trace:
        for number in range(1_000):
            start = number * 1_000
            trace.api("cudaLaunchKernel", start, start + 100, number + 1)
            trace.api("cudaStreamSynchronize", start + 200, start + 700, 5_000 + number)
        trace.kernel("gemm", 100, 1_000_000, 1)
    async with open_timeline(tmp_path / "t.sqlite") as user:
        row, palette = user.row("[100]"), user.pane.rows.look.palette
        assert user.style(row, 20).color == palette.call_ink(CallClass.SYNC).color
        assert user.lines()[row][user.pane.rows.labels + 20] == "▅"  # 0.6 of each cell


async def test_of_many_threads_those_that_launch_most_are_open(many: Path) -> None:
    async with open_timeline(many, (80, 30)) as user:
        assert [line.split("[")[0].strip() for line in labels(user)] == [
            *("-thread0", "API calls", "-thread1", "API calls", "-thread2", "API calls"),
            *("+thread3", "+thread4", "GPU0 stream 7"),
        ]
        assert "+2 folded: V" in user.lines("timeline-head")[0]


async def test_the_key_folds_the_selected_thread_and_from_a_gpu_all(many: Path) -> None:
    async with open_timeline(many, (110, 30)) as user:
        rows = len(user.time.lanes.rows)
        await user.does(user.pane.thread_rows)  # on the GPU: there are folded ones
        assert len(user.time.lanes.rows) == rows + 2
        assert "folded" not in user.lines("timeline-head")[0]
        await user.does(user.pane.thread_rows)
        assert len(user.time.lanes.rows) == rows - 3
        assert user.lines()[user.time.lanes.row].startswith("▸GPU0")
        await user.does(lambda: user.pane.page(-1), user.pane.thread_rows)
        assert len(user.time.lanes.rows) == rows - 2 and user.row("API calls") == 1
        await user.does(user.pane.down)
        await user.does(user.pane.thread_rows)  # from the row of calls, which goes away
        assert user.time.lanes.row == 0 and user.lines()[0].startswith("▸+thread0")


async def test_a_folded_thread_has_its_outermost_ranges_alone(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "t.sqlite") as trace:
        for depth, name in enumerate(("outer", "middle", "inner")):
            trace.nvtx(name, depth * 10, 1_000 - depth * 10)
        trace.nvtx("alone", 0, 1_000, tid=101)
        trace.kernel("gemm", 0, 1_000, corr=None)
    async with open_timeline(tmp_path / "t.sqlite", (80, 30)) as user:
        assert len(user.time.lanes.rows) == 5
        assert [line[1] for line in labels_with_signs(user)] == ["-", "t", "G"]
        await user.does(user.pane.thread_rows)
        assert len(user.time.lanes.rows) == 3 and "outer" in user.lines()[0]
        assert user.app.note == "" and user.lines()[0][1] == "+"


async def test_a_click_on_the_sign_folds_and_opens(many: Path) -> None:
    async with open_timeline(many, (110, 30)) as user:
        before = user.time.lanes.rows
        await user.pilot.click(TimelineRows, offset=(1, user.row("thread1")))
        await user.settle()
        assert "+thread1" in user.lines()[user.row("thread1")]
        assert len(user.time.lanes.rows) == len(before) - 1
        await user.pilot.click(TimelineRows, offset=(1, user.row("thread1")))
        await user.settle()
        assert user.time.lanes.rows == before
        await user.pilot.click(TimelineRows, offset=(4, user.row("thread1")))  # the name
        await user.settle()
        assert user.time.lanes.rows == before


async def test_functions_open_from_the_innermost_to_all(tmp_path: Path) -> None:
    async with open_timeline(python_trace(tmp_path / "t.json"), (80, 20)) as user:
        first = user.lines()[0]
        assert first.count("▏main") == 3 and first.count("▏step") == 2
        await user.does(lambda: user.pane.page(-1), user.pane.thread_rows)
        outer, inner = user.lines()[:2]
        assert outer.count("▏main") == 1 and "step" not in outer
        assert inner.count("▏step") == 2 and "main" not in inner
        await user.does(user.pane.thread_rows)
        assert labels(user) == ["GPU0 stream 7"]
        await user.does(user.pane.thread_rows)
        assert user.lines()[0] == first.replace("▸", " ")


async def test_a_function_selects_its_place_in_the_tree(tmp_path: Path) -> None:
    async with open_timeline(python_trace(tmp_path / "t.json"), (110, 20)) as user:
        await user.click(0, user.cell(0) + 20)
        assert user.selected == user.in_tree != ""


async def test_a_call_selects_the_launch_of_its_kernel(calls: Path) -> None:
    async with open_timeline(calls) as user:
        row = user.row("[100]")
        await user.click(row, user.cell(5))
        assert user.selected == user.in_tree == "cudaLaunchKernel"
        assert "launches" in user.pane.hint()
        before = user.in_tree
        await user.click(row, user.cell(25))
        assert user.selected == "cudaDeviceSynchronize" and user.in_tree == before
        assert "waits for the GPU" in user.pane.hint() and not user.app.note


async def test_a_search_goes_through_shown_rows_alone(many: Path) -> None:
    async with open_timeline(many, (110, 30)) as user:
        await user.does(lambda: user.shown.view.search(Query("Launch")))
        note = await user.does(lambda: user.pane.match(1))
        assert str(note).endswith("of 8 over time")  # three calls, five kernels below one
        await user.does(user.pane.thread_rows)
        assert str(await user.does(lambda: user.pane.match(1))).endswith("of 10 over time")


async def test_without_calls_there_is_nothing_to_fold(streams: Path) -> None:
    async with open_timeline(streams) as user:
        assert "no rows of threads" in str(await user.does(user.pane.thread_rows))


@pytest.mark.parametrize("name", ["nsys/rtx3060_23k.sqlite", "kineto/b200_eager_python.json.gz"])
async def test_real_traces_are_walked_through(name: str) -> None:
    path = TRACES / name
    if not path.exists():
        pytest.skip(f"no real trace {path}")
    async with open_timeline(path, (100, 30)) as user:
        pane = user.pane
        await user.does(*[lambda: pane.longest_gap(1)] * 3, pane.up, *[pane.thread_rows] * 4)
        await user.does(lambda: pane.gap(1), pane.enter, pane.escape, pane.escape)
        assert user.time.viewport.window == user.time.timeline.whole
