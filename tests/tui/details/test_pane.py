from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from flame.core.analysis.distribution import distribution, histogram
from flame.core.analysis.words.formats import OPERATORS
from flame.core.columns import I8
from flame.core.model.frames import Frame, Kind
from flame.core.model.launches import LaunchConfig
from flame.core.model.tree import StackTree
from flame.tui.details.blocks.frame_blocks import bars
from flame.tui.details.facts import BINS, Facts, Moved, Used, UsedConfigs
from flame.tui.details.labels import Label
from flame.tui.details.pane import details
from flame.tui.details.parts import HeaviestParts, Part
from flame.tui.session.row_layout import Span
from flame.tui.session.tree_view import TreeView
from flame.tui.session.viewport import Zoom
from flame.tui.toolkit.lines import Line, line_width
from flame.tui.toolkit.palette import Palette
from tests.support.profiles.project_tree import project_tree
from tests.tui import sources
from tests.tui.trees import node, stack_tree

PALETTE = Palette((18, 18, 18), (224, 224, 224))
KERNEL = Frame(
    Kind.KERNEL,
    "gemm",
    extra=(("demangled", "void ns::gemm<float, 4>(int)"), ("mangled", "_ZN2ns4gemmE")),
)
RANGE = Frame(
    Kind.NVTX,
    "aten::mm",
    extra=(("domain", "torch"), ("shapes", "[[16, 2880]]"), ("captured", "1")),
)
PYTHON = Frame(Kind.PYTHON, "forward", "model.py", 42)
OPERATOR = Frame(Kind.NVTX, "aten::mm", extra=(("placed", "by GPU time"),))


def shown(
    tree: StackTree, *names: str, width: int = 40, zoom: str = "", facts: Facts | None = None
) -> list[str]:
    view = TreeView(tree, 100)
    if zoom:
        view.zoom_to(view.viewport.zoom_of(node(tree, zoom)))
    view.cursor.select(node(tree, *names))
    return [text(line) for line in details(view, PALETTE, width, facts).lines]


def known(values: Sequence[int] = (), **more: Any) -> Facts:
    """Facts of activities that took so long."""
    column: I8 = np.array(values, np.int64)
    spread, shape = distribution(column), histogram(column, BINS)
    rest: dict[str, Any] = {"parents": HeaviestParts([], 0, 0), "on": {}, "notes": ()}
    return Facts(False, spread, shape, **{"queue": None, **rest, **more})


def after(lines: list[str], title: str) -> list[str]:
    """What stands below the line that begins with ``title``."""
    return lines[next(y for y, line in enumerate(lines) if line.startswith(title)) + 1 :]


def text(line: Line) -> str:
    return "".join(piece.text for piece in line).rstrip()


def fact(lines: list[str], label: str) -> str:
    return next(line[12:] for line in lines if line.startswith(label))


TREE = stack_tree(
    {
        (PYTHON, RANGE, KERNEL): 6_000_000,
        (PYTHON, RANGE): 1_000_000,
        (PYTHON, "small"): 500_000,
        ("other", KERNEL): 2_500_000,
    },
    counts=10,
)


def test_times_and_shares() -> None:
    lines = shown(TREE, "forward", "aten::mm", zoom="forward")
    assert fact(lines, "total") == "7.00 ms  70.0 % of all"
    assert fact(lines, "self") == "1.00 ms  14.3 % of total"
    assert fact(lines, "of parent") == "93.3 %"
    assert fact(lines, "of zoomed") == "93.3 %"
    assert fact(lines, "count") == "20  mean 350 µs"


def test_what_reaches_beyond_the_zoomed_part_is_no_share_of_it() -> None:
    view = TreeView(stack_tree({("a",): 60, ("b",): 40}), 100)
    view.zoom_to(Zoom(0, Span(30, 100)))
    shares = {}
    for name in "ab":
        view.cursor.select(node(view.tree, name))
        shares[name] = [text(line) for line in details(view, PALETTE, 40).lines]
    assert fact(shares["b"], "of zoomed") == "57.1 %"
    assert not any("of zoomed" in line for line in shares["a"])


def test_a_narrow_pane_tears_no_numbers() -> None:
    lines = shown(stack_tree({("a",): 371_000_000}, counts=14_988), "a", width=31)
    assert fact(lines, "total") == "371 ms  100.0 %"
    assert (fact(lines, "count"), fact(lines, "mean")) == ("14,988", "24.8 µs")


def test_own_time_is_said_where_it_is_neither_all_nor_nothing() -> None:
    assert not any(line.startswith("self") for line in shown(TREE, "forward", "aten::mm", "gemm"))
    assert not any(line.startswith("self") for line in shown(TREE, "forward"))


