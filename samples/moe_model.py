"""A mixture-of-experts transformer as one GPU of two runs it: its modules and their kernels."""

from __future__ import annotations

from dataclasses import dataclass

LAYERS = 24
MODEL = "GptOssForCausalLM"
RUNTIME_LAUNCH = "cudaLaunchKernel_v7000"
CLUSTER_LAUNCH = "cudaLaunchKernelExC_v11060"
DRIVER_LAUNCH = "cuLaunchKernelEx"

_ELEMENTWISE = (
    "void at::native::vectorized_elementwise_kernel<(int)4, {0}, std::array<char *,"
    " (unsigned long){1}>>(int, T2, T3)"
)
_ELEMENTWISE_MANGLED = (
    "_ZN2at6native29vectorized_elementwise_kernelILi4E{0}St5arrayIPcLm{1}EEEEviT0_T1_"
)
_ADD = _ELEMENTWISE.format("at::native::CUDAFunctor_add<float>", 3)
_ADD_MANGLED = _ELEMENTWISE_MANGLED.format("NS0_15CUDAFunctor_addIfEE", 3)


@dataclass(frozen=True)
class Kernel:
    """One kernel: names as nsys stores them, launch shape, and mean durations in ns."""

    short: str
    decode_ns: int
    prefill_ns: int
    demangled: str = ""
    mangled: str = ""
    api: str = RUNTIME_LAUNCH
    grid: tuple[int, int, int] = (16, 1, 1)
    block: tuple[int, int, int] = (256, 1, 1)
    registers: int = 40
    shared_bytes: int = 0

    @property
    def is_collective(self) -> bool:
        """Whether NCCL launches it, on its own stream."""
        return self.short.startswith("nccl")


def _gemm(name: str, decode_ns: int, prefill_ns: int, columns: int) -> Kernel:
    return Kernel(
        name,
        decode_ns,
        prefill_ns,
        api=DRIVER_LAUNCH,
        grid=(columns, 2, 1),
        block=(384, 1, 1),
        registers=168,
        shared_bytes=180_224,
    )


def _flash(part: str, mangled_part: str, decode_ns: int, prefill_ns: int) -> Kernel:
    return Kernel(
        "device_kernel",
        decode_ns,
        prefill_ns,
        f"void cutlass::device_kernel<flash::enable_sm90<flash::{part}>>(T1::Params)",
        f"_ZN7cutlass13device_kernelIN5flash11enable_sm90INS1_{mangled_part}EEEEEvNT_6ParamsE",
        CLUSTER_LAUNCH,
        grid=(132, 1, 1),
        block=(384, 1, 1),
        registers=168,
        shared_bytes=214_016,
    )


