"""Classes of API calls, by name."""

from __future__ import annotations

import pytest

from flame.core.model.calls import CallClass, call_class
from flame.core.model.frames import Kind

SYNC, LAUNCH, COPY, ALLOC, OTHER = (
    CallClass.SYNC,
    CallClass.LAUNCH,
    CallClass.COPY,
    CallClass.ALLOC,
    CallClass.OTHER,
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cudaDeviceSynchronize", SYNC),
        ("cudaStreamSynchronize_ptsz", SYNC),
        ("cudaThreadSynchronize", SYNC),
        ("cudaEventSynchronize", SYNC),
        ("cuCtxSynchronize", SYNC),
        ("cuCtxSynchronize_v2", SYNC),
        ("hipEventSynchronize", SYNC),
        ("cudaStreamWaitEvent", OTHER),
        ("cudaEventQuery", OTHER),
        ("cudaGraphicsSynchronize", OTHER),
        ("myStreamSynchronize", OTHER),
        ("cudaLaunchKernel", LAUNCH),
        ("cudaLaunchKernelExC_ptsz", LAUNCH),
        ("cuLaunchKernelEx", LAUNCH),
        ("cudaGraphLaunch", LAUNCH),
        ("hipExtModuleLaunchKernel", LAUNCH),
        ("cudaMemcpyAsync", COPY),
        ("cuMemcpyDtoHAsync_v2", COPY),
        ("cuMemsetD32Async", COPY),
        ("cudaMemset", COPY),
        ("cudaMemPrefetchAsync", COPY),
        ("cudaMalloc", ALLOC),
        ("cudaMallocAsync", ALLOC),
        ("cudaFree", ALLOC),
        ("cudaFreeHost", ALLOC),
        ("cudaHostAlloc", ALLOC),
        ("cudaHostRegister", ALLOC),
        ("cuMemAlloc_v2", ALLOC),
        ("cuMemFreeHost", ALLOC),
        ("cuMemCreate", ALLOC),
        ("cuMemMap", ALLOC),
        ("cuMemRelease", ALLOC),
        ("cuMemAddressFree", ALLOC),
        ("cuGraphAddMemFreeNode", OTHER),
        ("cuBinaryFree", OTHER),
        ("cudaMemGetInfo", OTHER),
        ("cuModuleLoadData", OTHER),
        ("cuGetProcAddress", OTHER),
        ("INVALID", OTHER),
        ("", OTHER),
        ("cudaMemcpy\n\x1b[31m", OTHER),
    ],
)
def test_calls_are_classed_by_what_they_do(name: str, expected: CallClass) -> None:
    assert call_class(name) is expected


def test_a_column_can_hold_kinds_and_classes() -> None:
    assert not set(map(int, Kind)) & set(map(int, CallClass))
    assert max(CallClass) < 100  # what the rows of a timeline add to it
