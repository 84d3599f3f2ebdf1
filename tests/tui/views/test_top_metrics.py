"""GPU metrics in the top table and the details: known, too short to sample, beside others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from flame.core.efficiency.measured_frames import MOVED
from flame.core.loading.many import load
from flame.core.options import LoadOptions
from flame.core.projection.selection import Selection
from flame.tui.details.blocks.metric_blocks import metric_lines, metric_words
from flame.tui.details.facts import collect
from flame.tui.session.session import project
from flame.tui.timeline.prepare import find_reasons
from flame.tui.views.top_columns import TopColumns
from flame.tui.views.top_metrics import measure_shown, metric_cell
from flame.tui.views.top_pane import TopPane
from tests.support.generated.worked import write_sampled
from tests.support.writers.nsysfile import NsysFile
from tests.tui.conftest import User, open_app
from tests.tui.trees import node

SM, TENSOR = "SMs Active [Throughput %]", "Tensor Active [Throughput %]"
READ, WRITE = "DRAM Read Bandwidth [Throughput %]", "DRAM Write Bandwidth [Throughput %]"
US = 1_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Sampled every 10 µs: a gemm and a copy one after the other, a short kernel beside it."""
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.gpu(0, "H100", pid=100)
        file.db.execute("UPDATE TARGET_INFO_GPU SET memoryBandwidth = 1000000000000")
        kernels = (("gemm", 0, 1000), ("copy_like", 1000, 2000), ("short", 1100, 1250))
        for number, (name, start, end) in enumerate(kernels, 1):
            file.api("cudaLaunchKernel_v7000", number, number + 1, corr=number)
            file.kernel(name, start * US, end * US, corr=number, stream=number)
        for at in range(0, 2010, 10):
            heavy = at <= 1000
            file.metric(SM, at * US, 90 if heavy else 10)
            file.metric(TENSOR, at * US, 60 if heavy else 0)
            file.metric(READ, at * US, 5 if heavy else 50)
            file.metric(WRITE, at * US, 1 if heavy else 30)
    return tmp_path / "trace.sqlite"


def rows_of(user: User) -> dict[str, list[str]]:
    """The cells of the metrics, by name."""
    table = user.screen.query_one(TopPane)._table
    assert table is not None
    keys = ("sm_active", "tensor_active", "dram", "exposure")
    return {table.name(row): [table.cell(row, key) for key in keys] for row in range(len(table))}


async def test_columns_are_filled_where_enough_is_known(path: Path) -> None:
    async with open_app(path, size=(220, 40)) as user:
        pane = user.screen.query_one(TopPane)
        while user.screen.pane is not pane:
            await user.press("tab")
        await user.until(lambda: not pane.busy)
        await user.settle()
        found = rows_of(user)
        assert found["gemm"] == ["90.0 %", "60.0 %", "6.0 %", "1.00 ms"]
        assert found["copy_like"] == ["10.0 %", "0.0 %", "80.0 %", "1.00 ms*"]
        assert found["short"] == ["", "", "", ""], "15 samples say nothing, and are no zero"
        assert "sampled" in user.read("heads") and "90.0 %" in user.read("table")
        pane._sort_by("dram")
        pane.show(user.screen.shown)
        await user.settle()
        order = [pane._table.name(int(row)) for row in pane._rows] if pane._table else []
        assert order.index("copy_like") < order.index("gemm") < order.index("short")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gemm", ["SM active 90.0 %", "DRAM 5.0 % read, 1.0 % written, 60.0 GB/s"]),
        ("gemm", ["sampled 1.00 ms, 100 samples"]),
        (
            "copy_like",
            ["tensor 0.0 %", "sampled 1.00 ms, 100 samples, beside other kernels"],
        ),
        ("short", ["sampled 150 µs, 15 samples: too short to sample"]),
    ],
)
def test_details_say_what_is_known_and_of_how_much(path: Path, name: str, words: list[str]) -> None:
    shown = project(load(path), Selection(levels=("kernel",)))
    tree = shown.view.tree
    *_, facts = collect(shown, tree, node(tree, name))
    found = list(metric_words(facts.measured))
    assert [word for word in found if word in words] == words
    if name == "short":
        assert found == words


def test_a_file_that_has_changed_says_so(path: Path) -> None:
    shown = project(load(path), Selection(levels=("kernel",)))
    with path.open("ab") as file:
        file.write(b"more")
    tree = shown.view.tree
    *_, facts = collect(shown, tree, node(tree, "gemm"))
    assert any("GPU metrics unknown" in note and "changed" in note for note in facts.notes)
    assert measure_shown(shown, np.unique(tree.frame[1:])) is None
    reasons = find_reasons(shown.profile)
    assert reasons.causes and "changed" in reasons.unread


def test_bytes_that_are_moved_twice_are_told(tmp_path: Path) -> None:
    path = write_sampled(tmp_path / "b.sqlite", [("relu", 0, 1_000), ("mm", 2_000, 3_000)], read=2)
    options = LoadOptions(dtype="bf16")
    shown = project(load(path, options), Selection(levels=("kernel",)))
    tree = shown.view.tree
    *_, facts = collect(shown, tree, node(tree, "mm"))
    lines = [
        "".join(piece.text for piece in line)
        for line in metric_lines(facts.measured, facts.traffic, 120)
    ]
    assert "traffic     20.0 MB moved, 3.2× counted: bytes are moved twice" in lines
    *_, facts = collect(shown, tree, node(tree, "relu"))
    assert not [
        line for line in metric_lines(facts.measured, facts.traffic, 120) if "counted" in str(line)
    ]
    found = measure_shown(shown, np.unique(tree.frame[1:]))
    assert found is not None
    assert sorted(metric_cell(found, row, MOVED) for row in range(2)) == ["", "3.2×"]
    keys = [head.key for head in TopColumns(sized=True, measured=True).heads]
    assert MOVED in keys and MOVED not in [head.key for head in TopColumns(measured=True).heads]


def test_nothing_is_written_of_what_has_no_metrics() -> None:
    assert list(metric_words(None)) == []
    heads = [head.key for head in TopColumns().heads]
    assert "sm_active" not in heads
