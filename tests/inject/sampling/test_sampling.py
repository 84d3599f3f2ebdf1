"""PC sampling on the test double: every sample is in the dump, and whatever hinders it is told."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.support.tiers import deep_except
from tests.support.waiting import PATIENCE
from tests.support.writers import fdumprecords

pytestmark = pytest.mark.deep

WORKLOAD = Path(__file__).with_name("sampling_workload.py")
RUNS = 20
STALL_REASON = 6
Env = Callable[..., dict[str, str]]
KEY = ("crc", "function", "offset", "reason", "correlation", "context")


class Sampled:
    """A run of the workload."""

    def __init__(self, folder: Path, make_env: Env, mode: str, *options: str, **more: str) -> None:
        folder.mkdir(exist_ok=True)
        env = make_env(folder / "dump", FLAME_PC=mode, FAKE_TRUTH=str(folder / "truth"), **more)
        command = [sys.executable, str(WORKLOAD), str(RUNS), *options]
        subprocess.run(command, env=env, check=True, timeout=PATIENCE)
        [self.path] = folder.glob("dump/*.fdump")
        [truth] = folder.glob("truth.*")
        self.lines = [json.loads(line) for line in truth.read_text().splitlines()]
        self.records = fdumprecords.records(self.path)
        self.notes = fdumprecords.meta(self.path).get("note", [])

    def told(self) -> Counter[tuple[Any, ...]]:
        """The samples that the GPU gave, by all but their number."""
        found: Counter[tuple[Any, ...]] = Counter()
        for row in self.lines:
            if row["what"] == "sample":
                found[tuple(row[name] for name in KEY)] += row["samples"]
        return found

    def found(self) -> Counter[tuple[Any, ...]]:
        """The samples of the dump, likewise."""
        found: Counter[tuple[Any, ...]] = Counter()
        for row in self.records["sample"]:
            values: dict[str, Any] = {name: int(row[name]) for name in KEY}
            values["function"] = fdumprecords.text(self.records, values["function"])
            found[tuple(values[name] for name in KEY)] += int(row["samples"])
        return found

    def reasons(self) -> dict[int, str]:
        """The names of the stall reasons by their index."""
        rows = self.records["name"][self.records["name"]["kind"] == STALL_REASON]
        return {int(row["id"]): fdumprecords.text(self.records, int(row["text"])) for row in rows}

    def ran(self) -> int:
        """How many kernels were recorded, which must not suffer from sampling."""
        return len(self.records["kernel"])


MODES = ["continuous", "serialized", "continuous:5", "serialized:31"]


@pytest.mark.parametrize("options", [(), ("destroy",)], ids=["lives on", "destroyed"])
@pytest.mark.parametrize("mode", deep_except(MODES[:2], MODES))
def test_every_sample_is_recorded_once(
    tmp_path: Path, injected_env: Env, mode: str, options: tuple[str, ...]
) -> None:
    run = Sampled(tmp_path, injected_env, mode, "collected", *options)
    told = run.told()
    assert sum(told.values()) == RUNS * 265
    assert run.found() == told
    assert run.ran() == 2 * RUNS and not run.notes


def test_serialized_samples_know_their_launch_and_continuous_ones_do_not(
    tmp_path: Path, injected_env: Env
) -> None:
    serialized = Sampled(tmp_path / "serialized", injected_env, "serialized", "collected")
    launches = set(serialized.records["launch"]["correlation"].tolist())
    assert set(serialized.records["sample"]["correlation"].tolist()) == launches
    continuous = Sampled(tmp_path / "continuous", injected_env, "continuous", "collected")
    assert set(continuous.records["sample"]["correlation"].tolist()) == {0}


def test_serialized_kernels_do_not_overlap(tmp_path: Path, injected_env: Env) -> None:
    run = Sampled(tmp_path, injected_env, "serialized")
    spans = sorted((int(row["start"]), int(row["end"])) for row in run.records["kernel"])
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))


def test_stall_reasons_have_names(tmp_path: Path, injected_env: Env) -> None:
    run = Sampled(tmp_path, injected_env, "continuous")
    names = run.reasons()
    assert names[1] == "smsp__pcsamp_warps_issue_stalled_selected"
    assert names[31] == "smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued"
    assert len(names) == 36
    assert set(run.records["sample"]["reason"].tolist()) <= names.keys()


def test_the_cubins_are_saved_for_what_was_sampled(tmp_path: Path, injected_env: Env) -> None:
    run = Sampled(tmp_path, injected_env, "continuous")
    [module] = run.records["module"]
    saved = run.path.parent / fdumprecords.text(run.records, int(module["path"]))
    assert saved.read_bytes().startswith(b"flame-fake 1\nkernel _Z4gemmPf 3000\n")
    assert set(run.records["sample"]["crc"].tolist()) == {int(module["crc"])}


@pytest.mark.parametrize("mode", ["", "off"])
def test_no_samples_unless_asked_for(tmp_path: Path, injected_env: Env, mode: str) -> None:
    run = Sampled(tmp_path, injected_env, mode)
    assert not run.told() and not run.found() and not run.reasons()
    assert run.ran() == 2 * RUNS and not run.notes


BAD_MODES = ["on", "continuous:", "continuous:4", "serialized:32", "continuous:5x", "serialized :9"]


@pytest.mark.parametrize("mode", deep_except(BAD_MODES[:2], BAD_MODES))
def test_a_mode_that_is_not_understood_is_told(
    tmp_path: Path, injected_env: Env, mode: str
) -> None:
    run = Sampled(tmp_path, injected_env, mode)
    [note] = run.notes
    assert note.startswith("FLAME_PC is not understood: off, continuous or serialized")
    assert not run.found() and run.ran() == 2 * RUNS


@pytest.mark.parametrize("mode", ["continuous", "serialized"])
def test_without_the_right_to_sample_one_note_says_what_to_do(
    tmp_path: Path, injected_env: Env, mode: str
) -> None:
    run = Sampled(tmp_path, injected_env, mode, FAKE_CUPTI="no_pc_permission")
    [note] = run.notes
    assert "run as root or with CAP_SYS_ADMIN" in note
    assert "NVreg_RestrictProfilingToAdminUsers=0" in note
    assert not run.found() and run.ran() == 2 * RUNS


def test_a_cupti_without_correlation_ids_of_samples_is_not_asked(
    tmp_path: Path, injected_env: Env
) -> None:
    run = Sampled(tmp_path, injected_env, "continuous", FAKE_CUPTI="version:21")
    assert run.notes == ["PC sampling needs CUPTI 12.4 or newer. Recorded without PC samples"]
    assert not run.told() and run.ran() == 2 * RUNS


def test_where_callbacks_may_not_begin_it_the_helper_thread_does(
    tmp_path: Path, injected_env: Env
) -> None:
    run = Sampled(tmp_path, injected_env, "continuous", "begun", FAKE_CUPTI="pc_later")
    told = run.told()
    assert told and run.found() == told and not run.notes


def test_samples_that_the_gpu_lost_are_counted(tmp_path: Path, injected_env: Env) -> None:
    run = Sampled(tmp_path, injected_env, "continuous", "collected", FAKE_CUPTI="pc_drop:3")
    assert run.found() == run.told()
    assert sum(row["count"] for row in run.records["drop"]) == 2 * RUNS * 3
    assert fdumprecords.header(run.path)["dropped"] == 2 * RUNS * 3


def test_more_reasons_than_there_is_room_for_are_not_read(
    tmp_path: Path, injected_env: Env
) -> None:
    run = Sampled(tmp_path, injected_env, "continuous", "collected", FAKE_CUPTI="pc_more:1000")
    assert run.found() == run.told()


def test_a_number_of_reasons_that_cannot_be_is_not_believed(
    tmp_path: Path, injected_env: Env
) -> None:
    run = Sampled(tmp_path, injected_env, "continuous", FAKE_CUPTI="pc_reasons:2000000000")
    [note] = run.notes
    assert note.startswith("PC sampling does not work here (no stall reasons for this GPU")
    assert not run.found()
