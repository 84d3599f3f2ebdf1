"""What is noise is not called a change, and what is a change is found."""

from __future__ import annotations

import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from flame.core.compare.changes import USUAL_LIMITS, Limits, parse_limits
from flame.core.compare.comparison import Comparison, compare
from flame.core.compare.evidence import (
    EvidenceLevel,
    NodeVerdict,
    find_evidence,
)
from flame.core.compare.sides import Run, Sides
from flame.core.errors import NoMatchError
from flame.core.loading.many import load
from flame.core.projection.filters import Steps
from flame.core.projection.selection import Selection, select
from tests.conftest import NSYS_TRACES, TRACES, needs_traces
from tests.support.generated.compared import Step, node_called, one_by_one, some_of, write_steps
from tests.support.tiers import deep_except
from tests.support.writers.ncufile import Row, sass_page
from tests.support.writers.nsysfile import NsysFile

KINETO_TRACES = sorted(path.name for path in TRACES.glob("kineto/*.json.gz"))
SHOWN = select(fold=True, fold_numbers=True)


def noisy(seed: int, size: int = 40, longer: float = 1.0, more: int = 0) -> list[Step]:
    """Steps with a spread of 3 %, and clocks that drift: ``gemm`` takes ``longer``, and is often.

    Half of the time is in it.
    """
    random = np.random.default_rng(seed)
    clock = 1 + np.cumsum(random.normal(0, 0.002, size))

    def durations(mean: float, count: int, at: int) -> list[int]:
        values = mean * clock[at] * random.normal(1, 0.03, count)
        return [int(value) for value in values]

    return [
        {
            "gemm": durations(10_000 * longer, 10 + more, at),
            "softmax": durations(5_000, 12, at),
            "copy": durations(4_000, 10, at),
        }
        for at in range(size)
    ]


def verdict_of(found: Comparison, name: str) -> NodeVerdict:
    return NodeVerdict(int(find_evidence(found).verdict[node_called(found, name)]))


def test_a_kernel_that_takes_longer_is_found_by_its_steps(tmp_path: Path) -> None:
    base, new = (
        write_steps(tmp_path / name, noisy(seed, longer=longer), first=seed)
        for seed, (name, longer) in enumerate((("a", 1.0), ("b", 1.1)))
    )
    found = one_by_one(base, new, selection=select("nvtx,kernel"))
    seen = find_evidence(found)
    assert set(seen.level.tolist()) == {EvidenceLevel.STEPS}
    gemm, other = node_called(found, "gemm"), node_called(found, "softmax")
    assert seen.verdict[gemm] == NodeVerdict.CHANGED
    assert seen.low[gemm] < found.changes.ratio[gemm] < seen.high[gemm] < 0.13
    assert seen.probability[gemm] > 0.95 and seen.adjusted[gemm] >= seen.p[gemm]
    assert seen.verdict[other] == NodeVerdict.SAME
    assert (seen.base[gemm], seen.new[gemm]) == tuple(map(int, found.basis.divisor))


def test_two_percent_more_are_no_change(tmp_path: Path) -> None:
    base = write_steps(tmp_path / "a", noisy(1))
    new = write_steps(tmp_path / "b", noisy(2, longer=1.02))
    found = one_by_one(base, new, selection=select("nvtx,kernel"))
    assert verdict_of(found, "gemm") == NodeVerdict.SAME
    counts = find_evidence(replace(found, limits=Limits(0.01, 0.005))).verdict
    assert counts[node_called(found, "gemm")] == NodeVerdict.CHANGED


@pytest.mark.deep
def test_without_steps_durations_tell_but_not_how_many_there_are(tmp_path: Path) -> None:
    base = write_steps(tmp_path / "a", noisy(1))
    longer = one_by_one(base, write_steps(tmp_path / "b", noisy(2, longer=1.3)), per="total")
    gemm = node_called(longer, "gemm")
    seen = find_evidence(longer)
    assert seen.level[gemm] == EvidenceLevel.ACTIVITIES
    assert (seen.base[gemm], seen.new[gemm]) == (400, 400)
    assert seen.verdict[gemm] == NodeVerdict.CHANGED
    assert longer.changes.by_duration[gemm] > 9 * abs(longer.changes.by_count[gemm])
    assert 0.25 < seen.low[gemm] < 0.3 < seen.high[gemm] < 0.35

    often = one_by_one(base, write_steps(tmp_path / "c", noisy(2, more=3)), per="total")
    gemm = node_called(often, "gemm")
    assert find_evidence(often).verdict[gemm] == NodeVerdict.UNCLEAR
    assert often.changes.by_count[gemm] > 9 * abs(often.changes.by_duration[gemm])
    # Of steps it is known how often each launched it.
    by_step = one_by_one(base, often.sides.new[0], selection=select("nvtx,kernel"))
    assert verdict_of(by_step, "gemm") == NodeVerdict.CHANGED


