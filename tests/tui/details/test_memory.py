"""What the details say of memory, and the header and the bar of filters."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from flame.core.analysis.words.formats import NVTX
from flame.core.analysis.words.memory import moment_words
from flame.core.loading.many import load
from flame.core.projection.filters import At, Filter
from flame.core.projection.selection import Selection
from flame.tui.details.compact import compact
from flame.tui.details.facts import Facts, collect
from flame.tui.details.pane import details
from flame.tui.session.session import Projection, project
from flame.tui.toolkit.palette import Palette
from flame.tui.widgets.chips import chips
from flame.tui.widgets.header import header
from tests.support.writers.snapshotfile import SnapshotFile
from tests.tui.trees import node

PALETTE = Palette((18, 18, 18), (224, 224, 224))
MB = 1_000_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Three steps, after each of which 1 MB more stays; what was there before them is lost."""
    file = SnapshotFile()
    file.alloc(2 * MB, ("main", "weights"))
    for _ in range(4):
        file.alloc(MB, ("main", "cache"))
        file.free(file.alloc(MB // 2, ("main", "forward")))
        file.end_step()
    file.fail(9 * MB, 1_000)
    return file.write(tmp_path / "snapshot.pickle", first=2, with_frames=False)


def shown_of(path: Path, *where: Filter, metric: str | None = None) -> Projection:
    return project(load(path), Selection(where=where, metric=metric))


def facts_of(shown: Projection, *names: str) -> Facts:
    shown.view.cursor.select(node(shown.view.tree, *names) if names else 0)
    return list(collect(shown, shown.view.tree, shown.view.cursor.node))[-1]


def told(shown: Projection, *names: str, width: int = 62) -> dict[str, str]:
    """Labels with what stands beside them."""
    facts = facts_of(shown, *names)
    lines = details(shown.view, PALETTE, width, facts).lines
    texts = ["".join(piece.text for piece in line).rstrip() for line in lines]
    return {text[:12].strip(): text[12:].strip() for text in texts if text[12:].strip()}


def test_a_frame_has_its_allocations(path: Path) -> None:
    said = told(shown_of(path, metric="alloc"), "main", "forward")
    assert said["allocations"] == "4"
    assert said["sizes"] == "500 kB each"
    assert said["lifetimes"] == "10.0 µs each"
    assert (said["from before"], said["alive"]) == ("nothing", "nothing")
    assert "may leak" not in said


def test_a_frame_that_grows_says_how_much(path: Path) -> None:
    said = told(shown_of(path), "main", "cache")
    assert said["may leak"].startswith("3.00 MB over 4 steps: 0 B, 1.00 MB, 2.00 MB,")
    assert said["alive"] == "4.00 MB  100.0 %"
    assert said["lifetimes"] == "4 unknown"


def test_memory_from_before_is_told(path: Path) -> None:
    said = told(shown_of(path), "[allocated before recording]")
    assert said["from before"] == "2.00 MB  100.0 %"
    [note] = facts_of(shown_of(path), "[allocated before recording]").notes
    assert "nothing tells by whom" in note


def test_the_root_has_what_is_known_of_the_gpu(path: Path) -> None:
    said = told(shown_of(path))
    assert said["shown"] == said["peak"].replace("6.50 MB  ", "at the peak, ")
    assert said["at the end"] == "6.00 MB"
    assert said["failed"] == "9.00 MB: full, 1.00 kB free on the device"
    assert said["may leak"] == "3.00 MB in 1 stack over 4 steps"
    sizes = [said[part].split("  ")[0] for part in ("reserved", "requested", "releasable")]
    assert sizes == ["12.6 MB", "6.00 MB", "2.10 MB"]


def test_three_lines_have_the_most_important(path: Path) -> None:
    shown = shown_of(path)
    lines = compact(shown.view, PALETTE, 100, facts_of(shown), NVTX, clicks=True)
    last = "".join(piece.text for piece in lines[-1])
    assert "peak 6.50 MB · at the end 6.00 MB · reserved 12.6 MB · 1 failed" in last


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ((), "at the peak, event "),
        ((At("oom"),), "when 9.00 MB could not be had, event "),
        ((At("end"),), "at the end, event "),
        ((At(0),), "at 0 ns, "),
    ],
    ids=["peak", "oom", "end", "time"],
)
def test_the_moment_is_told(path: Path, where: tuple[Filter, ...], words: str) -> None:
    profile, selection = load(path), Selection(where=where)
    text = moment_words(profile, selection)
    assert text.startswith(words)
    if where:
        line = chips(where, profile, 100, text)
        assert f" × {text}" in "".join(piece.text for piece in line)


@pytest.mark.parametrize(("width", "words"), [(140, "6.50 MB · end 6.00 MB"), (80, "peak 6.5")])
def test_the_header_has_peak_and_end(path: Path, width: int, words: str) -> None:
    shown = shown_of(path)
    line = header("x.pickle", shown.profile, Selection(), shown.view.tree, PALETTE, width)
    assert words in "".join(piece.text for piece in line)


def test_without_a_history_the_moment_says_so(tmp_path: Path) -> None:
    file = SnapshotFile()
    file.alloc(MB)
    path = tmp_path / "segments.pickle"
    path.write_bytes(pickle.dumps(file.segments(), 4))
    assert moment_words(load(path), Selection()) == "at the peak, there is no history"
    assert told(shown_of(path))["peak"] == "1.00 MB  there is no history"
