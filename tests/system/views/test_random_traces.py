"""Numbers of all views equal those that plain loops find in random traces."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from flame.core.loading.many import load
from flame.core.options import LoadOptions
from tests.support.generated.strategies import CALL_NAMES, Script, scripts
from tests.support.oracles.naive import Trace, naive, read_ranges
from tests.support.tiers import examples
from tests.system.views.shown_cases import looked_at
from tests.system.views.test_details import check_details
from tests.system.views.test_exports import check_exports
from tests.system.views.test_filters import check_algebra
from tests.system.views.test_sandwich import check_sandwich
from tests.system.views.test_search import check_search
from tests.system.views.test_time import check_brush, check_timeline
from tests.system.views.test_top import check_top

random_traces = examples(0.15, [HealthCheck.too_slow])
UNKNOWN_PROCESS = Script(
    "new",
    0,
    False,
    (
        ("api", {"name": CALL_NAMES[0], "start": 0, "end": 1, "corr": 1, "pid": 100, "tid": 100}),
        ("kernel", {"name": "gemm", "start": 2, "end": 4, "corr": 1}),
        ("kernel", {"name": "gemm", "start": 5, "end": 6, "corr": None}),
    ),
)
"""Kernels that do not say of which process they are, one of them launched by the only one."""


@random_traces
@example(UNKNOWN_PROCESS, 0, 1)
@given(scripts(), st.integers(0, 3), st.integers(1, 4))
def test_all_of_it_on_random_traces(
    trace_file: Path, script: Script, left: int, width: int
) -> None:
    script.write(trace_file)
    profile, rows = load(trace_file, LoadOptions("raw")), naive(trace_file)
    if not rows:
        return
    for one in looked_at(profile, rows):
        check_top(one)
        check_sandwich(one, 3)
        check_details(one, 4)
        for pattern in ("gemm|forward", "a"):
            check_search(one, pattern)
        check_exports(one, trace_file.parent)
    check_timeline(profile, rows, read_ranges(Trace(trace_file), start_end=False))
    if profile.duration >= 4:  # or cells would be shorter than a nanosecond
        check_brush(profile, rows, left, min(left + width, 4), 4)
    check_algebra(profile, "layer|gemm$", "gpu")
