from __future__ import annotations

from flame.core.frames import Frame, Kind
from flame.core.tree import StackTree
from flame.tui.details import details
from flame.tui.lines import Line, line_width
from flame.tui.palette import Palette
from flame.tui.view import View
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


def shown(tree: StackTree, *names: str, width: int = 40, zoom: str = "") -> list[str]:
    view = View(tree, 100)
    if zoom:
        view.zoom_to(view.zoom_of(node(tree, zoom)))
    view.select(node(tree, *names))
    return [text(line) for line in details(view, PALETTE, width)]


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
    assert fact(lines, "count") == "20"
    assert fact(lines, "mean") == "350 µs"


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
    assert lines[at + 1 : at + 3] == [
        " 7.00 ms  93.3 %  aten::mm",
        "  500 µs   6.7 %  small",
    ]


def test_a_count_is_not_called_a_time() -> None:
    tree = stack_tree({("a",): 3, ("b",): 1}, metric="count")
    lines = shown(tree, "a")
    assert fact(lines, "total") == "3  75.0 % of all"
    assert not any(line.startswith(("mean", "count")) for line in lines)


def test_a_frame_in_a_run_says_so() -> None:
    tree = stack_tree({("big",): 100_000, **{(f"tiny {n}",): 10 for n in range(100)}})
    assert shown(tree, "tiny 7")[0] == " kernel  one of 100 narrow, enter zooms"
    alone = stack_tree({("big",): 100_000, ("tiny",): 1})
    assert shown(alone, "tiny")[0] == " kernel  too narrow to draw"


def test_a_wide_pane_has_two_columns() -> None:
    lines = shown(TREE, "forward", width=90)
    assert lines[0].split() == ["python", "heaviest", "below"]
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
    for width in (30, 40, 69, 70, 118):
        for selected in (1, 2, 3):
            view = View(tree, 100)
            view.select(selected)
            for line in details(view, PALETTE, width):
                assert line_width(line) <= width
                assert text(line).isprintable()


def test_a_name_of_no_text_is_visible() -> None:
    tree = stack_tree({("",): 1})
    view = View(tree, 100)
    view.select(1)
    assert text(details(view, PALETTE, 40)[1]) == "[empty]"


def test_nothing_is_called_narrow_before_there_is_a_width() -> None:
    lines = [text(line) for line in details(View(TREE, 0), PALETTE, 40)]
    assert lines[0].strip() == "root"
