"""Levels, metrics and filters of trees of PC samples, and what plain fractions say of them."""

from __future__ import annotations

from hypothesis import strategies as st

from flame.core.model.metrics import metric_of
from flame.core.model.profile import Profile
from tests.support.generated.sampled import FIRST_START, Entry, Run
from tests.support.oracles.naive_samples import Launch, Part, parts
from tests.support.oracles.naive_tree import Shape

METRICS = ("gpu", "count", "launch", "queue", "idle", "stalls")
LEVELS = (
    "kernel,sass,stall",
    "stall,nvtx,kernel",
    "nvtx,stall",
    "sass",
    "stall",
    "nvtx,kernel,sass",
    "stall,kernel,sass",
    "python,nvtx,shapes,kernel,sass,stall",
)
metrics, orders = st.sampled_from(METRICS), st.sampled_from(LEVELS)


def weight(profile: Profile, metric: str) -> list[int]:
    """What every activity weighs."""
    weights: list[int] = metric_of(metric, profile.metrics).values(profile.activities).tolist()
    return weights


def naive(profile: Profile, rows: list[Launch], levels: str, metric: str) -> list[Part]:
    return parts(profile, rows, levels.split(","), weight(profile, metric))


def is_exact(found: list[Part]) -> bool:
    """Whether no two parts could have had each other's unit."""
    return all(low == high for part in found for low, high in (part.value, part.count))


shapes = st.builds(
    Shape,
    st.sampled_from([(), (), ("Wait",), ("LDG|gemm",), ("a", "Scoreboard")]),
    st.sampled_from([(), (), ("Barrier",), ("softmax",)]),
    st.sampled_from([(), (), ("gemm",), ("^b$",), ("Wait|Selected",)]),
    st.sampled_from([(), (), ("Wait|Barrier",), ("^a$",), (r"\+0x",)]),
    st.booleans(),
    st.booleans(),
)
row_filters = st.sampled_from(
    [
        ({"kernel": "gemm"}, lambda one, start: one.kernel == "gemm"),
        ({"stream": 1}, lambda one, start: one.row % 2 == 1),
        ({"nvtx": "a"}, lambda one, start: "a" in one.ranges),
        (
            {"time": f"{FIRST_START + 1}ns/{FIRST_START + 2_000}ns"},
            lambda one, start: FIRST_START + 1 <= start < FIRST_START + 2_000,
        ),
    ]
)


def one_kernel(*distributions: tuple[Entry, ...], duration: int = 1_000) -> Run:
    """A kernel for each of `distributions`, of `duration` ns."""
    launches = tuple(((), (), f"kernel {at}", duration) for at in range(len(distributions)))
    return Run(launches, distributions, tuple(range(len(distributions))))
