#!/usr/bin/env python3
"""Writes a synthetic PyTorch profiler trace: a small transformer trains, then decodes by a graph.

The same events at every run; see README.md for what is in it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from samples.torch_recorder import AUTOGRAD, MAIN, PID, Event, Recorder

NAME = "torch_small.pt.trace.json.gz"
LAYERS, TOKENS, WIDTH = 4, 2048, 1024
TRAINING, DECODING = (3, 4), (5, 6, 7)
SLOW_LAYER = 2

GEMM = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize2x1x1_execute"
_FLASH = "void pytorch_flash::flash_{}_kernel<pytorch_flash::Flash_{}_kernel_traits<64, 128>>()"
_ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::{}>(int)"
_KERNELS: dict[str, tuple[str, int]] = {
    "aten::mm": (GEMM, 62_000),
    "aten::_flash_attention_forward": (_FLASH.format("fwd", "fwd"), 48_000),
    "aten::_flash_attention_backward": (_FLASH.format("bwd", "bwd"), 121_000),
    "aten::rms_norm": ("void at::native::layer_norm_kernel<float, 4>(int)", 14_000),
    "aten::gelu": (_ELEMENTWISE.format("GeluCUDAKernelImpl"), 17_000),
    "aten::gelu_backward": (_ELEMENTWISE.format("GeluBackwardCUDAKernelImpl"), 21_000),
    "aten::rms_norm_backward": ("void at::native::layer_norm_grad_kernel<float, 4>(int)", 33_000),
    "aten::embedding": ("void at::native::indexSelectLargeIndex<4>(int)", 9_000),
    "aten::nll_loss": ("void at::native::nll_loss_forward_kernel<float>(int)", 6_500),
    "aten::_fused_adamw_": ("void at::native::multi_tensor_apply_kernel<AdamW>(int)", 190_000),
    "aten::argmax": ("void at::native::reduce_kernel<512, 1, ArgMaxOps>(int)", 11_000),
}
_GRAPH = {
    "void vllm::rms_norm_kernel<bf16>(int)": 3_100,
    "gemv2T_kernel_val<int, bf16, 128, 16, 4>": 9_400,
    "void vllm::paged_attention_v2_kernel<bf16, 64>(int)": 12_800,
    "void vllm::silu_and_mul_kernel<bf16>(int)": 2_900,
}
_GRADIENTS = {
    "aten::linear": ("MmBackward0", ("aten::mm", "aten::mm")),
    "aten::scaled_dot_product_attention": (
        "ScaledDotProductFlashAttentionBackward0",
        ("aten::_flash_attention_backward",),
    ),
    "aten::gelu": ("GeluBackward0", ("aten::gelu_backward",)),
    "aten::rms_norm": ("RmsNormBackward0", ("aten::rms_norm_backward",)),
}
_MODULE = "torch/nn/modules/module.py(1751): _wrapped_call_impl"
_IMPL = "torch/nn/modules/module.py(1762): _call_impl"


@dataclass(frozen=True)
class Expected:
    """What the generator knows of its own file, GPU times in ns.

    ``python`` and ``ranges`` are by the functions, and the operators and annotations, that were
    open at the launch, outer to inner, as they are spelled in the file.
    """

    gpu_ns: int
    kernels: Mapping[str, int]
    python: Mapping[tuple[str, ...], int]
    ranges: Mapping[tuple[str, ...], int]
    steps: tuple[int, ...] = (*TRAINING, *DECODING)


def expected() -> Expected:
    """The truth about the file that `write` makes."""
    found = _play()
    return Expected(sum(found.python.values()), found.kernels, found.python, found.ranges)


def write(path: Path) -> None:
    """Writes the sample; an existing file is replaced."""
    path.write_bytes(gzip.compress(text().encode(), 9, mtime=0))


def text() -> str:
    """The trace, as it is before it is packed."""
    top = {
        "schemaVersion": 1,
        "FLAME_SYNTHETIC": "true, made by samples/make_torch_sample.py",
        "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3 (synthetic)"}],
        "cuda_runtime_version": 12_060,
        "with_stack": 1,
        "record_shapes": 1,
        "baseTimeNanoseconds": 1_750_000_000_000_000_000,
    }
    names = [("process_name", MAIN, "python"), ("thread_name", MAIN, "MainThread")]
    names.append(("thread_name", AUTOGRAD, "autograd"))
    meta = [
        {"ph": "M", "name": what, "ts": 0, "pid": PID, "tid": tid, "args": {"name": name}}
        for what, tid, name in names
    ]
    lines = (json.dumps(event, separators=(",", ":")) for event in [*meta, *_play().events])
    events = ",\n".join(lines)
    return f'{json.dumps(top)[:-1]}, "traceEvents": [\n{events}\n]}}\n'


# The program


def _play() -> Recorder:
    recorder = Recorder()
    recorder.main.now = 1_000_000
    with _calls(recorder, "run.py(88): <module>", "run.py(61): main"):
        for number in TRAINING:
            with recorder.annotation(f"ProfilerStep#{number}"):
                _train(recorder)
        with recorder.function("run.py(44): generate"):
            for number in DECODING:
                with recorder.annotation(f"ProfilerStep#{number}"):
                    _decode(recorder)
    return recorder


@contextmanager
def _calls(recorder: Recorder, *names: str) -> Iterator[None]:
    """Functions, each called by the one before."""
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(recorder.function(name))
        yield


@contextmanager
def _module(recorder: Recorder, name: str, forward: str) -> Iterator[None]:
    with _calls(recorder, f"nn.Module: {name}", _MODULE, _IMPL, forward):
        yield


def _train(recorder: Recorder) -> None:
    done: list[tuple[str, Event]] = []
    with recorder.function("run.py(23): train_step"):
        with recorder.annotation("forward"), _module(recorder, "Model_0", "model.py(71): forward"):
            _computed(recorder, "aten::embedding", "torch/nn/functional.py(2437): embedding")
            for number in range(LAYERS):
                with _module(recorder, f"Block_{number}", "model.py(52): forward"):
                    _layer(recorder, number, done)
            _computed(recorder, "aten::nll_loss", "torch/nn/functional.py(3441): cross_entropy")
        backward = ("torch/_tensor.py(570): backward", "torch/autograd/__init__.py(260): backward")
        with (
            recorder.annotation("backward"),
            _calls(recorder, *backward, _built_in("run_backward")),
        ):
            _gradients(recorder, done)
        with _calls(recorder, "torch/optim/adamw.py(220): step"):
            _computed(recorder, "aten::_fused_adamw_", _built_in("_fused_adamw_"))


def _built_in(name: str) -> str:
    return f"<built-in method {name} of type object at 0x7f21c8c0>"


def _computed(recorder: Recorder, operator: str, function: str) -> None:
    """An operator with one kernel, called by ``function``."""
    with recorder.function(function), recorder.operator(operator, Input_Dims=[[TOKENS, WIDTH]]):
        recorder.launch(*_KERNELS[operator])


def _layer(recorder: Recorder, number: int, done: list[tuple[str, Event]]) -> None:
    parts = ("ln_1", "qkv", "attn", "proj", "ln_2", "up", "gelu", "down")
    for part in parts:
        if part.startswith("ln"):
            with _module(recorder, f"RMSNorm_{number}", "model.py(14): forward"):
                _differentiable(recorder, "aten::rms_norm", ("aten::rms_norm",), done)
        elif part == "attn":
            with recorder.function("model.py(33): attention"):
                inner = ("aten::_flash_attention_forward",) * (4 if number == SLOW_LAYER else 1)
                _differentiable(recorder, "aten::scaled_dot_product_attention", inner, done)
        elif part == "gelu":
            with recorder.function("torch/nn/functional.py(1800): gelu"):
                _differentiable(recorder, "aten::gelu", ("aten::gelu",), done)
        else:
            with _module(recorder, f"Linear_{number}", "torch/nn/modules/linear.py(124): forward"):
                _differentiable(recorder, "aten::linear", ("aten::mm",), done)


def _differentiable(
    recorder: Recorder, name: str, inner: tuple[str, ...], done: list[tuple[str, Event]]
) -> None:
    """An operator that the backward pass will come to, made of others with a kernel each."""
    dims, sequence = [[TOKENS, WIDTH], [WIDTH, WIDTH]], 100 + len(done)
    numbers: Event = {"Input_Dims": dims, "Sequence_number": sequence, "Fwd_thread_id": 0}
    with recorder.operator(name, **numbers) as event:
        for one in inner:
            if one == name:
                recorder.launch(*_KERNELS[one])
                continue
            with recorder.operator(one, Input_Dims=dims):
                recorder.launch(*_KERNELS[one])
    done.append((name, event))


def _gradients(recorder: Recorder, done: list[tuple[str, Event]]) -> None:
    """What autograd's own thread does while the main one waits."""
    main, thread = recorder.main, recorder.autograd
    thread.now = main.now + 4_000
    for forward, event in reversed(done):
        node, inner = _GRADIENTS[forward]
        sequence = event["args"]["Sequence number"]
        numbers = {"thread": thread, "Sequence_number": sequence, "Fwd_thread_id": 1}
        with recorder.operator(f"autograd::engine::evaluate_function: {node}", **numbers) as own:
            recorder.flow(event, own)
            with recorder.operator(node, **numbers):
                for one in inner:
                    with recorder.operator(one, thread, Input_Dims=event["args"]["Input Dims"]):
                        recorder.launch(*_KERNELS[one], thread)
    main.now = thread.now + 6_000


def _decode(recorder: Recorder) -> None:
    with recorder.function("run.py(36): decode_step"):
        with _calls(recorder, "torch/cuda/graphs.py(118): replay", _built_in("replay")):
            recorder.replay(_GRAPH, LAYERS)
        _computed(recorder, "aten::argmax", _built_in("argmax"))
        with recorder.function(_built_in("item")), recorder.operator("aten::item"):
            recorder.copy("Memcpy DtoH (Device -> Pageable)", 64, 1_900)
        recorder.main.now += recorder.jitter(180_000)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    here = Path(__file__).resolve().parent
    parser.add_argument("-o", metavar="DIR", type=Path, default=here, help="default: samples/")
    path = parser.parse_args().o / NAME
    write(path)
    print(f"{path}: {path.stat().st_size / 2**10:.1f} KiB", file=sys.stderr)


if __name__ == "__main__":
    main()
