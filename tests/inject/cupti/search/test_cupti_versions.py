"""What is recorded with several versions of CUPTI, and what the dump says where there is none."""

from __future__ import annotations

import pytest

from tests.inject.cupti.cupti_recorded import Record, by


def test_no_clock_of_ours(record: Record) -> None:
    recorded = record(
        """
context()
function = kernel("one", 2000)
for _ in range(50): check(launch(function))
synchronize()
""",
        FAKE_CUPTI="no_timestamps",
    )
    assert any("clock" in said for said in recorded.meta["note"])
    launches, kernels = by(recorded.of["launch"], "correlation"), recorded.of["kernel"]
    assert len(kernels) == 50
    for row in kernels:
        # A few microseconds, and what waits before it; what is more is the conversion's error.
        waited = int(row["start"]) - int(launches[int(row["correlation"])]["start"])
        assert -1_000_000 < waited < 50_000_000


@pytest.mark.parametrize(
    ("said", "version"), [("130001", "13.0.1"), ("28", "12.9.1"), ("19", "12.0"), ("25", "API 25")]
)
def test_versions(record: Record, said: str, version: str) -> None:
    recorded = record(
        """
context()
for _ in range(10): check(launch(kernel("one", 1000), None, (3, 2, 1)))
synchronize()
""",
        FAKE_CUPTI=f"version:{said}",
    )
    assert recorded.meta["cupti"] == [version]
    kernels = recorded.of["kernel"]
    assert len(kernels) == 10 and set(kernels["grid_x"]) == {3}
    assert (kernels["end"] - kernels["start"] == 1000).all() and kernels["tid"].all()


@pytest.mark.parametrize(
    ("environment", "why"),
    [
        ({"FLAME_CUPTI_PATH": "/nowhere/libcupti.so.13"}, "FLAME_CUPTI_PATH"),
        ({"FLAME_CUPTI_PATH": "libm.so.6"}, "too old: no cupti"),
        ({"FAKE_CUPTI": "version:17"}, "older than 11.8"),
        ({"FAKE_CUPTI": "no_subscriber"}, "cuptiSubscribe: CUPTI_ERROR_MULTIPLE_SUB"),
    ],
)
def test_without_cupti_the_program_runs_and_the_dump_says_why(
    record: Record, environment: dict[str, str], why: str
) -> None:
    recorded = record(
        """
context()
check(launch(kernel("one")))
synchronize()
""",
        **environment,
    )
    (said,) = recorded.meta["cupti"]
    assert why in said
    assert recorded.meta["driver"] == ["12.9" if "version" in str(environment) else "13.0"]
    assert not len(recorded.of["launch"]) and not len(recorded.of["kernel"])


def test_who_has_cupti_instead_is_noted(record: Record) -> None:
    recorded = record("context()", FAKE_CUPTI="no_subscriber")
    assert any("another tool uses CUPTI" in said for said in recorded.meta["note"])
