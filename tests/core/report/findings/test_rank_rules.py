"""Rules on communication: who waits for whom, and that nothing is told twice."""

from __future__ import annotations

import pytest

from flame.core.report.findings.finding import Finding
from flame.core.report.findings.findings import find
from flame.core.report.parties import collectives
from flame.core.report.scope import Scope
from tests.support.profiles.recorded import Recorded

US, MS = 1_000, 1_000_000


def job(operations: int, late: int, hidden: int = 0, wait: int = 100 * US) -> Recorded:
    """Two ranks that reduce every ms for 50 µs; in the first ``late`` rank 1 comes last.

    Else it is rank 0. The first waits for ``wait``, of which compute hides ``hidden``.
    """
    trace = Recorded()
    for number in range(operations):
        at = MS * (number + 1)
        last = 1 if number < late else 0
        for rank in (0, 1):
            start = at if rank == last else at - wait
            trace.kernel("gemm", at - 500 * US, at - wait + hidden, process=rank, device=rank)
            trace.kernel("ncclAllReduce", start, at + 50 * US, process=rank, device=rank, stream=9)
    return trace


def told(trace: Recorded, *, all: bool = True) -> dict[tuple[str, int | None], Finding]:
    found = find(Scope(trace.profile(), all_findings=all)).found
    return {(one.id, one.device): one for one in found}


@pytest.mark.parametrize(
    ("operations", "late", "fires"),
    [(30, 30, True), (30, 16, True), (20, 20, True), (19, 19, False)],
)
def test_late_rank(operations: int, late: int, fires: bool) -> None:
    found = told(job(operations, late))
    assert (("late-rank", 0) in found) == fires
    assert ("late-rank", 1) not in found, "who comes late waits for nobody, or not for long"
    if fires:
        one = found["late-rank", 0]
        assert one.bound == late * 100 * US
        assert f"process [200] came last {late} times of {operations}" in one.claim
        assert one.place is not None and one.place.window == (MS - 100 * US, MS)


def test_what_is_told_as_waiting_is_no_other_communication() -> None:
    trace = job(30, 30)
    found = told(trace)
    assert found["late-rank", 0].bound == 30 * 100 * US
    assert found["comm-exposed", 0].bound == 30 * 50 * US
    found = told(trace, all=False)
    assert ("late-rank", 0) not in found
    assert found["comm-exposed", 0].bound == 30 * 150 * US


def test_waiting_that_compute_hides_costs_nothing() -> None:
    found = told(job(30, 30, hidden=40 * US))
    assert found["late-rank", 0].bound == 30 * 60 * US
    assert ("late-rank", 0) not in told(job(30, 30, hidden=60 * US))


def test_where_clocks_differ_nobody_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collectives, "on_one_clock", lambda profile: False)
    found = find(Scope(job(30, 30).profile(), all_findings=True))
    why = {one.id: one.why for one in found.abstained}
    assert why["late-rank"] == "the clocks of the ranks differ"
    told_ = {one.id: one for one in found.found}
    assert told_["imbalance"].bound is None
    assert "trainer [100] 4.50 ms in all, process [200] 1.50 ms: 66.7 % less" in (
        told_["imbalance"].claim
    )


@pytest.mark.parametrize(("wait", "fires"), [(9 * US, True), (8 * US, False)])
def test_imbalance(wait: int, fires: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """58 and 50 µs differ by 13.8 %, 59 and 50 by 15.3 %."""
    monkeypatch.setattr(collectives, "on_one_clock", lambda profile: False)
    found = find(Scope(job(30, 30, wait=wait).profile(), all_findings=True)).found
    assert ("imbalance" in {one.id for one in found}) == fires


def test_ranks_that_do_not_match_are_not_judged() -> None:
    trace = job(30, 30)
    trace.kernel("ncclAllReduce", 40 * MS, 41 * MS)
    found = find(Scope(trace.profile(), all_findings=True))
    why = {one.id: one.why for one in found.abstained}
    assert why["late-rank"] == "collectives do not match over ranks"
