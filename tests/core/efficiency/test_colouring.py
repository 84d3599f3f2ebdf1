"""Frames coloured by efficiency: five steps told by marks too, grey where it is not known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from flame.core.efficiency.colouring import SIGNS, STRENGTHS, EfficiencyColours
from flame.core.efficiency.work_counts import WorkCounts
from flame.core.errors import UsageError
from flame.core.loading.inputs import Inputs
from flame.core.loading.many import load
from flame.core.model.tree import StackTree
from flame.core.options import LoadOptions
from flame.core.projection.selection import Selection
from flame.tui.session.session import Session, metrics_of
from flame.tui.views.icicle_pane import IciclePane
from flame.tui.views.sandwich_halves import SandwichHalves
from tests.conftest import TRACES, needs_traces
from tests.support.generated.worked import write_products
from tests.support.writers.kinetofile import KinetoFile
from tests.tui.conftest import open_app
from tests.tui.trees import node

BY_EFFICIENCY = Selection(levels=("kernel",), colours="efficiency")


def session_of(path: Path) -> Session:
    profile = load(path)
    return Session(Inputs((path,)), profile, metrics_of(profile), LoadOptions())


def coloured(path: Path) -> tuple[StackTree, EfficiencyColours]:
    view = session_of(path).first(BY_EFFICIENCY).view
    assert isinstance(view.colouring, EfficiencyColours)
    return view.tree, view.colouring


@pytest.mark.parametrize(
    ("ns", "step"), [(20_000, 4), (24_000, 3), (30_000, 2), (60_000, 1), (200_000, 0)]
)
def test_each_step_has_its_colour_and_its_mark(tmp_path: Path, ns: int, step: int) -> None:
    tree, found = coloured(write_products(tmp_path / "a.json", ns=ns))
    at = node(tree, "gemm")
    assert (found.strength[at], found.sign(at)) == (STRENGTHS[step], SIGNS[step])
    share, weight = found.words(at)
    assert share.endswith(" of bound over 100 %") and weight
    assert len(set(STRENGTHS)) == len(set(SIGNS)) == 5 and 0.0 not in STRENGTHS


def test_what_is_not_known_is_grey(tmp_path: Path) -> None:
    tree, found = coloured(write_products(tmp_path / "a.json"))
    add = node(tree, "add")
    assert (found.strength[add], found.sign(add)) == (0.0, "")
    assert found.words(add) == ["15.0 µs"]
    for device, dtype in (("Some GPU", "c10::BFloat16"), ("NVIDIA H100 80GB HBM3", "float")):
        path = write_products(tmp_path / "b.json", device, dtype, 300_000)
        tree, found = coloured(path)
        assert found.strength[node(tree, "gemm")] == 0.0


@pytest.mark.parametrize(("rated", "bound"), [(49, 0.9), (100, 1.06)])
def test_a_share_of_little_or_a_wrong_one_colours_nothing(rated: int, bound: float) -> None:
    names = WorkCounts.__dataclass_fields__
    columns = {name: np.array([100_000]) for name in names if name != "memory_known"}
    columns["rated_ns"] = np.array([1000 * rated])
    columns["bound_ps"] = columns["fast_bound_ps"] = (bound * columns["rated_ns"] * 1000).astype(
        int
    )
    counts = WorkCounts(**columns, memory_known=True)
    found = EfficiencyColours([0], lambda: counts)  # type: ignore[arg-type]
    assert found.strength.tolist() == [0.0]


@needs_traces
def test_both_halves_of_a_sandwich_have_the_colours_of_what_they_show() -> None:
    """Of a frame, what calls it and what it calls, all kernels have the work of the icicle."""
    session = session_of(TRACES / "kineto" / "h100_qwen_python.json.gz")
    view = session.first(Selection(levels=("nvtx", "kernel"), colours="efficiency")).view
    whole = view.colouring
    assert isinstance(whole, EfficiencyColours) and whole.found is not None
    named = np.flatnonzero(np.array(view.tree.text) == "aten::mm")
    frame = int(np.intersect1d(named, view.tree.frame)[0])
    halves = SandwichHalves.of(view, frame)
    places = view.tree.outermost_nodes(view.places(frame))
    for half in halves:
        made = half.colouring
        assert isinstance(made, EfficiencyColours) and made.found is not None
        for name in ("kernel_ns", "rated_ns", "bound_ps", "fast_bound_ps"):
            column = getattr(made.found, name)
            assert column[0] == getattr(whole.found, name)[places].sum() > 0
        assert made.sign(0) == "▆" and made.words(0)[0] == "63.9 % of bound over 100 %"
    below, made = halves.callees.tree, halves.callees.colouring
    assert isinstance(made, EfficiencyColours) and made.found is not None
    assert made.found.rated_ns[below.parent == 0].sum() == made.found.rated_ns[0]


def test_other_metrics_and_filters_keep_the_colours(tmp_path: Path) -> None:
    session = session_of(write_products(tmp_path / "a.json"))
    host = session.first(Selection(metric="host", colours="efficiency"))
    assert host.view.colouring is not None and not host.view.colouring.strength.any()
    plain = session.project([Selection(levels=("kernel",))])
    again = session.project([BY_EFFICIENCY])
    assert again.view.tree is plain.view.tree and plain.view.colouring is None
    assert again.view.colouring is not None and again.view.colouring.strength.any()


def test_without_shapes_it_says_how_to_record_them(tmp_path: Path) -> None:
    file = KinetoFile()
    file.op("aten::mm", 1000, 1900)
    file.runtime(1, 1010, 1020)
    file.kernel("gemm", 2000, 3000, 1)
    with pytest.raises(UsageError, match=r"--colours efficiency: .*record_shapes=True"):
        session_of(file.write(tmp_path / "a.json")).first(BY_EFFICIENCY)


async def test_a_key_turns_to_it_and_on(tmp_path: Path) -> None:
    async with open_app(write_products(tmp_path / "a.json"), size=(160, 40)) as user:
        await user.press("1")
        assert user.screen.pane.name_ == IciclePane.name_
        seen = []
        for _ in range(3):
            await user.press("O")
            await user.rest()
            seen.append(user.screen.shown.selection.colours)
            if seen[-1] == "efficiency":
                assert "by efficiency" in user.read("header")
                assert "█ gemm" in user.read("icicle")
                assert "86.8 % of bound over 100 %" in user.read("icicle")
        assert seen == ["category", "efficiency", "level"]
