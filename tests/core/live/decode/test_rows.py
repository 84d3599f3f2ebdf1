"""What the rows of a dump that grows hold, and what they refer to, which may come later."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from flame.core.model.frames import Kind
from flame.core.model.launches import LaunchConfig
from flame.core.model.meta import Device, Process
from flame.core.readers.fdump.context import SharedTables
from tests.core.live.decode.growing_dumps import Film
from tests.core.live.decode.viewed_dumps import Viewer, table, viewed
from tests.support.writers.fdumpfile import API, DEVICE, START, THREAD


def test_nothing_new_is_nothing(film: Film) -> None:
    film.launch(0, 1, 1, api=307)
    with viewed(film.data()) as viewer:
        assert not viewer.read().empty
        assert viewer.read().empty
        assert viewer.read().newest == START + 1


def test_all_columns_are_filled(film: Film) -> None:
    film.name(DEVICE, 1, "NVIDIA H100")
    film.launch(1, 3, 7, api=307)
    film.kernel("gemm", 5, 9, 7, tid=100, device=1, stream=3, grid_x=8, grid_y=1, grid_z=1)
    film.memop(10, 12, 8, kind=1, bytes=64, graph_node=5)
    with viewed(film.data()) as viewer:
        work = viewer.read(last=True).work
        kernel, copied = table(work)
        assert (kernel["start"], kernel["end"], kernel["stream"]) == (START + 5, START + 9, 3)
        assert viewer.shared.devices[kernel["device"]] == Device(1, "NVIDIA H100", 0)
        assert viewer.shared.configs[kernel["config"]].blocks == 8
        assert (kernel["bytes"], copied["bytes"], copied["config"]) == (-1, 64, -1)
        assert (kernel["graph"], copied["graph"]) == (False, True)
        assert work.bytes.dtype == np.int64
        assert work.kind.tolist() == [Kind.KERNEL, Kind.MEMSET]


def test_times_are_of_the_monotonic_clock_and_0_where_the_gpu_said_none(film: Film) -> None:
    film.record("kernel", start=0, end=0)
    film.record("kernel", start=START + 8, end=0)
    with viewed(film.data()) as viewer:
        work = viewer.read().work
        assert list(zip(work.start.tolist(), work.end.tolist(), strict=True)) == [
            (0, 0),
            (START + 8, START + 8),
        ]
        assert [r for r in viewer.dump.warnings() if "2 GPU activities were recorded without" in r]


def test_dumps_share_one_vocabulary(tmp_path: Path) -> None:
    shared = SharedTables()
    viewers = []
    for pid in (100, 200):
        film = Film()
        film.pid = pid
        film.meta("process", f"rank{pid}")
        film.kernel("gemm", 0, 5, 0, python=film.python(("f", "f.py", 1)), tid=pid, grid_x=3)
        viewers.append(Viewer(tmp_path / f"{pid}.fdump", film.data(), shared))
    first, second = (viewer.read() for viewer in viewers)
    assert first.work.frame == second.work.frame
    assert first.work.python == second.work.python
    assert first.work.config == second.work.config
    assert (first.source, second.source) == (0, 1)
    assert shared.processes == [Process(100, "rank100", 0), Process(200, "rank200", 1)]
    assert [thread.process for thread in shared.threads] == [0, 1]
    assert first.work.thread.tolist() + second.work.thread.tolist() == [0, 1]
    assert isinstance(shared.configs[0], LaunchConfig)
    for viewer in viewers:
        viewer.dump.close()


def test_names_may_come_late(film: Film) -> None:
    film.launch(0, 1, 1, api=40, tid=101)
    film.kernel("k", 1, 2, 1, tid=101)
    with viewed(film.data()) as viewer:
        viewer.read()
        film.name(API, 40, "cuMemcpy")
        film.name(THREAD, 101, "loader")
        film.name(DEVICE, 0, "H100")
        film.meta("process", "train")
        film.meta("rank", "3")
        film.launch(3, 4, 2, api=40, tid=101)
        viewer.write(film.data())
        batch = viewer.read()
        assert viewer.shared.frames[batch.calls.frame[0]].name == "cuMemcpy"
        assert [thread.name for thread in viewer.shared.threads] == ["loader"]
        assert viewer.shared.devices == [Device(0, "H100", 0)]
        assert viewer.shared.processes[viewer.dump.process].name == "train"
        assert (viewer.dump.meta().rank, viewer.dump.meta().label) == (3, "train [100]")


def test_a_node_may_be_seen_before_its_parent(film: Film) -> None:
    """Where one thread writes the parent and another the child."""
    item = film.frame(("f", "f.py", 1))
    film.record("node", id=8, parent=7, item=item)
    film.record("node", id=9, parent=8, item=item)
    with viewed(film.data()) as viewer:
        viewer.read()
        film.record("node", id=7, parent=0, item=item)
        film.kernel("k", 0, 1, 0, python=9, tid=100)
        viewer.write(film.data())
        (row,) = table(viewer.read().work)
        assert [frame.name for frame in viewer.seen.path(row["python"])] == ["f", "f", "f"]
        assert viewer.dump.warnings() == ()


def test_a_parent_that_never_comes_is_lost(film: Film) -> None:
    film.record("node", id=9, parent=8, item=film.frame(("f", "f.py", 1)))
    with viewed(film.data()) as viewer:
        viewer.read()
        viewer.read()
        assert viewer.dump.warnings() == (
            "1 stack is not whole: [lost] stands for what is missing",
        )
        film.kernel("k", 0, 1, 0, python=9, tid=100)
        viewer.write(film.data())
        (row,) = table(viewer.read().work)
        assert [frame.name for frame in viewer.seen.path(row["python"])] == ["[lost]", "f"]


# Graphs


def test_a_clone_may_be_seen_before_what_it_was_cloned_from(film: Film) -> None:
    film.graph_node(11, 10, 2, tid=100)
    with viewed(film.data()) as viewer:
        viewer.read()
        film.graph_node(10, 0, 1, tid=100, python=film.python(("capture", "f.py", 1)))
        film.kernel("k", 3, 4, 0, graph_node=11)
        viewer.write(film.data())
        (row,) = table(viewer.read().work)
        assert [frame.name for frame in viewer.seen.path(row["captured_python"])] == ["capture"]


def test_nodes_that_lead_nowhere_have_no_capture(film: Film) -> None:
    film.graph_node(1, 2, 1)
    film.graph_node(2, 1, 2)
    for time, original in ((3, 5), (4, 6)):
        film.graph_node(3, original, time)
    film.graph_node(3, 0, 1, python=film.python(("no", "f.py", 1)))
    for node in (1, 3, 99):
        film.kernel("k", 3, 4, 0, graph_node=node)
    with viewed(film.data()) as viewer:
        work = viewer.read().work
        assert work.graph.all()
        assert not work.captured_python.any()
        assert not work.captured_nvtx.any()
