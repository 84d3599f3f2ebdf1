"""Names of ranges, kernels and frames, which traces spell as they like."""

from __future__ import annotations

from flame.core.names.cuda import api_name, demangle, kernel_base, split_instruction, strip_offset
from flame.core.names.nvtx import clean_range, payload_text
from flame.core.names.rename import fold_indices, fold_module
from flame.core.readers.shared.frame_text import is_instruction, parse_frame
from tests.fuzz.checks import FoundError
from tests.fuzz.mutations import mutate_lines
from tests.fuzz.target import Target

_NAMES = (
    "_ZN3llm4gemmILi16EEEvPKfS2_Pfi",
    "void at::native::vectorized_elementwise_kernel<4, at::native::add<float> >(int, float*)",
    "aten::linear, seq = 12, op_id = 3, sizes = [[1, 2], [], [3]]",
    "{'Module': 'TorchModule:model.layers.3', 'TrainableParams': {'w': [1, 2]}}",
    "## forward, seq = 1, thread = 2 ##",
    "ProfilerStep#17",
    "execute_128_context_2(256)_generation_16(16)",
    "cudaLaunchKernel_v7000",
    "train.py(7): step",
    "f (a.py:3)",
    "[libc.so.6]",
    "+0x1f0 BRA 0x10",
    "py::f:/src/a.py",
    '{"a": [1, {"b": null}]}',
)


def check(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    for one in (kernel_base, demangle, api_name, strip_offset, fold_indices, fold_module):
        found = one(text)
        if not isinstance(found, str):
            raise FoundError(f"{one.__name__}: {found!r}")
    payload_text(text)
    split_instruction(text)
    is_instruction(text)
    clean_range(text)
    if not parse_frame(text).name and text:
        raise FoundError(f"a frame without a name: {text!r}")


def seeds() -> list[bytes]:
    return [name.encode() for name in _NAMES]


TARGET = Target("names", seeds, check, mutate_lines, 1 << 10)
