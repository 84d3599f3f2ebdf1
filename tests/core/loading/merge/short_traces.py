"""Traces of one kernel, to be merged."""

from __future__ import annotations

from dataclasses import replace

from flame.core.model.profile import Profile
from tests.support.profiles.recorded import Recorded


def trace(begin: int = 0, origin: int | None = 0, gemm: str = "gemm") -> Profile:
    """A range of 100 ns from ``begin`` on, in it a call that launches one kernel of 20 ns."""
    recorded = Recorded()
    recorded.range("step", begin, begin + 100)
    recorded.call("cudaLaunchKernel", begin + 10, begin + 20, corr=1)
    recorded.kernel(gemm, begin + 30, begin + 50, corr=1)
    profile = recorded.profile()
    return replace(profile, meta=replace(profile.meta, origin=origin))
