"""Small traces, and the lines that the static view prints of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from flame.console.print_view import view
from flame.core.loading.inputs import Inputs
from flame.core.loading.many import load
from flame.core.model.profile import Profile
from flame.core.projection.selection import Selection
from tests.support.generated.sampled import Run
from tests.support.paths import SAMPLES
from tests.support.writers.nsysfile import HTOD, NsysFile

SAMPLE = SAMPLES / "torch_small.pt.trace.json.gz"

Arrange = Callable[[NsysFile], None]
Load = Callable[[Arrange], Profile]


def inputs(path: str) -> Inputs:
    return Inputs((Path(path),))


def drawn(profile: Profile, width: int = 120, **selection: object) -> list[str]:
    """Lines of the static view."""
    chosen = Selection(**selection)  # type: ignore[arg-type]
    return view(profile, chosen, "trace.sqlite", width).splitlines()


def torch_profile() -> Profile:
    """The sample of PyTorch."""
    return load(SAMPLE)


def icicle(lines: list[str]) -> list[str]:
    """The lines between the head of the tree and the next empty line."""
    first = next(i for i, line in enumerate(lines) if line.endswith(("count", " total"))) + 1
    return lines[first : lines.index("", first)]


def launched(file: NsysFile, name: str, start: int, ns: int, corr: int) -> None:
    """One kernel with its launch, 10 ns before it."""
    file.api("cudaLaunchKernel_v7000", start - 10, start - 5, corr=corr)
    file.kernel(name, start, start + ns, corr=corr)


def three_kernels(file: NsysFile) -> None:
    file.gpu(0, "NVIDIA Test")
    file.nvtx("forward", 0, 2_000)
    launched(file, "gemm", 1_000, 600, corr=1)
    launched(file, "norm", 1_700, 300, corr=2)
    launched(file, "norm", 3_000, 100, corr=3)


def sampled() -> Profile:
    """Two launches of gemm of 30 and 10 ns with 8 samples, 60 ns of something without."""
    run = Run(
        tuple(((), (), name, ns) for name, ns in (("gemm", 30), ("gemm", 10), ("copy", 60))),
        (((0, 0, 0, 4), (0, 0, 1, 1), (0, 3, 3, 3)),),
        (0, -1),
    )
    return run.profile()


def two_gpus(file: NsysFile) -> None:
    """GPU 0 works 600 of 1,000 ns, of which a copy alone takes 100; GPU 1 all of 300."""
    file.gpu(0, "NVIDIA Test")
    file.gpu(1, "NVIDIA Test")
    file.nvtx("layers.3", 0, 10)
    file.api("cudaLaunchKernel", 1, 2, corr=1)
    file.kernel("gemm", 100, 500, corr=1)
    file.kernel("norm", 300, 600, corr=None, stream=13)
    file.memcpy(HTOD, 1_000, 1_100, corr=None)
    file.kernel("gemm", 0, 300, corr=None, device=1)
