"""The summary of a trace: what is counted, and by whom."""

from __future__ import annotations

from pathlib import Path

from flame.core.analysis.trace_summary import summarize
from flame.core.loading.many import load_all
from tests.support.writers.nsysfile import NsysFile


def write_trace(path: Path, kernels: int) -> Path:
    with NsysFile(path) as file:
        file.gpu(0, "NVIDIA Test")
        file.process(100, "trainer")
        for number in range(kernels):
            file.api("cudaLaunchKernel", 10 * number, 10 * number + 5, corr=number + 1)
            file.kernel("gemm", 1_000 * number, 1_000 * number + 100, corr=number + 1)
    return path


def test_a_single_file_is_its_only_source(tmp_path: Path) -> None:
    summary = summarize(load_all([write_trace(tmp_path / "run.sqlite", 3)]))
    [total] = summary.sources
    assert not summary.is_merged
    assert (total.source.label, total.activities, total.gpu_time) == ("", 3, 300)
    assert summary.device_names == ("GPU 0 NVIDIA Test",)
    assert summary.titled_coverage["launch"] == ("launch", summary.coverage["launch"])


def test_several_files_add_up_to_the_whole(tmp_path: Path) -> None:
    paths = [write_trace(tmp_path / f"{name}.sqlite", size) for name, size in (("a", 2), ("b", 5))]
    summary = summarize(load_all(paths))
    assert summary.is_merged
    assert [total.activities for total in summary.sources] == [2, 5]
    assert [total.gpu_time for total in summary.sources] == [200, 500]
    assert (summary.activities, summary.gpu_time) == (7, 700)
    assert len(set(summary.device_names)) == 2