KERNELS = {
    "embedding": Kernel(
        "vectorized_gather_kernel",
        2_900,
        21_000,
        "void at::native::vectorized_gather_kernel<(int)16, long>(char *, char *, T2 *, int, long,"
        " long, long, long, bool)",
        "_ZN2at6native24vectorized_gather_kernelILi16ElEEvPcS2_PT0_illllb",
    ),
    "norm": Kernel(
        "fused_add_rms_norm_kernel",
        4_200,
        18_000,
        "void vllm::fused_add_rms_norm_kernel<c10::BFloat16, (int)8>(T1 *, long, T1 *, const T1 *,"
        " float, int, int)",
        "_ZN4vllm25fused_add_rms_norm_kernelIN3c108BFloat16ELi8EEEvPT_lS4_PKS3_fii",
        block=(360, 1, 1),
    ),
    "qkv": _gemm("nvjet_tst_64x8_64x16_2x1_v_bz_bias_TNT", 17_000, 150_000, 40),
    "rope": Kernel(
        "rotary_embedding_kernel",
        3_000,
        20_000,
        "void vllm::rotary_embedding_kernel<c10::BFloat16, (bool)1>(const long *, T1 *, T1 *,"
        " const T1 *, int, long, long, int, int, int)",
        "_ZN4vllm23rotary_embedding_kernelIN3c108BFloat16ELb1EEEvPKlPT_S6_PKS5_illiii",
    ),
    "kv_cache": Kernel(
        "reshape_and_cache_flash_kernel",
        2_600,
        12_000,
        "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16>(const T1 *,"
        " const T1 *, T2 *, T2 *, const long *, long, long, int, int, int)",
        "_ZN4vllm30reshape_and_cache_flash_kernelI13__nv_bfloat16S1_EEvPKT_S4_PT0_S6_PKllliii",
    ),
    "flash": _flash(
        "FlashAttnFwdSm90<(int)64, (bool)1>",
        "16FlashAttnFwdSm90ILi64ELb1EE",
        46_000,
        210_000,
    ),
    "flash_combine": _flash(
        "FlashAttnFwdCombine<(int)64, (int)32>",
        "19FlashAttnFwdCombineILi64ELi32EE",
        4_000,
        15_000,
    ),
    "o_proj": _gemm("nvjet_tst_64x8_64x16_4x1_v_bz_splitK_TNT", 15_000, 110_000, 45),
    "all_reduce": Kernel(
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
        21_000,
        190_000,
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)",
        "_Z40ncclDevKernel_AllReduce_Sum_bf16_RING_LL24ncclDevKernelArgsStorageILm4096EE",
        DRIVER_LAUNCH,
        grid=(24, 1, 1),
        block=(544, 1, 1),
        registers=96,
    ),
    "router": Kernel(
        "Kernel2",
        5_400,
        14_000,
        "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_64x64_64x4_tn_align8>"
        "(T1::Params)",
        "_ZN7cutlass7Kernel2I61cutlass_80_tensorop_bf16_s16816gemm_bf16_64x64_64x4_tn_align8"
        "EEvNT_6ParamsE",
        grid=(2, 1, 1),
        block=(32, 1, 1),
        shared_bytes=18_432,
    ),
    "topk": Kernel(
        "topkGatingSoftmax",
        3_100,
        9_000,
        "void vllm::moe::topkGatingSoftmax<(int)4, (int)32, (int)4, (int)16, int>(const float *,"
        " const bool *, float *, int, T5 *, int *, int, int, int)",
        "_ZN4vllm3moe17topkGatingSoftmaxILi4ELi32ELi4ELi16EiEEvPKfPKbPfiPT3_Piiii",
        block=(32, 4, 1),
    ),
    "align": Kernel(
        "moe_align_block_size_kernel",
        4_400,
        6_000,
        "void vllm::moe::moe_align_block_size_kernel<int>(const T1 *, int *, int *, int *, int,"
        " int, int, int, unsigned long, int *)",
        "_ZN4vllm3moe27moe_align_block_size_kernelIiEEvPKT_PiS5_S5_iiiimS5_",
        grid=(2, 1, 1),
        block=(1024, 1, 1),
    ),
    "sort": Kernel(
        "count_and_sort_expert_tokens_kernel",
        3_200,
        7_000,
        "void vllm::moe::count_and_sort_expert_tokens_kernel<int>(const T1 *, int *, int *,"
        " unsigned long)",
        "_ZN4vllm3moe35count_and_sort_expert_tokens_kernelIiEEvPKT_PiS5_m",
    ),
    "experts_up": Kernel(
        "fused_moe_kernel",
        74_000,
        420_000,
        api=DRIVER_LAUNCH,
        grid=(1440, 1, 1),
        block=(128, 1, 1),
        registers=128,
        shared_bytes=65_536,
    ),
    "swiglu": Kernel(
        "swigluoai_and_mul_kernel",
        4_900,
        45_000,
        "void vllm::swigluoai_and_mul_kernel<c10::BFloat16>(T1 *, const T1 *, int, float, float)",
        "_ZN4vllm24swigluoai_and_mul_kernelIN3c108BFloat16EEEvPT_PKS3_iff",
        grid=(64, 1, 1),
        block=(1024, 1, 1),
    ),
    "experts_down": Kernel(
        "fused_moe_kernel",
        46_000,
        260_000,
        api=DRIVER_LAUNCH,
        grid=(720, 1, 1),
        block=(128, 1, 1),
        registers=128,
        shared_bytes=49_152,
    ),
    "moe_sum": Kernel(
        "moe_sum_kernel",
        4_600,
        30_000,
        "void vllm::moe::moe_sum_kernel<c10::BFloat16, (int)4>(T1 *, const T1 *, int)",
        "_ZN4vllm3moe14moe_sum_kernelIN3c108BFloat16ELi4EEEvPT_PKS4_i",
    ),
    "add": Kernel("vectorized_elementwise_kernel", 1_600, 9_000, _ADD, _ADD_MANGLED),
    "lm_head": _gemm("nvjet_tst_128x16_64x8_2x1_v_bz_TNT", 168_000, 172_000, 786),
    "prepare": Kernel("_prepare_inputs_kernel", 2_300, 3_900, api=DRIVER_LAUNCH, block=(128, 1, 1)),
    "div": Kernel(
        "vectorized_elementwise_kernel",
        9_800,
        9_800,
        _ELEMENTWISE.format(
            "at::native::BinaryFunctor<float, float, float,"
            " at::native::binary_internal::DivFunctor<float>>",
            3,
        ),
        _ELEMENTWISE_MANGLED.format(
            "NS0_13BinaryFunctorIfffNS0_15binary_internal10DivFunctorIfEEEE", 3
        ),
    ),
    "softmax": Kernel(
        "cunn_SoftMaxForward",
        21_500,
        21_500,
        "void at::native::<unnamed>::cunn_SoftMaxForward<(int)4, float, float, float,"
        " at::native::<unnamed>::SoftMaxForwardEpilogue>(T4 *, const T2 *, int)",
        "_ZN2at6native43_GLOBAL__N__b6de9c8c_10_SoftMax_cu_9f978f6319cunn_SoftMaxForwardILi4Efff"
        "NS1_22SoftMaxForwardEpilogueEEEvPT2_PKT0_i",
        block=(1024, 1, 1),
        shared_bytes=32_768,
    ),
    "argmax": Kernel(
        "reduce_kernel",
        26_400,
        26_400,
        "void at::native::reduce_kernel<(int)512, (int)1, at::native::ReduceOp<float,"
        " at::native::ArgMaxOps<float>, unsigned int, long, (int)4, (int)4>>(T3)",
        "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIfNS0_9ArgMaxOpsIfEEjlLi4ELi4EEEEEv"
        "T1_",
        block=(512, 1, 1),
    ),
}


