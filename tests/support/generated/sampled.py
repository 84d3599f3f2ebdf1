"""Random kernels with random PC samples, as profiles and as plain rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from flame.core.columns import I8, sum_by
from flame.core.model.frames import FrameBuilder
from flame.core.model.pc_samples import Code, CodeSamples, Sampling, SamplingBuilder
from flame.core.model.profile import Profile
from flame.core.sampling.attach import attach_sampling
from tests.support.oracles.naive_samples import Launch
from tests.support.profiles.recorded import Recorded

FIRST_START = 10_000
REASONS = ("long_scoreboard", "wait", "selected", "barrier")
CODES = (
    Code(
        "gemm",
        np.arange(5) * 16,
        ("LDG.E R2, [R4]", "HFMA2 R0, R1", "HFMA2 R0, R1", "BAR.SYNC", "EXIT"),
        np.array([0, 0, 0, -1, -1], np.int32),
        np.array([7, 8, 8, 0, 0], np.int32),
        ("gemm.cu",),
    ),
    # One kernel's other version, and one of which nothing but addresses are known.
    Code("gemm", np.arange(2) * 16, ("LDG.E R2, [R4]", "EXIT"), *np.full((2, 2), -1, np.int32)),
    Code.unknown("_Z7softmaxPf", np.array([0, 0x40, 0x400])),
)

Entry = tuple[int, int, int, int]
"""Code, place in it, reason, samples."""


@dataclass(frozen=True)
class Run:
    """Kernels one after the other, distributions, and which of them each group's is."""

    launches: tuple[tuple[tuple[str, ...], tuple[str, ...], str, int], ...]
    distributions: tuple[tuple[Entry, ...], ...]
    of_group: tuple[int, ...]

    def profile(self) -> Profile:
        """The profile of it: launch i is row i of its activities."""
        plain = self._recorded().profile()
        frames = FrameBuilder.from_table(plain.frames)
        builder = SamplingBuilder(frames)
        for entries in self.distributions:
            builder.add(_samples(entries), exact=False)
        size = len(plain.activities.groups)
        chosen = [self.of_group[at % len(self.of_group)] for at in range(size)]
        of_group = np.minimum(np.array(chosen, np.int32), len(self.distributions) - 1)
        return attach_sampling(plain, frames, builder.build(of_group))

    def _recorded(self) -> Recorded:
        trace = Recorded()
        start = FIRST_START
        for place, (ranges, python, kernel, duration) in enumerate(self.launches):
            begin = 100 * place
            for depth, name in enumerate(ranges):
                shapes = "[2, 3]" if name == "b" else ""
                trace.range(name, begin + depth, begin + 90 - depth, shapes=shapes)
            trace.call("launch", begin + 20, begin + 22 + place, corr=place + 1, python=python)
            trace.kernel(kernel, start, start + duration, corr=place + 1, stream=place % 2)
            start += duration + place % 3
        return trace

    def rows(self) -> list[Launch]:
        """The kernels as plain rows."""
        return [
            Launch(row, ranges, python, kernel, "[2, 3]" if "b" in ranges else "")
            for row, (ranges, python, kernel, _) in enumerate(self.launches)
        ]


def _samples(entries: tuple[Entry, ...]) -> list[CodeSamples]:
    return [
        CodeSamples(
            CODES[code],
            np.array([place for of, place, _, _ in entries if of == code], np.int32),
            np.array([reason for of, _, reason, _ in entries if of == code], np.int32),
            np.array([samples for of, _, _, samples in entries if of == code], np.int64),
            REASONS,
        )
        for code in sorted({entry[0] for entry in entries})
    ]


places = st.sampled_from(
    [(at, place) for at, code in enumerate(CODES) for place in range(len(code))]
)
amounts = st.one_of(st.integers(1, 6), st.integers(1, 10_000))


@st.composite
def distributions(draw: st.DrawFn) -> tuple[Entry, ...]:
    """Samples at some instructions, for some reasons."""
    keys = st.tuples(places, st.integers(0, len(REASONS) - 1))
    chosen = draw(st.lists(keys, min_size=1, max_size=9, unique=True))
    return tuple((code, place, reason, draw(amounts)) for (code, place), reason in chosen)


names = st.lists(st.sampled_from("ab"), max_size=3).map(tuple)
durations = st.one_of(st.integers(0, 4), st.integers(0, 3_000))
launches = st.tuples(names, names, st.sampled_from(["gemm", "softmax", "copy"]), durations)
runs = st.builds(
    Run,
    st.lists(launches, min_size=1, max_size=8).map(tuple),
    st.lists(distributions(), min_size=1, max_size=3).map(tuple),
    st.lists(st.integers(-1, 2), min_size=1, max_size=8).map(tuple),
)


def per_instruction(sampling: Sampling, distribution: int, code: int) -> I8:
    """Samples at every instruction of ``codes[code]`` in ``distribution``."""
    at = sampling.entries(distribution)
    mine = sampling.code[at] == code
    return sum_by(sampling.place[at][mine], sampling.samples[at][mine], len(sampling.codes[code]))
