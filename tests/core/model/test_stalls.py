"""Stall reasons: one key for all the names that tools give to each."""

from __future__ import annotations

import pytest

from flame.core.model.stalls import STALLS, UNKNOWN, is_not_issued, is_reason, stall_of

CUPTI = "smsp__pcsamp_warps_issue_stalled_"

# As the source page of Nsight Compute and as its metrics and CUPTI call the same reason.
PAIRS = {
    "stall_barrier": "barrier",
    "stall_branch_resolve": "branch_resolving",
    "stall_branch_resolving": "branch_resolving",
    "stall_dispatch": "dispatch_stall",
    "stall_drain": "drain",
    "stall_gmma": "gmma",
    "stall_imc": "imc_miss",
    "stall_lg": "lg_throttle",
    "stall_long_sb": "long_scoreboard",
    "stall_math": "math_pipe_throttle",
    "stall_membar": "membar",
    "stall_mio": "mio_throttle",
    "stall_misc": "misc",
    "stall_no_inst": "no_instructions",
    "stall_not_selected": "not_selected",
    "stall_selected": "selected",
    "stall_short_sb": "short_scoreboard",
    "stall_sleep": "sleeping",
    "stall_sleeping": "sleeping",
    "stall_tex": "tex_throttle",
    "stall_wait": "wait",
    "stall_warpgroup_arrive": "warpgroup_arrive",
}


@pytest.mark.parametrize(("page", "metric"), PAIRS.items())
def test_both_spellings_are_one_reason(page: str, metric: str) -> None:
    assert stall_of(page) == stall_of(CUPTI + metric) == stall_of(metric)
    assert stall_of(page).meaning


def test_a_version_that_writes_one_instruction_means_the_same() -> None:
    assert stall_of(f"{CUPTI}no_instruction") == stall_of("stall_no_inst")


def test_every_reason_is_known_by_its_own_key() -> None:
    assert [stall_of(one.key) for one in STALLS] == list(STALLS)
    assert {stall_of(page).key for page in PAIRS} == {one.key for one in STALLS} - {UNKNOWN}


def test_titles_and_meanings_are_all_different_and_one_short_line() -> None:
    assert len({one.title for one in STALLS}) == len({one.meaning for one in STALLS}) == len(STALLS)
    assert all(one.meaning and len(one.meaning) < 80 and "\n" not in one.meaning for one in STALLS)


def test_the_title_is_the_name_that_nsight_compute_shows() -> None:
    assert stall_of("stall_long_sb").title == "Long Scoreboard"
    assert stall_of(f"{CUPTI}imc_miss").title == "IMC Miss"


def test_a_reason_of_a_gpu_to_come_keeps_its_name() -> None:
    found = stall_of(f"{CUPTI}tensor_memory_busy")
    assert found == ("tensor_memory_busy", "Tensor Memory Busy", "")


@pytest.mark.parametrize(
    ("name", "reason", "not_issued"),
    [
        ("stall_wait", True, False),
        ("stall_wait (Not Issued)", True, True),
        (f"{CUPTI}wait", True, False),
        (f"{CUPTI}wait_not_issued", True, True),
        ("Warp Stall Sampling (All Samples)", False, False),
        ("smsp__pcsamp_sample_count", False, False),
        ("Instructions Executed", False, False),
    ],
)
def test_which_columns_are_reasons(name: str, reason: bool, not_issued: bool) -> None:
    assert (is_reason(name), is_not_issued(name)) == (reason, not_issued)
