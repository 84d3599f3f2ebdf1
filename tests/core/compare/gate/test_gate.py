"""Conditions on a comparison: changes beyond noise hold, those within it are not decided."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.compare.comparison import Comparison, compare
from flame.core.compare.gate.decide import DiffDecision, decide, parse_noise
from flame.core.compare.gate.terms import read_condition
from flame.core.compare.sides import Run, Sides, runs_of
from flame.core.compare.statistics import drawn_ratio
from flame.core.errors import UsageError
from flame.core.loading.many import load
from flame.core.model.profile import Profile
from flame.core.projection.filters import Kernel
from flame.core.projection.selection import select
from tests.support.writers.nsysfile import HTOD, NsysFile


def trace(
    path: Path, periods: list[int], *, kernel: str = "gemm", kernels: int = 1, other: str = ""
) -> Profile:
    """A trace of steps, each with kernels of a tenth of its period, and an ``other`` one of 2 µs.

    That is at the end.
    """
    with NsysFile(path) as file:
        begin = 0
        for number, period in enumerate(periods):
            file.nvtx(f"step {number}", begin, begin + period)
            for one in range(kernels):
                corr = number * kernels + one + 1
                file.api("cudaLaunchKernel_v7000", begin + one, begin + one + 1, corr)
                at = begin + 10 + one * period // 10
                file.kernel(kernel, at, at + period // 10, corr)
            if other:
                file.kernel(other, begin + period - 3000, begin + period - 1000, corr)
            begin += period
    return load(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def compared(folder: Path, base: list[int], new: list[int], **of_new: object) -> Comparison:
    sides = (
        runs_of("BASE", [trace(folder / "base", base)]),
        runs_of("NEW", [trace(folder / "new", new, **of_new)]),  # type: ignore[arg-type]
    )
    return compare(Sides(*sides))


def decided(comparison: Comparison, text: str, noise: float = 2.0) -> DiffDecision:
    return decide(comparison, read_condition(text), noise)


STEADY = [100_000, 101_000, 99_000, 100_500] * 5


@pytest.fixture(scope="module")
def tenth(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """Steps that take a tenth longer."""
    folder = tmp_path_factory.mktemp("tenth")
    return compared(folder, STEADY, [period * 11 // 10 for period in STEADY])


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("step.p50 > +5%", True),
        ("step.p50 > +9%", None),  # within the noise of 10 %
        ("step.p50 > +15%", False),
        ("step.p50 > +5us", True),
        ("step.p50 > +20us", False),
        ("step.p50 < +15%", True),
        ("step.p50 < -1%", False),
        ("step.p50 > 105us", True),
        ("step.p50 > 120us", False),
        ("kernels > +0", False),
        ("kernels >= +0", True),
        ("gpu_time > +5%", True),
        ("gpu_time > +9%", None),
        ('frame("gemm").total > +5%', True),
        ('frame("gemm").count > +0%', False),
        ('frame("gemm").mean > +5%', True),
        ("step.p50 > +15% or step.p50 > +9%", None),
        ("step.p50 > +5% or step.p50 > +9%", True),
        ("not step.p50 > +9%", None),
        ("findings.high > +0", False),
    ],
)
def test_steps_that_take_a_tenth_longer(tenth: Comparison, text: str, holds: bool | None) -> None:
    assert tenth.basis.kind == "step"
    assert decided(tenth, text).holds is holds


def test_what_is_counted_is_always_decided(folder: Path) -> None:
    comparison = compared(folder, STEADY, STEADY, kernels=2)
    assert decided(comparison, "kernels > +99%").holds is True
    assert decided(comparison, "kernels > +100%").holds is False
    assert decided(comparison, "kernels > +0.5").holds is True  # one more of each step


def test_how_much_is_copied_is_always_decided(tmp_path: Path) -> None:
    runs = []
    for name, each in (("base", 1_000), ("new", 1_010)):
        with NsysFile(tmp_path / name) as file:
            for at in range(100):
                file.memcpy(HTOD, at * 100, at * 100 + 50, bytes=each)
        runs.append(Run(load(tmp_path / name), name))
    pair = compare(Sides((runs[0],), (runs[1],)))
    assert decided(pair, "bytes.htod > +0.9%").holds is True
    assert decided(pair, "bytes.htod >= +1kB").holds is True
    assert decided(pair, "bytes.htod > +1kB").holds is False


def test_what_steps_do_not_tell_asks_for_more_of_them(folder: Path) -> None:
    wild = [60_000, 140_000, 90_000, 180_000, 70_000, 130_000]
    [undecided] = decided(compared(folder, wild, wild), "step.mean > +1%").undecided
    assert undecided.interval is not None
    assert undecided.why.startswith(f"record more: {undecided.interval.steps} steps now, about ")
    needed = int(undecided.why.split("about ")[1].split()[0].replace(",", ""))
    assert needed > undecided.interval.steps


def test_runs_tell_it_without_the_usual_noise(folder: Path) -> None:
    profiles = [trace(folder / f"{at}", [period + 10 * at for period in STEADY]) for at in range(4)]
    slower = [
        trace(folder / f"n{at}", [period + 1000 + at for period in STEADY]) for at in range(4)
    ]
    comparison = compare(Sides(runs_of("BASE", profiles), runs_of("NEW", slower)))
    assert decided(comparison, "step.p50 > +0.5%").holds is True
    [undecided] = decided(comparison, "step.p50 > +1%").undecided
    assert undecided.why == "the runs differ too much for this limit: compare more of them"
    one = compare(Sides(runs_of("BASE", profiles[:1]), runs_of("NEW", slower[:1])))
    [undecided] = decided(one, "step.p50 > +0.5%").undecided
    assert "compare several runs" in undecided.why
    assert decided(one, "step.p50 > +0.2%", noise=0).holds is True


def test_frames_of_one_side(folder: Path) -> None:
    comparison = compared(folder, STEADY, STEADY, kernel="flash")
    assert decided(comparison, 'new("flash") > 0 and gone("gemm") > 0').holds is True
    assert decided(comparison, 'new("gemm") > 0 or gone("flash") > 0').holds is False


def test_from_nothing_any_increase_is_one(folder: Path) -> None:
    comparison = compared(folder, STEADY, STEADY, other="flash")
    assert decided(comparison, 'frame("flash").total > +50%').holds is True
    assert decided(comparison, 'frame("flash").total > +1us').holds is True
    assert decided(comparison, 'frame("flash").total > +1s').holds is False


def test_a_name_that_no_frame_has_is_not_decided(folder: Path) -> None:
    comparison = compared(folder, STEADY, STEADY, other="flash")
    for part in ("total > +0%", "count > 3", "mean < 1s"):
        [one] = decided(comparison, f'frame("none").{part}').undecided
        assert (one.values, one.why) == (None, "no frame of either side has such a name")
    [one] = decided(comparison, 'frame("flash").mean > +5%').undecided
    assert one.why == "no frame of BASE has such a name"
    assert decided(comparison, 'frame("flash").count > 0 or frame("none").count > 0').holds is True


@pytest.mark.parametrize(
    "text", ["gpu_time > +5%", "kernels > +0", 'frame("flash").total > +0%', "launches > +0"]
)
def test_filters_that_leave_nothing_of_a_side_decide_nothing(folder: Path, text: str) -> None:
    base, new = trace(folder / "base", STEADY), trace(folder / "new", STEADY, other="flash")
    sides = Sides(runs_of("BASE", [base]), runs_of("NEW", [new]))
    comparison = compare(sides, select(where=(Kernel("flash"),)))
    [one] = decided(comparison, text).undecided
    assert one.why == "BASE: nothing of it is compared"


def test_changes_of_what_cannot_be_compared_are_not_decided(folder: Path) -> None:
    comparison = compared(folder, STEADY, STEADY, kernel="flash")
    for text in ("step.p50 > +5%", "kernels > +100", "gpu_time < +1ms"):
        [one] = decided(comparison, text).undecided
        assert one.why.startswith("BASE and NEW cannot be compared: nothing of the GPU time")
        assert one.values is not None
    assert decided(comparison, "step.p50 > 50us").holds is True  # of NEW alone


def test_what_traces_cannot_tell_is_not_decided(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.folded").write_text("main 3\n")
    a, b = (Run(load(tmp_path / f"{name}.folded"), name) for name in ("a", "b"))
    [one] = decided(compare(Sides((a,), (b,))), "kernels > +0").undecided
    assert (one.values, one.why) == (None, "there are no activities with times")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("new > 0", "no quantity 'new'"),
        ('new("a").total > 0', "expected"),
        ('frame("a") > 0', "a part"),
        ("mood > +5%", 'new\\("RE"\\)'),
        ('new("(") > 0', "not a regular expression"),
    ],
)
def test_mistakes(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        read_condition(text)


def test_units_must_fit(tenth: Comparison) -> None:
    with pytest.raises(UsageError, match="compared with"):
        decided(tenth, "kernels > +5ms")
    with pytest.raises(
        UsageError, match="a time, with ns, us, ms or s, or a part of the base in %"
    ):
        decided(tenth, "step.p50 > +5")


@pytest.mark.parametrize("text", ["", "x", "-1%", "nan", "inf"])
def test_noise_is_a_part(text: str) -> None:
    with pytest.raises(UsageError, match="--run-noise"):
        parse_noise(text)


@given(
    st.lists(st.integers(50, 150), min_size=4, max_size=40),
    st.sampled_from(["p50", "p95", "p99", "mean", "max"]),
)
def test_equal_sides_may_be_equal(values: list[int], statistic: str) -> None:
    samples = np.array(values, np.float64)
    low, high = drawn_ratio(samples, samples, statistic)
    assert low <= 1 <= high
    assert drawn_ratio(samples, samples * 2, statistic) == pytest.approx((2 * low, 2 * high))
