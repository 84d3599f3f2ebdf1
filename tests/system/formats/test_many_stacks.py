"""Files of very many different stacks take memory by their size: columns, and no objects."""

from __future__ import annotations

import io
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from flame.core.analysis.trace_summary import summarize
from flame.core.loading.many import load
from flame.core.model.profile import Profile
from flame.core.projection.selection import Selection
from flame.core.readers.stacks import folded
from flame.exporters import speedscope

STACKS = 15_000
MOST, CONSTANT = 12, 1 << 20


def shared(number: int) -> str:
    return f"main;f{number % 100};g{number // 100 % 10};h{number // 1_000}"


def own(number: int) -> str:
    return f"main;function{number};kernel{number}"


def info(profile: Profile) -> None:
    assert summarize(profile).measures[0].total == STACKS


def export(profile: Profile) -> None:
    class Counted(io.RawIOBase):
        size = 0

        def write(self, data: bytes) -> int:  # type: ignore[override]
            Counted.size += len(data)
            return len(data)

    speedscope.write(profile, Selection(), Counted(), name="many")  # type: ignore[arg-type]
    assert Counted.size > 10 * STACKS


@pytest.mark.parametrize("use", [info, export])
@pytest.mark.parametrize("spell", [shared, own])
def test_memory_is_at_most_12_times_the_file(
    spell: Callable[[int], str],
    use: Callable[[Profile], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(folded, "_BATCH", 1 << 14)
    monkeypatch.setattr(speedscope, "_AT_ONCE", 1 << 8)
    path = tmp_path / "many.folded"
    path.write_text("".join(f"{spell(number)} 1\n" for number in range(STACKS)))
    use(load(path))  # imports count for no file
    tracemalloc.start()
    use(load(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < MOST * path.stat().st_size + CONSTANT


def test_what_is_written_in_pieces_is_one_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "few.folded"
    path.write_text("a;b 1\na;c 2\n all 3\nf (a.py:3);b 4\n")
    profile, whole, cut = load(path), io.BytesIO(), io.BytesIO()
    speedscope.write(profile, Selection(), whole, name="x")
    monkeypatch.setattr(speedscope, "_AT_ONCE", 1)
    speedscope.write(profile, Selection(), cut, name="x")
    assert cut.getvalue() == whole.getvalue()
    (written,) = json.loads(cut.getvalue())["profiles"]
    assert sorted(written["weights"]) == [1, 2, 3, 4]
    assert sorted(map(len, written["samples"])) == [1, 2, 2, 2]
