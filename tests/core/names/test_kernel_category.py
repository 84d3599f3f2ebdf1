"""Kernels of many libraries are sorted by what they compute."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.names.cuda import kernel_base
from flame.core.names.kernel_category import (
    ATTENTION,
    CATEGORIES,
    COMMUNICATION,
    COPY,
    ELEMENTWISE,
    INDEXING,
    MATRIX,
    NORMALISATION,
    OTHER,
    RULES,
    category_of,
)

NATIVE = "void at::native::"


@pytest.mark.parametrize(
    ("name", "category"),
    [
        # What real traces have is in kernels_of_traces.tsv.
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgs)", COMMUNICATION),
        ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(RankData*)", COMMUNICATION),
        ("void deep_ep::internode_ll::dispatch<true, 3, 7168>(void*)", COMMUNICATION),
        ("void mscclpp::allgather0<4>(DeviceHandle*)", COMMUNICATION),
        ("nvshmemi_proxy_quiet", COMMUNICATION),
        ("triton_per_fused_native_layer_norm_3", NORMALISATION),
        ("triton_red_fused_add_mean_0", NORMALISATION),
        ("triton_tem_fused_mm_5", MATRIX),
        ("void flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Traits>(Params)", ATTENTION),
        ("fmha_cutlassF_bf16_aligned_64x128_rf_sm80(AttentionKernel::Params)", ATTENTION),
        ("void flashinfer::BatchDecodeWithPagedKVCacheKernel<Variant>(Params)", ATTENTION),
        ("_attn_fwd", ATTENTION),
        ("void vllm::merge_attn_states_kernel<float, 128>(float*)", ATTENTION),
        ("void kgemm_4bit_inference_naive<__half, 128, 16>(int)", MATRIX),
        ("void marlin::Marlin<256, 1, 8, 8, 4, false>(int4*)", MATRIX),
        ("sm90_xmma_fprop_implicit_gemm_bf16bf16_tilesize128x128x64_g1_kernel_cudnn", MATRIX),
        ("void cudnn::ops::nchwToNhwcKernel<float, float>(float*)", COPY),
        ("void transformer_engine::transpose_kernel<4, 4>(float*)", COPY),
        (f"{NATIVE}vectorized_elementwise_kernel<4, at::native::FillFunctor<int>>(int)", COPY),
        (f"{NATIVE}embedding_backward_feature_kernel<float, float, long>(long*)", INDEXING),
        (f"{NATIVE}sbtopk::gatherTopK<float, unsigned int, 1, false>(float*)", INDEXING),
        ("void cub::DeviceSelectSweepKernel<cub::PtxSelectPolicy>(int*)", INDEXING),
        ("void cuApplyLayerNorm<float, float, c10::Half>(c10::Half*)", NORMALISATION),
        ("void cuComputeGradInput<float, float, c10::Half>(c10::Half*)", NORMALISATION),
        (
            "void scaled_upper_triang_masked_softmax_warp_forward<half, half, float, 9>()",
            NORMALISATION,
        ),
        (f"{NATIVE}batch_norm_collect_statistics_kernel<float>(float*)", NORMALISATION),
        ("void fused_softmax_backward<float, 8>(float*)", NORMALISATION),
        ("void kOptimizer32bit2State<__half, 0>(__half*)", ELEMENTWISE),
        ("void kDequantizeBlockwise<__half, 512, 64, 8, 2>(float*)", ELEMENTWISE),
        ("void vllm::act_and_mul_kernel<c10::BFloat16>(c10::BFloat16*)", ELEMENTWISE),
        ("void apply_rotary_pos_emb<half, 64>(half*)", ELEMENTWISE),
        (f"{NATIVE}fused_dropout_kernel_vec<float, float, unsigned int, 1, 4>()", ELEMENTWISE),
        ("void vllm::moe::topkGating<4, 32, 4, 16>(float const*)", OTHER),
        ("mykernel", OTHER),
        ("void simulate<float>(float*)", OTHER),
    ],
)
def test_category(name: str, category: str) -> None:
    assert category_of(kernel_base(name), name) == category


@pytest.mark.parametrize(
    "name", ["address", "summary", "reindexed", "paddle", "normal_map", "test"]
)
def test_parts_of_other_words_mean_nothing(name: str) -> None:
    assert category_of(name, "") == OTHER


def test_the_rules_are_of_known_categories_and_leave_nothing_out() -> None:
    assert {category for category, _ in RULES} == set(CATEGORIES)
    assert all(pattern == pattern.lower() for pattern in (re.sub(r"\\.", "", p) for _, p in RULES))


@given(st.text(max_size=80), st.text(max_size=80))
def test_every_name_has_a_category(base: str, full: str) -> None:
    assert category_of(base, full) in CATEGORIES


@pytest.mark.parametrize("unit", ["compute a ", "nvfuser a", "A", "a_", "compute_offsets_"])
def test_huge_names_are_read_in_part(unit: str) -> None:
    assert category_of(unit * (1 << 18), "") in CATEGORIES
