"""Which collective a kernel is, from names that libraries give, and from what Kineto says."""

from __future__ import annotations

import pytest

from flame.core.names.collectives import Collective, collective_of, is_collective


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "all-reduce"),
        ("ncclKernel_AllReduce_RING_LL_Sum_float", "all-reduce"),
        ("ncclDevKernel_AllGather_RING_LL", "all-gather"),
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", "reduce-scatter"),
        ("ncclDevKernel_SendRecv", "send/receive"),
        ("ncclKernel_Broadcast_RING_LL_Sum_int8_t", "broadcast"),
        ("ncclDevKernel_Reduce_Sum_f32_RING_LL", "reduce"),
        ("multimem_all_reduce_kernel", "all-reduce"),
        ("void vllm::cross_device_reduce_1stage<half, 2>", "all-reduce"),
        ("deep_ep::intranode::dispatch", "all-to-all"),
        ("nvshmemi_transfer_rma", "other"),
    ],
)
def test_names_tell(kernel: str, name: str) -> None:
    assert collective_of(kernel) == Collective(name)


@pytest.mark.parametrize(
    ("detail", "expected"),
    [
        ("allreduce, 4096 float, 8 ranks", Collective("all-reduce", 8, 16_384)),
        ("_allgather_base, 1000 c10::BFloat16, 4 ranks", Collective("all-gather", 4, 8_000)),
        ("_allgather_base, 1000 BFloat16, 4 ranks", Collective("all-gather", 4, 8_000)),
        ("_reduce_scatter_base, 1000 Half, 4 ranks", Collective("reduce-scatter", 4, 2_000)),
        ("all_to_allv, 10 elements", Collective("all-to-all", None, None)),
        ("allreduce", Collective("all-reduce")),
        ("something, 8 ranks", Collective("all-gather", 8)),
    ],
)
def test_what_the_trace_says_counts_more(detail: str, expected: Collective) -> None:
    assert collective_of("ncclDevKernel_AllGather_RING_LL", detail) == expected


def test_bytes_cross_the_bus_as_often_as_the_algorithm_needs() -> None:
    assert Collective("all-reduce", 8).bus_factor == pytest.approx(1.75)
    assert Collective("all-gather", 4).bus_factor == pytest.approx(0.75)
    assert Collective("reduce-scatter", 2).bus_factor == pytest.approx(0.5)
    assert Collective("send/receive", 2).bus_factor is None
    assert Collective("all-reduce", 1).bus_factor is None
    assert Collective("all-reduce").bus_factor is None


def test_the_details_of_other_ranges_are_no_collectives() -> None:
    assert is_collective("allreduce, 4096 float, 8 ranks")
    assert not any(map(is_collective, ("", "triton, 4 warps", "phase=context, 2 ctx reqs, 3")))
