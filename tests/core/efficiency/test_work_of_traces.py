"""Work of real traces: the naive definitions, kernel by kernel, and the numbers that are known."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from flame.core.efficiency.summary import WorkSummary, headline, summarize_work
from flame.core.loading.many import load
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from tests.conftest import TRACES, needs_traces
from tests.support.oracles.naive_work import naive_work
from tests.support.tiers import deep_except

KINETO = TRACES / "kineto"
# The oldest spells kinds of events with capitals, which the naive count does not read.
NAMES = sorted(path.name for path in KINETO.glob("*.json.gz") if "old" not in path.name)
SMALL = [name for name in NAMES if (KINETO / name).stat().st_size < 100_000]


@pytest.mark.parametrize("name", deep_except(SMALL, NAMES))
def test_the_work_of_every_kernel_is_what_the_definitions_say(name: str) -> None:
    profile, naive = load(KINETO / name), naive_work(KINETO / name)
    work, table = profile.work, profile.activities
    if work is None:
        assert not any(kernel.operator for kernel in naive.kernels)
        return
    assert (work.bare, work.bare_flops) == (naive.bare, naive.bare_flops)
    rows = np.flatnonzero(table.kind == Kind.KERNEL)
    names = [
        profile.frames[operator].name if operator >= 0 else None
        for operator in work.operator[rows].tolist()
    ]
    columns = (table.duration[rows], work.flops[rows], work.bytes[rows])
    found = zip(*(column.tolist() for column in columns), names, strict=True)
    assert Counter(found) == Counter(map(tuple, naive.kernels))


def summary_of(name: str) -> tuple[Profile, WorkSummary]:
    profile = load(KINETO / f"{name}.json.gz")
    summary = summarize_work(profile)
    assert summary is not None
    return profile, summary


@needs_traces
def test_bert_is_covered_for_three_quarters_and_far_from_any_peak() -> None:
    _, summary = summary_of("h100_bert_small")
    counts = summary.counts
    assert counts.flops[0] == 8_192_059_392
    assert round(100 * counts.coverage[0], 1) == 76.5
    assert round(100 * counts.compute_share[0], 1) == 3.5
    assert headline(summary) == "4 % of BF16 peak over 77 % of kernel time"


@needs_traces
def test_the_shares_of_qwen_count_half_of_causal_attention() -> None:
    profile, summary = summary_of("h100_qwen_python")
    assert summary.counts.flops[0] == 6_006_026_832_832
    rows, counts = summary.operators
    names = [frame.name.removeprefix("aten::") for frame in rows]
    attention = "_scaled_dot_product_flash_attention"
    assert names == ["mm", attention, "addmm", "bmm"]
    assert counts.flops[0] == 4_164_037_902_336
    # By the convention attention would have 18.2 %; of a mask (559 + 1) / (2 * 559) are left.
    assert [round(100 * share, 1) for share in counts.compute_share] == [63.9, 9.1, 60.2, 0.0]
    assert profile.work is not None
    whole = profile.work.flops.astype(float).sum() / 989.4e3 / summary.counts.covered_ns[0]
    assert round(100 * whole, 1) == 52.4
    assert round(100 * summary.counts.compute_share[0], 1) == 50.3
    assert round(100 * summary.counts.coverage[0], 1) == 25.5


@needs_traces
def test_decode_on_a_b200_is_near_the_bandwidth_in_its_last_product() -> None:
    _, summary = summary_of("b200_eager_python")
    rows, counts = summary.operators
    assert [frame.name for frame in rows] == ["aten::addmm", "aten::mm"]
    assert round(100 * counts.bandwidth_share[1], 1) == 54.0


@needs_traces
def test_a_step_reads_every_weight_of_the_model_once() -> None:
    """A rank of eight of gpt-oss-120b, by its published sizes; experts have no formula."""
    layers, width, experts, vocabulary, tokens = 36, 2880, 128, 201_088 // 8, 888
    attention, projected = 64 * 64 // 8, (64 + 2 * 8) * 64 // 8
    sizes = ((width, projected), (attention, width), (width, experts))
    weights = layers * sum(read * made + made for read, made in sizes) + width * vocabulary
    _, summary = summary_of("b200_eager_python")
    moved = int(summary.counts.bytes[0])
    assert moved >= 2 * weights
    activations = layers * tokens * sum(map(sum, sizes)) + width + vocabulary
    assert moved == 2 * (weights + activations)


@needs_traces
def test_a_gpu_without_a_name_has_flops_and_no_share_of_anything() -> None:
    profile, summary = summary_of("mi300_vllm_hipgraph")
    counts = summary.counts
    assert counts.flops[0] == 37_064_540_160
    for share in ("compute_share", "fast_compute_share", "bandwidth_share", "bound_share"):
        assert np.isnan(getattr(counts, share)).all()
    assert headline(summary) == ""
    assert "waste" not in [metric.key for metric in profile.metrics]
