"""A folder of traces to pick from, and a search of it that waits."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from flame.core.loading import search
from flame.core.loading.search import FoundTrace
from tests.tui.picker.picking import write


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of three traces, two of them in a folder below; the current one."""
    here = tmp_path / "log"
    (here / "run").mkdir(parents=True)
    for age, name in enumerate(("young.folded", "run/rank0.folded", "run/rank1.folded")):
        write(here / name, age)
    monkeypatch.chdir(here)
    return here


class Gate:
    """Lets one look at a file after the other through."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._turn = threading.Semaphore(0)
        looks = search.FolderSearch.looks

        def slow(searched: search.FolderSearch) -> Iterator[FoundTrace | None]:
            for trace in looks(searched):
                if trace:
                    self._turn.acquire()
                yield trace

        monkeypatch.setattr(search.FolderSearch, "looks", slow)
        monkeypatch.setattr("flame.tui.picker.feed._SOON", 0)
        monkeypatch.setattr("flame.tui.picker.feed._PERIOD", 0)

    def let(self, number: int = 1) -> None:
        self._turn.release(number)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate = Gate(monkeypatch)
    yield gate
    gate.let(100)
