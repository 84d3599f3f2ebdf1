"""Profile operators on the CPU and on no device, and freeze what PyTorch's flop_counter says.

    python tests/core/operators/make_flop_counter.py > tests/core/operators/flop_counter.json

Needs PyTorch (made with 2.13.0, CPU build). Each case is a list of events of the profiler, with
the arguments that tell shapes, and the FLOPs that `torch.utils.flop_counter` counts for the same
code. Operators that only GPUs have run on meta tensors, which have shapes and no data.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

warnings.filterwarnings("ignore")
ATEN = torch.ops.aten
KEPT = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
WORDS = ("mm", "conv", "attention", "linear", "matmul", "einsum", "add")
Code = Callable[[], object]


def mlp() -> Code:
    net = torch.nn.Sequential(
        torch.nn.Linear(24, 48), torch.nn.GELU(), torch.nn.Linear(48, 8, bias=False)
    )
    return lambda: net(torch.randn(5, 24)).sum().backward()


def convolutions() -> Code:
    net = torch.nn.Sequential(
        torch.nn.Conv2d(4, 8, 3, stride=2, padding=1),
        torch.nn.Conv2d(8, 8, 3, groups=4, dilation=2, padding=2),
        torch.nn.ConvTranspose2d(8, 6, 4, stride=2, padding=1),
    )
    return lambda: net(torch.randn(2, 4, 20, 18))


def convolution_1d_3d() -> Code:
    line, box = torch.nn.Conv1d(3, 5, 4, stride=3), torch.nn.Conv3d(2, 3, (1, 2, 3), padding=1)
    return lambda: (line(torch.randn(2, 3, 17)), box(torch.randn(1, 2, 4, 5, 6)))


def convolutions_backward() -> Code:
    one = torch.nn.Conv2d(4, 8, 3, stride=2, padding=1)
    image = torch.randn(2, 4, 20, 18, requires_grad=True)
    return lambda: one(image).sum().backward()


def transposed_backward() -> Code:
    one = torch.nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1)
    image = torch.randn(2, 4, 7, 5, requires_grad=True)
    return lambda: one(image).sum().backward()


def first_layer_backward() -> Code:
    one = torch.nn.Conv2d(3, 8, 3)
    return lambda: one(torch.randn(2, 3, 9, 9)).sum().backward()


def batched() -> Code:
    a, b, c = torch.randn(3, 4, 5), torch.randn(3, 5, 6), torch.randn(3, 4, 6)
    return lambda: (
        torch.bmm(a, b),
        torch.baddbmm(c, a, b),
        torch.einsum("bij,bjk->bik", a, b),
        torch.addmm(c[0], a[0], b[0]),
    )


def attention(seed: int, causal: bool) -> Code:
    """Attention forward and backward by the operators that GPUs have, on meta tensors."""
    draw = random.Random(seed)
    batch, heads, width = draw.randint(1, 4), 4, 8 * draw.randint(1, 8)
    length = draw.randint(2, 40)
    keys = length if causal else draw.randint(1, 40)

    def tensor(*shape: int) -> torch.Tensor:
        return torch.empty(*shape, dtype=torch.bfloat16, device="meta")

    q = tensor(batch, heads, length, width)
    k, v = (tensor(batch, heads, keys, width) for _ in range(2))
    none = torch.empty(0, device="meta")
    seeds = torch.empty(2, dtype=torch.int64, device="meta")

    def run() -> None:
        out, lse, *_ = ATEN._scaled_dot_product_flash_attention(q, k, v, 0.0, causal)
        ATEN._scaled_dot_product_flash_attention_backward(
            out, q, k, v, out, lse, none, none, length, keys, 0.0, causal, seeds, seeds
        )
        out, lse, *_ = ATEN._scaled_dot_product_efficient_attention(
            q, k, v, None, True, 0.0, causal
        )
        ATEN._scaled_dot_product_efficient_attention_backward(
            out, q, k, v, none, out, lse, seeds, seeds, 0.0, (True, True, True, False), causal
        )
        out, lse, *_ = ATEN._scaled_dot_product_cudnn_attention(q, k, v, None, True, 0.0, causal)

    return run


def inner_attention(seed: int, causal: bool) -> tuple[Code, int]:
    """Attention by the operators that the others call, and its FLOPs.

    The flop_counter takes their tensors for [batch, heads, length, width], which they are not:
    it is asked for the shapes turned round.
    """
    draw = random.Random(seed)
    batch, heads, width, length = draw.randint(1, 4), 4, 8 * draw.randint(1, 8), draw.randint(2, 40)
    keys = length if causal else draw.randint(1, 40)

    def tensor(length: int) -> torch.Tensor:
        return torch.empty(batch, length, heads, width, dtype=torch.float16, device="meta")

    q, k, v = tensor(length), tensor(keys), tensor(keys)
    seeds = torch.empty(2, dtype=torch.int64, device="meta")

    def run() -> None:
        out, lse, *_ = ATEN._flash_attention_forward(
            q, k, v, None, None, length, keys, 0.0, causal, False
        )
        ATEN._flash_attention_backward(
            out, q, k, v, out, lse, None, None, length, keys, 0.0, causal, seeds, seeds
        )
        out, lse, *_ = ATEN._efficient_attention_forward(
            q, k, v, None, None, None, length, keys, 0.0, int(causal), True
        )

    shapes = [(batch, heads, size, width) for size in (length, keys, keys)]
    backward = sdpa_backward_flop_count(shapes[0], *shapes)
    return run, 2 * sdpa_flop_count(*shapes) + backward


def jagged() -> Code:
    """Attention whose lengths are data: nobody can count it by shapes."""
    q = torch.empty(33, 4, 16, dtype=torch.float16, device="meta")
    ends = torch.empty(3, dtype=torch.int32, device="meta")
    return lambda: ATEN._flash_attention_forward(q, q, q, ends, ends, 20, 20, 0.0, True, False)


def counted(code: Code) -> int:
    """Its FLOPs by the flop_counter."""
    code()
    with FlopCounterMode(display=False) as counter:
        code()
    return int(counter.get_total_flops())


def measured(name: str, code: Code, flops: int) -> dict[str, object]:
    """The events of ``code`` that have shapes, and its ``flops``."""
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
        code()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        profiler.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    kept = [
        {
            **{key: event[key] for key in ("ph", "cat", "name", "pid", "tid", "ts", "dur")},
            "args": {key: event["args"][key] for key in KEPT if key in event["args"]},
        }
        for event in events
        if event.get("cat") == "cpu_op" and any(word in event["name"] for word in WORDS)
    ]
    first = min(event["ts"] for event in kept)
    for event in kept:
        event["ts"], event["pid"], event["tid"] = round(event["ts"] - first, 3), 1, 1
    return {"case": name, "flops": flops, "events": kept}


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    cases = [mlp, convolutions, convolution_1d_3d, convolutions_backward, transposed_backward]
    made = {case.__name__: case() for case in (*cases, first_layer_backward, batched)}
    made |= {f"attention {n} {c}": attention(n, c) for n in range(2) for c in (False, True)}
    found = [measured(name, code, counted(code)) for name, code in made.items()]
    for causal in (False, True):
        found.append(measured(f"inner attention {causal}", *inner_attention(7, causal)))
    found.append(measured("jagged", jagged(), 0))
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in found)
    sys.stdout.write(f'{{"torch": "{torch.__version__}", "cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
