"""Rules on compute: tails, uneven layers, routing, and that one of them has the bound."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.columns import I8
from flame.core.loading.many import load
from flame.core.report.findings.finding import Finding
from flame.core.report.findings.findings import find
from flame.core.report.findings.layer_rules import concordance
from flame.core.report.scope import Scope
from tests.support.generated.worked import BF16, H100, product, write_products
from tests.support.profiles.recorded import Recorded
from tests.support.tiers import deep_except, examples
from tests.support.writers.kinetofile import KinetoFile
from tests.support.writers.nsysfile import NsysFile

US, MS = 1_000, 1_000_000


def told(scope: Scope, *, all: bool = True) -> tuple[dict[str, Finding], dict[str, str]]:
    """(findings by id, why rules abstained by id)."""
    found = find(Scope(scope.profile, scope.selection, all_findings=all))
    return {one.id: one for one in found.found}, {one.id: one.why for one in found.abstained}


# Tails


def launches(path: Path, lengths: list[int]) -> Scope:
    """Kernels of one configuration, one after the other."""
    with NsysFile(path) as file:
        at = 0
        for corr, length in enumerate(lengths, 1):
            file.api("cudaLaunchKernel_v7000", at, at + 1, corr=corr)
            file.kernel("gemm", at + 2, at + 2 + length, corr=corr)
            at += 2 + length
    return Scope(load(path))


@pytest.mark.parametrize(
    "case",
    deep_except(
        [(98, 2, True), (97, 2, False)],
        [
            (120, 4, True),
            (98, 2, True),
            (97, 2, False),  # too few to have a rarest hundredth
            (120, 7, False),  # more than one in 20: other work
            (120, 1, False),  # the worst of a hundred is not slow
        ],
    ),
)
def test_tail(tmp_path: Path, case: tuple[int, int, bool]) -> None:
    usual, slow, fires = case
    lengths = [100 * US + number % 10 for number in range(usual)] + [1_000 * US] * slow
    median = sorted(lengths)[(len(lengths) + 1) // 2 - 1]
    found, _ = told(launches(tmp_path / "trace.sqlite", lengths), all=False)
    assert {*found} == ({"tail"} if fires else set())
    if fires:
        assert found["tail"].bound == slow * (1_000 * US - median)
        assert "gemm: 100 µs as a rule" in found["tail"].claim
        assert found["tail"].place is not None and found["tail"].place.frames == ("gemm",)


def test_a_tail_that_costs_nothing_is_none(tmp_path: Path) -> None:
    lengths = [100 * US] * 100 + [151 * US] * 2 + [10 * MS] * 10
    assert not told(launches(tmp_path / "trace.sqlite", lengths), all=False)[0]


def test_without_configurations_no_tail_is_told() -> None:
    trace = Recorded()
    trace.kernel("gemm", 0, 100)
    assert told(Scope(trace.profile()))[1]["tail"].startswith("launch configurations")


# Routing


@pytest.mark.parametrize(
    ("routing", "others", "fires"),
    [(100, 4_000, True), (99, 4_000, False), (100, 4_001, False)],
)
def test_routing(routing: int, others: int, fires: bool) -> None:
    """Experts are 1,000 of 5,000; routing is 100 of these."""
    trace = many(("routing", routing), ("fused_moe_kernel", 1_000 - routing), ("gemm", others))
    found, _ = told(Scope(trace.profile()))
    assert ("routing" in found) == fires
    if fires:
        assert found["routing"].bound == 100 * 20 * US
        assert "10.0 % of what runs for experts, which is 20.0 % of GPU time" in (
            found["routing"].claim
        )
    assert "routing" not in told(Scope(trace.profile()), all=False)[0]


def many(*kernels: tuple[str, int]) -> Recorded:
    """Each of the kernels 20 times, of so many µs."""
    trace, at = Recorded(), 0
    for number in range(20):
        for place, (name, length) in enumerate(kernels):
            corr = number * len(kernels) + place + 1
            trace.call("cudaLaunchKernel", at, at + 1, corr)
            trace.kernel(name, at + 1, at + 1 + length * US, corr)
            at += length * US + 1
    return trace


def test_without_experts_there_is_no_routing() -> None:
    assert told(Scope(many(("gemm", 10)).profile()))[1]["routing"].startswith("no frame")


# Far from the peaks


def products(path: Path, ns: int, *, device: str = H100, dtype: str = BF16) -> Scope:
    """Three products of ``ns`` that need 17.4 µs each, and 15 µs of other work."""
    return Scope(load(write_products(path, device, dtype, ns)))


def test_operators_far_below_their_bound_are_told(tmp_path: Path) -> None:
    found, _ = told(products(tmp_path / "a.json", 44_000), all=False)
    one = found["below-bound"]
    needed = 17_363  # 17,179,869,184 FLOPs at 989.4 TFLOP/s
    assert one.bound == 3 * (44_000 - needed - 1)
    assert (one.part, one.severity) == ("compute", "info")  # too little was recorded to judge
    assert "aten::mm: 39.5 % of 132 µs would do" in one.claim
    assert one.place is not None and one.place.frames == ("gemm",)


@pytest.mark.parametrize("ns", [43_000, 20_000])
def test_operators_that_are_nearer_are_not_told(tmp_path: Path, ns: int) -> None:
    found, abstained = told(products(tmp_path / "a.json", ns))
    assert "below-bound" not in {**found, **abstained}


@pytest.mark.parametrize(
    ("ns", "others", "fires"),
    [(10_000, 500_000, True), (9_999, 500_000, False), (10_000, 571_000, False)],
)
def test_short_kernels_and_those_with_little_of_the_time_are_not_told(
    tmp_path: Path, ns: int, others: int, fires: bool
) -> None:
    """Three small products are 5 % of the time beside 570 µs of other work."""
    file = KinetoFile()
    file.device(0, H100)
    for number in range(4):
        at, length = 1_000 + 20_000 * number, ns if number < 3 else others
        file.op("aten::mm" if number < 3 else "aten::add", at, at + 900, **product(64, 64, 64))
        file.runtime(number + 1, at + 10, at + 20)
        file.kernel("kernel", at + 1_000, at + 1_000 + length, number + 1)
    found, abstained = told(Scope(load(file.write(tmp_path / "a.json"))))
    assert ("below-bound" in found) == fires
    assert "below-bound" not in abstained


@pytest.mark.parametrize(
    ("device", "dtype", "why"),
    [
        ("Some GPU", BF16, "the peak of the GPU"),
        (H100, "float", "whether FP32 was multiplied in TF32"),
        (H100, "mystery", "the peak of the GPU"),
    ],
)
def test_where_the_verdict_abstains_so_does_the_rule(
    tmp_path: Path, device: str, dtype: str, why: str
) -> None:
    scope = products(tmp_path / "a.json", 300_000, device=device, dtype=dtype)
    found, abstained = told(scope)
    assert "below-bound" not in found and abstained["below-bound"].startswith(why)


def test_without_shapes_nothing_is_said_of_bounds() -> None:
    trace = Recorded()
    trace.kernel("gemm", 0, 100)
    assert told(Scope(trace.profile()))[1]["below-bound"] == "no operator with shapes was recorded"


# Layers


def layered(steps: list[list[int]], more: int = 0) -> Recorded:
    """Steps of layers with a kernel of so many µs each; the last layer has ``more`` kernels."""
    trace, at, ids = Recorded(), 0, count(1)
    for number, lengths in enumerate(steps):
        begin = at
        for layer, length in enumerate(lengths):
            start = at
            for _ in range(1 + (more if layer == len(lengths) - 1 else 0)):
                corr = next(ids)
                trace.call("cudaLaunchKernel", at, at + 1, corr)
                trace.kernel("gemm", at + 1, at + 1 + length * US, corr)
                at += length * US + 1
            trace.range(f"layers.{layer}", start, at - 1)
            trace.range("mlp", start, at - 1)
        trace.range(f"step {number}", begin, at - 1)
    return trace


@pytest.mark.parametrize(
    ("lengths", "fires"),
    [
        ([100, 100, 130, 100], True),
        ([100, 100, 129, 100], False),
        ([100, 100, 130], False),
        ([100, 130, 130, 130], False),  # half of them take as long
    ],
)
def test_uneven_layers(lengths: list[int], fires: bool) -> None:
    trace = layered([lengths] * 20)
    found, _ = told(Scope(trace.profile()))
    assert ("uneven-layers" in found) == fires
    if fires:
        assert found["uneven-layers"].bound == 20 * 30 * US
        assert "of 4 layers layers.* number 2" in found["uneven-layers"].claim
        assert "iterations" not in found["uneven-layers"].caution
    assert "uneven-layers" not in told(Scope(trace.profile()), all=False)[0]


def test_layers_of_other_work_are_not_compared() -> None:
    found, abstained = told(Scope(layered([[100] * 4] * 20, more=1).profile()))
    assert "uneven-layers" not in found
    assert abstained["uneven-layers"] == "layers layers.* run 20 to 40 activities: other work"


@pytest.mark.parametrize(("steps", "fires"), [(7, True), (8, False)])
def test_layers_that_take_turns_are_not_uneven(steps: int, fires: bool) -> None:
    turns = [[200 if layer == step % 4 else 100 for layer in range(4)] for step in range(steps)]
    turns[0][0] += 1_000
    found, abstained = told(Scope(layered(turns).profile()))
    assert ("uneven-layers" in found) == fires
    assert ("uneven-layers" in abstained) == (not fires)
    if fires:
        assert found["uneven-layers"].caution.count("fewer than 8 iterations")


@examples(1)
@given(st.integers(2, 5).flatmap(lambda n: st.lists(st.permutations(range(n)), min_size=2)))
def test_concordance_is_that_of_pairs_of_judges(values: list[list[int]]) -> None:
    """W is the mean of Spearman's correlation over all pairs of judges, moved to 0..1."""
    table: I8 = np.array(values, np.int64)
    judges, things = table.shape
    pairs = [
        1 - 6 * sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) / (things**3 - things)
        for place, one in enumerate(values)
        for other in values[place + 1 :]
    ]
    mean = sum(pairs) / len(pairs)
    assert abs(concordance(table) - (mean * (judges - 1) + 1) / judges) < 1e-9


