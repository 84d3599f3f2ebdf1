"""What activities tell of a node is what plain loops over them find."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import erfc, exp, sqrt
from pathlib import Path

import numpy as np
import pytest

from flame.core.compare.changes import Limits
from flame.core.compare.comparison import compare
from flame.core.compare.evidence import EvidenceLevel, NodeVerdict, find_evidence
from flame.core.compare.sides import Run, Sides
from flame.core.compare.verdict import find_verdict
from flame.core.projection.selection import select
from tests.core.compare.test_evidence import folded
from tests.support.generated.compared import Step, node_called, one_by_one, write_steps

Launched = list[tuple[str, int]]
"""Name and duration of what was launched, in order of time."""


def launched(random: np.random.Generator, counts: dict[str, int], longer: float) -> Launched:
    names = [name for name, count in counts.items() for _ in range(count)]
    random.shuffle(names)
    return [(name, int(longer * random.integers(900, 1_100))) for name in names]


def run(path: Path, some: Launched) -> Run:
    return write_steps(path, [{name: [duration]} for name, duration in some])


def of(some: Launched, name: str) -> list[int]:
    return [duration for other, duration in some if other == name]


def naive_test(base: Launched, new: Launched, names: list[str]) -> tuple[float, float]:
    """(p, probability) of what has these kernels below it."""
    sums, above, variance, continuity = 0, 0.0, 0.0, 0.0
    for name in names:
        olds, news = of(base, name), of(new, name)
        pairs = [(one > other) + (one == other) / 2 for one in news for other in olds]
        every, weight = olds + news, sum(olds) + sum(news)
        ties = sum(every.count(value) ** 3 - every.count(value) for value in set(every))
        size = len(every)
        spread = (size + 1 - ties / (size * (size - 1))) / (12 * len(pairs))
        sums += weight
        above += weight * (sum(pairs) / len(pairs) - 0.5)
        variance += weight**2 * spread
        continuity += weight * 0.5 / len(pairs)
    deviation = max(abs(above) - continuity, 0) / sqrt(variance)
    return erfc(deviation / sqrt(2)), 0.5 + above / sums


def naive_interval(base: Launched, new: Launched, names: list[str]) -> tuple[float, float]:
    """The change of what has these kernels below it, by how far it is off from 32nd to 32nd."""
    offs = [[0.0] * 32 for _ in range(2)]
    for side, some in enumerate((base, new)):
        seen = dict.fromkeys(names, 0)
        for at, (name, duration) in enumerate(some):
            if name not in names:
                continue
            olds, news = of(base, name), of(new, name)
            usual = [sum(one) / len(one) for one in (olds, news) if one]
            if len(olds) != len(news):
                off = duration - sum(of(some, name)) / len(of(some, name))
            else:
                place = seen[name]
                off = (duration - usual[1]) - (olds[place] - usual[0]) if side else 0.0
            seen[name] += 1
            offs[side][at * 32 // len(some)] += off
    totals = [sum(d for name, d in some if name in names) for some in (base, new)]
    variance = sum(
        sum((b - a) ** 2 for a, b in pairwise(off)) / 2 * 32 / 31 / total**2
        for off, total in zip(offs, totals, strict=True)
    )
    ratio, wide = totals[1] / totals[0], exp(2.04 * sqrt(variance))
    return ratio / wide - 1, ratio * wide - 1


@pytest.mark.parametrize("longer", [1.0, 1.08])
def test_activities_tell_what_plain_loops_find(longer: float, tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    counts = {"gemm": 40, "softmax": 35}
    base = launched(random, {**counts, "norm": 20, "rare": 19}, 1)
    new = launched(random, {**counts, "norm": 33, "rare": 19}, longer)
    found = one_by_one(
        run(tmp_path / "a", base), run(tmp_path / "b", new), selection=select("kernel"), per="total"
    )
    seen = find_evidence(found)
    tested = [*counts, "norm"]
    for name, names in [("all", tested), *((name, [name]) for name in tested)]:
        node = 0 if name == "all" else node_called(found, name)
        assert seen.level[node] == EvidenceLevel.ACTIVITIES
        p, probability = naive_test(base, new, names)
        assert seen.p[node] == pytest.approx(p)
        assert seen.probability[node] == pytest.approx(probability)
        below = [*names, "rare"] if name == "all" else names
        interval = naive_interval(base, new, below)
        assert (seen.low[node], seen.high[node]) == pytest.approx(interval)
        assert seen.base[node] == sum(len(of(base, one)) for one in names)
        assert seen.new[node] == sum(len(of(new, one)) for one in names)
    assert seen.level[node_called(found, "rare")] == EvidenceLevel.NONE


def steps(*durations: int) -> list[Step]:
    return [{"gemm": [one]} for one in durations]


def test_half_of_the_time_has_to_match(tmp_path: Path) -> None:
    base = [("gemm", 100)] * 30 + [("other", 90)] * 30
    for more, level in ((70, EvidenceLevel.ACTIVITIES), (130, EvidenceLevel.NONE)):
        new = [("gemm", 100)] * 30 + [(f"once {at}", more) for at in range(30)]
        found = one_by_one(
            run(tmp_path / f"a{more}", base),
            run(tmp_path / f"b{more}", new),
            selection=select("kernel"),
            per="total",
        )
        assert find_evidence(found).level[0] == level


def test_what_is_only_a_little_more_often_longer_is_not_clear(tmp_path: Path) -> None:
    base = steps(*[100_000, 130_000] * 200)
    new = steps(*[100_000, 130_000, 130_000] * 133)
    runs = (write_steps(tmp_path / "a", base), write_steps(tmp_path / "b", new))
    found = one_by_one(*runs, selection=select("kernel"), per="activity")
    seen, small = find_evidence(found), replace(found, limits=Limits(0.03, 0))
    assert seen.p[0] < 1e-5 and seen.probability[0] < 0.7
    assert find_evidence(small).verdict[0] == NodeVerdict.UNCLEAR


def test_an_outlier_the_other_way_is_no_change(tmp_path: Path) -> None:
    base = steps(*range(100_000, 100_020))
    new = steps(*range(99_000, 99_019), 900_000)
    runs = (write_steps(tmp_path / "a", base), write_steps(tmp_path / "b", new))
    for per in ("step", "total"):
        found = one_by_one(*runs, selection=select("kernel"), per=per)
        seen = find_evidence(found)
        assert found.changes.ratio[0] > 0.3 and seen.p[0] < 0.001 and seen.probability[0] < 0.1
        assert seen.verdict[0] != NodeVerdict.CHANGED


def test_each_level_needs_enough_of_both_sides(tmp_path: Path) -> None:
    eight, seven = (write_steps(tmp_path / str(n), steps(*[100] * n)) for n in (8, 7))
    few, most = one_by_one(seven, eight, per="step"), one_by_one(eight, eight, per="step")
    assert find_evidence(few).level[0] == EvidenceLevel.NONE
    assert find_evidence(most).level[0] == EvidenceLevel.STEPS
    assert find_verdict(few).measured.evidence == EvidenceLevel.NONE
    assert find_verdict(most).measured.evidence == EvidenceLevel.STEPS
    runs = tuple(folded(tmp_path / f"{n}.folded", {"a": n}) for n in range(100, 104))
    for size, level in ((3, EvidenceLevel.NONE), (4, EvidenceLevel.RUNS)):
        assert find_evidence(compare(Sides(runs, runs[:size]))).level[0] == level


def test_the_warm_up_is_no_sample(tmp_path: Path) -> None:
    base = write_steps(tmp_path / "a", steps(*[900_000] * 2, *range(100_000, 100_012)))
    new = write_steps(tmp_path / "b", steps(*range(100_000, 100_012)))
    found = one_by_one(base, new, selection=select("kernel"))
    seen, judged = find_evidence(found), find_verdict(found)
    assert (seen.base[0], seen.new[0], judged.measured.number) == (12, 12, (12, 12))
    assert seen.verdict[0] == NodeVerdict.SAME and judged.outcome != "improvement"
