"""Layers: sums by path and index, as plain loops over the paths of activities find them."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from flame.core.loading.many import load
from flame.core.report.program.experts import experts_section, measure_experts
from flame.core.report.program.layers import (
    Layers,
    layers_section,
    measure_layers,
    sum_families,
)
from flame.core.report.scope import Scope
from tests.conftest import TRACES, needs_traces
from tests.support.profiles.recorded import Recorded
from tests.support.tiers import examples

NAMES = (
    "layers.0.mlp",
    "layers.1.mlp",
    "layers.2.mlp",
    "enc.0",
    "enc.1",
    "step 7",
    "step 8",
    "all",
)


class Range(NamedTuple):
    name: str
    start: int
    end: int
    inside: tuple[Range, ...]


@st.composite
def ranges(draw: st.DrawFn, low: int, high: int, depth: int = 0) -> tuple[Range, ...]:
    """Ranges from ``low`` to ``high`` that nest and do not cross, all apart."""
    found: list[Range] = []
    at = low
    while at + 6 < high and len(found) < 3 and draw(st.booleans()):
        start = draw(st.integers(at, high - 6))
        end = draw(st.integers(start + 4, high - 1))
        inside = draw(ranges(start + 1, end, depth + 1)) if depth < 2 else ()
        found.append(Range(draw(st.sampled_from(NAMES)), start, end, inside))
        at = end + 1
    return tuple(found)


def flat(
    found: tuple[Range, ...], above: tuple[str, ...] = ()
) -> list[tuple[tuple[str, ...], Range]]:
    """Every range with the names down to it."""
    result = []
    for one in found:
        path = (*above, one.name)
        result += [(path, one), *flat(one.inside, path)]
    return result


Key = tuple[tuple[str, ...], int]


def key_of(path: tuple[str, ...]) -> Key | None:
    """The path without numbers, and the index of its last name; None where that is no layer."""
    if not re.fullmatch(r"(layers|enc)\.\d(\.mlp)?", path[-1]):
        return None
    folded = tuple(re.sub(r"\d+", "*", name) for name in path)
    return folded, int(re.findall(r"\d", path[-1])[0])


@examples(3, [HealthCheck.too_slow])
@given(
    ranges(0, 60),
    st.lists(st.tuples(st.integers(0, 60), st.integers(1, 9), st.booleans()), max_size=8),
)
def test_sums_are_those_of_plain_loops(
    found: tuple[Range, ...], kernels: list[tuple[int, int, bool]]
) -> None:
    trace, every = Recorded(), flat(found)
    for _, one in every:
        trace.range(one.name, one.start, one.end)
    gpu_time, activities, host = Counter[Key](), Counter[Key](), Counter[Key]()
    for number, (at, length, launched) in enumerate(kernels, 1):
        if launched:
            trace.call("cudaLaunchKernel", at, at + 1, number)
        trace.kernel("gemm", 100 + 10 * number, 100 + 10 * number + length, number)
        for path, one in every:
            key = key_of(path)
            # What is open when the call begins; a range includes its end.
            if launched and key is not None and one.start <= at <= one.end:
                gpu_time[key] += length
                activities[key] += 1
    for path, one in every:
        if (key := key_of(path)) is not None:
            host[key] += one.end - one.start
    indices = Counter(path for path, _ in gpu_time)
    expected = {
        key: (gpu_time[key], activities[key], activities[key], host[key])
        for key in gpu_time
        if indices[key[0]] > 1
    }
    if kernels:
        assert by_key(measure_layers(Scope(trace.profile()))) == expected


def by_key(layers: Layers) -> dict[Key, tuple[int, ...]]:
    columns = (layers.gpu_time, layers.activities, layers.launches, layers.host)
    cells = list(zip(*(column.tolist() for column in columns), strict=True))
    result = {}
    for at, (family, index) in enumerate(zip(layers.family, layers.index, strict=True)):
        path = (*layers.within[family].split(" › "), layers.names[family])
        result[tuple(part for part in path if part), int(index)] = cells[at]
    return result


def model(times: dict[str, int]) -> Recorded:
    trace = Recorded()
    for place, (name, length) in enumerate(times.items()):
        at = 100 * place
        trace.range(name, at, at + 50)
        trace.call("cudaLaunchKernel", at + 1, at + 2, place + 1)
        trace.kernel("gemm", at + 10, at + 10 + length, place + 1)
    return trace


def test_families_are_compared_by_their_median() -> None:
    times = {"layers.0": 10, "layers.1": 30, "layers.2": 12, "layers.3": 11, "mlp.0.x": 40}
    layers = measure_layers(Scope(model(times).profile()))
    found = sum_families(layers)
    assert layers.names == ("layers.*",)
    assert (found.number.tolist(), found.total.tolist()) == ([4], [63])
    assert (found.least.tolist(), found.median.tolist(), found.most.tolist()) == ([10], [11], [30])
    assert found.same.tolist() == [True]
    section = layers_section(Scope(model(times).profile()))
    families, rows = section.tables
    assert families.rows[0][0] == "layers.*"
    assert [row[1] for row in rows.rows] == [0, 1, 2, 3]
    assert rows.places[1] is not None
    assert rows.places[1].frames == ("layers.1",)


def test_modules_are_layers_by_their_number() -> None:
    trace = Recorded()
    for number in range(3):
        at = 100 * number
        trace.function("run", at, at + 90)
        trace.function(f"nn.Module: Decoder_{number}", at + 5, at + 80)
        trace.function("forward", at + 6, at + 70)
        trace.call("cudaLaunchKernel", at + 10, at + 11, number + 1)
        trace.kernel("gemm", at + 20, at + 30 + number, number + 1)
    layers = measure_layers(Scope(trace.profile()))
    assert layers.names == ("Decoder_*",)
    assert layers.gpu_time.tolist() == [10, 11, 12]
    assert layers.host.tolist() == [75, 75, 75]


def test_layers_of_one_name_are_told_apart_by_what_they_are_in() -> None:
    trace = Recorded()
    for place, part in enumerate(("encoder", "decoder")):
        at = 1_000 * place
        trace.range(part, at, at + 500)
        for number in range(2):
            low = at + 100 * number + 10
            corr = 2 * place + number + 1
            trace.range(f"layers.{number}", low, low + 50)
            trace.call("cudaLaunchKernel", low + 1, low + 2, corr)
            trace.kernel("gemm", low + 10, low + 20 + corr, corr)
    section = layers_section(Scope(trace.profile()))
    cells = {row[1]: row[3] for row in section.tables[0].rows}
    assert cells == {"encoder": 23, "decoder": 27}


def test_without_layers_it_says_so() -> None:
    section = layers_section(Scope(model({"forward": 10, "layers.1": 5}).profile()))
    assert not section.available
    assert "index of a layer" in section.why


# Experts


def test_routing_is_a_part_of_experts() -> None:
    trace = Recorded()
    work = {
        "experts": ("gemm", 50),
        "experts ": ("permute_kernel", 7),
        "attention": ("permute_kernel", 100),
        "gate": ("softmax", 30),
        "sampling": ("fused_moe_kernel", 20),
        "other": ("_topk_forward", 3),
    }
    for place, (name, (kernel, length)) in enumerate(work.items()):
        at = 1_000 * place
        trace.range(name, at, at + 500)
        if name == "experts":
            trace.range("gate_proj", at, at + 400)
        trace.call("cudaLaunchKernel", at + 1, at + 2, place + 1)
        trace.kernel(kernel, at + 10, at + 10 + length, place + 1)
    found = measure_experts(Scope(trace.profile()))
    assert found.whole == 210
    assert (found.time, found.routing) == (80, 10)
    assert (found.kernels, found.routing_kernels) == (4, 2)


def test_kernels_of_experts_are_counted_by_layer_and_iteration() -> None:
    trace, corr = Recorded(), 0
    for step in range(3):
        trace.range(f"step {step}", 1_000 * step, 1_000 * step + 900)
        for layer in range(2):
            at = 1_000 * step + 100 * layer + 10
            trace.range(f"layers.{layer}", at, at + 80)
            for kernel in ("fused_moe", "fused_moe", "gemm"):
                corr += 1
                trace.call("cudaLaunchKernel", at + corr, at + corr + 1, corr)
                trace.kernel(kernel, 10_000 + 10 * corr, 10_005 + 10 * corr, corr)
    profile = trace.profile()
    assert len(profile.iterations) == 3
    assert measure_experts(Scope(profile)).per_layer == 2


def test_without_experts_a_top_k_is_none() -> None:
    trace = Recorded()
    trace.kernel("_topk_forward", 0, 10)
    section = experts_section(Scope(trace.profile()))
    assert section.why == "no frame or kernel is called after experts"


# Real traces


@needs_traces
def test_experts_of_a_real_trace() -> None:
    scope = Scope(load(TRACES / "kineto" / "mi300_vllm_hipgraph.json.gz"))
    found = measure_experts(scope)
    products = [row for row in experts_section(scope).tables[1].rows if "matmul_ogs" in str(row[0])]
    share = sum(int(row[2] or 0) for row in products) / found.whole
    assert share == pytest.approx(0.656, abs=0.0005)
    assert found.routing < 0.1 * found.time


@needs_traces
def test_layers_of_a_real_model_do_the_same_work() -> None:
    layers = measure_layers(Scope(load(TRACES / "kineto" / "h100_qwen_python.json.gz")))
    found = sum_families(layers)
    assert layers.names[int(found.family[0])] == "Qwen2DecoderLayer_*"
    assert int(found.number[0]) == 24
    assert bool(found.same[0])
