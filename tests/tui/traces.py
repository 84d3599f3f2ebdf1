"""Small traces for the app: a decode-like run, one with hostile names, one without a GPU."""

from __future__ import annotations

from pathlib import Path

from tests.support.writers.nsysfile import HTOD, NsysFile

HOSTILE = (
    "\x1b[2J\x1b]0;owned\x07red\x1b[31m",
    "[bold red]markup[/] [@click=app.quit]x[/]",
    "two\nlines\r\ttab",
    "\u202eright to left\u2066 עברית",
    "絵文字 🚀🚀 カーネル",
    "z" + "\u0301" * 200,
    "x" * 100_000,
    "",
)


def decode(path: Path) -> Path:
    """Two layers and a sampler on one GPU, 1 µs of work per unit; ends with an unlaunched copy."""
    with NsysFile(path) as trace:
        trace.gpu(0, "NVIDIA H100 80GB HBM3", pid=100)
        trace.process(100, "vllm")
        trace.thread(100, 100, "worker")
        trace.nvtx("generate", 0, 90_000)
        for layer, begin in ((0, 1_000), (1, 31_000)):
            _layer(trace, layer, begin)
        trace.nvtx("sampler", 61_000, 89_000, json='{"top_k": 40}')
        _launch(trace, 30, 62_000, 20_000, "argmax", "void at::argmax<float, 4>(float*)")
        for place in range(60):
            _launch(trace, 40 + place, 63_000 + 100 * place, 100, f"tiny_{place}", None)
        trace.memcpy(HTOD, 900_000, 930_000, corr=None)
    return path


def _layer(trace: NsysFile, layer: int, begin: int) -> None:
    trace.nvtx(f"model.layers.{layer}", begin, begin + 28_000)
    trace.nvtx(f"model.layers.{layer}.attention", begin + 100, begin + 10_000)
    _launch(trace, 10 + 2 * layer, begin + 200, 60_000, "flash_fwd_kernel", None)
    trace.nvtx(f"model.layers.{layer}.mlp", begin + 11_000, begin + 27_000)
    _launch(
        trace, 11 + 2 * layer, begin + 12_000, 140_000, "gemm", "void cutlass::gemm<float>(Params)"
    )


def _launch(
    trace: NsysFile, corr: int, begin: int, duration: int, name: str, demangled: str | None
) -> None:
    """A kernel launched at ``begin``; kernels follow one another on the GPU in launch order."""
    trace.api("cudaLaunchKernel_v7000", begin, begin + 50, corr)
    start = 100_000 + begin * 8
    trace.kernel(name, start, start + duration, corr, demangled=demangled)


def hostile(path: Path) -> Path:
    """Every name in `HOSTILE` as a range and as the kernel in it."""
    with NsysFile(path) as trace:
        trace.process(100, HOSTILE[0])
        for place, name in enumerate(HOSTILE):
            begin = 1_000 * place
            trace.nvtx(name, begin, begin + 900)
            trace.api(HOSTILE[0], begin + 10, begin + 20, place + 1)
            trace.kernel(name, begin + 100, begin + 500, place + 1)
    return path


def host_only(path: Path) -> Path:
    """Ranges but nothing on a GPU."""
    with NsysFile(path) as trace:
        trace.nvtx("load data", 0, 700)
        trace.nvtx("parse", 100, 400)
    return path


def nothing(path: Path) -> Path:
    """An export with no event at all."""
    with NsysFile(path) as trace:
        trace.create("NVTX_EVENTS")
    return path


def deep(path: Path, levels: int = 60) -> Path:
    """One kernel below ``levels`` ranges."""
    with NsysFile(path) as trace:
        for level in range(levels):
            trace.nvtx(f"level {level}", level, 10_000 - level)
        trace.api("cudaLaunchKernel", 5_000, 5_010, 1)
        trace.kernel("leaf", 20_000, 21_000, 1)
    return path


def unlaunched(path: Path) -> Path:
    """One kernel from before the capture began: no launch, no range, no wait."""
    with NsysFile(path) as trace:
        trace.kernel("alone", 1_000, 2_000, corr=None)
    return path
