"""Work by other means than the PyTorch profiler: NVTX sizes, layers, replayed CUDA graphs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from flame.core.loading.many import load
from flame.core.loading.merge.profiles import merge_profiles
from flame.core.options import LoadOptions
from tests.support.generated.worked import count_whole
from tests.support.writers.fdumpfile import DumpFile
from tests.support.writers.nsysfile import NsysFile

MM = "aten::mm, op_id = {}, sizes = [[16, 2880], [2880, 640]]"
FLOPS = 2 * 16 * 2880 * 640
BYTES = 2 * (16 * 2880 + 2880 * 640 + 16 * 640)
LAYER = (
    "{'Module': 'model.layers.0.mlp.up', 'TrainableParams': {'weight': [640, 2880]}, "
    "'Inputs': [[16, 2880]]}"
)
TYPED = LoadOptions(dtype="bf16")


def with_ranges(path: Path, *texts: str) -> Path:
    """Ranges one after the other, each with a kernel."""
    with NsysFile(path) as file:
        file.gpu(0, "NVIDIA H100 80GB HBM3")
        for number, text in enumerate(texts, 1):
            at = 1000 * number
            file.nvtx(text, at, at + 100)
            file.api("cudaLaunchKernel", at + 10, at + 20, corr=number)
            file.kernel("gemm", at + 200, at + 300, corr=number)
    return path


def test_sizes_of_ranges_tell_flops_and_bytes_only_with_a_type(tmp_path: Path) -> None:
    path = with_ranges(tmp_path / "a.sqlite", MM.format(7), MM.format(8), LAYER)
    counts = count_whole(load(path))
    assert counts is not None
    assert (counts.flops[0], counts.bytes[0], counts.rated[0]) == (3 * FLOPS, 0, 0)
    assert np.isnan(counts.compute_share[0]) and np.isnan(counts.gb_per_s[0])
    counts = count_whole(load(path, TYPED))
    assert counts is not None
    assert (counts.flops[0], counts.bytes[0], counts.rated[0]) == (3 * FLOPS, 3 * BYTES, 3)
    assert round(counts.compute_share[0], 4) == round(FLOPS / 989.4e12 / 100e-9, 4)


def test_an_operator_in_a_layer_is_a_part_of_the_layer(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "a.sqlite") as file:
        file.nvtx(LAYER, 1000, 1500)
        file.nvtx(MM.format(1), 1100, 1400)
        file.api("cudaLaunchKernel", 1200, 1210, corr=1)
        file.kernel("gemm", 2000, 2100, corr=1)
    work = load(tmp_path / "a.sqlite").work
    assert work is not None
    assert (work.flops.tolist(), work.calls, work.bare) == ([FLOPS], 1, 0)


def replayed(path: Path, times: int, split: bool = False) -> Path:
    """Two products captured in a graph, one of two nodes if ``split``; replayed so many times."""
    with NsysFile(path) as file:
        for layer in range(2):
            file.nvtx(MM.format(layer), 1000 * layer, 1000 * layer + 100)
            file.node(10 + layer, None, 1000 * layer + 50)
            if split and layer:
                file.node(20, None, 1000 * layer + 60)
        for number in range(times):
            at = 10_000 + 1000 * number
            file.api("cudaGraphLaunch", at, at + 10, corr=number + 1)
            for node in (10, 11, *([20] if split else [])):
                begin = at + 20 + 30 * (node % 10) + 100 * (node == 20)
                file.kernel("gemm", begin, begin + 30, corr=number + 1, graph_node=node)
    return path


def test_each_replay_of_a_graph_does_the_work_of_what_was_captured(tmp_path: Path) -> None:
    work = load(replayed(tmp_path / "a.sqlite", 3)).work
    assert work is not None
    assert work.flops.tolist() == [FLOPS] * 6
    assert (work.calls, work.bare) == (2, 0)


def test_nodes_that_one_operator_was_captured_in_share_its_work_in_each_replay(
    tmp_path: Path,
) -> None:
    profile = load(replayed(tmp_path / "a.sqlite", 2, split=True))
    assert profile.work is not None
    assert profile.work.flops.sum() == 4 * FLOPS
    assert sorted(profile.work.flops.tolist()) == [FLOPS // 2] * 4 + [FLOPS] * 2


def test_merged_traces_keep_their_captures_apart(tmp_path: Path) -> None:
    paths = [replayed(tmp_path / "a.sqlite", 1), with_ranges(tmp_path / "b.sqlite", MM.format(1))]
    work = merge_profiles([load(path) for path in paths], ["a", "b"]).work
    assert work is not None
    assert sorted(work.flops.tolist()) == [FLOPS] * 3
    both = [load(paths[0]), load(replayed(tmp_path / "c.sqlite", 2))]
    alone = merge_profiles(both, ["a", "c"]).work
    assert alone is not None
    assert alone.flops.tolist() == [FLOPS] * 6


def test_kernels_of_a_graph_whose_nodes_were_not_recorded_are_not_covered(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "a.sqlite") as file:
        file.nvtx(MM.format(1), 0, 100)
        file.api("cudaGraphLaunch", 500, 510, corr=1)
        file.kernel("gemm", 600, 700, corr=1, graph_node=4)
    work = load(tmp_path / "a.sqlite").work
    assert work is not None
    assert (work.operator.tolist(), work.bare) == ([-1], 1)


def test_recordings_tell_the_sizes_of_ranges_and_where_nodes_were_captured(tmp_path: Path) -> None:
    file = DumpFile()
    for number in (1, 2):
        file.range([MM.format(number)], 1000 * number, 1000 * number + 100)
    file.graph_node(7, 0, 1050, tid=100)
    file.launch(2010, 2020, 1)
    file.kernel("gemm", 3000, 3100, 1)
    for replay in (2, 3):
        file.launch(5000 * replay, 5000 * replay + 10, replay)
        file.kernel("gemm", 5000 * replay + 20, 5000 * replay + 50, replay, graph_node=7)
    work = load(file.write(tmp_path / "a.fdump")).work
    assert work is not None
    assert (work.flops.tolist(), work.calls, work.bare) == ([FLOPS] * 3, 2, 0)
