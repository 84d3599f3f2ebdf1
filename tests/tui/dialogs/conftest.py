"""A trace of two GPUs for the filters dialog."""

from __future__ import annotations

import pytest

from flame.core.loading.many import load
from flame.core.model.profile import Profile
from tests.support.writers.nsysfile import HTOD, NsysFile


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    """Two GPUs, streams 7 and 13, two processes with a thread each."""
    with NsysFile(tmp_path_factory.mktemp("filters") / "two.sqlite") as trace:
        for place, pid in enumerate((100, 200)):
            trace.gpu(place, f"H100 {place}", pid=pid)
            trace.process(pid, f"rank{place}")
            trace.thread(pid, pid + 1, "worker")
            trace.api("cudaLaunchKernel", 10, 20, place + 1, pid=pid, tid=pid + 1)
        trace.nvtx("step", 0, 5, pid=100, tid=101)
        trace.kernel("gemm", 100, 400, 1, pid=100, stream=7)
        trace.kernel("argmax", 100, 200, 2, device=1, pid=200, stream=13)
        trace.memcpy(HTOD, 500, 600, corr=None, device=1, pid=200, stream=13)
    return load(trace.path)
