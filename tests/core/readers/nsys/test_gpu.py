"""GPU work from an export: what ran, when, where, and what it is called."""

from __future__ import annotations

import pytest

from flame.core.model.frames import Frame, Kind
from flame.core.model.raw import RawTrace
from tests.core.conftest import Read
from tests.support.writers.nsysfile import DTOD, DTOH, HTOD, HTOH, PTOP, NsysFile


def frames(raw: RawTrace) -> list[Frame]:
    """The frame of every activity."""
    return [raw.frames[frame] for frame in raw.activities.frame.tolist()]


def names(raw: RawTrace) -> list[str]:
    return [frame.name for frame in frames(raw)]


# -- what ran, and when -----------------------------------------------------------------------


def test_kernels_copies_sets_and_graphs_are_gpu_work(trace: NsysFile, read: Read) -> None:
    trace.memset(40, 50)
    trace.graph(60, 90, graph_id=7)
    trace.kernel("gemm", 0, 10)
    trace.memcpy(HTOD, 20, 30)
    raw = read(trace)
    kinds = [Kind(kind) for kind in raw.activities.kind.tolist()]
    assert list(zip(kinds, names(raw), raw.activities.start.tolist(), strict=True)) == [
        (Kind.KERNEL, "gemm", 0),
        (Kind.MEMCPY, "memcpy HtoD", 20),
        (Kind.MEMSET, "memset", 40),
        (Kind.GRAPH, "CUDA graph 7", 60),
    ]


def test_a_kernel_keeps_all_that_is_recorded_of_it(trace: NsysFile, read: Read) -> None:
    trace.kernel("gemm", -5, 10, corr=3, stream=9, graph_node=1 << 40)
    work = read(trace).activities
    row = (work.start, work.end, work.correlation, work.stream, work.graph_node)
    assert [column.tolist() for column in row] == [[-5], [10], [3], [9], [1 << 40]]


def test_what_is_missing_is_absent_not_zero(trace: NsysFile, read: Read) -> None:
    trace.kernel("gemm", 0, 10, corr=None)
    trace.db.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET globalPid = NULL")
    work = read(trace).activities
    row = (work.correlation, work.graph_node, work.process)
    assert [column.tolist() for column in row] == [[0], [-1], [-1]]


@pytest.mark.parametrize("stream", [-1, 1 << 31, 1 << 60])
def test_an_absurd_stream_is_unknown(stream: int, trace: NsysFile, read: Read) -> None:
    trace.kernel("gemm", 0, 10, stream=stream)
    assert read(trace).activities.stream.tolist() == [-1]


def test_columns_that_an_exporter_does_not_write_are_absent(trace: NsysFile, read: Read) -> None:
    trace.db.execute('CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, "end")')
    trace.db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (3, 8)")
    raw = read(trace)
    assert (raw.activities.start.tolist(), raw.activities.end.tolist()) == ([3], [8])
    assert raw.activities.device.tolist() == raw.activities.stream.tolist() == [-1]
    assert names(raw) == ["[kernel without a name]"]


def test_columns_that_a_user_added_are_left_alone(trace: NsysFile, read: Read) -> None:
    trace.kernel("gemm", 0, 10)
    trace.db.execute("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN name TEXT DEFAULT 'mine'")
    assert names(read(trace)) == ["gemm"]


def test_a_view_in_place_of_a_table_is_read(trace: NsysFile, read: Read) -> None:
    trace.kernel("gemm", 0, 10)
    trace.kernel("softmax", 20, 30)
    trace.db.execute("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME TO everything")
    trace.db.execute(
        "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS SELECT * FROM everything WHERE start > 5"
    )
    assert names(read(trace)) == ["softmax"]


def test_without_gpu_tables_there_is_no_gpu_work(trace: NsysFile, read: Read) -> None:
    assert len(read(trace).activities.start) == 0


def test_a_start_or_end_that_is_missing_is_taken_from_the_other(
    trace: NsysFile, read: Read
) -> None:
    trace.db.execute('CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, "end")')
    trace.db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (NULL, 10), (20, NULL)")
    work = read(trace).activities
    assert (work.start.tolist(), work.end.tolist()) == ([10, 20], [10, 20])


def test_times_that_are_missing_or_absurd_count_nothing_and_are_said(
    trace: NsysFile, read: Read
) -> None:
    trace.kernel("gemm", 7, 10)
    trace.kernel("gemm", 7, 1 << 62)
    raw = read(trace)
    assert raw.activities.end.tolist() == [10, 7]
    assert any(line.startswith("1 GPU activity was recorded") for line in raw.warnings)


# -- names of kernels -------------------------------------------------------------------------


def test_a_kernel_goes_by_its_short_name_and_keeps_the_others(trace: NsysFile, read: Read) -> None:
    trace.kernel("short", 0, 10, demangled="void gemm<float>(float*)", mangled="_Z4gemmIfEvPf")
    (frame,) = frames(read(trace))
    assert frame.name == "short"
    assert frame.get("demangled") == "void gemm<float>(float*)"
    assert frame.get("mangled") == "_Z4gemmIfEvPf"


