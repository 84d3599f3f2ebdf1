"""NVTX ranges from an export: which rows are ranges, and what they are called."""

from __future__ import annotations

import pytest

from flame.core.model.frames import Frame
from flame.core.model.raw import OPEN, RawTrace
from flame.core.options import LoadOptions
from flame.core.readers.sqlite import allowance
from tests.core.conftest import Read
from tests.support.writers.nsysfile import MARK, START_END, NsysFile

CATEGORY = 33
RAW = LoadOptions(nvtx_names="raw")


def frames(raw: RawTrace) -> list[Frame]:
    """The frame of every range."""
    return [raw.frames[frame] for frame in raw.ranges.frame.tolist()]


def names(raw: RawTrace) -> list[str]:
    return [frame.name for frame in frames(raw)]


# -- which rows are ranges --------------------------------------------------------------------


def test_a_push_pop_range_has_a_start_an_end_and_a_thread(trace: NsysFile, read: Read) -> None:
    trace.nvtx("step", -5, 90, pid=200, tid=201)
    raw = read(trace)
    ranges = raw.ranges
    assert (names(raw), ranges.start.tolist(), ranges.end.tolist()) == (["step"], [-5], [90])
    assert [raw.threads[thread].tid for thread in ranges.thread.tolist()] == [201]


def test_a_range_without_an_end_was_open_when_the_capture_stopped(
    trace: NsysFile, read: Read
) -> None:
    trace.nvtx("serve", 0, None)
    assert read(trace).ranges.end.tolist() == [OPEN]


def test_marks_and_registrations_are_no_ranges(trace: NsysFile, read: Read) -> None:
    trace.nvtx("mark", 5, None, type=MARK)
    trace.domain(1, "NCCL")
    trace.nvtx("category", 5, None, type=CATEGORY, category=3)
    assert names(read(trace)) == []


def test_start_end_ranges_are_included_only_on_request(trace: NsysFile, read: Read) -> None:
    trace.nvtx("step", 0, 90)
    trace.nvtx("request", 5, 95, type=START_END, end_tid=101)
    assert names(read(trace)) == ["step"]
    assert names(read(trace, LoadOptions(nvtx_start_end=True))) == ["step", "request"]


@pytest.mark.parametrize("column", ["globalTid", "start"])
def test_a_range_without_a_place_is_left_out_and_said(
    column: str, trace: NsysFile, read: Read
) -> None:
    trace.nvtx("lost", 0, 90)
    trace.db.execute("CREATE TABLE nullable AS SELECT * FROM NVTX_EVENTS")
    trace.db.execute("DROP TABLE NVTX_EVENTS")
    trace.db.execute("ALTER TABLE nullable RENAME TO NVTX_EVENTS")
    trace.db.execute(f"UPDATE NVTX_EVENTS SET {column} = NULL")
    trace.nvtx("step", 0, 90)
    raw = read(trace)
    assert names(raw) == ["step"]
    assert any(line.startswith("1 NVTX range names no thread") for line in raw.warnings)


def test_without_the_table_or_its_types_there_are_no_ranges(trace: NsysFile, read: Read) -> None:
    assert names(read(trace)) == []
    trace.nvtx("step", 0, 90)
    trace.db.execute("ALTER TABLE NVTX_EVENTS DROP COLUMN eventType")
    assert names(read(trace)) == []


# -- names ------------------------------------------------------------------------------------


def test_a_name_is_a_text_or_a_registered_string(trace: NsysFile, read: Read) -> None:
    trace.nvtx("inline", 0, 90)
    trace.nvtx("registered", 10, 80, registered=True)
    assert names(read(trace)) == ["inline", "registered"]


def test_a_text_and_a_registered_string_of_one_name_are_one_range(
    trace: NsysFile, read: Read
) -> None:
    trace.nvtx("step", 0, 90)
    trace.nvtx("step", 100, 190, registered=True)
    assert len(set(read(trace).ranges.frame.tolist())) == 1


def test_a_registered_string_that_dangles_keeps_its_id(trace: NsysFile, read: Read) -> None:
    trace.nvtx(777, 0, 90)
    assert names(read(trace)) == ["[range with unknown name 777]"]


def test_a_range_may_have_no_name_or_an_empty_one(trace: NsysFile, read: Read) -> None:
    trace.nvtx("", 0, 90)
    trace.nvtx("x", 10, 80)
    trace.db.execute("UPDATE NVTX_EVENTS SET text = NULL WHERE text = 'x'")
    assert names(read(trace)) == ["", ""]


def test_volatile_ids_are_cleaned_away_and_shapes_kept_aside(trace: NsysFile, read: Read) -> None:
    trace.nvtx("aten::mul, op_id = 314290, sizes = [[16, 2880], []]", 0, 90)
    (frame,) = frames(read(trace))
    assert (frame.name, frame.get("shapes")) == ("aten::mul", "[[16, 2880], []]")