@dataclass(frozen=True)
class Module:
    """One module; `body` holds, in order of execution, sub-modules and keys of `KERNELS`.

    The key "memset" stands for clearing the experts' token counters.
    """

    name: str
    inputs: str
    body: tuple[Module | str, ...]
    weights: str = "{}"

    def range_text(self, tokens: int) -> str:
        """The text of the layer-wise NVTX range: a printed Python dictionary."""
        inputs = self.inputs.replace("T", str(tokens))
        return f"{{'Module': '{self.name}', 'TrainableParams': {self.weights}, 'Inputs': {inputs}}}"


def layer(index: int) -> Module:
    """Decoder layer `index`: attention, then 32 experts of which 4 are active."""
    path = f"{MODEL}.model.layers.{index}"
    hidden = "[[T, 2880]]"
    attention = Module(
        f"{path}.attn",
        "[[T], [T, 2880]]",
        (
            Module(f"{path}.attn.qkv_proj", hidden, ("qkv",), "{'weight': [2560, 2880]}"),
            Module(f"{path}.attn.rotary_emb", "[[T], [T, 2048], [T, 256]]", ("rope",)),
            Module(
                f"{path}.attn.attn",
                "[[T, 2048], [T, 256], [T, 256]]",
                ("kv_cache", "flash", "flash_combine"),
            ),
            Module(
                f"{path}.attn.o_proj",
                "[[T, 2048]]",
                ("o_proj", "all_reduce"),
                "{'weight': [2880, 2048]}",
            ),
        ),
    )
    experts = Module(
        f"{path}.mlp.experts",
        "[[T, 2880], [T, 32]]",
        (
            *("topk", "memset", "align", "sort"),
            *("experts_up", "swiglu", "experts_down", "moe_sum", "all_reduce"),
        ),
        "{'w13_weight': [32, 2880, 2880], 'w2_weight': [32, 2880, 1440]}",
    )
    router = Module(f"{path}.mlp.router", hidden, ("router",), "{'weight': [32, 2880]}")
    return Module(
        path,
        "[[T], [T, 2880], [T, 2880]]",
        (
            Module(f"{path}.input_layernorm", hidden, ("norm",), "{'weight': [2880]}"),
            attention,
            Module(f"{path}.post_attention_layernorm", hidden, ("norm",), "{'weight': [2880]}"),
            Module(f"{path}.mlp", hidden, (router, experts)),
        ),
    )


def model() -> Module:
    """The whole model up to the final norm; the logits are computed outside."""
    return Module(
        MODEL,
        "[[T], [T]]",
        (
            Module(
                f"{MODEL}.model.embedding", "[[T]]", ("embedding",), "{'weight': [100544, 2880]}"
            ),
            *map(layer, range(LAYERS)),
            Module(f"{MODEL}.model.norm", "[[T, 2880]]", ("norm",), "{'weight': [2880]}"),
            "add",
        ),
    )