# Bounds


def test_bounds_are_at_most_what_was_computed(tmp_path: Path) -> None:
    trace = Recorded()
    trace.kernel("fused_moe", 100 * MS, 101 * MS)
    for number in range(100):
        for stream in (7, 8):
            at = number * MS
            trace.kernel("topk_routing", at, at + MS, stream=stream)
    assert told(Scope(trace.profile()))[0]["routing"].bound == 101 * MS
    path = tmp_path / "trace.sqlite"
    with NsysFile(path) as file:
        for number in range(100):
            file.kernel("gemm", number * 10, number * 10 + 10)
        for stream in (7, 8):
            file.kernel("gemm", 1_000, 20 * MS, stream=stream)
    assert told(Scope(load(path)))[0]["tail"].bound == 20 * MS


def test_rules_on_the_same_time_have_one_bound() -> None:
    lengths = [100, 100, 100, 400]
    trace = layered([lengths] * 20)
    for number in range(60):  # after all that, so that no time is told twice
        at = 20 * 800 * US + number * 50 * US
        trace.call("cudaLaunchKernel", at, at + 1, 1_000 + number)
        name = "topk_routing" if number % 2 else "fused_moe"
        trace.kernel(name, at + 10, at + 50 * US, 1_000 + number)
    found, _ = told(Scope(trace.profile()))
    assert found["uneven-layers"].bound == 20 * 300 * US
    assert "routing" not in found  # 3 ms are less than a fifth of all
    for number in range(200):
        at = 20 * 800 * US + 60 * 50 * US + number * 50 * US
        trace.call("cudaLaunchKernel", at, at + 1, 2_000 + number)
        trace.kernel("topk_routing", at + 10, at + 50 * US, 2_000 + number)
    found, _ = told(Scope(trace.profile()))
    assert found["routing"].bound == 230 * (50 * US - 10)
    assert found["uneven-layers"].bound is None
    assert found["uneven-layers"].severity == "high"
    assert found["uneven-layers"].claim.endswith("it is a part of the same time as routing")
