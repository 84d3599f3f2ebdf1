"""Bad files are refused in one clear line; odd files and odd names open, with true sums."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flame.core.loading.many import load
from tests.support.hostile.bad_files import REFUSED, plain
from tests.support.hostile.bad_texts import WHOLE
from tests.support.hostile.odd_files import ACCEPTED, NAMES, nested
from tests.support.oracles.plain_sql import recorded_gpu_time
from tests.system.bad_input.conftest import check_sums, refusal, untouched


@pytest.mark.parametrize("case", REFUSED)
def test_bad_files_are_refused_in_one_line_and_left_alone(case: str, tmp_path: Path) -> None:
    make, says = REFUSED[case]
    path = make(tmp_path)
    with untouched(tmp_path):
        assert re.search(says, refusal(path))


@pytest.mark.parametrize("case", ACCEPTED)
def test_odd_files_open_with_true_sums_and_are_left_alone(case: str, tmp_path: Path) -> None:
    path = ACCEPTED[case](tmp_path)
    with untouched(tmp_path):
        profile = load(path)
        check_sums(profile)
    assert profile.gpu_time == recorded_gpu_time(path)


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_any_file_name_opens(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    try:
        plain(tmp_path).rename(path)
    except OSError as error:
        pytest.skip(f"no such name on this file system: {error.strerror}")
    with untouched(tmp_path):
        assert load(path).gpu_time == 1_040


def test_a_relative_path_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(plain(tmp_path).parent)
    assert load("trace.sqlite").gpu_time == 1_040


def test_a_path_too_long_for_sqlite_is_named_as_the_reason(tmp_path: Path) -> None:
    folder = tmp_path.joinpath(*["folder" * 20] * 5)
    folder.mkdir(parents=True)
    path = plain(tmp_path).rename(folder / "trace.sqlite")
    assert "path is too long" in refusal(path)


def test_too_little_memory_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("flame.core.attribution.resolved.resolve_stacks", fail)
    path = tmp_path / "stacks.folded"
    path.write_bytes(WHOLE["folded"])
    assert "not enough memory" in refusal(path)


@pytest.mark.deep
def test_ranges_nested_a_million_deep_open_and_say_so(tmp_path: Path) -> None:
    profile = load(nested(1_000_000)(tmp_path))
    assert any("999,500 NVTX ranges are nested deeper than 500" in w for w in profile.warnings)
    assert profile.gpu_time == 10


def test_activities_without_times_are_counted(tmp_path: Path) -> None:
    profile = load(ACCEPTED["null in end"](tmp_path))
    assert any("20 GPU activities were recorded without" in line for line in profile.warnings)
