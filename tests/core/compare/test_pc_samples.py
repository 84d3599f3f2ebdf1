"""Instructions and stall reasons of both sides: all of them are told, none as what it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from flame.core.compare.comparison import Comparison, compare
from flame.core.compare.sections.frames import frames_section
from flame.core.compare.sections.kernels import kernels_section
from flame.core.compare.sides import Run, Sides
from flame.core.loading.many import load
from flame.core.model.pc_samples import CodeSamples
from flame.core.projection.selection import select
from tests.support.profiles.report_rows import table_rows
from tests.tui.diff.test_sampled import compiled_otherwise, faster, shifted
from tests.tui.sampled import GEMM, GEMM_SAMPLES, code, sampled, samples

LEVELS = "kernel,sass,stall"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """The same code, of two kernels with few launches, of which one waits less."""
    folder = tmp_path_factory.mktemp("sampled")
    base, new = sampled(folder / "a.sqlite"), sampled(folder / "b.sqlite", of_gemm=faster)
    return compare(Sides((Run(base, "base"),), (Run(new, "new"),)), select(LEVELS))


def test_what_counts_as_no_launch_is_there_all_the_same(found: Comparison) -> None:
    """There are more instructions than launches, and which of them counts as one is by chance."""
    changes = compare(found.sides, select("kernel,sass")).changes
    assert ((changes.base.count == 0) != (changes.new.count == 0)).any()
    assert not changes.is_new.any() and not changes.is_gone.any()


def test_every_reason_is_listed(found: Comparison) -> None:
    rows = table_rows(kernels_section(found), "rows")
    assert sum(row["change_ns"] for row in rows) == found.changes.delta[0] == 0
    assert sum(row["base_ns"] for row in rows) == found.changes.base.total[0]
    reasons = {"Long Scoreboard", "Wait", "Barrier", "LG Throttle", "Selected"}
    by_name = {row["name"]: row for row in rows}
    assert reasons <= set(by_name)
    assert all(by_name[name]["by_count_ns"] is None for name in reasons)
    assert by_name["argmax"]["base_count"], "of a kernel without samples"


def test_the_instructions_that_changed_are_told(tmp_path: Path) -> None:
    base, new = sampled(tmp_path / "a"), sampled(tmp_path / "b", of_gemm=compiled_otherwise)
    pair = compare(Sides((Run(base, "base"),), (Run(new, "new"),)), select(LEVELS))
    section = frames_section(pair)
    for key, text in (("new", "FFMA"), ("gone", "FMUL")):
        assert any(text in row["frame"] for row in table_rows(section, key))


@pytest.mark.parametrize("turned", [False, True])
def test_instructions_of_recompiled_code_are_paired(tmp_path: Path, turned: bool) -> None:
    base, new = sampled(tmp_path / "a"), sampled(tmp_path / "b", of_gemm=shifted)
    runs = (Run(base, "base"),), (Run(new, "new"),)
    pair = compare(Sides(*(runs[::-1] if turned else runs)), select("kernel,sass", metric="stalls"))
    tree, changes = pair.union.tree, pair.changes
    assert not changes.delta.any() and not changes.is_new.any() and not changes.is_gone.any()
    names = {tree.name(at) for at in range(len(tree))}
    assert ("+0x0060 FMUL R8, R8, R9" if turned else "+0x0080 FMUL R8, R8, R9") in names


def test_what_is_called_so_by_now_is_another_instruction(tmp_path: Path) -> None:
    """Where FMUL is now another one was, of the same text: that is gone."""
    base, new = sampled(tmp_path / "a", of_gemm=twice), sampled(tmp_path / "b")
    sides = Sides((Run(base, "base"),), (Run(new, "new"),))
    pair = compare(sides, select("kernel,sass", metric="stalls"))
    tree, changes = pair.union.tree, pair.changes
    there = [at for at in range(len(tree)) if tree.name(at) == "+0x0060 FMUL R8, R8, R9"]
    found = {(int(changes.base.total[at]), int(changes.new.total[at])) for at in there}
    assert found == {(69, 69), (7, 0)}


def twice() -> list[CodeSamples]:
    """The same code with two instructions more, before the load."""
    text = [*GEMM[:5], ("LDS R8, [R2]", 4), GEMM[6], *GEMM[5:]]
    counts = {
        reason: [*at[:5], 0, 7 * (reason == "wait"), *at[5:]] for reason, at in GEMM_SAMPLES.items()
    }
    return [samples(code(text), counts)]


def test_samples_themselves_are_compared_by_instruction(tmp_path: Path) -> None:
    base, new = sampled(tmp_path / "a"), sampled(tmp_path / "b", of_gemm=faster)
    sides = Sides((Run(base, "base"),), (Run(new, "new"),))
    assert compare(sides, select(metric="stalls")).union.tree.levels[-3:] == (
        "kernel",
        "sass",
        "stall",
    )
    pair = compare(sides, select(LEVELS, metric="stalls"))
    tree, changes = pair.union.tree, pair.changes
    node = next(at for at in range(len(tree)) if "FMUL" in tree.name(at))
    assert (changes.base.total[node], changes.new.total[node]) == (69, 29)


def test_times_are_not_split_unless_asked_for(tmp_path: Path) -> None:
    run = Run(sampled(tmp_path / "a"), "")
    assert "sass" not in compare(Sides((run,), (run,))).union.tree.levels
    assert load(tmp_path / "a").sampling is None
