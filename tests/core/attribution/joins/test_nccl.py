"""What NCCL's payloads tell of kernels, against plain loops over what the program called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.loading.file import load_file
from flame.core.model.launches import RecordedCollective
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions, silent
from tests.support.tiers import examples
from tests.support.writers.fdumpfile import DOMAIN, DumpFile
from tests.support.writers.ncclcalls import Call, add_range, add_schemas, blob, dumped_range
from tests.support.writers.nsysfile import DTOD, NsysFile

KERNEL = "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)"
RANKS = {0xF00000000000000A: (4, 1), 0x0B: (2, 0)}
"""Communicators that the program makes: how many ranks, and which this process is."""

UNMADE = 0x0C
P2P = ("ncclSend", "ncclRecv")


class Batch(NamedTuple):
    """Calls that one thread makes together, and on which GPU each kernel runs that they launch.

    Some copy as well.
    """

    thread: int
    grouped: bool
    calls: list[Call]
    devices: list[int]
    copies: bool = False


def sizes(one: Call) -> Call:
    """Leave out what calls of that name do not say."""
    reduces = one.name in ("ncclAllReduce", "ncclReduceScatter", "ncclReduce")
    has_root = one.name in ("ncclBroadcast", "ncclReduce")
    return one._replace(
        reduction=one.reduction if reduces else "",
        root=one.root if has_root else None,
        peer=one.peer if one.name in P2P else None,
    )


calls = st.builds(
    Call,
    st.sampled_from(
        [
            *("ncclAllReduce", "ncclAllGather", "ncclReduceScatter", "ncclBroadcast"),
            *("ncclReduce", *P2P),
        ]
    ),
    st.sampled_from([*RANKS, UNMADE]),
    st.sampled_from([0, 64, 64, 4096, 1 << 30]),
    st.sampled_from(["sum", "max"]),
    st.integers(0, 1),
    st.integers(0, 2),
).map(sizes)

batches = st.lists(
    st.one_of(
        st.builds(
            Batch, st.integers(100, 101), st.booleans(), calls.map(lambda one: [one]), st.just([0])
        ),
        st.builds(
            Batch,
            st.integers(100, 101),
            st.just(True),
            st.one_of(
                st.lists(calls, max_size=3),
                st.tuples(calls, st.integers(2, 3)).map(lambda pair: [pair[0]] * pair[1]),
            ),
            st.lists(st.integers(0, 1), max_size=3),
            st.booleans(),
        ),
    ),
    max_size=6,
)


def told(found: list[Batch]) -> Iterator[RecordedCollective | None]:
    """What is to be told of each kernel of each batch."""
    devices: dict[int, set[int]] = {}
    for batch in found:
        active = [one for one in batch.calls if one.bytes or one.name in P2P]
        for one in {one.communicator for one in active}:
            if len({one.communicator for one in active}) == 1 and one is not None:
                devices.setdefault(one, set()).update(batch.devices)
    for batch in found:
        active = [one for one in batch.calls if one.bytes or one.name in P2P]
        for _ in batch.devices:
            yield one_told(active, batch, devices)


def one_told(
    active: list[Call], batch: Batch, devices: dict[int, set[int]]
) -> RecordedCollective | None:
    kernels = len(batch.devices)
    communicators = {one.communicator for one in active}
    equal = len(set(active)) == 1 and (len(active) == 1 or not batch.copies)
    if equal and len(active) == kernels:
        return described(active[:1])
    if len(communicators) != 1 or None in communicators:
        return None
    kinds = {"p2p" if one.name in P2P else one.name for one in active}
    shared = batch.copies or len(devices[active[0].communicator or 0]) > 1
    if kernels == 1 and len(kinds) == 1 and not shared:
        return described(active)
    ranks, rank = RANKS.get(active[0].communicator or 0, (None, None))
    return RecordedCollective(
        "", "byte", None, None, ranks, f"0x{active[0].communicator:016x}", rank=rank
    )


def described(active: list[Call]) -> RecordedCollective:
    one = active[0]
    ranks, rank = RANKS.get(one.communicator or 0, (None, None))
    total = sum(each.bytes or 0 for each in active)
    name = "ncclSendRecv" if one.name in P2P else one.name
    sent: int | None = total
    received: int | None = None
    if one.name in P2P:
        given, got = ([each.bytes or 0 for each in active if each.name == kind] for kind in P2P)
        sent, received = sum(given) if given else None, sum(got) if got else None
    if one.name == "ncclReduceScatter":
        sent, received = None if ranks is None else total * ranks, total
    reductions = {each.reduction for each in active}
    return RecordedCollective(
        name,
        "byte",
        sent,
        received,
        ranks,
        f"0x{one.communicator:016x}",
        reduction=one.reduction if len(reductions) == 1 else "",
        root=common({each.root for each in active}),
        peer=common({each.peer for each in active}),
        rank=rank,
    )


def common(values: set[int | None]) -> int | None:
    return values.pop() if len(values) == 1 else None


def moments(found: list[Batch]) -> Iterator[tuple[Batch, list[tuple[str, Call | None, int, int]]]]:
    """The ranges of each batch: name, call, start and end; kernels are launched in the last."""
    for at, batch in enumerate(found):
        time = 1_000 * (at + 1)
        ranges: list[tuple[str, Call | None, int, int]] = []
        if batch.grouped:
            ranges.append(("ncclGroupStart", None, time, time + 1))
        for number, call in enumerate(batch.calls):
            begin = time + 10 + 20 * number
            ranges.append((call.name, call, begin, begin + (19 if batch.grouped else 500)))
            if call.name in P2P:  # as NCCL did up to 2.24, in its own calls
                ranges.append(("ncclGroupStart", None, begin + 1, begin + 2))
                last = 18 if batch.grouped else 400
                ranges.append(("ncclGroupEnd", None, begin + 3, begin + last))
        if batch.grouped:
            ranges.append(("ncclGroupEnd", None, time + 300, time + 500))
        yield batch, ranges


def made() -> Iterator[tuple[str, dict[str, int]]]:
    for hashed, (size, rank) in RANKS.items():
        values = {"NCCL communicator ID": hashed, "No. of ranks": size, "Rank": rank}
        yield "ncclCommInitRank", values | {"CUDA device": 0}
    # NCCL writes the parent's ranks here (src/init.cc of 2.25 to 2.30).
    split = {"NCCL communicator ID": UNMADE, "Parent NCCL communicator ID": 0x0B}
    yield "ncclCommSplit", split | {"No. of ranks": 64, "Rank": 3}


def export(path: Path, found: list[Batch], form: str) -> None:
    """Write an export of Nsight Systems of a process with these batches."""
    with NsysFile(path) as file:
        file.domain(1, "NCCL")
        add_schemas(file)

        def payload(name: str, values: dict[str, int]) -> dict[str, int] | bytes:
            return values if form == "json" else blob(name, values, whole=form == "whole")

        for name, values in made():
            add_range(file, name, 1, 9, payload(name, values))
        number = 0
        for order, (batch, ranges) in enumerate(moments(found), 500):
            for name, call, begin, end in ranges:
                data = payload(call.name, call.values) if call else None
                add_range(file, name, begin, end, data, tid=batch.thread)
            for at, device in enumerate(batch.devices):
                number, begin = number + 1, ranges[-1][2] + 10 * (at + 1) if ranges else 5
                file.api("cudaLaunchKernelExC", begin, begin + 5, number, tid=batch.thread)
                file.kernel(
                    KERNEL, 90_000 + 10 * number, 90_005 + 10 * number, number, device=device
                )
            if batch.copies:
                begin = ranges[-1][2] + 90 if ranges else 5
                file.api("cudaMemcpyAsync", begin, begin + 5, order, tid=batch.thread)
                file.memcpy(DTOD, 80_000 + 10 * order, 80_005 + 10 * order, order)
        file.api("cudaLaunchKernel", 10, 11, 999)
        file.kernel("gemm", 20, 30, 999)


def dump(path: Path, found: list[Batch]) -> None:
    """Write a recording of a process with these batches."""
    file = DumpFile()
    file.name(DOMAIN, 7, "NCCL")
    for name, values in made():
        dumped_range(file, name, 1, 9, values, tid=100)
    number = 0
    for order, (batch, ranges) in enumerate(moments(found), 500):
        for name, call, begin, end in ranges:
            dumped_range(file, name, begin, end, call.values if call else None, batch.thread)
        for at, device in enumerate(batch.devices):
            number, begin = number + 1, ranges[-1][2] + 10 * (at + 1) if ranges else 5
            file.launch(begin, begin + 5, number, tid=batch.thread)
            times = 90_000 + 10 * number, 90_005 + 10 * number
            file.kernel(KERNEL, *times, number, device=device)
        if batch.copies:
            begin = ranges[-1][2] + 90 if ranges else 5
            file.launch(begin, begin + 5, order, tid=batch.thread)
            file.memop(80_000 + 10 * order, 80_005 + 10 * order, order)
    file.launch(10, 11, 999)
    file.kernel("gemm", 20, 30, 999)
    file.write(path)


def found_in(path: Path) -> list[RecordedCollective | None]:
    """What is told of each kernel of NCCL, by start."""
    profile = load_file(path, LoadOptions(), silent)
    table, collectives = profile.activities, profile.collectives
    assert collectives is not None
    assert collectives.warnings == ()
    assert (collectives.sequence == -1).all()
    by_row = dict(zip(collectives.row.tolist(), collectives.kind.tolist(), strict=True))
    starts = table.start.tolist()
    rows = sorted((at for at in range(len(starts)) if of_nccl(profile, at)), key=starts.__getitem__)
    return [collectives.kinds[by_row[at]] if at in by_row else None for at in rows]


def of_nccl(profile: Profile, row: int) -> bool:
    return "nccl" in profile.frames[int(profile.activities.frame[row])].name


@pytest.mark.parametrize("form", ["json", "offset", "whole"])
@examples(0.7)
@given(found=batches)
def test_kernels_of_an_export_do_what_was_called(form: str, found: list[Batch]) -> None:
    found = [batch for batch in found if batch.grouped or batch.calls]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "trace.sqlite"
        export(path, found, form)
        assert found_in(path) == list(told(found))


@examples(0.7)
@given(found=batches)
def test_kernels_of_a_recording_do_what_was_called(found: list[Batch]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "recording.fdump"
        dump(path, found)
        assert found_in(path) == list(told(found))


def test_the_random_programs_have_all_cases() -> None:
    seen: Counter[str] = Counter()

    @examples(10)
    @given(found=batches)
    def look(found: list[Batch]) -> None:
        for one in told(found):
            seen["none" if one is None else one.name or "group alone"] += 1

    look()
    assert {"none", "group alone", "ncclSendRecv", "ncclAllReduce"} <= set(seen)
