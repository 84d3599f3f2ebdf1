"""The app on a trace whose kernels have PC samples, spelled out by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Event

import numpy as np

from flame.core.loading.inputs import Inputs
from flame.core.loading.many import load
from flame.core.model.frames import FrameBuilder
from flame.core.model.pc_samples import Code, CodeSamples, SamplingBuilder
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions
from flame.core.projection.selection import Selection
from flame.core.sampling.attach import attach_sampling
from flame.options.config import DEFAULTS, Config
from flame.tui.main.app import FlameApp
from flame.tui.sass.screen import SassScreen
from flame.tui.session.session import Projection, Session, metrics_of, project
from tests.tui.conftest import User, main_screen
from tests.tui.traces import decode

Counts = Mapping[str, Sequence[int]]
"""Samples at each instruction by reason."""

SOURCE = """\
__global__ void gemm(const float4* a, float4* c)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 value = a[i];
    value.x *= value.y;
    c[i] = value;
}
"""

GEMM = (
    ("MOV R1, c[0x0][0x28]", 1),
    ("S2R R6, SR_CTAID.X", 3),
    ("S2R R3, SR_TID.X", 3),
    ("IMAD R6, R6, c[0x0][0x0], R3", 3),
    ("IMAD.WIDE R2, R6, R7, c[0x0][0x160]", 4),
    ("LDG.E.128 R8, [R2.64]", 4),
    ("FMUL R8, R8, R9", 5),
    ("IMAD.WIDE R4, R6, R7, c[0x0][0x168]", 6),
    ("@!P0 STG.E.128 [R4.64], R8", 6),
    ("EXIT", 7),
    ("BRA 0xa0", 0),
    ("NOP", 0),
    ("NOP", 0),
)
GEMM_SAMPLES: Counts = {
    "long_scoreboard": [0, 0, 0, 0, 0, 2, 60, 0, 0, 0, 0, 0, 0],
    "wait": [3, 0, 0, 5, 4, 0, 2, 4, 0, 0, 0, 0, 0],
    "barrier": [0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0],
    "lg_throttle": [0, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0],
    "selected": [1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0],
}
HOTTEST = "FMUL R8, R8, R9"
SECOND = "@!P0 STG.E.128 [R4.64], R8"
FLASH = ("HMMA.16816.F32 R4, R8, R12, R4", "LDSM.16.M88.4 R8, [R2]", "EXIT")


def code(
    lines: Sequence[tuple[str, int]], name: str = "gemm", file: str = "/home/user/gemm.cu"
) -> Code:
    """Instructions of 16 bytes each, with their source lines (0: none) of ``file``."""
    texts, numbers = zip(*lines, strict=True)
    line = np.array(numbers, np.int32)
    offset = 16 * np.arange(len(lines), dtype=np.int64)
    known = np.where(line > 0, 0, -1).astype(np.int32)
    source = {(0, at + 1): text for at, text in enumerate(SOURCE.splitlines())}
    return Code(name, offset, texts, known, line, (file,), source)


def samples(of: Code, counts: Counts) -> CodeSamples:
    """The ``counts`` as samples ``of`` a code."""
    table = np.array(list(counts.values()), np.int64).reshape(len(counts), len(of))
    reason, place = np.nonzero(table)
    chosen = table[reason, place]
    places, reasons = place.astype(np.int32), reason.astype(np.int32)
    return CodeSamples(of, places, reasons, chosen, tuple(counts))


def gemm() -> list[CodeSamples]:
    """One code with source lines: the multiplication waits for the load above it."""
    return [samples(code(GEMM), GEMM_SAMPLES)]


def flash() -> list[CodeSamples]:
    """Two codes without source lines, of the second of which only offsets are known."""
    first = code([(text, 0) for text in FLASH], "flash_fwd_kernel")
    second = Code.unknown("flash_fwd_kernel", np.array([0x40, 0x90], np.int64))
    return [
        samples(second, {"wait": [1, 9]}),
        samples(first, {"math_pipe_throttle": [40, 0, 0], "mio_throttle": [0, 8, 0]}),
    ]


def sampled(
    path: Path, exact: bool = False, of_gemm: Callable[[], list[CodeSamples]] = gemm
) -> Profile:
    """`traces.decode` with samples of its two heaviest kernels; ``exact``: by launch site."""
    profile = load(decode(path))
    frames = FrameBuilder.from_table(profile.frames)
    builder = SamplingBuilder(frames)
    known: dict[str, int] = {}
    kernel = [profile.frames[frame].name for frame in profile.activities.groups.frame.tolist()]
    of_group = np.full(len(kernel), -1, np.int32)
    for group, name in enumerate(kernel):
        if name in ("gemm", "flash_fwd_kernel"):
            if exact or name not in known:
                known[name] = builder.add(of_gemm() if name == "gemm" else flash(), exact)
            of_group[group] = known[name]
    return attach_sampling(profile, frames, builder.build(of_group))


def shown(profile: Profile, selection: Selection | None = None) -> Projection:
    """What the app shows of ``profile``."""
    return project(profile, selection or Selection())


class MadeApp(FlameApp):
    """The app on a profile that no file has."""

    def __init__(self, profile: Profile, selection: Selection, config: Config = DEFAULTS) -> None:
        inputs = Inputs((Path("decode.sqlite"),))
        super().__init__(inputs, LoadOptions(), selection, config=config)
        self._made = profile

    def _load(self, inputs: Inputs, cancelled: Event) -> None:
        session = Session(inputs, self._made, metrics_of(self._made), self.options)
        self.post_message(self.Loaded(session, project(self._made, self.selection)))


@asynccontextmanager
async def open_made(
    profile: Profile,
    size: tuple[int, int] = (120, 40),
    selection: Selection | None = None,
    config: Config = DEFAULTS,
) -> AsyncIterator[User]:
    """The app on ``profile``."""
    app = MadeApp(profile, selection or Selection(), config)
    async with app.run_test(size=size) as pilot:
        user = User(app, pilot)
        await user.until(lambda: main_screen(app))
        await user.settle()
        yield user


def view_of(user: User) -> SassScreen:
    """The view of instructions that is on top."""
    screen = user.app.screen
    assert isinstance(screen, SassScreen), screen
    return screen
