from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flame.core.model.tree import StackTree
from flame.tui.session.row_layout import NARROW, Item, RowLayout, Span
from tests.tui.trees import random_trees, stack_tree

widths = st.integers(1, 60)


@st.composite
def zoomed(draw: st.DrawFn) -> tuple[StackTree, Span, int]:
    """A tree, a span to look at and a width."""
    tree = draw(random_trees)
    wide = np.flatnonzero(tree.total)
    return tree, RowLayout.of(tree).span(int(draw(st.sampled_from(wide.tolist())))), draw(widths)


def edges(tree: StackTree, depth: int) -> list[tuple[int, int, int]]:
    """(node, low, high) of the frames of ``depth`` with any width, left to right."""
    nodes = [n for n in range(len(tree)) if tree.depth[n] == depth and tree.total[n]]
    return [(n, int(tree.x[n]), int(tree.x[n]) + int(tree.total[n])) for n in nodes]


def cells(low: int, high: int, span: Span, width: int) -> tuple[int, int]:
    scale = width / (span.high - span.low)
    return round((low - span.low) * scale), round((high - span.low) * scale)


def filled(tree: StackTree, depth: int, span: Span, width: int) -> list[float]:
    """How much of every cell the frames of ``depth`` fill, by looking at every frame."""
    cell = (span.high - span.low) / width
    parts = [0.0] * width
    for _, low, high in edges(tree, depth):
        for place in range(width):
            left = span.low + place * cell
            parts[place] += max(0.0, min(high, left + cell) - max(low, left)) / cell
    return parts


def all_rows(tree: StackTree, span: Span, width: int) -> list[tuple[int, list[Item]]]:
    layout = RowLayout.of(tree)
    return [(depth, layout.items(depth, span, width)) for depth in range(int(tree.depth.max()) + 2)]


@given(zoomed())
def test_items_lie_side_by_side_within_the_width(case: tuple[StackTree, Span, int]) -> None:
    tree, span, width = case
    for _, items in all_rows(tree, span, width):
        bounds = [0, *(edge for item in items for edge in (item.left, item.right)), width]
        assert bounds == sorted(bounds)
        assert all(item.left < item.right and item.frames > 0 for item in items)


@given(zoomed())
def test_every_frame_that_is_not_narrow_is_drawn_to_the_rounded_cell(
    case: tuple[StackTree, Span, int],
) -> None:
    tree, span, width = case
    for depth, items in all_rows(tree, span, width):
        drawn = {item.node: (item.left, item.right) for item in items if item.node >= 0}
        for node, low, high in edges(tree, depth):
            low, high = max(low, span.low), min(high, span.high)
            if (high - low) * width >= NARROW * (span.high - span.low):
                assert drawn[node] == cells(low, high, span, width)


@given(zoomed())
def test_no_frame_is_shown_twice_and_runs_hold_only_frames_that_touch_them(
    case: tuple[StackTree, Span, int],
) -> None:
    tree, span, width = case
    for depth, items in all_rows(tree, span, width):
        frames = edges(tree, depth)
        shown = [place for item in items for place in range(item.first, item.last)]
        assert len(shown) == len(set(shown))
        cell = (span.high - span.low) / width
        for item in items:
            for _, low, high in frames[item.first : item.last]:
                # Half a cell: the frames under the rounded edge of a wide neighbour belong too.
                assert low <= span.low + (item.right + 0.5) * cell + 1
                assert high >= span.low + (item.left - 0.5) * cell - 1


@given(zoomed())
def test_cells_between_wide_frames_are_drawn_where_frames_fill_half_of_them(
    case: tuple[StackTree, Span, int],
) -> None:
    tree, span, width = case
    for depth, items in all_rows(tree, span, width):
        drawn = {cell for item in items for cell in range(item.left, item.right)}
        for place, part in enumerate(filled(tree, depth, span, width)):
            if abs(part - 0.5) > 1e-6:
                assert (place in drawn) == (part > 0.5), (place, part)


def test_a_run_knows_its_frames_and_how_full_it_is() -> None:
    tree = stack_tree({("wide",): 900, **{(f"narrow {n}",): 1 for n in range(50)}, (): 50})
    items = RowLayout.of(tree).items(1, Span(0, 1000), 100)
    assert [(item.left, item.right, item.frames) for item in items] == [(5, 95, 1), (95, 100, 50)]
    assert items[1].node == -1
    assert items[1].cover == 1.0


def test_a_single_narrow_frame_keeps_its_identity() -> None:
    tree = stack_tree({("a",): 90, ("b",): 10})
    items = RowLayout.of(tree).items(1, Span(0, 100), 10)
    assert [tree.name(item.node) for item in items] == ["a", "b"]


def test_frames_without_width_take_no_part() -> None:
    tree = stack_tree({("a",): 10, ("zero",): 0, ("zero", "below"): 0})
    layout = RowLayout.of(tree)
    assert len(layout.row(1).nodes) == 1
    assert layout.row(1).place(tree.find(("zero",))) == -1
    assert layout.items(2, layout.whole, 10) == []


def test_a_tree_that_weighs_nothing_shows_nothing() -> None:
    layout = RowLayout.of(stack_tree({("a",): 0}))
    assert layout.items(0, layout.whole, 80) == []


def test_a_clipped_frame_ends_at_the_edge() -> None:
    tree = stack_tree({("a",): 60, ("b",): 40})
    items = RowLayout.of(tree).items(1, Span(30, 80), 50)
    assert [(item.left, item.right) for item in items] == [(0, 30), (30, 50)]
