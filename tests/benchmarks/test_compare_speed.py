"""What is slower beyond the noise of the rounds, and what is not."""

from __future__ import annotations

from benchmarks.compare_speed import Found, Rounds, again, report

NOISY = [10.0, 13.0, 9.0, 12.0, 11.0, 10.0, 12.0]


def scaled(factor: float) -> list[float]:
    return [factor * one for one in NOISY]


def test_the_same_figures_are_no_difference() -> None:
    assert Rounds(NOISY, NOISY).verdict(0.05) == ""


def test_a_difference_within_the_noise_is_none() -> None:
    assert Rounds(NOISY, scaled(1.1)).verdict(0.05) == ""


def test_a_difference_beyond_the_noise_is_told_with_its_sign() -> None:
    assert Rounds(NOISY, scaled(1.5)).verdict(0.05) == "slower"
    assert Rounds(scaled(1.5), NOISY).verdict(0.05) == "faster"


def test_a_small_difference_is_none_however_sure() -> None:
    steady = [10.0, 10.0, 10.0, 10.01, 10.02]
    assert Rounds(steady, [1.04 * one for one in steady]).verdict(0.05) == ""
    assert Rounds(steady, [1.06 * one for one in steady]).verdict(0.05) == "slower"


def test_more_than_nothing_is_slower() -> None:
    assert Rounds([0.0, 0.0, 0.0], [1.0, 1.0, 1.0]).verdict(0.05) == "slower"
    assert Rounds([0.0, 0.0, 0.0], [0.0, 0.0, 0.0]).verdict(0.05) == ""


def test_what_looks_slower_is_measured_again_and_all_rounds_decide() -> None:
    unlucky, steady = Rounds(NOISY[:], scaled(1.5)), Rounds([1.0] * 7, [1.0] * 7)
    found: Found = {("load", "a"): unlucky, ("start", "b"): steady}
    asked = []

    def more(names: set[str]) -> Found:
        asked.append(names)
        return {("load", "a"): Rounds(scaled(1.5), NOISY[:])}

    assert unlucky.verdict(0.05) == "slower"
    again(found, 0.05, more)
    assert asked == [{"load"}]
    assert len(unlucky.old) == len(unlucky.new) == 14 and len(steady.old) == 7
    assert unlucky.verdict(0.05) == ""
    again(found, 0.05, more)
    assert asked == [{"load"}]


def test_the_report_has_medians_and_the_middle_halves() -> None:
    lines = report({("load", "load: CPU ms"): Rounds(NOISY, scaled(1.5))}, 0.05).splitlines()
    assert lines[1].split() == [
        *("load:", "CPU", "ms", "11.0", "(10.0–12.0)", "16.5", "(15.0–18.0)", "1.500", "slower")
    ]
