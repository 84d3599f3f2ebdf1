"""Files that are cut off, damaged or made to do harm open with sums that agree, or are refused."""

from __future__ import annotations

import gzip
import os
import re
import tempfile
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.loading.many import load
from tests.support.hostile.bad_files import PAGE, mutated, plain, whole_trace
from tests.support.hostile.bad_texts import (
    BOMBS,
    HOSTILE_JSON,
    PACKED,
    WHOLE,
    deep,
    hopeless,
    spoilt,
)
from tests.support.tiers import deep_except, examples
from tests.system.bad_input.conftest import check_sums, opens_or_refuses, refusal, untouched


@pytest.mark.parametrize("sixteenths", deep_except(range(0, 16, 5), range(16)))
@pytest.mark.parametrize("extra", [0, 37], ids=["even", "uneven"])
def test_a_file_that_is_cut_off_says_how_much_is_there(
    sixteenths: int, extra: int, tmp_path: Path
) -> None:
    path = plain(tmp_path)
    whole = path.stat().st_size
    cut = whole * sixteenths // 16 // PAGE * PAGE + extra
    os.truncate(path, cut)
    expected = f"cut off: {cut:,} of at least" if cut > 37 else "is empty|cut off: 37 of"
    assert re.search(expected, refusal(path))


def test_a_last_page_that_is_cut_off_is_noticed(tmp_path: Path) -> None:
    path = plain(tmp_path)
    whole = path.stat().st_size
    os.truncate(path, whole - 1)
    assert f"{whole - 1:,} of at least {whole:,} bytes" in refusal(path)


@pytest.mark.parametrize("seed", deep_except(range(16), range(80)))
def test_damaged_pages_open_or_are_refused(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "trace.sqlite"
    path.write_bytes(mutated(whole_trace(), seed))
    with untouched(tmp_path):
        opens_or_refuses(path)


@examples(0.5)
@given(st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=40))
def test_bytes_changed_anywhere_open_or_are_refused(edits: list[tuple[float, int]]) -> None:
    data = bytearray(whole_trace())
    for place, value in edits:
        data[int(place * len(data))] = value
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.sqlite"
        path.write_bytes(data)
        opens_or_refuses(path)


@pytest.mark.parametrize("seed", deep_except(range(8), range(60)))
@pytest.mark.parametrize("format", WHOLE)
def test_damaged_text_opens_or_is_refused(format: str, seed: int, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(spoilt(WHOLE[format], seed))
    with untouched(tmp_path):
        opens_or_refuses(path)


@pytest.mark.parametrize("part", deep_except([0, 3, 7], range(8)))
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
@pytest.mark.parametrize("format", WHOLE)
def test_text_that_is_cut_off_opens_or_is_refused(
    format: str, packed: bool, part: int, tmp_path: Path
) -> None:
    whole = gzip.compress(WHOLE[format]) if packed else WHOLE[format]
    path = tmp_path / "trace.json"
    path.write_bytes(whole[: len(whole) * part // 8])
    opens_or_refuses(path)


@pytest.mark.parametrize("case", HOSTILE_JSON)
def test_hostile_json_opens_or_is_refused(case: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(HOSTILE_JSON[case])
    opens_or_refuses(path)


@pytest.mark.parametrize("case", PACKED)
def test_other_archives_are_told_by_name(case: str, tmp_path: Path) -> None:
    data, says = PACKED[case]
    path = tmp_path / "trace.json"
    path.write_bytes(data)
    assert re.search(says, refusal(path))


@pytest.mark.parametrize("case", deep_except(["zeros"], BOMBS))
def test_an_archive_of_a_gigabyte_does_not_fill_the_memory(case: str, tmp_path: Path) -> None:
    make, says = BOMBS[case]
    path = make(tmp_path)
    tracemalloc.start()
    try:
        assert re.search(says, refusal(path))
        assert tracemalloc.get_traced_memory()[1] < 400 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("case", deep_except(list(deep(1))[:1], deep(1)))
def test_what_is_nested_far_too_deep_opens_and_says_so(case: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(deep(20_000)[case])
    profile = load(path)
    check_sums(profile)
    assert re.search("more than [0-9,]+ frames: [1-9]|1 damaged", " ".join(profile.warnings))


@pytest.mark.deep
@pytest.mark.parametrize("case", hopeless(1))
def test_damage_everywhere_takes_as_long_as_the_file_is(case: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(hopeless(20_000)[case])  # quadratic, each would take minutes
    profile = load(path)
    assert profile.warnings


def test_a_schema_that_is_no_utf8_is_refused_as_damaged(tmp_path: Path) -> None:
    path = tmp_path / "trace.sqlite"
    path.write_bytes(whole_trace().replace(b"CREATE TABLE StringIds", b"CREATE TAB\xc1E StringIds"))
    assert "damaged: its schema" in refusal(path)
