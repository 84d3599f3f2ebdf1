"""A page of Nsight Compute opens without a trace: kernels, instructions, reasons."""

from __future__ import annotations

from pathlib import Path

import pytest

from flame.core.errors import UsageError
from flame.core.loading.many import load, load_all
from flame.core.options import LoadOptions
from tests.conftest import TRACES
from tests.core.readers.ncu.test_page import added_up
from tests.support.profiles.project_tree import project_tree
from tests.support.writers.ncufile import Row, sass_page

WAIT, LONG = "stall_wait", "stall_long_sb"
CODE = [Row("LDG.E R2, [R4]", {LONG: 6, WAIT: 1}), Row("EXIT", {WAIT: 3})]
REAL = TRACES / "ncu" / "stalls_julia.sass.csv"


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """Two results of gemm, of 10 samples each, one of copy, of 10, and one that has none."""
    path = tmp_path / "source.csv"
    kernels = ["void gemm<1>(float*)", "void gemm<1>(float*)", "_Z4copyi"]
    text = "".join(sass_page(name, CODE) for name in kernels)
    path.write_text(text + sass_page("idle", [Row("EXIT", {WAIT: 0})]), "utf-8")
    return path


def test_it_has_kernels_instructions_and_reasons(page: Path) -> None:
    profile = load(page)
    tree = project_tree(profile)
    assert tree.levels == ("kernel", "sass", "stall")
    paths = {tuple(tree.name(at) for at in tree.path(node)): node for node in range(len(tree))}
    assert tree.total[paths["all",]] == 30
    assert tree.total[paths["all", "gemm"]] == 20
    assert tree.total[paths["all", "gemm", "+0x0010 EXIT"]] == 6
    assert tree.own[paths["all", "copy", "+0x0000 LDG.E R2, [R4]", "Long Scoreboard"]] == 6


def test_rows_are_results(page: Path) -> None:
    profile = load(page)
    assert profile.activities.measures["stalls"].tolist() == [10, 10, 10, 0]
    assert [metric.key for metric in profile.metrics] == ["stalls"]
    assert not profile.timed
    assert profile.sampling is not None
    assert profile.sampling.totals.tolist() == [20, 10]
    assert profile.sampling.exact.all()


def test_other_metrics_are_not_there(page: Path) -> None:
    with pytest.raises(UsageError, match="choose from stalls"):
        project_tree(load(page), metric="gpu")


def test_names_are_chosen_as_in_a_trace(page: Path) -> None:
    tree = project_tree(load(page), "kernel", kernel_names="demangled")
    names = {tree.name(node) for node in range(1, len(tree))}
    assert names == {"void gemm<1>(float*)", "copy(int)", "idle"}


def test_another_page_adds_nothing_to_what_is_there(page: Path) -> None:
    """What has samples keeps those alone; the other page's kernel is not there."""
    other = page.with_name("other.csv")
    other.write_text(sass_page("_Z4copyi", CODE) + sass_page("idle", CODE), "utf-8")
    profile = load(page, LoadOptions(ncu=(str(other),)))
    assert profile.activities.measures["stalls"].tolist() == [10, 10, 10, 10]
    assert profile.warnings[-1].endswith("recorded samples, left as they are: copy")


def test_two_pages_among_paths_are_refused(page: Path) -> None:
    other = page.with_name("other.csv")
    other.write_bytes(page.read_bytes())
    with pytest.raises(UsageError, match="--ncu"):
        load_all([page, other])


@pytest.mark.skipif(not REAL.exists(), reason=f"no real page {REAL}")
def test_the_real_page_adds_up_in_the_tree() -> None:
    tree = project_tree(load(REAL))
    for name, places in added_up(REAL):
        (node,) = (at for at in range(len(tree)) if name.startswith(f"{tree.name(at)}("))
        assert tree.total[node] == sum(sum(samples.values()) for samples in places.values())
        assert len([at for at in range(len(tree)) if tree.parent[at] == node]) == len(places)
