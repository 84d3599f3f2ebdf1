"""The table of a comparison says of each frame what plain loops over the stacks find."""

from __future__ import annotations

import pytest
from hypothesis import given

from flame.core.compare.amounts import Amounts
from flame.core.compare.noise.beyond_noise import NoiseMarks
from flame.tui.diff.top_pane import DiffTable
from tests.core.compare.test_sided_tree import Values, stacks, two_sides


@given(stacks, stacks)
def test_frames_add_up_with_recursion_once(
    tmp_path_factory: pytest.TempPathFactory, base: Values, new: Values
) -> None:
    table = DiffTable(two_sides(tmp_path_factory.getbasetemp(), base, new), NoiseMarks())
    for row in range(len(table)):
        name = table.name(row)
        total = [sum(v for stack, v in side.items() if name in stack) for side in (base, new)]
        own = [sum(v for stack, v in side.items() if stack[-1] == name) for side in (base, new)]
        amounts = Amounts("count")
        assert table.cell(row, "base") == (amounts.value(total[0]) if total[0] else "–")
        assert table.cell(row, "new") == (amounts.value(total[1]) if total[1] else "–")
        delta, own_delta = total[1] - total[0], own[1] - own[0]
        assert table.cell(row, "delta") == (amounts.delta(delta) if delta else "–")
        assert table.cell(row, "own delta") == (amounts.delta(own_delta) if own_delta else "–")
    sizes = [abs(float(table._column("delta")[row])) for row in table.orders["delta"]]
    assert sizes == sorted(sizes, reverse=True)