def test_a_name_in_several_places_is_summed() -> None:
    lines = shown(TREE, "other", "gemm")
    assert fact(lines, "2 places") == "8.50 ms  85.0 %  20×"


def test_what_is_known_of_a_range() -> None:
    lines = shown(TREE, "forward", "aten::mm")
    assert lines[:2] == [" nvtx", "aten::mm"]
    assert fact(lines, "domain") == "torch"
    assert fact(lines, "shapes") == "[[16, 2880]]"
    assert fact(lines, "open") == "when the CUDA graph was"


def test_what_is_known_of_a_kernel() -> None:
    lines = shown(TREE, "other", "gemm")
    at = lines.index("demangled")
    assert lines[at : at + 4] == [
        "demangled",
        "void ns::gemm<float, 4>(int)",
        "mangled",
        "_ZN2ns4gemmE",
    ]


def test_the_source_place_of_a_python_frame() -> None:
    assert fact(shown(TREE, "forward"), "source") == "model.py:42"


def test_the_heaviest_children_come_with_their_share() -> None:
    lines = shown(TREE, "forward")
    at = lines.index("heaviest below")
    assert lines[at + 1 : at + 3] == [" 93.3 %  aten::mm", "  6.7 %  small"]
    wide = shown(TREE, "forward", width=60)
    assert wide[wide.index("heaviest below") + 1] == " 93.3 %   7.00 ms  aten::mm"


def test_a_count_is_not_called_a_time() -> None:
    tree = stack_tree({("a",): 3, ("b",): 1}, metric="count")
    lines = shown(tree, "a")
    assert fact(lines, "total") == "3  75.0 % of all"
    assert not any(line.startswith("count") for line in lines)


def test_a_frame_in_a_run_says_so() -> None:
    tree = stack_tree({("big",): 100_000, **{(f"tiny {n}",): 10 for n in range(100)}})
    assert shown(tree, "tiny 7")[0] == " kernel  one of 100 narrow, enter zooms"
    alone = stack_tree({("big",): 100_000, ("tiny",): 1})
    assert shown(alone, "tiny")[0] == " kernel  too narrow to draw"


def test_a_wide_pane_has_two_columns() -> None:
    lines = shown(TREE, "forward", width=90)
    assert lines[0].split() == ["python", "GPU", "time,", "each"]
    assert len(lines) < len(shown(TREE, "forward", width=60))


def test_every_line_fits_the_pane() -> None:
    hostile = Frame(
        Kind.NVTX,
        "\x1b[31m" * 1000,
        "/" + "path/" * 200,
        7,
        (("shapes", "[" * 5000), ("domain", "日本" * 100), ("detail", "a\nb\u202e")),
    )
    tree = stack_tree({(hostile, "絵文字🚀" * 30): 10, (hostile, ""): 5})
    name = "\x1b]0;x\x07日本" * 100
    parts = HeaviestParts([Part(name, 8, 1), Part(name, 2)], 9, 10)
    unread = known((1, 10**12), parents=parts, on={Label.THREADS: parts}, unread=name)
    config = LaunchConfig((2**31,) * 3, (1024,) * 3, None, 255, 2**30, 2**30)
    launched = UsedConfigs([Used(config, 10**9, 7)] * 2, 2, 14)
    for width, facts in itertools.product(
        (30, 40, 69, 70, 118), (None, unread, known((3, 4), launched=launched))
    ):
        for selected in (1, 2, 3):
            view = TreeView(tree, 100)
            view.cursor.select(selected)
            for line in details(view, PALETTE, width, facts).lines:
                assert line_width(line) <= width
                assert text(line).isprintable()


def test_a_name_of_no_text_is_visible() -> None:
    tree = stack_tree({("",): 1})
    view = TreeView(tree, 100)
    view.cursor.select(1)
    assert text(details(view, PALETTE, 40).lines[1]) == "[empty]"


def test_nothing_is_called_narrow_before_there_is_a_width() -> None:
    lines = [text(line) for line in details(TreeView(TREE, 0), PALETTE, 40).lines]
    assert lines[0].strip() == "root"


# -- what has been worked out -----------------------------------------------------------------


def test_percentiles_and_a_histogram() -> None:
    values = [1_000] * 50 + [2_000] * 49 + [40_000]
    lines = after(shown(TREE, "forward", facts=known(values)), "GPU time, each  tail 2.0×")
    assert lines[:2] == [
        "       p50       p95       p99       max",
        "   1.00 µs   2.00 µs   2.00 µs   40.0 µs",
    ]
    upper, lower, axis = lines[2:5]
    assert (upper[0], lower[0], lower[-1]) == ("█", "█", "▁")
    assert axis.split("  ")[0] == "1.00 µs"
    assert "log scale" in axis
    assert axis.endswith("40.0 µs")
    assert len(axis) == len(lower) == 40