@pytest.mark.deep
def test_what_is_new_has_changed_and_what_is_small_has_not(tmp_path: Path) -> None:
    base = noisy(1)
    new = [{**step, "norm": [9_000], "tiny": [90]} for step in noisy(2)]
    found = one_by_one(
        write_steps(tmp_path / "a", base),
        write_steps(tmp_path / "b", new),
        selection=select("nvtx,kernel"),
    )
    seen, tiny = find_evidence(found), node_called(found, "tiny")
    assert verdict_of(found, "norm") == NodeVerdict.CHANGED
    assert seen.verdict[tiny] == NodeVerdict.UNCLEAR and seen.adjusted[tiny] < 0.001
    assert np.isnan(seen.low[tiny])


@pytest.mark.deep
def test_the_other_way_round_the_verdicts_are_the_same(tmp_path: Path) -> None:
    runs = [
        write_steps(tmp_path / name, noisy(seed, longer=longer))
        for seed, (name, longer) in enumerate((("a", 1.0), ("b", 1.2)))
    ]
    for per in ("step", "total"):
        there = one_by_one(*runs, selection=select("kernel"), per=per)
        back = one_by_one(*runs[::-1], selection=select("kernel"), per=per)
        for name in ("gemm", "softmax", "copy"):
            one, other = (find_evidence(each) for each in (there, back))
            at, place = node_called(there, name), node_called(back, name)
            assert one.verdict[at] == other.verdict[place]
            assert one.p[at] == pytest.approx(other.p[place])
            assert one.probability[at] == pytest.approx(1 - other.probability[place])


def folded(path: Path, values: dict[str, int]) -> Run:
    path.write_text("".join(f"{name} {value}\n" for name, value in values.items()))
    return Run(load(path), path.name)


def test_runs_are_the_best_evidence(tmp_path: Path) -> None:
    def runs(side: str, more: int) -> tuple[Run, ...]:
        return tuple(
            folded(tmp_path / f"{side}{at}.folded", {"a": 100 + at, "b": 100 + at + more})
            for at in range(5)
        )

    found = compare(Sides(runs("base", 0), runs("new", 20)))
    seen, grown = find_evidence(found), node_called(found, "b")
    assert seen.level.tolist() == [EvidenceLevel.RUNS] * 3
    assert seen.verdict[grown] == NodeVerdict.CHANGED
    assert seen.p[grown] == pytest.approx(2 / 252)
    assert seen.adjusted[grown] == pytest.approx(3 / 252)  # the root is as sure: 2 of 3 tests
    assert (seen.base[grown], seen.new[grown]) == (5, 5)
    # Of the 25 differences 3 may be left out at either end: 17 to 23, of a mean of 102.
    assert (seen.low[grown], seen.high[grown]) == pytest.approx((17 / 102, 23 / 102))
    assert verdict_of(found, "a") == NodeVerdict.SAME


def test_nothing_takes_less_than_no_time(tmp_path: Path) -> None:
    def runs(side: str, gone: bool) -> tuple[Run, ...]:
        return tuple(
            folded(
                tmp_path / f"{side}{at}.folded", {"a": 90} | ({} if gone else {"b": 90 + 9 * at})
            )
            for at in range(5)
        )

    found = compare(Sides(runs("base", False), runs("new", True)))
    seen, gone = find_evidence(found), node_called(found, "b")
    assert seen.verdict[gone] == NodeVerdict.CHANGED
    assert seen.low[gone] == -1 < seen.high[gone]


def test_without_samples_nothing_is_known_and_it_says_why(tmp_path: Path) -> None:
    one, other = (folded(tmp_path / f"{x}.folded", {"a": x}) for x in (1, 2))
    seen = find_evidence(one_by_one(one, other))
    assert set(seen.level.tolist()) == {EvidenceLevel.NONE}
    assert set(seen.verdict.tolist()) == {NodeVerdict.UNCLEAR}
    assert np.isnan([seen.p, seen.adjusted, seen.low, seen.high, seen.probability]).all()
    assert (
        seen.why
        == "fewer than 4 runs a side, and files of stacks have nothing else to tell noise from"
    )


def test_reports_of_nsight_compute_are_called_so(tmp_path: Path) -> None:
    code = [Row("LDG.E R2, [R4]", {"stall_wait": 6}), Row("EXIT", {"stall_wait": 3})]
    for name in ("a", "b"):
        (tmp_path / name).write_text(sass_page("void gemm<1>(float*)", code), "utf-8")
    a, b = (Run(load(tmp_path / name), name) for name in "ab")
    found = find_evidence(compare(Sides((a,), (b,))))
    assert found.why.endswith("and reports of Nsight Compute have nothing else to tell noise from")


def test_the_least_change_is_parsed() -> None:
    assert parse_limits("5%,0.5%") == parse_limits("5") == USUAL_LIMITS
    assert parse_limits("1.5, 0 %") == Limits(0.015, 0)


# Noise alone


def halves(found: list[Comparison]) -> tuple[int, int]:
    """(number of nodes that have changed, number of nodes)."""
    verdicts = np.concatenate([find_evidence(one).verdict for one in found])
    return int(np.count_nonzero(verdicts == NodeVerdict.CHANGED)), len(verdicts)


