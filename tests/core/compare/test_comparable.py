"""What is not alike on both sides is said with its numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from flame.core.compare.comparable import Comparability, Note, compare_facts, gpu_facts
from flame.core.compare.comparison import compare
from flame.core.compare.sides import Run, Sides
from flame.core.errors import NoMatchError
from flame.core.loading.many import load
from flame.core.model.meta import GraphNodes, Overheads
from flame.core.model.pc_samples import Sampling
from flame.core.projection.filters import Kernel
from flame.core.projection.selection import select
from tests.conftest import TRACES, needs_traces
from tests.core.compare.test_evidence import REAL, SHOWN
from tests.support.generated.compared import one_by_one, write_steps, written
from tests.support.tiers import deep_except
from tests.support.writers.nsysfile import NsysFile

Write = Callable[[NsysFile], None]


def run(path: Path, write: Write) -> Run:
    file = NsysFile(":memory:")
    write(file)
    return written(file, path)


def gemms(count: int, device: int = 0, name: str = "gemm") -> Write:
    """So many kernels of 100 ns, one after the other."""

    def write(file: NsysFile) -> None:
        for at in range(count):
            file.kernel(name, at * 1000, at * 1000 + 100, device=device)

    return write


def both(*writes: Write) -> Write:
    def write(file: NsysFile) -> None:
        for one in writes:
            one(file)

    return write


def facts(folder: Path, base: Write, new: Write) -> Comparability:
    place = folder / str(len(list(folder.iterdir())))
    place.mkdir()
    return compare_facts(one_by_one(run(place / "base", base), run(place / "new", new)))


def test_the_same_content_is_identical(tmp_path: Path) -> None:
    assert facts(tmp_path, gemms(3), gemms(3)) == Comparability((), True)
    assert not facts(tmp_path, gemms(3), gemms(4)).identical


def test_the_same_kernels_in_other_steps_are_not_identical(tmp_path: Path) -> None:
    steps = [{"gemm": [100]}] * 5
    base, same, slower = (
        write_steps(tmp_path / name, steps, gap=gap)
        for name, gap in (("a", 9), ("b", 9), ("c", 90))
    )
    assert compare_facts(one_by_one(base, same)).identical
    found = one_by_one(base, slower, selection=select("kernel"))
    assert not found.changes.delta.any() and not compare_facts(found).identical


def test_graphs_traced_as_a_whole_on_one_side_are_in_the_way(tmp_path: Path) -> None:
    graphs = both(gemms(3), lambda file: file.graph(0, 50, graph_id=1))
    note, *_ = facts(tmp_path, gemms(3), graphs).notes
    assert note == Note("no", "NEW has 1 launch of a graph traced as a whole, BASE none")
    assert not facts(tmp_path, graphs, gemms(3)).is_comparable


def test_kernels_that_the_other_side_lacks_are_told(tmp_path: Path) -> None:
    other = gemms(6, name="other")
    for shared, kind in ((3, "no"), (12, "warn"), (60, None)):
        base = both(gemms(shared), other)
        found = facts(tmp_path, base, gemms(shared + 6)).notes
        share = f"{100 * shared / (shared + 6):.1f} %"
        text = f"only {share} of the GPU time of BASE is in kernels that NEW has"
        assert found == ((Note(kind, text),) if kind else ())  # type: ignore[arg-type]


def test_a_side_without_any_activity_is_not_compared(tmp_path: Path) -> None:
    runs = [run(tmp_path / "a", gemms(3)), run(tmp_path / "b", gemms(3, name="other"))]
    (note, *_) = compare_facts(one_by_one(*runs, selection=select(where=(Kernel("other"),)))).notes
    assert note == Note("no", "BASE has no GPU activity that is compared")


def test_gpus_are_counted_that_matter(tmp_path: Path) -> None:
    two = both(gemms(60), gemms(40, device=1))
    (note,) = facts(tmp_path, gemms(100), two).notes
    assert note == Note("no", "BASE used 1 GPU, NEW 2")
    few = both(gemms(200), gemms(1, device=1))
    assert facts(tmp_path, gemms(201), few).notes == ()


def test_numbers_of_activities_are_compared_by_the_basis(tmp_path: Path) -> None:
    (note,) = facts(tmp_path, gemms(3), gemms(7)).notes
    assert note == Note("warn", "the numbers of activities are 3 and 7")
    (note,) = facts(tmp_path, gemms(100), gemms(103)).notes
    assert note.text.startswith("the numbers of activities are 100 and 103: --per activity")
    assert facts(tmp_path, gemms(100), gemms(102)).notes == ()
    base, new = (write_steps(tmp_path / str(n), [{"gemm": [9]}] * n) for n in (4, 12))
    assert compare_facts(one_by_one(base, new)).notes == ()


def test_how_and_on_what_it_was_recorded_is_told(tmp_path: Path) -> None:
    one = run(tmp_path / "a", gemms(3))
    device = replace(one.profile.devices[0], name="H100")
    old = replace(one.profile.devices[0], name="A100")
    meta = replace(one.profile.meta, producer="Nsight Systems", schema_version="3.1")
    warning = "12 records could not be written: the disk was full"
    base = Run(replace(one.profile, devices=(old,)), "")
    new = Run(
        replace(one.profile, devices=(device,), meta=meta, sources=(), warnings=(warning, "other")),
        "",
    )
    texts = [note.text for note in compare_facts(one_by_one(base, new)).notes]
    assert texts[0] == "BASE ran on A100, NEW on H100"
    assert texts[1].endswith("NEW by Nsight Systems (nsys-sqlite 3.1)")
    assert texts[2:] == [f"NEW: {warning}"]


def test_what_the_profiler_cost_is_told(tmp_path: Path) -> None:
    one = run(tmp_path / "a", gemms(11))  # 10,100 ns long
    whose = np.zeros(3, np.int32)
    start, end = np.array([0, 500, -9_000]), np.array([1_010, 1_000, 0])
    known = Overheads(("Buffer flush", "dlopen"), whose, whose, whose, start, end)
    held = Run(replace(one.profile, overheads_builder=lambda: known), "")
    (note,) = compare_facts(one_by_one(one, held)).notes
    text = "the profiler held BASE up for 0 % of its time, NEW for 10.0 %"
    assert note == Note("warn", text)


def test_kernels_that_ran_one_by_one_are_not_compared(tmp_path: Path) -> None:
    one = run(tmp_path / "a", gemms(3))
    none, narrow = np.zeros(0, np.int64), np.zeros(0, np.int32)
    groups = np.full(len(one.profile.activities.groups), -1, np.int32)
    own = replace(one.profile.meta, format="fdump")
    for exact in (False, True):
        sampling = Sampling(
            (),
            groups,
            np.zeros(2, np.int64),
            narrow,
            narrow,
            narrow,
            narrow,
            none,
            np.array([exact]),
        )
        profile = replace(one.profile, sampling=sampling, meta=own, sources=())
        found = compare_facts(one_by_one(Run(profile, ""), one))
        said = "PC sampling ran the kernels of BASE one by one, and only of that"
        assert (Note("no", said) in found.notes) == exact


def test_graphs_traced_node_by_node_on_one_side_are_told(tmp_path: Path) -> None:
    one = run(tmp_path / "a", gemms(3))
    nodes = Run(replace(one.profile, graph_nodes=GraphNodes(2, 0)), "")
    (note,) = compare_facts(one_by_one(nodes, one)).notes
    assert note.kind == "warn" and "in BASE alone: 2 activities are of them" in note.text


@needs_traces
@pytest.mark.parametrize("name", deep_except(["nsys/oldest_schema.sqlite"], REAL))
def test_a_recording_is_identical_to_itself(name: str) -> None:
    paths = [load(TRACES / name) for _ in range(2)]
    try:
        found = one_by_one(*(Run(one, name) for one in paths), selection=SHOWN)
    except NoMatchError:
        return
    facts = compare_facts(found)
    assert facts.identical and not facts.notes
    sides = gpu_facts(found)
    if sides:
        table = paths[0].activities
        rows = np.ones(len(table), bool)
        if found.basis.kind == "total":
            assert sides[0].time == table.duration[rows].sum()


def test_several_runs_are_alike_in_pairs(tmp_path: Path) -> None:
    a, b = (write_steps(tmp_path / str(n), [{"gemm": [n]}] * 4) for n in (10, 20))
    assert compare_facts(compare(Sides((a, b), (a, b)))).identical
    assert not compare_facts(compare(Sides((a, b), (b, a)))).identical
    assert not compare_facts(compare(Sides((a, b), (a,)))).identical


def test_the_same_sums_may_be_of_other_activities(tmp_path: Path) -> None:
    def halves(file: NsysFile) -> None:
        for at in range(6):
            file.kernel("gemm", at * 410, at * 410 + 50)

    found = facts(tmp_path, gemms(3), halves)
    assert not found.identical and facts(tmp_path, halves, halves).identical


def test_iterations_that_took_other_times_are_not_identical(tmp_path: Path) -> None:
    def steps(*starts: int) -> Write:
        def write(file: NsysFile) -> None:
            for number, (start, end) in enumerate(pairwise(starts)):
                file.nvtx(f"step {number}", start, end - 1)
                file.api("cudaLaunchKernel", start, start + 1, number + 1)
                file.kernel("gemm", start + 5, start + 15, number + 1)

        return write

    base, other = (0, 100, 200, 300, 400), (0, 90, 200, 310, 400)
    assert facts(tmp_path, steps(*base), steps(*base)).identical
    assert not facts(tmp_path, steps(*base), steps(*other)).identical
    assert not facts(
        tmp_path, gemms(3), both(gemms(3), lambda f: f.api("cudaFree", 0, 9_000))
    ).identical
