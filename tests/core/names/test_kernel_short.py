"""Short names tell what ran, tell it from the other kernels, and stay short."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.names.cuda import kernel_base
from flame.core.names.kernel_short import Kernel, short_names
from flame.core.names.kernel_terms import terms_of

NATIVE = "void at::native::"
ADD = "at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>"


def kernel(full: str) -> Kernel:
    return kernel_base(full), full


def short(*full: str) -> list[str]:
    """The short names of all the kernels of a trace."""
    named = short_names(map(kernel, full))
    return [named[kernel(one)] for one in full]


@pytest.mark.parametrize(
    ("full", "name"),
    [
        (
            f"{NATIVE}vectorized_elementwise_kernel<4, {ADD} >(int)",
            "vectorized_elementwise<CUDAFunctor_add>",
        ),
        (
            f"{NATIVE}reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, "
            "float, float, float>, unsigned int, float, 4> >(at::native::ReduceOp<float>)",
            "reduce<MeanOps>",
        ),
        (
            f"{NATIVE}elementwise_kernel<(int)128, (int)2, void at::native::gpu_kernel_impl_nocast<"
            "at::native::<unnamed>::masked_fill_kernel(at::TensorIterator &, const c10::Scalar &)::"
            "[lambda() (instance 1)]::operator ()() const::[lambda(float, bool) (instance 1)]>("
            "at::TensorIteratorBase &, const T1 &)::[lambda(int) (instance 1)]>(int, T3)",
            "elementwise<masked_fill>",
        ),
        (
            "void cutlass::Kernel2<cutlass_75_tensorop_bf16_s16816gemm_bf16_128x64_ldg8_align1>()",
            "cutlass_75_tensorop_bf16_s16816gemm_bf16_128x64_ldg8_align1",
        ),
        (
            "void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<64>>>(T1)",
            "FlashAttnFwdSm90",
        ),
        (
            "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, "
            "int>, cutlass::gemm::collective::CollectiveMma<cutlass::gemm::MainloopSm90, "
            "cute::tuple<cute::C<128>, cute::C<64>>, cutlass::bfloat16_t>>>(Params)",
            "GemmUniversal<CollectiveMma>",
        ),
        (
            "void cub::DeviceReduceKernel<cub::DeviceReducePolicy<float, int, cub::Sum>::Policy600,"
            " float *, int, cub::Sum, float>(T2, T5 *, T3)",
            "DeviceReduce<Sum>",
        ),
        (
            "void thrust::cuda_cub::core::_kernel_agent<thrust::cuda_cub::__parallel_for::"
            "ParallelForAgent<thrust::cuda_cub::__transform::binary_transform_f<thrust::"
            "counting_iterator<unsigned long>, thrust::divides<unsigned long>>, long long>>(T1)",
            "ParallelForAgent<divides>",
        ),
        (
            f"{NATIVE}<unnamed>::multi_tensor_apply_kernel<at::native::<unnamed>::TensorListMetadata"
            "<(int)2>, at::native::<unnamed>::UnaryOpFunctor<float>, at::native::Sqrt<float>>(T1)",
            "multi_tensor_apply<Sqrt>",
        ),
        (
            "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
            "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
        ),
        ("void vllm::rms_norm_kernel<c10::BFloat16, 8, 2>(c10::BFloat16*)", "rms_norm_kernel"),
        ("nvjet_tst_64x8_64x16_2x1_v_bz_bias_TNT", "nvjet_tst_64x8_64x16_2x1_v_bz_bias_TNT"),
        ("triton_red_fused__to_copy_mean_1", "triton_red_fused__to_copy_mean_1"),
        (
            "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x256x8_stage3_warpsize1x4x1_ffma_kernel",
            "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x256x8",
        ),
        (
            "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT16x16x256_MI16x16x1_SN_LDSB1",
            "Cijk_Alik_Bljk_BBS_MT16x16x256",
        ),
        (
            "void kQuantizeBlockwise<__half, 4096, 4, 0, 0>(float*, __half*, unsigned char*)",
            "kQuantizeBlockwise",
        ),
        (
            "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>, float>(int)",
            "multi_tensor_apply<Adam>",
        ),
        ("kernel", "kernel"),
        ("void kernel<float>(float*)", "kernel"),
        ("void my::kernel<my::Relax>(float*)", "Relax"),
    ],
)
def test_a_kernel_alone_is_called_by_what_tells(full: str, name: str) -> None:
    assert short(full) == [name]


def test_kernels_of_one_name_are_told_apart_by_the_most_telling_argument() -> None:
    mul = "at::native::{}<float, float, float, at::native::MulFunctor<{}>>, std::array<char*, 3ul>"
    full = [
        f"{NATIVE}vectorized_elementwise_kernel<4, {mul.format(*names)} >(int)"
        for names in (("BinaryFunctor", "float"), ("BUnaryFunctor", "float"))
    ]
    assert short(*full) == [
        "vectorized_elementwise<Mul, Binary>",
        "vectorized_elementwise<Mul, BUnary>",
    ]


def test_types_and_then_numbers_are_told_where_nothing_else_differs() -> None:
    full = [f"void scan<{one}, {number}>(int)" for one, number in (("float", 2), ("c10::Half", 2))]
    assert short(*full) == ["scan<float>", "scan<half>"]
    assert short("void scan<float, 2>(int)", "void scan<float, 4>(int)") == ["scan<2>", "scan<4>"]
    assert short("void scan<(bool)0>(T1)", "void scan<(bool)1>(T1)") == [
        "scan<false>",
        "scan<true>",
    ]


def test_heads_and_flags_of_flash_attention_are_told_where_they_differ() -> None:
    full = (
        "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<{}, 128, 64, 4, false, false, "
        "cutlass::bfloat16_t>, false, {}, false>(Flash_fwd_params)"
    )
    named = short(full.format(64, "true"), full.format(128, "true"), full.format(64, "false"))
    assert named == ["flash_fwd<64, true>", "flash_fwd<128>", "flash_fwd<64, false>"]


def test_overloads_are_told_apart_by_their_parameters() -> None:
    assert short("scale(float*, int)", "scale(double*, int)") == ["scale<float>", "scale<double>"]
    assert short("a::scale(int)", "b::scale(int)") == ["scale<a>", "scale<b>"]


def test_classes_of_functions_are_told_apart() -> None:
    assert short("void A<float>::run(int)", "void A<int>::run(int)") == [
        "run<A, float>",
        "run<A, int>",
    ]


def test_a_name_without_arguments_is_no_other_name() -> None:
    assert short("scan(int)", "void scan<Max>(int)") == ["scan<>", "scan<Max>"]


def test_the_same_kernel_of_two_profilers_has_one_name() -> None:
    nsight = (
        f"{NATIVE}unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda("
        "at::TensorIteratorBase &)::[lambda() (instance 3)]::operator ()() const::[lambda(float) "
        "(instance 1)], std::array<char *, (unsigned long)2>, (int)4>(int, T1, T2)"
    )
    kineto = (
        f"{NATIVE}unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda("
        "at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda(float)#1}, "
        "std::array<char*, 2ul>, 4>(int, std::array<char*, 2ul>)"
    )
    assert short(nsight, kineto) == ["unrolled_elementwise<direct_copy>"] * 2


def test_long_names_keep_what_tells_them_apart() -> None:
    full = [f"triton_poi_fused_{'add_mul_' * 8}{word}{'_sub_div' * 8}" for word in ("sin", "cos")]
    first, second = short(*full)
    assert first.endswith("<sin>") and second.endswith("<cos>")
    assert len(first) <= 60 and "…" in first


def test_what_is_alike_once_cut_is_told_apart_by_another_part() -> None:
    full = [
        f"fused_{'op_' * 14}{tile}{'_op' * 6}_{word}_block_kernel_16"
        for tile in ("t64", "t128")
        for word in ("sin", "fin")
    ]
    named = short(*full)
    assert [one.partition("<")[2] for one in named] == [
        "t64, sin>",
        "t64, fin>",
        "t128, sin>",
        "t128, fin>",
    ]


def test_parts_of_camel_case_tell_apart() -> None:
    name = "fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKv{}P16VarSeqQ128Kv128PersistentContext"
    named = short(name.format("Causal"), name.format("Sliding"))
    assert [one.partition("<")[2] for one in named] == ["Causal>", "Sliding>"]


def test_a_symbol_that_no_demangler_knows_is_read_as_far_as_it_goes() -> None:
    name = (
        "_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_27Rmsnorm2dFwdPipelineOnePassIDF16bDF16bE"
        "ELNS_21Rmsnorm2dFusedAddEnumE{}ELb1EEEvT_"
    )
    named = short_names([(name.format(0), ""), (name.format(1), "")])
    assert list(named.values()) == ["Rmsnorm2dFwd<0>", "Rmsnorm2dFwd<1>"]


# Whatever there is

words = st.sampled_from(
    ["scan", "reduce_kernel", "Kernel", "Max", "float", "int", "4", "true", "ns::X"]
)
arguments = st.recursive(
    words,
    lambda inner: st.builds(
        lambda word, parts: f"{word}<{', '.join(parts)}>", words, st.lists(inner, max_size=3)
    ),
    max_leaves=8,
)
signatures = st.builds("void ns::{}<{}>({})".format, words, arguments, words)
hostile = st.text(st.sampled_from("ab<>(),:[]{}#_ 19…\0\udc80LNEZi"), max_size=60)
names = st.one_of(signatures, hostile, hostile.map("_Z{}".format))


@given(st.sets(names, min_size=1, max_size=8))
def test_what_differs_in_any_term_has_a_name_of_its_own(full: set[str]) -> None:
    kernels = list(map(kernel, full))
    named = short_names(kernels)
    for one in kernels:
        for other in kernels:
            same = terms_of(*one) == terms_of(*other)
            assert same == (named[one] == named[other])


@given(st.sets(names, min_size=1, max_size=4))
def test_names_do_not_depend_on_the_order(full: set[str]) -> None:
    found = [short_names(map(kernel, order)) for order in permutations(full)]
    assert all(one == found[0] for one in found)


@given(st.sets(st.one_of(names, st.builds(str.__mul__, names, st.integers(1, 400))), max_size=4))
def test_names_are_bounded(full: set[str]) -> None:
    assert all(
        len(name) <= 60 + len("~12345678") for name in short_names(map(kernel, full)).values()
    )


@pytest.mark.parametrize(
    "unit", ["<", "a<", "(", "a::", "x,", "9", "_", "(int)", "L1E", "tilesize1"]
)
def test_huge_names_are_read_in_part(unit: str) -> None:
    full = "void f<" + unit * (1 << 20)
    assert len(short_names([("f", full), ("f", full + ">(int)")])["f", full]) <= 70
    assert short_names([(full, ""), ("_Z" + full, "")])
