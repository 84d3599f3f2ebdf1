"""Rows of the picker: what they say, that they fit, and what a filter finds."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.attach.discover.model import Job, WatchMethod
from flame.tui.attach.picker_rows import about, heads, matches, nothing, refusal, row
from flame.tui.toolkit.lines import Line, line_width
from flame.tui.toolkit.palette import Palette
from tests.tui.attach.jobs import candidate, ended, job

PALETTE = Palette((18, 18, 18), (228, 228, 228))


def text(line: Line) -> str:
    return "".join(piece.text for piece in line)


# A row


def test_a_row_says_who_runs_what_for_how_long_and_what_was_recorded() -> None:
    shown = text(row(job(41, kernels=1_260_000), False, PALETTE, 110))
    assert shown.split() == [
        *("41", "○", "job41", "python", "job41.py", "--lr", "0.1"),
        *("ada", "90", "s", "1", "1.26M", "recording"),
    ]


def test_what_records_right_now_has_a_light() -> None:
    assert "●" in text(row(job(41, active=True), False, PALETTE, 80))
    lit = text(row(job(41, WatchMethod.CPU, active=True), False, PALETTE, 80))
    assert "●" not in lit and "○" not in lit


def test_of_what_has_not_begun_nothing_is_counted() -> None:
    one = job(41, dumps=(), kernels=0)
    assert text(row(one, False, PALETTE, 110)).split()[-3:] == ["1", "nothing", "yet"]
    assert about(one).startswith("enter waits for its first CUDA call or NVTX range")
    assert refusal(one) == ""


def test_an_ended_recording_has_its_size_where_others_have_their_way() -> None:
    shown = text(row(ended(7), False, PALETTE, 100)).split()
    assert shown == ["7", "old.py", "2", "h", "1", "40.0k", "12.0", "MB"]


def test_a_command_that_repeats_the_name_is_shown_once() -> None:
    shown = text(row(job(41, name="vllm", command="/bin/vllm serve"), False, PALETTE, 100))
    assert shown.split()[2:5] == ["vllm", "serve", "ada"]


def test_a_program_is_shown_without_its_folder_and_on_one_line() -> None:
    command = "/a/very/long/way/to/bin/python -c import sys\nprint(1)"
    shown = text(row(job(41, name="", command=command), False, PALETTE, 120))
    assert " python -c import sys print(1) " in shown


def test_a_long_command_loses_its_middle() -> None:
    command = "python train.py " + "--x " * 200 + "--epochs 3"
    shown = text(row(job(41, command=command), False, PALETTE, 100))
    assert "python train.py" in shown and "…" in shown and "--epochs 3" in shown


@given(
    st.integers(60, 250), st.text(max_size=30), st.text(max_size=90), st.text(max_size=20),
    st.floats(0, 1e9), st.integers(0, 10**12), st.booleans(),
)  # fmt: skip
def test_no_name_leaves_its_row(
    width: int, name: str, command: str, user: str, age: float, kernels: int, selected: bool
) -> None:
    one = job(4_194_304, name=name, command=command, user=user, age=age, kernels=kernels)
    shown = row(one, selected, PALETTE, width)
    assert line_width(shown) == width
    assert text(shown).isprintable()
    assert line_width(heads(width)) == width


def test_columns_go_as_it_gets_narrow_the_way_last() -> None:
    shown = [text(heads(width)).split() for width in (110, 80, 68, 60, 50)]
    assert shown[0] == ["pid", "name", "user", "age", "procs", "kernels", "way"]
    assert shown[1] == ["pid", "name", "age", "procs", "kernels", "way"]
    assert shown[2] == ["pid", "name", "age", "kernels", "way"]
    assert shown[3] == ["pid", "name", "kernels", "way"]
    assert shown[4] == ["pid", "name", "way"]


def test_a_job_can_be_watched_as_the_best_of_its_processes_can() -> None:
    launcher, worker = candidate(1, WatchMethod.NONE), candidate(2, WatchMethod.DUMP)
    assert Job(launcher, (worker,)).method is WatchMethod.DUMP
    assert refusal(Job(launcher, (worker,))) == ""


def test_what_can_not_be_attached_to_says_why() -> None:
    denied = job(1, WatchMethod.CPU, denied="belongs to root")
    assert refusal(denied) == "belongs to root"
    assert refusal(job(1, dumps=(), denied="its dump has been removed")).startswith("its dump")
    assert refusal(job(1, WatchMethod.NONE)) == "not recorded: start it with flame record -- CMD"
    assert refusal(ended(1)) == refusal(job(1)) == refusal(job(1, WatchMethod.REMOTE)) == ""


def test_what_choosing_comes_to_is_said_of_every_kind() -> None:
    assert about(job(1, launches=5)).startswith("enter watches it: 5 launches")
    assert "no NVTX" in about(job(1, WatchMethod.REMOTE))
    assert "without the GPU" in about(job(1, WatchMethod.CPU))
    assert about(ended(1)) == "enter opens it: 1 dump, /tmp/flame"


@pytest.mark.parametrize("words", ["", "41", "JOB41", "ada recording", "lr 0.1"])
def test_a_filter_matches_any_column_word_by_word(words: str) -> None:
    assert matches(job(41), words)
    assert not matches(job(41), f"{words} nowhere")


def test_a_filter_finds_a_job_by_any_of_its_processes() -> None:
    assert matches(Job(candidate(1), (candidate(1), candidate(77))), "77")


def test_nothing_found_says_how_to_record(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    library = tmp_path / "libflameinject.so"
    library.touch()
    monkeypatch.setenv("FLAME_LIBRARY", str(library))
    said = "\n".join(text(line) for line in nothing(200))
    assert "flame record -- CMD" in said
    assert f"CUDA_INJECTION64_PATH={library}" in said
    monkeypatch.setenv("FLAME_LIBRARY", str(tmp_path / "nowhere"))
    said = "\n".join(text(line) for line in nothing(200))
    assert "no such library" in said and "CUDA_INJECTION64_PATH" not in said
