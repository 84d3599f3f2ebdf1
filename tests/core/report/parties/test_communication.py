"""Communication: what it hid, and who waited, as plain loops over moments and operations say."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from flame.core.loading.many import load, load_all
from flame.core.model.profile import Profile
from flame.core.projection.filters import Time
from flame.core.projection.selection import select
from flame.core.report.parties.collectives import CommunicationRows, match_ranks
from flame.core.report.parties.communication import (
    communication_section,
    device_communication,
    rank_labels,
)
from flame.core.report.scope import Scope
from flame.core.report.sections.budget import budgets
from flame.core.report.table import Section
from flame.core.timeline.exposure import exposed_times
from tests.conftest import NSYS_TRACES, TRACES, needs_traces
from tests.support.profiles.recorded import Recorded
from tests.support.tiers import deep_except, examples
from tests.support.writers.kinetofile import KinetoFile
from tests.support.writers.nsysfile import PTOP, NsysFile

NAMES = ("ncclDevKernel_AllReduce", "ncclDevKernel_AllGather", "gemm")


class Work(NamedTuple):
    name: str
    process: int
    device: int
    start: int
    length: int

    @property
    def moments(self) -> range:
        return range(self.start, self.start + self.length)


works = st.builds(
    Work,
    st.sampled_from(NAMES),
    st.integers(0, 1),
    st.integers(0, 1),
    st.integers(0, 40),
    st.integers(1, 12),
)


def recorded(work: list[Work]) -> Profile:
    trace = Recorded()
    for one in work:
        trace.kernel(
            one.name,
            one.start,
            one.start + one.length,
            process=one.process,
            device=one.device,
        )
    return trace.profile()


@examples(2, [HealthCheck.too_slow])
@given(st.lists(works, min_size=1, max_size=10), st.integers(0, 30), st.integers(1, 40))
def test_overlap_is_counted_moment_by_moment(work: list[Work], low: int, length: int) -> None:
    profile, window = recorded(work), range(low, low + length)
    for where, inside in (((), range(100)), ((Time(low, low + length),), window)):
        for one in device_communication(Scope(profile, select(where=where))):
            mine = [each for each in work if each.device == one.gpu.device]
            talks = [each for each in mine if each.name != "gemm"]
            talking = {m for each in talks for m in each.moments if m in inside}
            computing = {m for each in mine if each.name == "gemm" for m in each.moments}
            assert one.kernels == sum(any(m in inside for m in each.moments) for each in talks)
            assert one.total == sum(m in inside for each in talks for m in each.moments)
            assert one.busy == len(talking)
            assert one.overlap == len(talking & computing)
            assert one.exposed == len(talking - computing)


@examples(2, [HealthCheck.too_slow])
@given(st.lists(works, min_size=1, max_size=12))
def test_ranks_match_call_by_call(work: list[Work]) -> None:
    profile = recorded(work)
    rows = CommunicationRows.of_scope(Scope(profile))
    labels = rank_labels(profile, rows)
    found = match_ranks(profile, rows, labels)
    ranks = sorted({(one.process, one.device) for one in work if one.name != "gemm"})
    assert list(zip(rows.processes.tolist(), rows.devices.tolist(), strict=True)) == ranks
    if not ranks:
        return
    wait, last, matched = (dict.fromkeys(ranks, 0) for _ in range(3))
    for name in NAMES[:2]:
        calls: defaultdict[tuple[int, int], list[Work]] = defaultdict(list)
        order = sorted((one for one in work if one.name == name), key=lambda one: one.start)
        for one in order:
            calls[one.process, one.device].append(one)
        if len(calls) < 2 or len({len(calls[rank]) for rank in ranks}) > 1:
            continue
        for together in zip(*(calls[rank] for rank in ranks), strict=True):
            least = min(one.length for one in together)
            latest = max(one.start for one in together)
            for rank, one in zip(ranks, together, strict=True):
                matched[rank] += 1
                wait[rank] += one.length - least
            last[
                next(r for r, one in zip(ranks, together, strict=True) if one.start == latest)
            ] += 1
    starts = [(one.name, one.process, one.device, one.start) for one in work]
    if len(set(starts)) == len(starts):  # else either of two may be the first
        assert found.wait.tolist() == list(wait.values())
    assert found.matched.tolist() == list(matched.values())
    if found.last is not None and len(set(starts)) == len(starts):
        assert found.last.tolist() == list(last.values())
    assert int(found.total.sum()) == sum(one.length for one in work if one.name != "gemm")


# By hand


def cells(section: Section, key: str) -> list[dict[str, object]]:
    [table] = [table for table in section.tables if table.key == key]
    keys = [column.key for column in table.columns]
    return [dict(zip(keys, row, strict=True)) for row in table.rows]


def test_who_comes_last_holds_the_others_up() -> None:
    trace = Recorded()
    for number in range(3):
        at = 1_000 * number
        trace.kernel("ncclDevKernel_AllReduce", at, at + 100, process=0, device=0)
        trace.kernel("ncclDevKernel_AllReduce", at + 80, at + 100, process=1, device=1)
    section = communication_section(Scope(trace.profile()))
    first, second = cells(section, "ranks")
    assert (first["wait_ns"], first["last"], first["transfer_ns"]) == (240, 0, 60)
    assert (second["wait_ns"], second["last"]) == (0, 3)
    [operation] = cells(section, "operations")
    assert (operation["number"], operation["wait_ns"], operation["skew_ns"]) == (3, 240, 240)
    assert section.facts["imbalance_percent"] == 80
    [collective] = cells(section, "collectives")
    assert (collective["count"], collective["sum_ns"], collective["exposed_ns"]) == (6, 360, 360)


def test_where_counts_differ_it_says_whose() -> None:
    trace = Recorded()
    for at, process in ((0, 0), (0, 1), (100, 1)):
        trace.kernel("ncclDevKernel_AllReduce", at, at + 10, process=process, device=process)
    section = communication_section(Scope(trace.profile()))
    [operation] = cells(section, "operations")
    assert operation["why"] in ("trainer [100] has 1, others 2", "process [200] has 2, others 1")
    assert "number" not in operation


def test_calls_are_matched_in_order_of_time() -> None:
    trace = Recorded()
    for at, process, length in ((100, 0, 20), (0, 0, 10), (0, 1, 10), (100, 1, 20)):
        trace.kernel("ncclDevKernel_AllReduce", at, at + length, process=process, device=process)
    [operation] = cells(communication_section(Scope(trace.profile())), "operations")
    assert (operation["wait_ns"], operation["transfer_ns"]) == (0, 30)


def test_one_process_with_two_gpus_is_two_ranks() -> None:
    trace = Recorded()
    for device, length in ((0, 30), (1, 20)):
        trace.kernel("ncclDevKernel_AllReduce", 0, length, device=device)
    ranks = cells(communication_section(Scope(trace.profile())), "ranks")
    assert [row["rank"] for row in ranks] == ["trainer [100] GPU0", "trainer [100] GPU1"]
    assert [row["wait_ns"] for row in ranks] == [10, 0]


def test_copies_between_gpus_are_listed_beside(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.kernel("gemm", 0, 10)
        file.memcpy(PTOP, 20, 50)
    section = communication_section(Scope(load(tmp_path / "trace.sqlite")))
    [row] = cells(section, "rows")
    assert (row["kernels"], row["peer_copies"], row["peer_copies_ns"]) == (0, 1, 30)
    assert section.notes == ("no kernel communicates, by its name",)


@pytest.mark.deep
def test_sizes_make_bandwidths_and_tell_groups_apart(tmp_path: Path) -> None:
    paths = []
    for rank in range(2):
        file = KinetoFile(pid=100 + rank)
        for number, size in enumerate((1_000, 1_000, 4_000)):
            at = 10_000 * number
            told = {"Collective_name": "allreduce", "dtype": "Float"}
            file.op("record_param_comms", at, at + 500, In_msg_nelems=size, Group_size=2, **told)
            file.runtime(number + 1, at + 10, at + 100)
            end = at + 2_000 + 1_000 * rank
            file.kernel("ncclDevKernel_AllReduce", at + 1_000, end, number + 1)
        paths.append(file.write(tmp_path / f"rank{rank}.pt.trace.json"))
    section = communication_section(Scope(load_all(paths)))
    [collective] = cells(section, "collectives")
    assert collective["group_ranks"] == 2
    assert collective["bytes"] == 2 * 24_000
    assert collective["bandwidth"] == pytest.approx(48_000 / 9_000, abs=0.001)
    assert collective["bus_bandwidth"] == pytest.approx(48_000 / 9_000, abs=0.001)
    operations = {one["bytes"]: one for one in cells(section, "operations")}
    told_of = {size: (one["number"], one["wait_ns"]) for size, one in operations.items()}
    assert told_of == {4_000: (2, 2_000), 16_000: (1, 1_000)}


def test_of_stacks_nothing_is_said(tmp_path: Path) -> None:
    path = tmp_path / "stacks.folded"
    path.write_text("main;work 3\n")
    assert not communication_section(Scope(load(path))).available


# Real traces


@needs_traces
@pytest.mark.parametrize(
    "name",
    deep_except(
        ["b200_eager_python.json.gz", "h100_2gpu_window.sqlite"],
        [*NSYS_TRACES, *sorted(path.name for path in TRACES.glob("kineto/*.json.gz"))],
    ),
)
def test_exposed_is_that_of_the_budget(name: str) -> None:
    folder = "nsys" if name.endswith(".sqlite") else "kineto"
    scope = Scope(load(TRACES / folder / name))
    found = device_communication(scope)
    assert [one.exposed for one in found] == [b.exposed_communication for b in budgets(scope)]
    for one in found:
        assert one.overlap >= 0
        assert one.busy <= one.total
    rows = CommunicationRows.of_scope(scope)
    exposed = exposed_times(scope.profile)[rows.row] if len(rows) else np.zeros(0, np.int64)
    assert int(exposed.sum()) == sum(one.exposed for one in found)


@needs_traces
@pytest.mark.deep
def test_of_two_copies_of_a_rank_nobody_waits(tmp_path: Path) -> None:
    path = TRACES / "kineto" / "b200_eager_python.json.gz"
    other = tmp_path / "other.json.gz"
    other.write_bytes(path.read_bytes())
    scope = Scope(load_all([path, other]))
    rows = CommunicationRows.of_scope(scope)
    found = match_ranks(scope.profile, rows, rank_labels(scope.profile, rows))
    assert found.matched.tolist() == [73, 73]
    assert found.wait.tolist() == [0, 0]
    [why] = {one.why for one in found.operations} - {""}
    assert why == "2 ranks were recorded, its group has 8"
