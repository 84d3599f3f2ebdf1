"""The section on iterations: what it says by hand, and of real traces."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from flame.core.analysis.iteration_candidates import iteration_candidates
from flame.core.errors import NoMatchError, UsageError
from flame.core.loading.many import load
from flame.core.model.iterations import chosen_ranges
from flame.core.model.profile import Profile
from flame.core.projection.selection import Selection, select
from flame.core.report.findings.findings import find
from flame.core.report.options import with_iteration, with_iterations
from flame.core.report.program.iterations import iterations_section, report_iterations
from flame.core.report.scope import Scope
from flame.core.report.table import Section, Table
from tests.conftest import TRACES, needs_traces
from tests.support.profiles.recorded import Recorded


def rows(section: Section, key: str) -> list[dict[str, object]]:
    [table] = [table for table in section.tables if table.key == key]
    keys = [column.key for column in table.columns]
    return [dict(zip(keys, row, strict=True)) for row in table.rows]


def steady(slow: int = 0, *, kernels: tuple[int, ...] = (), name: str = "extra") -> Recorded:
    """Seven iterations of 100 ns: a kernel of 40 ns, and 50 ns that nobody uses.

    In the one of 300 to 400 the host is ``slow``er before the launch, or runs more ``kernels``.
    """
    trace, at, corr = Recorded(), 0, 0
    for number in range(7):
        late = slow if number == 3 else 0
        more = kernels if number == 3 else ()
        length = 100 + late + sum(more)
        trace.range(f"step {number}", at, at + length)
        start = at + late + 10
        for place, ns in enumerate((40, *more)):
            corr += 1
            trace.call("cudaLaunchKernel", start - 5, start - 4, corr)
            trace.kernel("gemm" if place == 0 else name, start, start + ns, corr)
            start += ns
        at += length
    return trace


def test_a_slow_one_is_explained_by_what_its_gpu_waited_for() -> None:
    section = iterations_section(Scope(steady(slow=60).profile()))
    assert (section.facts["slow"], section.facts["warm_up"]) == ([3], [])
    # Its GPU waits before its first kernel, in what is the window of iteration 2.
    [why] = rows(section, "why_slow")
    assert (why["part"], why["longer_ns"]) == ("before it, idle: host code", 60)
    assert (why["excess_ns"], why["percent"]) == (60, 100)
    assert [row["verdict"] for row in rows(section, "rows")][3] == "slow"
    [parts] = [row for row in rows(section, "parts") if row["iteration"] == 2]
    assert parts["window_ns"] == 160
    assert rows(section, "rows")[3]["period_ns"] == 160


def test_a_slow_one_is_explained_by_the_kernels_that_it_ran_more_of() -> None:
    section = iterations_section(Scope(steady(kernels=(90, 30)).profile()))
    assert section.facts["slow"] == [3]
    [why] = rows(section, "why_slow")
    assert (why["part"], why["excess_ns"]) == ("compute", 120)
    [frame] = rows(section, "slow_frames")
    assert (frame["kernel"], frame["longer_ns"], frame["count"]) == ("extra", 120, 2)
    assert frame["usual"] == 0
    assert "range" not in frame, "that of the iteration itself tells nothing"


def test_findings_measure_no_more_of_iterations_than_their_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("flame.core.report.program.iterations.measure_scope", None)
    assert not [one for one in find(Scope(steady().profile())).found if "iteration" in one.id]


def test_only_what_is_needed_for_most_of_it_is_told() -> None:
    section = iterations_section(Scope(steady(slow=15, kernels=(90,)).profile()))
    [why] = rows(section, "why_slow")
    assert (why["part"], why["longer_ns"], why["excess_ns"]) == ("compute", 90, 105)
    section = iterations_section(Scope(steady(slow=25, kernels=(90,)).profile()))
    assert [why["longer_ns"] for why in rows(section, "why_slow")] == [90, 25]


def test_kernels_are_compared_with_as_many_as_usual() -> None:
    section = iterations_section(Scope(steady(kernels=(90,), name="gemm").profile()))
    [frame] = rows(section, "slow_frames")
    assert (frame["kernel"], frame["longer_ns"]) == ("gemm", 90)
    assert (frame["count"], frame["usual"]) == (2, 1)


def test_of_several_ranks_the_slowest_counts() -> None:
    trace = Recorded()
    for number in range(3):
        for process, late in ((0, 0), (1, 7 * number)):
            at = 100 * number
            trace.range(f"step {number}", at, at + 50 + late, thread=2 * process)
            trace.call("cudaLaunchKernel", at + 1, at + 2, 1 + number, thread=2 * process)
            trace.kernel("gemm", at + 5, at + 15, 1 + number, process=process, device=process)
    section = iterations_section(Scope(trace.profile()))
    assert [row["period_ns"] for row in rows(section, "rows")] == [100, 100, 64]
    last = rows(section, "rows")[2]
    assert last["rank"] == "process [200]"
    assert len(rows(section, "ranks")) == 6


def test_without_any_it_names_ranges_that_repeat() -> None:
    trace = Recorded()
    for number in range(4):
        at = 100 * number
        trace.range(f"batch {number} (a+b)", at, at + 90)
        trace.range("inner", at + 10, at + 20)
        trace.range("inner", at + 30, at + 40)
        trace.range("rare", at, at + 1) if number < 2 else None
        trace.call("cudaLaunchKernel", at + 12, at + 13, number + 1)
        trace.kernel("gemm", at + 20, at + 30, number + 1)
    profile = trace.profile()
    first, second = iteration_candidates(profile, 3)
    assert (first.number, first.gpu_time) == (4, 40)
    assert (second.pattern, second.number, second.gpu_time) == ("^inner$", 8, 40)
    assert re.search(first.pattern, "batch 3 (a+b)")
    section = iterations_section(Scope(profile))
    assert section.why == "no iterations: name a range by --iteration"
    assert first.pattern in section.how
    chosen = with_iteration(profile, first.pattern)
    assert chosen.iterations.number.tolist() == [0, 1, 2, 3]
    assert iterations_section(Scope(chosen)).available


def test_ranges_within_each_other_are_no_candidates_but_may_be_chosen() -> None:
    trace = Recorded()
    for start, end in ((0, 100), (10, 20), (200, 300), (210, 310), (400, 410)):
        trace.range("work", start, end)
    trace.range("work", 0, 500, thread=1)
    trace.call("cudaLaunchKernel", 15, 16, 1)
    trace.kernel("gemm", 20, 30, 1)
    profile = trace.profile()
    assert not iteration_candidates(profile, 3)
    found = with_iteration(profile, "wor").iterations
    times = list(zip(found.start.tolist(), found.end.tolist(), strict=True))
    # What begins in another one and goes on longer is the next; what lies in another is not one.
    assert times == [(0, 100), (200, 210), (210, 310), (400, 410)]
    assert found.number.tolist() == [0, 1, 2, 3]
    assert set(found.thread.tolist()) == {0}


def test_the_options_are_checked() -> None:
    profile = steady().profile()
    with pytest.raises(UsageError, match="no range of the trace matches"):
        with_iteration(profile, "nothing")
    with pytest.raises(UsageError, match="not a regular expression"):
        with_iteration(profile, "(")
    assert with_iterations(Selection(), None) == Selection()
    for text in ("5-3", "", "a", "1,2", "-3"):
        with pytest.raises(UsageError, match="--iterations"):
            with_iterations(Selection(), text)


def test_iterations_restrict_everything() -> None:
    profile = steady().profile()
    scope = Scope(profile, with_iterations(select(), "2-3"))
    found = report_iterations(scope)
    assert found is not None
    assert found.columns.number.tolist() == [2, 3]
    assert len(scope.rows) == 2
    assert [gpu.length for gpu in scope.gpus] == [200]
    with pytest.raises(NoMatchError, match="0 to 6"):
        _ = Scope(profile, with_iterations(select(), "10")).rows


def test_of_a_trace_without_ranges_none_are_chosen() -> None:
    trace = Recorded()
    trace.kernel("gemm", 0, 10)
    profile = trace.profile()
    assert not len(chosen_ranges(profile.frames, profile.threads, re.compile("."), None))
    assert not iteration_candidates(profile, 3)


# Real traces


@needs_traces
def test_the_first_step_of_a_training_is_warm_up() -> None:
    section = iterations_section(Scope(load(TRACES / "nsys" / "rtx3070_train_17k.sqlite")))
    assert section.facts["warm_up"] == [1]
    assert section.facts["slow"] == []
    table = rows(section, "rows")
    # As the plain loops of an independent implementation found them.
    keys = ("host_ns", "gpu_time_ns", "kernels", "span_ns")
    assert [tuple(row[key] for key in keys) for row in table] == [
        (772_765_995, 223_638_784, 2_200, 769_912_668),
        (223_211_656, 218_149_834, 1_978, 222_302_805),
        (244_177_895, 217_075_417, 1_978, 243_216_754),
        (223_045_473, 217_561_419, 1_978, 222_175_254),
        (223_530_109, 217_284_261, 1_978, 222_652_242),
    ]
    check_parts(section)


@needs_traces
@pytest.mark.deep
@pytest.mark.parametrize("name", ["v100_old_categories", "v100_cuda_graphs"])
def test_parts_are_the_window_of_real_traces(name: str) -> None:
    profile = load(TRACES / "kineto" / f"{name}.json.gz")
    check_parts(iterations_section(Scope(profile)))
    check_sums(profile)


def check_parts(section: Section) -> None:
    [table] = [table for table in section.tables if table.key == "parts"]
    for row in table.rows:
        cells = dict(zip([column.key for column in table.columns], row, strict=True))
        window = cells.pop("window_ns")
        cells.pop("iteration")
        assert sum(ns for ns in cells.values() if isinstance(ns, int)) == window


def check_sums(profile: Profile) -> None:
    """Windows follow each other, and what was launched in iterations is theirs."""
    found = report_iterations(Scope(profile))
    assert found is not None
    starts = profile.iterations.start.tolist()
    assert found.every.period[:-1].tolist() == [b - a for a, b in pairwise(starts)]
    of = profile.iterations.of(profile.activities)
    assert int(found.every.gpu_time.sum()) == int(profile.activities.duration[of >= 0].sum())


def test_tables_have_no_column_twice() -> None:
    section = iterations_section(Scope(steady(slow=60).profile()))
    for table in section.tables:
        assert isinstance(table, Table)
        keys = [column.key for column in table.columns]
        assert len(keys) == len(set(keys))
