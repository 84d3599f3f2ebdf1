"""Both halves of sandwiches have the stacks that plain loops find around a frame."""

from __future__ import annotations

from flame.core.model.tree import StackTree
from flame.tui.session.tree_view import TreeView
from flame.tui.views.sandwich_halves import SandwichHalves
from tests.support.oracles.naive_tree import Stack, tree_stack
from tests.support.oracles.naive_views import around, by_name
from tests.system.views.shown_cases import Looked, labels_of, looked, on_real


def ways(tree: StackTree) -> dict[Stack, int]:
    return {tree_stack(tree, node): int(tree.total[node]) for node in range(len(tree))}


def check_sandwich(one: Looked, most: int) -> None:
    tree, inverted = one.tree, one.case.shape.inverted
    # In an inverted tree the innermost place is the outermost one.
    plain = [each._replace(path=each.path[::-1]) for each in one.plain] if inverted else one.plain
    named = sorted(by_name(plain).items(), key=lambda item: -item[1].total)
    for label, sums in named[:most]:
        halves = SandwichHalves.of(TreeView(tree), labels_of(tree)[label])
        callers, callees = around(plain, label, innermost=inverted)
        assert ways(halves.callers.tree) == callers
        assert ways(halves.callees.tree) == callees
        assert int(halves.callers.tree.total[0]) == sums.total
        assert halves.own == sums.own
        assert halves.callers.whole == halves.callees.whole == int(tree.total[0])


@on_real
def test_both_halves_of_sandwiches_of_real_traces(trace: str) -> None:
    for one in looked(trace):
        check_sandwich(one, 4)