DANGLING = 9_999


def test_without_a_short_name_the_base_of_the_demangled_one_serves(
    trace: NsysFile, read: Read
) -> None:
    trace.kernel(DANGLING, 0, 10, demangled="void ns::gemm<float>(float*)")
    assert names(read(trace)) == ["gemm"]


def test_a_mangled_name_alone_is_demangled(trace: NsysFile, read: Read) -> None:
    trace.kernel(DANGLING, 0, 10, demangled=DANGLING, mangled="_Z7add_onePKfPfi")
    (frame,) = frames(read(trace))
    assert (frame.name, frame.get("demangled")) == ("add_one", "add_one(float const*, float*, int)")


def test_kernels_whose_names_dangle_stay_apart_by_their_ids(trace: NsysFile, read: Read) -> None:
    trace.kernel(7_777, 0, 10)
    trace.kernel(8_888, 0, 10)
    trace.kernel(7_777, 0, 10)
    assert names(read(trace)) == [
        "[kernel with unknown name 7777]",
        "[kernel with unknown name 8888]",
        "[kernel with unknown name 7777]",
    ]


def test_names_without_a_strings_table_are_unknown_too(trace: NsysFile, read: Read) -> None:
    trace.kernel(5, 0, 10)
    trace.db.execute("DROP TABLE StringIds")
    assert names(read(trace)) == ["[kernel with unknown name 5]"]


def test_kernels_that_differ_in_template_arguments_are_two_frames(
    trace: NsysFile, read: Read
) -> None:
    trace.kernel("gemm", 0, 10, demangled="void gemm<float>()")
    trace.kernel("gemm", 0, 10, demangled="void gemm<half>()")
    raw = read(trace)
    assert names(raw) == ["gemm", "gemm"]
    assert len(set(raw.activities.frame.tolist())) == 2


def test_a_name_that_is_not_utf8_is_read_with_a_mark(trace: NsysFile, read: Read) -> None:
    trace.kernel(b"na\xefve", 0, 10)
    assert names(read(trace)) == ["na\ufffdve"]


def test_the_schema_of_2020_has_no_mangled_names(old_trace: NsysFile, read: Read) -> None:
    old_trace.kernel("gemm", 0, 10, demangled="void gemm()")
    (frame,) = frames(read(old_trace))
    assert (frame.name, frame.extra) == ("gemm", (("demangled", "void gemm()"),))


# -- names of the rest ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (HTOD, "memcpy HtoD"),
        (DTOH, "memcpy DtoH"),
        (DTOD, "memcpy DtoD"),
        (HTOH, "memcpy HtoH"),
        (PTOP, "memcpy PtoP"),
        (0, "memcpy"),
        (3, "memcpy"),
        (99, "memcpy"),
    ],
)
def test_a_copy_says_its_direction(kind: int, name: str, trace: NsysFile, read: Read) -> None:
    trace.memcpy(kind, 0, 10)
    assert names(read(trace)) == [name]


def test_graphs_are_told_apart_by_their_ids(trace: NsysFile, read: Read) -> None:
    for graph in (3, 4, 3):
        trace.graph(0, 10, graph_id=graph)
    assert names(read(trace)) == ["CUDA graph 3", "CUDA graph 4", "CUDA graph 3"]


def test_a_graph_without_an_id_is_a_graph(trace: NsysFile, read: Read) -> None:
    trace.graph(0, 10)
    trace.db.execute("ALTER TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE DROP COLUMN graphId")
    assert names(read(trace)) == ["CUDA graph"]


# -- graph nodes ------------------------------------------------------------------------------


def nodes(raw: RawTrace) -> list[tuple[int, ...]]:
    """(node, original, start, tid) of every node."""
    table = raw.nodes
    tids = [raw.threads[thread].tid for thread in table.thread.tolist()]
    columns = (table.node.tolist(), table.original.tolist(), table.start.tolist(), tids)
    return list(zip(*columns, strict=True))


def test_nodes_are_captured_or_cloned_from_another(trace: NsysFile, read: Read) -> None:
    trace.node(5, None, -30, tid=101)
    trace.node(9, 5, 80)
    raw = read(trace)
    assert nodes(raw) == [(5, -1, -30, 101), (9, 5, 80, 100)]
    assert raw.nodes.process.tolist() == [0, 0]


def test_the_schema_of_2020_keeps_nodes_in_another_table(old_trace: NsysFile, read: Read) -> None:
    old_trace.node(5, None, 30)
    assert nodes(read(old_trace)) == [(5, -1, 30, 100)]


def test_newer_exports_use_that_table_for_whole_graphs(trace: NsysFile, read: Read) -> None:
    trace.node(5, None, 30)
    trace.insert("CUDA_GRAPH_EVENTS", graphId=1, start=0)
    assert nodes(read(trace)) == [(5, -1, 30, 100)]