def test_percentiles_fit_a_narrow_pane() -> None:
    values = shown(TREE, "forward", width=30, facts=known([1_000_000, 2_500_000]))
    assert after(values, "    p50")[0] == " 1.00ms 2.50ms 2.50ms 2.50ms".replace("  ", " ")


def test_until_they_are_known_their_lines_are_kept_free() -> None:
    before = shown(TREE, "forward")
    later = shown(TREE, "forward", facts=known([1_000_000, 2_500_000]))
    assert len(before) == len(later)
    assert "…" in after(before, "       p50")[0]


def test_equal_values_have_no_histogram() -> None:
    lines = after(shown(TREE, "forward", facts=known([7, 7, 7])), "   ")
    assert lines[1] == "all the same"


def test_one_activity_has_no_percentiles() -> None:
    assert not any("p50" in line for line in shown(TREE, "forward", facts=known([7])))


def test_bars_are_as_high_as_counts_and_never_vanish() -> None:
    assert bars(np.array([0, 1, 1_000, 500, 750])) == ("  █ ▄", " ▁███")


GRID = LaunchConfig((128, 4, 1), (256, 1, 1), None, 64, 1_024, 0, 8_192, 0)


def test_how_a_kernel_was_launched() -> None:
    facts = known([5, 6], launched=UsedConfigs([Used(GRID, 2, 11)], 1, 11))
    lines = shown(TREE, "other", "gemm", facts=facts)
    assert fact(lines, "grid") == "128 × 4 = 512 blocks"
    assert fact(lines, "block") == "256 threads"
    assert fact(lines, "registers") == "64 per thread"
    assert fact(lines, "shared") == "1 KiB static"
    assert not any(line.startswith(("cluster", "local")) for line in lines)


def test_shared_memory_known_only_in_sum_is_that_of_both_kinds() -> None:
    sum_only = LaunchConfig((1, 1, 1), (32, 1, 1), shared=49_152)
    lines = shown(
        TREE, "other", "gemm", facts=known([5], launched=UsedConfigs([Used(sum_only, 1, 5)], 1, 5))
    )
    assert fact(lines, "shared") == "48 KiB static + dynamic"


def test_what_the_trace_does_not_say_of_a_launch_is_left_out() -> None:
    facts = known([5, 6], launched=UsedConfigs([Used(LaunchConfig(block=(8, 8, 1)), 2, 9)], 1, 9))
    lines = shown(TREE, "other", "gemm", facts=facts)
    assert fact(lines, "block") == "8 × 8 = 64 threads"
    assert not any(line.startswith(("grid", "registers", "shared")) for line in lines)


def test_several_configurations_by_their_share_of_time() -> None:
    other = LaunchConfig((8, 1, 1), (32, 1, 1), None, 64, 1_024, 0, 8_192, 0)
    facts = known([5, 6], launched=UsedConfigs([Used(GRID, 1_200, 90), Used(other, 3, 10)], 7, 100))
    assert after(shown(TREE, "other", "gemm", facts=facts), "launched in 7 ways")[:3] == [
        "  90.0 %   1,200×  128×4 of 256 threads",
        "          64 registers, 1 KiB shared",
        "  10.0 %       3×  8 of 32 threads",
    ]


def test_what_copies_moved() -> None:
    sizes = distribution(np.array([1_000_000, 3_000_000]))
    assert sizes is not None
    lines = shown(TREE, "other", "gemm", facts=known([5, 6], moved=Moved(sizes, 2_000_000)))
    assert fact(lines, "moved") == "4.00 MB at 2.00 GB/s"
    assert fact(lines, "each") == "p50 1.00 MB, max 3.00 MB"


def test_any_bandwidth_is_readable() -> None:
    sizes = distribution(np.array([2_500_000_000]))
    assert sizes is not None
    for ns, rate in ((1_000_000, "2.50 TB/s"), (2_000_000_000_000, "1.25 MB/s")):
        lines = shown(TREE, "other", "gemm", facts=known([5, 6], moved=Moved(sizes, ns)))
        assert fact(lines, "moved") == f"2.50 GB at {rate}"


def test_a_launch_that_is_not_known_yet_or_at_all() -> None:
    assert fact(shown(TREE, "other", "gemm"), "launch") == "…"
    reading = known([5, 6], complete=False)
    assert fact(shown(TREE, "other", "gemm", facts=reading), "launch") == "…"
    gone = shown(TREE, "other", "gemm", facts=known([5, 6], unread="t.sqlite: no such file"))
    assert "launch unknown: t.sqlite: no such file" in gone
    assert not any("launch" in line for line in shown(TREE, "forward", "aten::mm"))


