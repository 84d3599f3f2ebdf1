"""The verdict says in a line what a reader may believe."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from flame.core.compare.basis import BASES, parse_per
from flame.core.compare.comparison import compare
from flame.core.compare.evidence import EvidenceLevel
from flame.core.compare.replaced import find_replaced
from flame.core.compare.sides import Run, Sides
from flame.core.compare.verdict import find_verdict
from flame.core.errors import NoMatchError, UsageError
from flame.core.loading.many import load
from flame.core.options import LoadOptions
from flame.core.projection.selection import select
from tests.core.compare.test_evidence import folded, noisy
from tests.support.generated.compared import one_by_one, write_steps
from tests.support.generated.strategies import Script, scripts
from tests.support.tiers import examples

SHOWN = select("nvtx,kernel")


def steps(folder: Path, name: str, seed: int, longer: float, size: int = 20) -> Run:
    """Steps that take so many times as long, all in all."""
    random = np.random.default_rng(seed)
    durations = (200_000 * longer * random.normal(1, 0.01, size)).astype(int).tolist()
    return write_steps(folder / name, [{"gemm": [one]} for one in durations])


def test_all_of_shares_says_nothing(tmp_path: Path) -> None:
    base, new = steps(tmp_path, "a", 1, 1), steps(tmp_path, "b", 2, 1.5)
    found = find_verdict(one_by_one(base, new, selection=SHOWN, per="share"))
    assert found.words.startswith(
        "parts of each side's own GPU time are compared: all of it says nothing · no evidence: "
    )
    assert found.facts["measure"] == "share_percent"
    assert found.facts["base"] == pytest.approx(100)
    same = find_verdict(one_by_one(base, base, selection=SHOWN, per="share"))
    assert same.words == "BASE and NEW are identical"


@pytest.mark.parametrize(
    ("longer", "outcome", "words"),
    [
        (1.09, "regression", "NEW is slower: 201 → 218 µs per step, +8.6 % (+8.2 … +9.3)"),
        (0.9, "improvement", "NEW is faster: 201 → 180 µs per step, −10.3 % (−10.6 … −9.7)"),
        (1.01, "same", "NEW is as fast as BASE: 201 → 202 µs per step, +0.6 % (+0.3 … +1.3)"),
    ],
)
def test_steps_are_judged_by_their_periods(
    longer: float, outcome: str, words: str, tmp_path: Path
) -> None:
    base, new = steps(tmp_path, "a", 1, 1), steps(tmp_path, "b", 2, longer)
    found = find_verdict(one_by_one(base, new, selection=SHOWN))
    assert found.outcome == outcome
    assert found.words == f"{words}, 20 and 20 steps · in these two recordings"
    assert found.measured.measure == "step.p50_ns"
    assert json.loads(json.dumps(found.facts)) == {
        "verdict": outcome,
        "measure": "step.p50_ns",
        "base": found.measured.base,
        "new": found.measured.new,
        "change_percent": found.measured.change,
        "interval_percent": list(found.measured.interval or ()),
        "evidence": "steps",
        "n": [20, 20],
    }


def test_a_median_is_that_of_the_periods_themselves(tmp_path: Path) -> None:
    base, new = steps(tmp_path, "a", 1, 1), steps(tmp_path, "b", 2, 1.2)
    found = find_verdict(one_by_one(base, new, selection=SHOWN)).measured
    for run, value in ((base, found.base), (new, found.new)):
        start = run.profile.iterations.start
        last = run.profile.iterations.end[-1] - start[-1]
        assert value == sorted([*np.diff(start).tolist(), int(last)])[9]


def test_what_is_as_wide_as_noise_is_not_clear(tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    runs = [
        write_steps(tmp_path / str(more), [{"gemm": [int(one) + more]} for one in durations])
        for more, durations in (
            (0, random.integers(100_000, 200_000, 20)),
            (9_000, random.integers(100_000, 200_000, 20)),
        )
    ]
    found = find_verdict(one_by_one(*runs, selection=SHOWN))
    assert found.outcome == "unclear" and not found.measured.beyond_noise
    low, high = found.measured.interval or (0, 0)
    assert low < (found.measured.change or 0) < high and high > 5
    assert found.words.startswith("NEW may be slower: ")


def test_few_steps_are_no_evidence(tmp_path: Path) -> None:
    runs = [steps(tmp_path, str(size), 1, size, size=size) for size in (4, 6)]
    found = find_verdict(one_by_one(*runs, selection=SHOWN))
    assert found.outcome == "unclear" and found.measured.evidence == EvidenceLevel.NONE
    assert found.words.endswith(" · no evidence: fewer than 8 steps a side")
    assert found.facts["interval_percent"] is None and found.facts["n"] == [4, 6]


@pytest.mark.deep
def test_without_steps_it_is_the_gpu_time(tmp_path: Path) -> None:
    base, new = (
        write_steps(tmp_path / str(seed), noisy(seed, longer=1 + 0.2 * seed)) for seed in (0, 1)
    )
    for per, written in (("total", ""), ("activity", " per activity")):
        found = find_verdict(one_by_one(base, new, selection=select("kernel"), per=per))
        assert found.outcome == "regression" and found.facts["measure"] == "gpu_time_ns"
        assert found.words.startswith("NEW takes more GPU time: ")
        assert f"{written}, +10." in found.words
        assert found.words.endswith("1,280 and 1,280 activities · in these two recordings")


def test_runs_speak_of_the_program(tmp_path: Path) -> None:
    def runs(more: int) -> tuple[Run, ...]:
        return tuple(
            folded(tmp_path / f"{more}{at}.folded", {"a": 1_000 + at + more}) for at in range(5)
        )

    found = find_verdict(compare(Sides(runs(0), runs(100))))
    assert found.outcome == "regression"
    assert found.words == (
        "NEW has more samples: 1,002 → 1,102, +10.0 % (+9.7 … +10.3), 5 and 5 runs"
    )


@pytest.mark.deep
def test_runs_of_steps_are_judged_by_their_medians(tmp_path: Path) -> None:
    sides = [
        tuple(steps(tmp_path, f"{side}{at}", 10 * side + at, 1 + 0.2 * side) for at in range(4))
        for side in (0, 1)
    ]
    found = find_verdict(compare(Sides(*sides), SHOWN))
    assert (found.outcome, found.measured.evidence) == ("regression", EvidenceLevel.RUNS)
    assert found.words.endswith("4 and 4 runs")


def test_what_is_identical_or_not_comparable_is_said(tmp_path: Path) -> None:
    base, new = steps(tmp_path, "a", 1, 1), steps(tmp_path, "b", 1, 1)
    found = find_verdict(one_by_one(base, new, selection=SHOWN))
    assert found.outcome == "identical"
    assert found.words == "BASE and NEW are identical: 201 µs per step"
    other = write_steps(tmp_path / "c", [{"norm": [200_000]}] * 20)
    found = find_verdict(one_by_one(base, other, selection=SHOWN))
    assert found.outcome == found.facts["verdict"] == "not comparable"
    assert found.words == (
        "BASE and NEW cannot be compared: "
        "nothing of the GPU time of BASE is in kernels that NEW has"
    )


def test_nothing_on_one_side_is_no_percentage(tmp_path: Path) -> None:
    run = folded(tmp_path / "a.folded", {"a": 1})
    measured = find_verdict(one_by_one(run, run)).measured
    assert measured.change == 0
    assert measured._replace(base=0).change is None


@pytest.mark.deep
@examples(1, [HealthCheck.too_slow])
@given(scripts(), scripts(), st.sampled_from([*BASES, "2,3"]), st.sampled_from([1, 4]))
def test_any_two_traces_have_a_verdict(
    trace_file: Path, base: Script, new: Script, per: str, size: int
) -> None:
    paths = (trace_file, trace_file.with_name("new.sqlite"))
    runs = [
        Run(load(script.write(path), LoadOptions("raw")), "")
        for script, path in zip((base, new), paths, strict=True)
    ]
    try:
        sides = Sides((*runs, *runs)[:size], (*runs[::-1], *runs)[:size])
        found = compare(sides, per=parse_per(per))
    except (NoMatchError, UsageError):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        verdict = find_verdict(found)
        find_replaced(found)
    assert verdict.words
    json.dumps(verdict.facts, allow_nan=False)