def test_names_that_differ_in_volatile_ids_only_are_one(trace: NsysFile, read: Read) -> None:
    for number in range(5):
        trace.nvtx(f"aten::mul, op_id = {number}", 10 * number, 10 * number + 5)
    assert len(set(read(trace).ranges.frame.tolist())) == 1


@pytest.mark.parametrize("text", ["aten::mul, op_id = 314290", "{'Module': 'model.mlp'}"])
@pytest.mark.parametrize("registered", [False, True])
def test_raw_names_are_exactly_what_was_recorded(
    text: str, registered: bool, trace: NsysFile, read: Read
) -> None:
    trace.nvtx(text, 0, 90, registered=registered)
    assert names(read(trace, RAW)) == [text]
    assert names(read(trace)) != [text]


def test_a_name_that_is_not_utf8_is_read_with_a_mark(trace: NsysFile, read: Read) -> None:
    trace.nvtx(b"na\xefve", 0, 90)
    assert names(read(trace)) == ["na\ufffdve"]


def test_names_stay_with_their_ranges_over_many_chunks(
    trace: NsysFile, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allowance, "MOST_ROWS", 3)
    for number in range(20):
        trace.nvtx(f"range {number}", number, number + 1, registered=number % 3 == 0)
    raw = read(trace)
    assert names(raw) == [f"range {start}" for start in raw.ranges.start.tolist()]
    assert len(names(raw)) == 20


# -- domains and categories -------------------------------------------------------------------


def test_domains_are_named_per_process(trace: NsysFile, read: Read) -> None:
    trace.domain(1, "NCCL", pid=100)
    trace.domain(1, "cuDNN", pid=200)
    trace.nvtx("a", 0, 90, pid=100, domain=1)
    trace.nvtx("b", 0, 90, pid=200, domain=1)
    trace.nvtx("c", 0, 90, pid=100, domain=2)
    trace.nvtx("d", 0, 90, pid=100)
    assert [frame.get("domain") for frame in frames(read(trace))] == ["NCCL", "cuDNN", "", ""]


def test_a_domain_may_be_named_by_a_registered_string(trace: NsysFile, read: Read) -> None:
    trace.domain(1, trace.string("NCCL"))
    trace.nvtx("all_reduce", 0, 90, domain=1)
    assert frames(read(trace))[0].get("domain") == "NCCL"


def test_ranges_of_one_name_in_two_domains_are_two(trace: NsysFile, read: Read) -> None:
    trace.domain(1, "NCCL")
    trace.nvtx("reduce", 0, 90)
    trace.nvtx("reduce", 0, 90, domain=1)
    assert len(set(read(trace).ranges.frame.tolist())) == 2


@pytest.mark.parametrize("domain", ["GIL Trace", "Python Backtrace"])
def test_ranges_of_the_profiler_itself_are_left_out(
    domain: str, trace: NsysFile, read: Read
) -> None:
    trace.domain(1, domain)
    trace.nvtx("Holding GIL", 0, 90, domain=1)
    trace.nvtx("step", 0, 90)
    assert names(read(trace)) == ["step"]


def test_categories_are_named_within_their_domain(trace: NsysFile, read: Read) -> None:
    trace.domain(1, "NCCL")
    trace.nvtx("comm", 0, None, type=CATEGORY, domain=1, category=3)
    trace.nvtx("io", 0, None, type=CATEGORY, category=3)
    trace.nvtx("a", 0, 90, domain=1, category=3)
    trace.nvtx("b", 0, 90, category=3)
    trace.nvtx("c", 0, 90, category=4)
    assert [frame.get("category") for frame in frames(read(trace))] == ["comm", "io", ""]


# -- payloads ---------------------------------------------------------------------------------


def examples(raw: RawTrace) -> list[tuple[str, ...]]:
    """Payload examples of every range."""
    table = raw.frames.build()
    return [table.examples.get(frame, ()) for frame in raw.ranges.frame.tolist()]


def test_json_payloads_are_kept_as_examples_and_split_no_ranges(
    trace: NsysFile, read: Read
) -> None:
    trace.nvtx("reduce", 0, 90, json='{"bytes": 1}')
    trace.nvtx("reduce", 100, 190, json='{"bytes":   2}')
    raw = read(trace)
    assert names(raw) == ["reduce", "reduce"]
    assert examples(raw) == [('{"bytes": 1}', '{"bytes": 2}')] * 2


def test_json_may_be_a_registered_string(trace: NsysFile, read: Read) -> None:
    trace.nvtx("reduce", 0, 90, registered=True, json='{"bytes": 1}')
    assert examples(read(trace)) == [('{"bytes": 1}',)]


def test_numbers_attached_to_a_range_are_examples_too(trace: NsysFile, read: Read) -> None:
    trace.nvtx("step", 0, 90)
    trace.db.execute("UPDATE NVTX_EVENTS SET int64Value = -7, doubleValue = 0.5")
    assert examples(read(trace)) == [("int64Value -7, doubleValue 0.5",)]


def test_ranges_without_payload_have_no_examples(trace: NsysFile, read: Read) -> None:
    trace.nvtx("step", 0, 90)
    assert examples(read(trace)) == [()]