def test_the_queue_delay() -> None:
    queue = distribution(np.array([1_000] * 97 + [3_000, 5_000, 9_000]))
    lines = shown(TREE, "forward", facts=known([5, 6], queue=queue))
    assert fact(lines, "queued") == "p50 1.00 µs, p99 5.00 µs"


def test_several_shapes_stand_below_with_their_shares() -> None:
    shapes = HeaviestParts([Part("[[16, 2880], [2880, 2880]]", 3), Part("[[1]]", 1)], 7, 4)
    lines = shown(TREE, "forward", "aten::mm", facts=known(shapes=shapes))
    at = lines.index("heaviest shapes, of 7")
    assert lines[at + 1 : at + 3] == [" 75.0 %  [[16, 2880], [2880, 2880]]", " 25.0 %  [[1]]"]
    lines = shown(TREE, "forward", "aten::mm", width=31, facts=known(shapes=shapes))
    assert " 75.0 %  [[16, 2880], [2880, 2…" in lines
    assert not any(line.startswith("shapes") for line in lines)


def test_parents_can_be_clicked() -> None:
    parents = HeaviestParts([Part("aten::mm", 6, 2), Part("other", 2, 4)], 2, 8)
    view = TreeView(TREE, 100)
    view.cursor.select(node(TREE, "other", "gemm"))
    lines = details(view, PALETTE, 40, known([5, 6], parents=parents)).lines
    at = [text(line) for line in lines].index("heaviest above, of 2")
    assert text(lines[at + 1]) == " 75.0 %  aten::mm"
    assert lines[at + 1][-1].action == "screen.select(2)"


@pytest.mark.parametrize("clicks", [True, False])
def test_children_can_be_clicked_in_the_projected_tree(clicks: bool) -> None:
    view = TreeView(TREE, 100)
    view.cursor.select(node(TREE, "forward"))
    lines = details(view, PALETTE, 40, clicks=clicks).lines
    actions = [piece.action for line in lines for piece in line if piece.action]
    assert any("select(" in action for action in actions) == clicks


def test_where_it_ran_and_what_is_missing() -> None:
    on = {Label.GPUS: HeaviestParts([Part("GPU 0", 90), Part("GPU 1", 10)], 3, 100)}
    note = "NVTX ranges cover 47 % of GPU time, the rest was launched outside any."
    lines = shown(TREE, "forward", facts=known([5, 6], on=on, notes=(note,)))
    assert fact(lines, "GPUs") == "GPU 0 90.0 %, GPU 1 10.0 %"
    assert after(lines, "GPUs")[0].strip() == "1 more"
    assert "NVTX ranges cover 47 % of GPU time, the" in lines


def test_of_a_long_name_it_ran_on_the_share_stays() -> None:
    parts = [Part(f"VLLM::Worker_TP{rank} [410{rank}]", 50) for rank in range(2)]
    lines = shown(
        TREE, "forward", facts=known([5, 6], on={Label.PROCESSES: HeaviestParts(parts, 2, 100)})
    )
    named = [fact(lines, "processes"), after(lines, "processes")[0].strip()]
    assert [(name[:6], name[-13:]) for name in named] == [
        ("VLLM::", "[4100] 50.0 %"),
        ("VLLM::", "[4101] 50.0 %"),
    ]


def test_a_name_cut_at_the_top_stands_in_full_below() -> None:
    name = "void gemm<" + ", ".join(f"Tile{place}" for place in range(40)) + ">(int)"
    tree = stack_tree({(name,): 1})
    assert "".join(after(shown(tree, name, width=60), "name")).count("Tile") == 40


def test_operators_are_called_so_and_say_why_they_stand_there() -> None:
    view = TreeView(stack_tree({(OPERATOR, "gemm"): 10}), 100)
    view.cursor.select(1)
    lines = [text(line) for line in details(view, PALETTE, 60, terms=OPERATORS).lines]
    assert lines[0] == " operator"
    assert "placed      by GPU time" in lines


def test_samples_have_no_count_no_mean_and_no_spread() -> None:
    tree = project_tree(sources.stacks())
    view = TreeView(tree, 100)
    view.cursor.select(node(tree, "main [7]", "main", "work"))
    lines = [text(line) for line in details(view, PALETTE, 60).lines]
    title = " frame  one of 3 joined, E opens"
    assert lines[:3] == [title, "work", "source      lib/server.py:12"]
    assert "total       30  75.0 % of all" in lines
    assert not [line for line in lines if line.startswith(("count", "GPU", "samples"))]
    assert view.tree.metric.title == "samples"
