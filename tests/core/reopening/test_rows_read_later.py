"""What a trace from the cache shows without its rows, and what is read of it later."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from flame.core.efficiency.sums import count_operators, whole_of
from flame.core.loading.file import load_file
from flame.core.model.metrics import METRICS
from flame.core.model.profile import Profile
from flame.core.operators.work import WorkOptions
from flame.core.options import LoadOptions, Progress, silent
from flame.core.projection.filters import Time
from flame.core.projection.project import project
from flame.core.reopening import column_file
from flame.core.reopening.kept_rows import KeptRows
from tests.core.reopening.conftest import any_size, keep
from tests.support.profiles.project_tree import project_tree


def not_loaded(path: Path, options: LoadOptions, progress: Progress) -> Profile:
    raise AssertionError(f"{path} has been loaded")


def test_a_tree_and_its_export_read_no_row(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(trace)
    read, asked = column_file.ColumnFile.read, []

    def note(self: column_file.ColumnFile, name: str, dtype: str) -> object:
        asked.append(name)
        return read(self, name, dtype)

    monkeypatch.setattr(column_file.ColumnFile, "read", note)
    found = any_size().find(trace, LoadOptions(), not_loaded)
    assert found is not None
    for metric in METRICS[:5]:
        assert project(found, None).total[0] and found.totals_by_group(metric)[0].sum() >= 0
    assert found.gpu_time and found.counts and found.coverage and found.iterations
    assert not [name for name in asked if name.startswith(("rows", "busy"))]
    assert project_tree(found, where=(Time(0, 2000),)).total[0] < found.gpu_time
    assert [name for name in asked if name.startswith("rows")]


def test_times_of_gpus_are_made_of_the_rows_and_idle_time_of_the_trace(trace: Path) -> None:
    loaded = load_file(trace, LoadOptions(), silent)
    keep(trace)
    found = any_size().find(trace, LoadOptions(), not_loaded)
    assert found is not None
    for metric in ("exposed", "waiting"):
        found = found if metric == "exposed" else any_size().find(trace, LoadOptions(), load_file)
        assert found is not None
        own, again = (project_tree(one, metric=metric) for one in (loaded, found))
        assert own.total[0] and again.total.tolist() == own.total.tolist()
        assert list(map(again.name, range(len(again)))) == list(map(own.name, range(len(own))))


def test_work_of_operators_is_kept_and_rated_by_what_is_said_now(trace: Path) -> None:
    loaded = keep(trace).work
    found = any_size().find(trace, LoadOptions(), not_loaded)
    assert loaded is not None and found is not None and found.work is not None
    assert loaded.flops.any() and found.work.flops.tolist() == loaded.flops.tolist()
    typed = replace(found, work_options=WorkOptions({"fp16": 1.0}, dtype="fp16"))
    assert typed.work is not None
    with pytest.raises(AssertionError, match="has been loaded"):  # bytes are to be counted
        typed.work.shared  # noqa: B018 (asked for)


def test_what_operators_did_is_told_without_reading_rows(
    trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = keep(trace)
    found = any_size().find(trace, LoadOptions(), not_loaded)
    assert found is not None
    monkeypatch.setattr(KeptRows, "activity_column", not_loaded)
    monkeypatch.setattr(KeptRows, "groups", not_loaded)
    known, own = count_operators(found), count_operators(loaded)
    assert known is not None and own is not None and own.flops.any()
    assert known.columns.tolist() == own.columns.tolist()
    assert whole_of(found, known).columns.tolist() == whole_of(loaded, own).columns.tolist()
    assert found.work is not None and loaded.work is not None
    assert (found.work.calls, found.work.bare) == (loaded.work.calls, loaded.work.bare)


def test_sums_at_other_peaks_are_worked_out_anew(trace: Path) -> None:
    loaded = keep(trace)
    found = any_size().find(trace, LoadOptions(), not_loaded)
    assert found is not None
    said = WorkOptions({"fp32": 1e-6}, 1e6)
    again, own = (count_operators(replace(one, work_options=said)) for one in (found, loaded))
    assert again is not None and own is not None
    assert again.columns.tolist() == own.columns.tolist()
    assert again.memory_known == own.memory_known


def test_only_what_the_cache_lacks_is_read_from_the_trace(trace: Path) -> None:
    keep(trace)
    found = any_size().find(trace, LoadOptions(), not_loaded)
    assert found is not None
    found.activities.start, found.iterations, found.launches  # noqa: B018 (asked for)
    for part in ("host", "ranges", "calls"):
        with pytest.raises(AssertionError, match="has been loaded"):
            getattr(found, part)


def test_the_trace_is_read_once_for_all_that_the_cache_lacks(trace: Path) -> None:
    keep(trace)
    loads = []

    def load(*args: object) -> object:
        loads.append(args)
        return load_file(*args)  # type: ignore[arg-type]

    found = any_size().find(trace, LoadOptions(), load)  # type: ignore[arg-type]
    assert found is not None
    assert len(found.host) and len(found.ranges or ()) and len(found.calls or ())
    assert len(loads) == 1
