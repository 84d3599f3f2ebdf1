"""Collectives that the trace tells: by group and number on all ranks, with what they move."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from flame.core.loading.file import load_file
from flame.core.loading.many import load
from flame.core.loading.merge.profiles import merge_profiles
from flame.core.options import LoadOptions, silent
from flame.core.report.parties.collectives import CommunicationRows, match_ranks
from flame.core.report.parties.communication import communication_section, rank_labels
from flame.core.report.scope import Scope
from flame.core.report.table import Section
from tests.conftest import TRACES, needs_traces
from tests.support.profiles.report_rows import table_rows
from tests.support.tiers import examples
from tests.support.writers.kinetofile import KinetoFile


class Call(NamedTuple):
    rank: int
    group: int
    number: int
    length: int
    size: int


def traced(calls: list[Call], ranks: int, **more: Any) -> list[KinetoFile]:
    """A trace for each rank, in which its calls begin 1,000 ns apart."""
    files = []
    for rank in range(ranks):
        file = KinetoFile(pid=100 + rank)
        file.top["baseTimeNanoseconds"] = 1_700_000_000_000_000_000
        file.top["distributedInfo"] = {"rank": rank, "world_size": ranks}
        own = [call for call in calls if call.rank == rank]
        for at, call in enumerate(own, 1):
            begin = 1_000 * at
            file.runtime(at, begin, begin + 5)
            told = {
                "Collective_name": "allreduce",
                "dtype": "Float",
                "In_msg_nelems": call.size,
                "Out_msg_nelems": call.size,
                "Group_size": ranks,
                "Process_Group_Name": str(call.group),
                "Seq": call.number,
                **more,
            }
            file.kernel("ncclDevKernel_AllReduce", begin + 9, begin + 9 + call.length, at, **told)
        file.runtime(900, 0, 5)
        file.kernel("gemm", 6, 8, 900)
        files.append(file)
    return files


def section_of(folder: Path, files: list[KinetoFile]) -> tuple[Scope, Section]:
    paths = [file.write(folder / f"{at}.pt.trace.json") for at, file in enumerate(files)]
    profiles = [load_file(path, LoadOptions(), silent) for path in paths]
    labels = [f"rank {rank}" for rank in range(len(paths))]
    scope = Scope(merge_profiles(profiles, labels) if len(paths) > 1 else profiles[0])
    return scope, communication_section(scope)


calls = st.builds(
    Call,
    st.integers(0, 1),
    st.integers(0, 1),
    st.integers(0, 2),
    st.integers(1, 900),
    st.sampled_from([1, 1, 5]),
)


@examples(1, [HealthCheck.too_slow])
@given(st.lists(calls, min_size=4, max_size=20))
def test_calls_of_one_number_in_their_group_are_one_operation(made: list[Call]) -> None:
    with TemporaryDirectory() as folder:
        scope, _ = section_of(Path(folder), traced(made, 2))
        rows = CommunicationRows.of_scope(scope)
        found = match_ranks(scope.profile, rows, rank_labels(scope.profile, rows))
    lengths: defaultdict[tuple[int, int, int], list[list[int]]] = defaultdict(lambda: [[], []])
    for call in made:
        lengths[call.group, call.size, call.number][call.rank].append(call.length)
    matched: Counter[tuple[int, int]] = Counter()
    alone: Counter[tuple[int, int]] = Counter()
    wait = [0, 0]
    for (group, size, _), (first, second) in lengths.items():
        for one, other in zip(first, second, strict=False):
            matched[group, size] += 1
            wait[0] += max(one - other, 0)
            wait[1] += max(other - one, 0)
        alone[group, size] += abs(len(first) - len(second))
    of_rank = dict(zip(rows.processes.tolist(), found.wait.tolist(), strict=True))
    assert [of_rank.get(rank, 0) for rank in range(2)] == wait
    both = {(one.group, one.size) for one in made if one.rank == 0}
    both &= {(one.group, one.size) for one in made if one.rank == 1}
    for operation in found.operations:
        key = int(operation.collective.group), (operation.collective.bytes or 0) // 4
        assert operation.number == matched[key]
        assert operation.alone == (alone[key] if key in both else 0)
        assert bool(operation.why) == (not matched[key])


def test_groups_of_one_size_are_told_apart(tmp_path: Path) -> None:
    made = [Call(rank, group, 1, 100 + 50 * rank, 1_000) for rank in range(2) for group in (3, 4)]
    files = traced(made, 2, Process_Group_Description="tp", Process_Group_Ranks="[0, 1]")
    _, section = section_of(tmp_path, files)
    rows = table_rows(section, "collectives")
    assert sorted(row["group"] for row in rows) == ["3: tp [0-1]", "4: tp [0-1]"]
    for row in rows:
        assert (row["count"], row["bytes"], row["group_ranks"]) == (2, 8_000, 2)
        assert row["bandwidth"] == row["bus_bandwidth"] == 32.0
    assert [row["number"] for row in table_rows(section, "operations")] == [1, 1]


def test_of_a_job_of_which_a_part_was_opened_it_says_so(tmp_path: Path) -> None:
    files = traced([Call(0, 0, 1, 100, 1)], 4)[:1]
    _, section = section_of(tmp_path, files)
    assert section.notes == ("the job has 4 ranks, 1 was opened",)


@pytest.mark.parametrize(
    ("name", "told", "size", "factor"),
    [
        ("_allgather_base", {"Out_msg_nelems": 40}, 160, 0.75),
        ("_allgather_base", {"Out_msg_nelems": None}, 160, 0.75),
        ("_reduce_scatter_base", {"Out_msg_nelems": 2}, 40, 0.75),
        ("all_to_allv", {}, 40, 0.75),
        ("_broadcast_oop", {}, 40, 1.0),
        ("allreduce", {"dtype": "BFloat16"}, 20, 1.5),
        ("allreduce", {"dtype": "Quaternion"}, None, None),
        ("send", {}, 40, None),
        ("allreduce", {"In_msg_nelems": 1 << 61}, None, None),
    ],
)
def test_bytes_and_bandwidth_of_each_collective(
    name: str, told: dict[str, Any], size: int | None, factor: float | None, tmp_path: Path
) -> None:
    [file, *_] = traced([Call(0, 0, 1, 100, 10)], 4, Collective_name=name, **told)
    _, section = section_of(tmp_path, [file])
    [row] = table_rows(section, "collectives")
    assert row["bytes"] == size
    expected = None if factor is None or size is None else round(size / 100 * factor, 3)
    assert row["bus_bandwidth"] == expected


@needs_traces
def test_the_collective_of_a_real_trace() -> None:
    scope = Scope(load(TRACES / "kineto" / "b200_eager_python.json.gz"))
    rows = table_rows(communication_section(scope), "collectives")
    [gather] = [row for row in rows if row["collective"] == "all-gather"]
    assert (gather["group"], gather["group_ranks"]) == ("3 [0-7]", 8)
    assert (gather["count"], gather["bytes"]) == (1, 201_088 * 2)
