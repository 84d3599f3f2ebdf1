"""What HTA says of real traces, flame says too, or its definition differs in a way that is known.

HTA is looked for in FLAME_BENCH_PEERS; `benchmarks/support/peers.py` installs it there.
"""

from __future__ import annotations

import pytest

from benchmarks.compare_hta import compare
from benchmarks.support.peers import HTA
from tests.conftest import TRACES

NAMES = sorted(path.name for path in TRACES.glob("kineto/*.json.gz"))
OTHER_CLASSES, OTHER_ROWS = "b200_eager_python.json.gz", "v100_cuda_graphs.json.gz"
"""Traces of which HTA takes other kernels for communication, and leaves out some altogether."""

pytestmark = [
    pytest.mark.deep,
    pytest.mark.skipif(HTA.found() is None, reason="HTA is not installed"),
]


@pytest.mark.parametrize("name", NAMES)
def test_each_number_of_hta_follows_from_the_columns_of_flame(name: str) -> None:
    found = compare(TRACES / "kineto" / name)
    assert [one for one in found if not one.agrees] == []
    assert len(found) == (0 if name.startswith("cpu_only") else 13)


@pytest.mark.parametrize("name", [n for n in NAMES if n not in (OTHER_CLASSES, OTHER_ROWS)])
def test_where_rows_and_classes_are_the_same_the_breakdown_is(name: str) -> None:
    same = ("window", "idle", "compute", "non-compute")
    kernels = ("kernels, communication", "kernels, computation", "kernels, memory")
    for one in compare(TRACES / "kineto" / name):
        if one.name in (*same, *kernels):
            assert one.flame == pytest.approx(one.hta, abs=0.5), one.name
