"""Two sides are one load with one bar; a trace that both sides have parts of is read once."""

from __future__ import annotations

from pathlib import Path

import pytest

from flame.cli.main import main
from flame.core.load_progress import WHOLE
from flame.core.loading.inputs import Inputs
from flame.core.options import LoadOptions
from flame.core.projection.filters import Kernel
from flame.tui.diff.loading import Loader, RunInputs, SideInputs
from flame.tui.diff.selection import diff_selection
from tests.support.writers.nsysfile import NsysFile
from tests.tui.diff.opened import chosen
from tests.tui.diff.test_diff_app import BASE, NEW, SHOWN, written


def test_the_bar_of_both_never_goes_back(tmp_path: Path) -> None:
    paths = [written(tmp_path / f"{name}.sqlite", one) for name, one in (("a", BASE), ("b", NEW))]
    base, new = ([RunInputs(Inputs((path,)))] for path in paths)
    sides = SideInputs(base, new)
    told: list[int] = []

    def progress(stage: str, done: int, expected: int) -> None:
        if expected:
            assert expected == WHOLE
            told.append(done)

    session, shown = Loader(LoadOptions(), use_cache=False).open(sides, chosen(SHOWN), progress)
    assert told == sorted(told) and told[-1] == WHOLE * 9 // 10
    assert any(WHOLE * 0.2 < done < WHOLE * 0.5 for done in told)
    assert session.inputs.title == "a.sqlite → b.sqlite"
    assert [run.label for run in session.sides.runs] == ["BASE", "NEW"]
    assert shown.comparison.changes.delta[0] == 18_000_000


def test_parts_of_one_trace_are_compared(tmp_path: Path) -> None:
    inputs = Inputs((written(tmp_path / "a.sqlite", BASE),))
    parts = [RunInputs(inputs, (Kernel(name),)) for name in ("softmax", "relu")]
    loader = Loader(LoadOptions(), use_cache=False)
    session, shown = loader.open(
        SideInputs([parts[0]], [parts[1]]), diff_selection(SHOWN), lambda *_: None
    )
    base, new = session.sides.runs
    assert base.profile is new.profile
    changes = shown.comparison.changes
    assert (changes.base.total[0], changes.new.total[0]) == (8_000_000, 5_000_000)


@pytest.mark.parametrize(
    ("base", "new", "title"),
    [
        ("a/x.folded", "b/x.folded", "a/x.folded → b/x.folded"),
        ("a/x.folded", "a/x.folded", "x.folded → x.folded"),
        ("a/x.folded", "b/y.folded", "x.folded → y.folded"),
        ("a/x.folded a/z.folded", "b/y.folded", "x.folded and 1 more → y.folded"),
        ("a/x a/z", "b/x b/z b/w b/x", "x and 1 more → x and 2 more"),
        ("a/x a/z", "b/x b/z", "a/x and 1 more → b/x and 1 more"),
    ],
)
def test_files_of_one_name_are_told_apart(base: str, new: str, title: str) -> None:
    one, other = (
        [RunInputs(Inputs((Path(path),))) for path in side.split()] for side in (base, new)
    )
    assert SideInputs(one, other).both.title == title


def test_parts_of_a_trace_are_told_apart() -> None:
    one, other = (Inputs((Path(name),)) for name in ("a.folded", "b.folded"))
    parts = [RunInputs(one, (), "--step 1-2")], [RunInputs(one, (), "--step 3-4")]
    assert SideInputs(*parts).both.title == "a.folded  --step 1-2 → --step 3-4"
    parts = [RunInputs(one)], [RunInputs(other, (), "--step 3")]
    assert SideInputs(*parts).both.title == "a.folded → b.folded --step 3"


def test_ranges_that_are_named_are_the_steps(tmp_path: Path) -> None:
    """Of each trace, once however often it is compared."""
    path = tmp_path / "trace.sqlite"
    with NsysFile(path) as file:
        for number in range(6):
            begin = 10_000 * number
            file.nvtx(f"batch {number}", begin, begin + 9_000)
            file.api("cudaLaunchKernel", begin + 10, begin + 20, number + 1)
            file.kernel("gemm", begin + 100, begin + 2_000, number + 1)
    runs = [RunInputs(Inputs((path,)))]
    for iteration, kind in ((None, "total"), ("^batch", "step")):
        _, shown = Loader(LoadOptions(), use_cache=False).open(
            SideInputs(runs, runs, iteration), diff_selection(SHOWN), lambda *_: None
        )
        assert shown.comparison.basis.kind == kind
        assert len({id(run.profile) for run in shown.comparison.sides.runs}) == 1
    words = ["--section", "summary", "--fail-on", "step.p50 > 9us"]
    for given, code in ([], 6), (["--iteration", "^batch"], 5):
        assert main(["diff", str(path), str(path), *given, *words]) == code
    assert main(["diff", str(path), str(path), "--iteration", "^lot", *words]) == 2
