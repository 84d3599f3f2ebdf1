"""What a trace spends its time in: every activity once in each list."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given

from flame.core.analysis.heaviest import Heaviest, HeavyFrames, find_heaviest
from flame.core.loading.many import load
from flame.core.model.frames import COPIES, Kind
from flame.core.model.metrics import metric_of
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions
from flame.core.projection.labels import Naming
from flame.core.projection.number_folds import labels_of
from flame.core.projection.weights import weigh_groups
from tests.conftest import NSYS_TRACES, TRACES, needs_traces
from tests.support.generated.strategies import Script, scripts
from tests.support.tiers import examples
from tests.support.writers.nsysfile import HTOD, NsysFile

random_traces = examples(1, [HealthCheck.too_slow])


def heaviest(profile: Profile, most: int = 1000) -> Heaviest:
    return find_heaviest(profile, weigh_groups(profile, metric_of("gpu"), ()), Naming(), most)


def listed(found: HeavyFrames) -> Counter[str]:
    """Time by name, which may be in several frames; those of a graph's capture are marked."""
    times: Counter[str] = Counter()
    for each in found.heaviest:
        times["↻" * each.captured + each.name] += each.value
    return times


def by_hand(profile: Profile) -> dict[str, Counter[str]]:
    """Time of kernels, copies and innermost ranges by name, row by row."""
    table = profile.activities
    folded = labels_of(profile, Naming(fold=True), table).text
    times: dict[str, Counter[str]] = {key: Counter() for key in ("kernels", "copies", "ranges")}
    for row in range(len(table)):
        ns = int(table.duration[row])
        kind = "copies" if Kind(int(table.kind[row])) in COPIES else "kernels"
        times[kind][profile.frames[int(table.frame[row])].name] += ns
        path = table.stacks.path(int(table.nvtx[row]))
        if path:
            mark = "↻" if profile.frames[path[-1]].get("captured") else ""
            times["ranges"][mark + folded[path[-1]]] += ns
    return {kind: +counted for kind, counted in times.items()}


@random_traces
@given(scripts())
def test_every_activity_counts_once_in_each_list(trace_file: Path, script: Script) -> None:
    profile = load(script.write(trace_file), LoadOptions("raw"))
    found, expected = heaviest(profile), by_hand(profile)
    assert listed(found.kernels) == expected["kernels"]
    assert listed(found.copies) == expected["copies"]
    assert listed(found.ranges) == expected["ranges"]
    assert found.kernels.value + found.copies.value == found.whole == profile.gpu_time
    for part in (found.kernels, found.copies, found.ranges):
        values = [each.value for each in part.heaviest]
        assert values == sorted(values, reverse=True)
        assert (part.number, part.value) == (len(values), sum(values))


@needs_traces
@pytest.mark.parametrize("trace", NSYS_TRACES)
def test_lists_of_real_traces_add_up(trace: str) -> None:
    profile = load(TRACES / "nsys" / trace)
    found, few = heaviest(profile), heaviest(profile, 2)
    assert found.kernels.value + found.copies.value == profile.gpu_time
    assert sum(each.activities for each in found.kernels.heaviest + found.copies.heaviest) <= sum(
        profile.counts.values()
    )
    assert list(listed(few.kernels)) == list(listed(found.kernels))[:2]
    assert few.kernels.value == found.kernels.value


@needs_traces
def test_modules_are_one_without_their_number_and_functions_have_a_place() -> None:
    profile = load(TRACES / "kineto" / "h100_bert_small.json.gz")
    found = heaviest(profile, 3)
    assert [each.name for each in found.modules.heaviest] == [
        "nn.Module: Linear_*",
        "nn.Module: BertSdpaSelfAttention_*",
        "nn.Module: LayerNorm_*",
    ]
    assert found.functions.heaviest[0].place == "linear.py:124"
    assert found.modules.value <= found.whole and found.functions.value <= found.whole


def test_kernels_that_communicate_are_told_by_their_names(tmp_path: Path) -> None:
    names = ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "multimem_all_reduce_kernel", "gemm")
    with NsysFile(tmp_path / "x.sqlite") as file:
        for place, name in enumerate(names):
            file.kernel(name, 1_000 * place, 1_000 * place + 10 + place)
        file.memcpy(HTOD, 9_000, 9_500, corr=None)
    found = heaviest(load(tmp_path / "x.sqlite"))
    assert listed(found.communication) == Counter({names[0]: 10, names[1]: 11})
    assert listed(found.kernels).total() == 33 and found.copies.value == 500
