"""Collectives of ranks, found in traces: which they are, and what came before."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flame.core.loading.file import load_file
from flame.core.loading.merge.profiles import merge_profiles
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions, silent
from flame.core.rank_summary.collective_table import IdentitySource
from flame.core.rank_summary.content_hash import hash_numbers, hash_text
from flame.core.ranks.communication.arrivals import (
    Arrivals,
    arrivals_of,
    communication_of,
    ends_of,
    table_of,
)
from flame.core.ranks.communication.matching import match_table
from flame.core.ranks.communication.waits import waits_of
from flame.core.report.parties.collectives import CommunicationRows, match_ranks
from flame.core.report.scope import Scope
from tests.conftest import TRACES, needs_traces
from tests.support.ranks.rank_arrivals import (
    Met,
    arrivals_by_hand,
    simulate,
    whole_communication,
    whole_table,
)
from tests.support.tiers import deep_except, examples
from tests.support.writers.kinetofile import KinetoFile
from tests.support.writers.ncclcalls import Call, add_range, add_schemas, blob
from tests.support.writers.nsysfile import NsysFile

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
P2P = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
BROADCAST = "ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


class Ran(NamedTuple):
    """A kernel of a rank."""

    start: int
    end: int
    name: str = "gemm"
    stream: int = 7
    args: dict[str, Any] = {}  # noqa: RUF012


def told(group: str, members: list[int], number: int | None, name: str = "allreduce") -> Any:
    """What Kineto tells of a collective."""
    found = {
        "Collective_name": name,
        "Group_size": len(members),
        "Process_Group_Name": group,
        "Process_Group_Ranks": str(members),
    }
    return found if number is None else {**found, "Seq": number}


def loaded(path: Path, kernels: list[Ran], steps: list[tuple[int, int]] = []) -> Profile:  # noqa: B006
    """A Kineto trace of a rank."""
    file = KinetoFile()
    file.top["baseTimeNanoseconds"] = 1_700_000_000_000_000_000
    for number, (begin, end) in enumerate(steps):
        file.annotation(f"ProfilerStep#{number + 3}", begin, end)
    for at, one in enumerate(kernels, 1):
        file.runtime(at, one.start - 100, one.start - 90)
        file.kernel(one.name, one.start, one.end, at, stream=one.stream, **one.args)
    return load_file(file.write(path), LoadOptions(), silent)


def world(number: int | None) -> Any:
    return told("0", [0, 1, 2, 3], number)


def test_recorded_groups_and_numbers_are_matched(tmp_path: Path) -> None:
    """Two groups of two ranks and one of all; the ranks were recorded from other calls on."""
    profiles = []
    for rank in range(4):
        pair = rank // 2
        group = [2 * pair, 2 * pair + 1]
        kernels = []
        for at in range(rank % 2, 5):
            begin = 10_000 * at + 1_000
            kernels.append(
                Ran(begin, begin + 100 + rank, ALL_REDUCE, 20, told(str(1 + pair), group, 40 + at))
            )
            kernels.append(Ran(begin + 5_000, begin + 5_900 - rank, ALL_REDUCE, 21, world(8 + at)))
        kernels.append(Ran(70_000, 90_000, P2P, 22, told("0", [0, 1, 2, 3], 8, "send")))
        kernels.append(Ran(95_000, 95_010, BROADCAST, 22))
        profiles.append(loaded(tmp_path / f"{rank}.pt.trace.json", kernels))
    ranks = [arrivals_of(profile, rank) for rank, profile in enumerate(profiles)]
    table = whole_table(ranks)
    matching = match_table(table, 4)
    found = dict(
        zip(matching.names, zip(matching.calls, matching.complete, strict=True), strict=True)
    )
    assert found == {"0 [0-3]": (5, 4), "1 [0-1]": (5, 4), "2 [2-3]": (5, 4)}
    assert set(matching.why) == {"1 of 5 lack ranks"}
    waits = [waits_of(one, table, 4) for one in ranks]
    assert [one.wait for one in waits] == [4 * 3, 4 * 2 + 4, 4, 4]
    assert [one.found - one.matched for one in waits] == [2, 0, 2, 0]
    merged = merge_profiles(profiles, ["0", "1", "2", "3"])
    reported = match_ranks(merged, CommunicationRows.of_scope(Scope(merged)), [""] * 4)
    assert reported.wait.tolist() == [one.wait for one in waits]
    sums = whole_communication(ranks)
    others = sums.together == 0
    assert dict(sums.names)[hash_text("broadcast")] == "broadcast"
    assert sums.calls[others].tolist() == [1] * 8
    assert sorted(sums.duration[others].tolist()) == [10] * 4 + [20_000] * 4


@pytest.mark.parametrize(
    ("spoiled", "source"),
    [
        ({}, IdentitySource.NUMBERED),
        ({"Seq": None}, IdentitySource.COUNTED),
        ({"Process_Group_Ranks": None, "Process_Group_Name": None}, IdentitySource.STREAM),
        ({"Process_Group_Ranks": None}, IdentitySource.STREAM),
    ],
)
def test_what_is_not_recorded_is_counted(
    tmp_path: Path, spoiled: dict[str, None], source: IdentitySource
) -> None:
    args = {key: value for key, value in world(3).items() if key not in spoiled}
    other = {**args, **({"Seq": 9} if "Seq" in args else {})}
    kernels = [Ran(1_000, 1_010, ALL_REDUCE, 20, args), Ran(2_000, 2_010, ALL_REDUCE, 20, other)]
    found = arrivals_of(loaded(tmp_path / "a.pt.trace.json", kernels), 0)
    assert found.source.tolist() == [source] * 2
    assert found.ordinal.tolist() == ([3, 9] if source == IdentitySource.NUMBERED else [0, 1])
    assert found.size.tolist() == [4, 4]


def test_a_number_that_is_there_twice_tells_nothing(tmp_path: Path) -> None:
    kernels = [
        *(Ran(1_000 * at, 1_000 * at + 10, ALL_REDUCE, 20, world(5)) for at in (1, 2)),
        Ran(3_000, 3_010, ALL_REDUCE, 20, world(6)),
        Ran(4_000, 4_010, ALL_REDUCE, 20, told("1", [0, 1], 5)),
    ]
    found = arrivals_of(loaded(tmp_path / "a.pt.trace.json", kernels), 0)
    assert found.source.tolist() == [IdentitySource.COUNTED] * 3 + [IdentitySource.NUMBERED]
    assert found.ordinal.tolist() == [0, 1, 2, 5]


def test_streams_count_in_order_of_first_use(tmp_path: Path) -> None:
    streams = [30, 20, 30, 20, 20, 40]
    kernels = [Ran(1_000 * at, 1_000 * at + 9, ALL_REDUCE, of) for at, of in enumerate(streams, 1)]
    found = arrivals_of(loaded(tmp_path / "a.pt.trace.json", kernels), 5)
    names = dict(found.communicators)
    assert [names[one] for one in found.communicator.tolist()] == [
        f"stream {at}" for at in (0, 1, 0, 1, 1, 2)
    ]
    assert found.ordinal.tolist() == [0, 0, 1, 1, 2, 0]
    assert len(table_of(found).ordinal) == 6


@pytest.mark.parametrize(
    ("counts", "why"),
    [
        ([640, 640, 641], "1 rank has 641, 2 have 640"),
        ([3, 2, 2, 1, 5, 5], "2 ranks have 5, 1 has 3, 2 have 2, …"),
        ([4, 4, 0], "only 2 of its 3 ranks were found"),
        ([4], "one rank alone"),
        ([4, 4], ""),
    ],
)
def test_streams_with_other_numbers_are_not_matched(counts: list[int], why: str) -> None:
    ranks = [
        arrivals_by_hand(
            rank, [Met(at, 1, "stream 0", source=IdentitySource.STREAM) for at in range(count)]
        )
        for rank, count in enumerate(counts)
    ]
    matching = match_table(whole_table(ranks), len(counts))
    assert matching.why == (why,)
    assert int(matching.complete.sum()) == (0 if why else 4)


@pytest.mark.parametrize(
    ("source", "size", "why"),
    [
        (IdentitySource.STREAM, 0, ""),
        (IdentitySource.STREAM, 2, ""),
        (IdentitySource.STREAM, 8, "its group has 8 ranks and is not recorded, there are 2"),
        (IdentitySource.UNDECIDED, 0, "which group of ranks it is of is not recorded"),
        (IdentitySource.NUMBERED, 8, "only 2 of its 8 ranks were found"),
        (IdentitySource.COUNTED, 0, ""),
    ],
)
def test_two_ranks_are_not_taken_for_a_group_that_may_be_another(
    source: IdentitySource, size: int, why: str
) -> None:
    met = [Met(0, 4, source=source, size=size), Met(1, 5, source=source)]
    matching = match_table(whole_table([arrivals_by_hand(rank, met) for rank in (0, 1)]), 2)
    assert matching.why == (why,)
    assert matching.matched.tolist() == [not why] * 2


def test_several_gpus_in_a_file_are_told_apart_by_rows_alone(tmp_path: Path) -> None:
    file = KinetoFile()
    for device in (0, 1):
        for at in (1, 2):
            file.kernel(ALL_REDUCE, 1_000 * at, 1_000 * at + 9, 0, device=device)
    profile = load_file(file.write(tmp_path / "a.pt.trace.json"), LoadOptions(), silent)
    whole = arrivals_of(profile, 0)
    assert whole.source.tolist() == [IdentitySource.UNDECIDED] * 4
    assert not match_table(table_of(whole), 1).matched.any()
    assert communication_of(whole).calls.tolist() == [2, 2]
    rows = [np.flatnonzero(profile.activities.device == device) for device in (0, 1)]
    ranks = [arrivals_of(profile, rank, rows=of) for rank, of in enumerate(rows)]
    assert match_table(whole_table(ranks), 2).matched.all()


def test_steps_are_those_of_the_own_process(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    with NsysFile(path) as file:
        for pid, length in ((100, 40), (200, 70)):
            for step in range(3):
                begin = 1_000 * (step + 1)
                file.nvtx(f"step {step}", begin, begin + length, pid=pid, tid=pid)
                file.api("cudaLaunchKernel", begin + 1, begin + 5, pid + step, pid=pid, tid=pid)
                file.kernel("gemm", begin + 6, begin + 6 + step + length, pid + step, pid=pid)
    profile = load_file(path, LoadOptions(), silent)
    for process, length in enumerate((40, 70)):
        rows = np.flatnonzero(profile.activities.process == process)
        steps = arrivals_of(profile, process, rows=rows).steps
        assert steps.number.tolist() == [0, 1, 2]
        assert steps.time.tolist() == [length] * 3
        assert steps.work.tolist() == [length, length + 1, length + 2]


intervals = st.lists(
    st.builds(
        lambda start, length, talks: Ran(1_000 + start, 1_000 + start + length, talks),
        *(st.integers(0, 60), st.integers(1, 15)),
        st.sampled_from(["gemm", "gemm", ALL_REDUCE, P2P]),
    ),
    max_size=10,
)


@given(intervals)
@example([Ran(1_000, 1_060, P2P), Ran(1_010, 1_020, ALL_REDUCE), Ran(1_070, 1_080, ALL_REDUCE)])
@examples(1)
def test_what_came_before_is_that_of_plain_loops(kernels: list[Ran]) -> None:
    with TemporaryDirectory() as folder:
        steps = [(900, 930), (930, 1_000)]
        profile = loaded(Path(folder) / "a.pt.trace.json", kernels or [Ran(1, 2)], steps)
        found = arrivals_of(profile, 1, hash_numbers(np.arange(len(profile.activities.groups))))
    talking = sorted(
        (one for one in kernels if one.name != "gemm"),
        key=lambda one: (one.start, kernels.index(one)),
    )
    busy = {time for one in kernels if one.name == "gemm" for time in range(one.start, one.end)}
    expected, ended = [], None
    for one in talking:
        span = range(ended, one.start) if ended is not None else range(0)
        if one.name == ALL_REDUCE:
            step = next((at for at, (b, e) in enumerate(steps) if b <= one.start - 100 < e), -1)
            expected.append(
                (one.start, one.end - one.start, len(span), len(busy & set(span)), step)
            )
        ended = max(ended or 0, one.end)
    shift = profile.meta.origin or 0
    columns = found.start, found.duration, found.own, found.work, found.step
    got = list(zip(*(column.tolist() for column in columns), strict=True))
    base = min((one[0] for one in got), default=0) - min((one[0] for one in expected), default=0)
    assert sorted(got) == sorted((one[0] + base, *one[1:]) for one in expected)
    assert ends_of(found).tolist() == (found.start + found.duration + shift).tolist()
    whole = [
        sum(
            one.end - one.start
            for one in kernels
            if one.name == "gemm" and b <= one.start - 100 < e
        )
        for b, e in steps
    ]
    if kernels:
        assert found.steps.number.tolist() == [3, 4]
        assert found.steps.time.tolist() == [30, 70]
        assert found.steps.work.tolist() == whole
    own_group = profile.activities.groups.of_row
    rows = np.flatnonzero(np.isin(profile.activities.start, found.start))
    known = {tuple(one) for one in hash_numbers(own_group[rows]).tolist()}
    assert {tuple(found.group_hash[at].tolist()) for at in found.group.tolist()} <= known


def nccl(path: Path, rank: int, durations: list[int]) -> Profile:
    """An export of a rank with calls of a communicator of two ranks, on two streams."""
    with NsysFile(path) as file:
        file.domain(1, "NCCL")
        add_schemas(file)
        made = {"NCCL communicator ID": 0xF00000000000000A, "No. of ranks": 2, "Rank": rank}
        add_range(file, "ncclCommInitRank", 1_000, 2_000, blob("ncclCommInitRank", made))
        for at, duration in enumerate(durations):
            begin = 10_000 * (at + 1)
            call = Call("ncclAllReduce", 0xF00000000000000A, 64, "sum")
            add_range(file, call.name, begin, begin + 500, blob(call.name, call.values))
            file.api("cudaLaunchKernel", begin + 10, begin + 20, at + 1)
            file.kernel(ALL_REDUCE, begin + 600, begin + 600 + duration, at + 1, stream=20 + at % 2)
    return load_file(path, LoadOptions(), silent)


def test_communicators_of_nccl_are_matched_by_their_hash(tmp_path: Path) -> None:
    durations = [[10, 40, 25], [30, 20, 25]]
    ranks = [
        arrivals_of(nccl(tmp_path / f"{rank}.sqlite", rank, of), rank)
        for rank, of in enumerate(durations)
    ]
    table = whole_table(ranks)
    matching = match_table(table, 7)  # so many ranks has the job, two of them the communicator
    assert matching.names == ("0xf00000000000000a in order",)
    assert table.source.tolist() == [IdentitySource.COUNTED] * 3
    assert table.size.tolist() == [2] * 3
    assert table.shortest.tolist() == [10, 20, 25]
    assert table.last.tolist() == [0, 1, 0]
    assert [waits_of(one, table, 7).wait for one in ranks] == [20, 20]


COUNTED = {
    "v100_cuda_graphs": {"stream 0": 21, "send/receive": 43},
    "b200_eager_python": {"stream 0": 73, "3 [0-7] in order": 1},
}


@needs_traces
@pytest.mark.parametrize(
    "name",
    deep_except([], COUNTED),
)
def test_all_that_communicates_is_counted(name: str) -> None:
    profile = load_file(TRACES / "kineto" / f"{name}.json.gz", LoadOptions(), silent)
    found = communication_of(arrivals_of(profile, 0))
    names = [dict(found.names)[one] for one in found.communicator.tolist()]
    assert dict(zip(names, found.calls.tolist(), strict=True)) == COUNTED[name]
    rows = CommunicationRows.of_scope(Scope(profile))
    assert found.calls.sum() == len(rows)
    assert found.duration.sum() == profile.activities.duration[rows.row].sum()


def exported(path: Path, rank: Arrivals) -> Profile:
    """An export of a rank with these arrivals, and the work before them."""
    with NsysFile(path) as file:
        file.insert("TARGET_INFO_SESSION_START_TIME", utcEpochNs=rank.origin)
        columns = rank.start, rank.duration, rank.work, rank.step
        for at, (start, duration, work, _) in enumerate(np.stack(columns, axis=1).tolist()):
            for number, (name, begin, end) in enumerate(
                [("gemm", start - work - 9, start - 9), (ALL_REDUCE, start, start + duration)], 1
            ):
                if end > begin:
                    file.api("cudaLaunchKernel", begin - 8, begin - 1, 2 * at + number)
                    file.kernel(name, begin, end, 2 * at + number, stream=6 + number)
        for step in range(int(rank.step.max()) + 1):
            inside = rank.start[rank.step == step]
            low = int((rank.start - rank.work)[rank.step == step][0])
            file.nvtx(f"step {step}", low - 100, int(inside[-1]))
    return load_file(path, LoadOptions(), silent)


@pytest.mark.parametrize("ranks", [2, pytest.param(12, marks=pytest.mark.deep)])
def test_simulated_ranks_are_found_in_their_files(tmp_path: Path, ranks: int) -> None:
    job = simulate(ranks, straggler=1, late=0)
    found = [
        arrivals_of(exported(tmp_path / f"{one.rank}.sqlite", one), one.rank) for one in job.ranks
    ]
    for one, truth in zip(found, job.ranks, strict=True):
        assert len(one.start) == job.collectives
        for name in ("communicator", "ordinal", "kind", "duration", "own", "step", "source"):
            assert getattr(one, name).tolist() == getattr(truth, name).tolist(), name
        assert one.work.tolist()[1:] == truth.work.tolist()[1:]
        assert ends_of(one).tolist() == ends_of(truth).tolist()
        assert one.steps.work.sum() == truth.work.sum()
    table = whole_table(found)
    waits = np.array([waits_of(one, table, ranks).wait for one in found])
    assert np.abs(waits - job.wait).max() <= 2 * job.collectives
