"""Lines are sorted and summed in parts as they are at once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.exporters import line_sums
from flame.exporters.line_sums import sum_sorted

Lines = list[tuple[bytes, int]]
_LINES = st.lists(st.tuples(st.sampled_from([b"", b"a", b"a b", b"a;b", b"a 1"]), st.integers(0)))


@pytest.mark.parametrize("at_once", [1, 2, 3, 1 << 16])
@given(lines=_LINES)
def test_lines_come_once_and_sorted(at_once: int, lines: Lines) -> None:
    expected: Counter[bytes] = Counter()
    for line, value in lines:
        expected[line] += value
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_sums, "AT_ONCE", at_once)
        assert list(sum_sorted(lines)) == sorted(expected.items())


def test_nothing_is_written_where_all_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(line_sums, "_temporary_file")
    assert list(sum_sorted([(b"b", 2), (b"a", 1), (b"b", 3)])) == [(b"a", 1), (b"b", 5)]


def test_a_folder_that_takes_no_files_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    monkeypatch.setattr(line_sums, "AT_ONCE", 1)
    with pytest.raises(OSError, match="gone"):
        list(sum_sorted([(b"b", 2), (b"a", 1)]))
