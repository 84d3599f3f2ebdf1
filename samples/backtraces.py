"""The backtraces of kernel launches: native frames, and the Python frames of the model's code."""

from __future__ import annotations

from samples.moe_model import KERNELS

# The mark that nsys puts before Python frames in CUDA_CALLCHAINS, as far as is known.
PYTHON = "[Python] "

Frame = tuple[str, str, bool]

_ROOT = (
    ("GPUModelRunner.execute_model", "vllm/v1/worker/gpu_model_runner.py"),
    ("Worker.execute_model", "vllm/v1/worker/gpu_worker.py"),
    ("WorkerProc.worker_busy_loop", "vllm/v1/executor/multiproc_executor.py"),
)
_MODEL = (
    ("GptOssModel.forward", "vllm/model_executor/models/gpt_oss.py"),
    ("GptOssForCausalLM.forward", "vllm/model_executor/models/gpt_oss.py"),
)
_BLOCK = (("TransformerBlock.forward", "vllm/model_executor/models/gpt_oss.py"),)
_ATTENTION = (("OAIAttention.forward", "vllm/model_executor/models/gpt_oss.py"), *_BLOCK)
_EXPERTS = (
    ("fused_experts_impl", "vllm/model_executor/layers/fused_moe/fused_moe.py"),
    ("FusedMoE.forward", "vllm/model_executor/layers/fused_moe/layer.py"),
    ("MLPBlock.forward", "vllm/model_executor/models/gpt_oss.py"),
    *_BLOCK,
)
_LINEAR = ("vllm/model_executor/layers/linear.py", "cublasLtMatmul", "libcublasLt.so.12")
_VLLM = "_C.abi3.so"
_TORCH = "libtorch_cuda.so"
_TRITON = ("vllm/model_executor/layers/fused_moe/fused_moe.py", "launch", "cuda_utils.so")

# Per kernel: Python callers (innermost first), then the native function that launches, its module.
_CALLERS = {
    "embedding": ((), "at::native::index_select_out_cuda", _TORCH),
    "norm": (_BLOCK, "fused_add_rms_norm", _VLLM),
    "qkv": ((("QKVParallelLinear.forward", _LINEAR[0]), *_ATTENTION), *_LINEAR[1:]),
    "rope": (_ATTENTION, "rotary_embedding", _VLLM),
    "kv_cache": (_ATTENTION, "reshape_and_cache_flash", _VLLM),
    "flash": (_ATTENTION, "mha_fwd", "_vllm_fa3_C.abi3.so"),
    "flash_combine": (_ATTENTION, "mha_fwd", "_vllm_fa3_C.abi3.so"),
    "o_proj": ((("RowParallelLinear.forward", _LINEAR[0]), *_ATTENTION), *_LINEAR[1:]),
    "all_reduce": (
        (("tensor_model_parallel_all_reduce", "vllm/distributed/communication_op.py"), *_BLOCK),
        "ncclAllReduce",
        "libnccl.so.2",
    ),
    "router": ((("ReplicatedLinear.forward", _LINEAR[0]), *_EXPERTS[2:]), *_LINEAR[1:]),
    "topk": (_EXPERTS[1:], "topk_softmax", _VLLM),
    "align": (_EXPERTS, "moe_align_block_size", _VLLM),
    "sort": (_EXPERTS, "moe_align_block_size", _VLLM),
    "experts_up": (_EXPERTS, *_TRITON[1:]),
    "swiglu": (_EXPERTS, "swigluoai_and_mul", _VLLM),
    "experts_down": (_EXPERTS, *_TRITON[1:]),
    "moe_sum": (_EXPERTS, "moe_sum", _VLLM),
    "add": ((), "at::native::add_kernel", _TORCH),
}


def backtrace(key: str) -> list[Frame]:
    """(symbol, module, unresolved) of the frames that launch the kernel, leaf first."""
    callers, symbol, module = _CALLERS[key]
    api = KERNELS[key].api.partition("_v")[0]
    library = "libcuda.so.1" if api.startswith("cu") and api[2].isupper() else "libcudart.so.12"
    python = [(PYTHON + name, file, False) for name, file in (*callers, *_MODEL, *_ROOT)]
    return [
        (f"0x7f5c{sum(api.encode()):04x}9e80", "libcuda.so.1", True),
        (api, library, False),
        (symbol, module, False),
        ("_PyEval_EvalFrameDefault", "python3.12", False),
        *python,
        ("_start", "python3.12", False),
    ]
