"""What the pane says of the root: how busy the GPUs were, and with what."""

from __future__ import annotations

from pathlib import Path

import pytest

from flame.core.analysis.words.formats import NVTX
from flame.core.loading.many import load, load_all
from flame.core.projection.filters import Filter, HideStacks, Time
from flame.core.projection.selection import Selection
from flame.tui.details.compact import compact
from flame.tui.details.facts import Facts, collect
from flame.tui.details.labels import Label
from flame.tui.details.pane import details
from flame.tui.session.session import Projection, project
from flame.tui.toolkit.lines import Line, line_width
from flame.tui.toolkit.palette import Palette
from tests.conftest import TRACES, needs_traces
from tests.support.writers.nsysfile import HTOD, NsysFile
from tests.tui.conftest import open_app
from tests.tui.trees import node

PALETTE = Palette((18, 18, 18), (224, 224, 224))
WIDTHS = (30, 38, 62, 78)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Two layers, a reduction between GPUs and a copy; idle for 400 of 1,000 ns."""
    with NsysFile(tmp_path / "trace.sqlite") as trace:
        trace.gpu(0, "NVIDIA H100")
        for place, (text, name, start, length) in enumerate(
            (
                ("layers.0", "gemm", 0, 200),
                ("layers.1", "gemm", 200, 100),
                ("layers.1", "ncclDevKernel_AllReduce", 500, 200),
            )
        ):
            begin = 10 * place
            trace.nvtx(text, begin, begin + 9)
            trace.api("cudaLaunchKernel", begin + 1, begin + 2, place + 1)
            trace.kernel(name, start + 100, start + 100 + length, place + 1)
        trace.memcpy(HTOD, 1_000, 1_100, corr=None, bytes=4_000)
    return tmp_path / "trace.sqlite"


def shown_of(path: Path, *where: Filter, **selected: str) -> Projection:
    return project(load(path), Selection(where=where, **selected))  # type: ignore[arg-type]


def facts_of(shown: Projection) -> list[Facts]:
    return list(collect(shown, shown.view.tree, 0))


def lines_of(shown: Projection, width: int = 62) -> list[Line]:
    return details(shown.view, PALETTE, width, facts_of(shown)[-1]).lines


def text(lines: list[Line]) -> list[str]:
    return ["".join(piece.text for piece in line).rstrip() for line in lines]


def after(lines: list[str], title: str) -> list[str]:
    """The lines from below ``title`` to the next empty one."""
    first = lines.index(title) + 1
    return lines[first : (lines.index("", first) if "" in lines[first:] else None)]


def test_it_tells_how_busy_and_with_what(path: Path) -> None:
    lines = text(lines_of(shown_of(path)))
    assert "GPU0 busy 60.0 %  idle 400 ns" in lines
    assert "  kernels 50.0 %, copies alone 10.0 %" in lines
    assert after(lines, "heaviest kernels") == [
        " 50.0 %    300 ns  gemm",
        " 33.3 %    200 ns  ncclDevKernel_AllReduce",
    ]
    assert after(lines, "heaviest NVTX ranges, innermost") == [" 83.3 %    500 ns  layers.*"]
    assert after(lines, "heaviest communication") == [" 33.3 %    200 ns  ncclDevKernel_AllReduce"]
    assert after(lines, "heaviest copies") == [" 16.7 %    100 ns  memcpy HtoD  4.00 kB"]
    assert after(lines, "longest idle gaps") == [
        "  200 ns at 0.000000 s  gemm → ncclDevKernel_AllReduce",
        "  200 ns at 0.000001 s  ncclDevKernel_AllReduce → memcpy HtoD",
    ]
    assert not any("functions" in line or "modules" in line for line in lines)


def test_why_it_was_idle_stands_with_how_long_on_three_lines_too(path: Path) -> None:
    shown, facts = shown_of(path), facts_of(shown_of(path))[-1]
    causes = [(Label.CAUSES, "sync 400 ns (! has all)")]
    whole = text(details(shown.view, PALETTE, 62, facts, remarks=causes).lines)
    at = whole.index("GPU0 busy 60.0 %  idle 400 ns")
    assert whole[at + 2] == "causes      sync 400 ns (! has all)"
    short = text(compact(shown.view, PALETTE, 78, facts, NVTX, True, causes))
    assert short[0] == " GPU0 busy 60.0 % idle 400 ns · sync 400 ns (! has all)"
    assert "sync" not in text(compact(shown.view, PALETTE, 40, facts, NVTX, True, causes))[0]


def test_it_follows_filters(path: Path) -> None:
    profile = load(path)
    start = int(profile.activities.start.min())
    lines = text(lines_of(shown_of(path, Time(start, start + 400))))
    assert "GPU0 busy 75.0 %  idle 100 ns" in lines
    assert after(lines, "heaviest kernels") == ["100.0 %    300 ns  gemm"]
    assert len(after(lines, "longest idle gaps")) == 1


def test_what_is_hidden_counts_in_no_list_but_was_busy_all_the_same(path: Path) -> None:
    lines = text(lines_of(shown_of(path, HideStacks("layers.1"))))
    assert "GPU0 busy 60.0 %  idle 400 ns" in lines
    assert after(lines, "heaviest kernels") == [" 66.7 %    200 ns  gemm"]
    assert "heaviest communication" not in lines


def test_bytes_come_once_the_file_has_been_read(path: Path) -> None:
    first, last = facts_of(shown_of(path))
    assert first.root and last.root
    assert (first.complete, first.root.moved) == (False, ())
    assert (last.complete, last.root.moved) == (True, (4_000,))


def test_names_select_their_heaviest_place(path: Path) -> None:
    shown = shown_of(path)
    pieces = [piece for line in lines_of(shown) for piece in line if piece.action]
    gemm = next(piece for piece in pieces if piece.text == "gemm")
    place = node(shown.view.tree, "cudaLaunchKernel", "layers.0", "gemm")
    assert gemm.action == f"screen.select({place})"
    assert "memcpy HtoD" in [piece.text for piece in pieces]


@pytest.mark.parametrize("width", WIDTHS)
def test_lines_fit(path: Path, width: int) -> None:
    assert all(line_width(line) <= width for line in lines_of(shown_of(path), width))


def test_a_long_name_of_a_gpu_stays_whole(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "another_rank.sqlite"
    other.write_bytes(path.read_bytes())
    shown = project(load_all([path, other]), Selection())
    lines = text(
        details(shown.view, PALETTE, 34, list(collect(shown, shown.view.tree, 0))[-1]).lines
    )
    assert "…ther_rank GPU0 busy 60.0 %" in lines and "  idle 400 ns" in lines


@needs_traces
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "name", ["nsys/h100_2gpu_window.sqlite", "kineto/h100_qwen_python.json.gz"]
)
def test_lines_of_real_traces_fit(name: str, width: int) -> None:
    lines = lines_of(shown_of(TRACES / name), width)
    assert all(line_width(line) <= width for line in lines)
    assert any("heaviest kernels" in line for line in text(lines))


def test_until_they_are_known_there_is_but_the_sum(path: Path) -> None:
    shown = shown_of(path)
    lines = text(details(shown.view, PALETTE, 62, None).lines)
    assert lines[1] == "all" and not any("heaviest" in line for line in lines)


def test_of_what_the_host_did_the_heaviest_below_are_told(path: Path) -> None:
    lines = text(lines_of(shown_of(path, metric="host")))
    assert "heaviest below" in lines and "heaviest kernels" not in lines


async def test_a_click_on_a_name_selects_it(path: Path) -> None:
    async with open_app(path) as user:
        await user.rest()
        lines = user.read("details").splitlines()
        row = next(at for at, line in enumerate(lines) if line.endswith(" ncclDevKernel_AllReduce"))
        column = lines[row].index("nccl") + 2
        await user.pilot.click("#details", offset=(column + 1, row))
        await user.settle()
        assert user.selected == "ncclDevKernel_AllReduce"