@needs_traces
@pytest.mark.deep
@pytest.mark.parametrize("per", ["total", "activity"])
@pytest.mark.parametrize(
    "name", ["a100_llm_nvtx", "rtx3060_23k", "rtx3070_train_17k", "h100_2gpu_window"]
)
def test_halves_of_the_activities_of_a_recording_do_not_differ(name: str, per: str) -> None:
    profile = load(TRACES / "nsys" / f"{name}.sqlite")
    random, found = np.random.default_rng(7), []
    for _ in range(100):
        first = random.random(len(profile.activities)) < 0.5
        parts = [Run(some_of(profile, np.flatnonzero(one)), "") for one in (first, ~first)]
        found.append(one_by_one(*parts, selection=SHOWN, per=per))
    changed, every = halves(found)
    assert changed < 0.01 * every
    assert any(find_evidence(one).level.any() for one in found)


@pytest.mark.deep
def test_halves_of_the_steps_of_a_recording_do_not_differ(tmp_path: Path) -> None:
    run = write_steps(tmp_path / "a", noisy(1, size=60))
    random, found = np.random.default_rng(7), []
    for _ in range(100):
        numbers = random.permutation(60)
        where = [(Steps.of(some.tolist()),) for some in (numbers[:30], numbers[30:])]
        parts = [Run(run.profile, "", one) for one in where]
        found.append(one_by_one(*parts, selection=select("nvtx,kernel"), per="step"))
    changed, every = halves(found)
    assert changed < 0.01 * every
    assert all(find_evidence(one).level[0] == EvidenceLevel.STEPS for one in found)


REAL = [*(f"nsys/{name}" for name in NSYS_TRACES), *(f"kineto/{name}" for name in KINETO_TRACES)]


@needs_traces
@pytest.mark.parametrize("name", deep_except(["nsys/oldest_schema.sqlite"], REAL))
def test_a_recording_has_not_changed_from_itself(name: str) -> None:
    run = Run(load(TRACES / name), name)
    try:
        found = one_by_one(run, run, selection=SHOWN)
    except NoMatchError:
        return
    seen = find_evidence(found)
    known = seen.level > 0
    assert (seen.p[known] == 1).all() and (seen.probability[known] == 0.5).all()
    assert not (seen.verdict == NodeVerdict.CHANGED).any()
    assert (seen.verdict[known] == NodeVerdict.SAME).all()


# Planted


def planted(trace: str, folder: Path, times: float) -> tuple[Run, Run]:
    """A real recording, and a copy whose kernels all differ by 3 %, the heaviest by ``times``."""
    source, changed = TRACES / "nsys" / trace, folder / "changed.sqlite"
    shutil.copy(source, changed)
    random = np.random.default_rng(11)
    with closing(sqlite3.connect(changed)) as file, file:
        rows = file.execute(
            "SELECT rowid, end - start, shortName FROM CUPTI_ACTIVITY_KIND_KERNEL"
        ).fetchall()
        sums: Counter[int] = Counter()
        for _, duration, name in rows:
            sums[name] += duration
        ((heaviest, _),) = sums.most_common(1)
        factors = random.normal(1, 0.03, len(rows)).tolist()
        longer = [
            (int(duration * factor * (times if name == heaviest else 1)), row)
            for (row, duration, name), factor in zip(rows, factors, strict=True)
        ]
        file.executemany(
            "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = start + ? WHERE rowid = ?", longer
        )
    return Run(load(source), "base"), Run(load(changed), "new")


@needs_traces
@pytest.mark.deep
@pytest.mark.parametrize("name", ["rtx3070_train_17k", "a100_llm_nvtx"])
@pytest.mark.parametrize("times", [1.1, 1.02])
def test_a_planted_tenth_is_found_and_two_percent_are_not(
    name: str, times: float, tmp_path: Path
) -> None:
    base, new = planted(f"{name}.sqlite", tmp_path, times)
    found = one_by_one(base, new, selection=Selection(levels=("kernel",)))
    seen = find_evidence(found)
    kernel = 1 + int(np.argmax(found.changes.delta[1:]))
    changed = set(np.flatnonzero(seen.verdict == NodeVerdict.CHANGED).tolist())
    assert changed - {0} == ({kernel} if times > 1.05 else set())
    assert found.changes.ratio[kernel] == pytest.approx(times - 1, abs=0.003)
    assert seen.low[kernel] < found.changes.ratio[kernel] < seen.high[kernel]
    assert times > 1.05 or seen.verdict[kernel] == NodeVerdict.SAME


def test_many_more_of_equal_length_are_a_change_without_steps(tmp_path: Path) -> None:
    runs = []
    for name, count in (("a", 1000), ("b", 1300), ("c", 1020)):
        with NsysFile(tmp_path / name) as file:
            for at in range(count):
                file.kernel("gemm", at * 1000, at * 1000 + 100 + at % 3)
        runs.append(Run(load(tmp_path / name), name))
    more, few = (compare(Sides((runs[0],), (one,)), select("kernel"), "total") for one in runs[1:])
    assert verdict_of(more, "gemm") == NodeVerdict.CHANGED
    assert more.changes.by_count[0] > 0.99 * more.changes.delta[0]
    assert verdict_of(few, "gemm") == NodeVerdict.SAME
