"""Data frames of activities and trees: the same rows whichever library holds them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flame
from flame.core.errors import UsageError
from flame.core.loading.many import load
from flame.trace import Trace
from tests.exporters.profiles import Row, profile_of
from tests.support.paths import SAMPLES

TREE: dict[str, Any] = {"levels": "nvtx,kernel", "metric": "gpu"}
LIBRARIES = ("arrow", "pandas", "polars")
MODULES = {"arrow": "pyarrow", "pandas": "pandas", "polars": "polars"}


def rows(frame: Any) -> list[dict[str, Any]]:
    """Rows as plain dictionaries, what is not known as None."""
    if hasattr(frame, "to_pylist"):
        found: list[dict[str, Any]] = frame.to_pylist()
        return found
    if hasattr(frame, "to_dicts"):
        return list(frame.to_dicts())
    pandas = pytest.importorskip("pandas")
    plain = frame.astype(object).where(pandas.notna(frame.astype(object)), None)
    return [dict(row) for row in plain.to_dict("records")]


@pytest.fixture(scope="module")
def trace() -> Trace:
    return flame.load(SAMPLES / "decode_small.sqlite")


def made(library: str, trace: Trace, what: Any, **chosen: Any) -> Any:
    pytest.importorskip(MODULES[library])
    return getattr(trace, f"to_{library}")(what, **chosen)


@pytest.mark.deep
@pytest.mark.parametrize("library", LIBRARIES)
def test_activities_are_a_row_each(library: str, trace: Trace) -> None:
    found, table = rows(made(library, trace, "activities")), trace.profile.activities
    frames, stacks = trace.profile.frames, table.stacks
    assert len(found) == len(table)
    assert sum(row["duration_ns"] for row in found) == trace.profile.gpu_time
    for place in range(0, len(found), 97):
        row = found[place]
        assert row["name"] == frames[int(table.frame[place])].name
        assert row["start_ns"] == table.start[place]
        assert row["device"] == trace.profile.devices[int(table.device[place])].id
        thread = int(table.thread[place])
        assert row["tid"] == (trace.profile.threads[thread].tid if thread >= 0 else None)
        launched = int(table.launch_start[place])
        assert row["launch_start_ns"] == (launched if table.launched[place] else None)
        names = [frames[frame].name for frame in stacks.path(int(table.nvtx[place]))]
        assert row["nvtx"] == (" › ".join(names) or None)


@pytest.mark.deep
@pytest.mark.parametrize("library", LIBRARIES)
def test_nodes_of_a_tree_are_a_row_each(library: str, trace: Trace) -> None:
    found, tree = rows(made(library, trace, "tree", **TREE)), trace.tree(**TREE)
    assert [row["name"] for row in found] == [tree.name(node) for node in range(len(tree))]
    assert [row["parent"] for row in found] == tree.parent.tolist()
    assert [row["total_ns"] for row in found] == tree.total.tolist()
    assert sum(row["self_ns"] for row in found) == tree.total[0]
    assert {row["line"] for row in found} == {None}


@pytest.mark.deep
@pytest.mark.parametrize("library", LIBRARIES)
def test_what_is_not_known_is_null(library: str) -> None:
    trace = Trace(profile_of([Row("gemm", 5), Row("k\udcff", 3, launch="cudaLaunchKernel")]))
    first, second = rows(made(library, trace, "activities"))
    assert (first["launch"], first["launch_start_ns"], first["nvtx"]) == (None, None, None)
    assert (second["launch"], second["launch_start_ns"]) == ("cudaLaunchKernel", 5)
    assert second["name"] == r"k\udcff"


@pytest.mark.deep
@pytest.mark.parametrize("library", LIBRARIES)
def test_an_empty_trace_has_all_columns(library: str, trace: Trace) -> None:
    empty = made(library, Trace(profile_of([])), "activities")
    names = empty.column_names if library == "arrow" else list(empty.columns)
    full = made(library, trace, "activities")
    assert names == (full.column_names if library == "arrow" else list(full.columns))
    assert rows(empty) == []


@pytest.mark.deep
def test_polars_takes_arrow_without_pandas(trace: Trace) -> None:
    polars = pytest.importorskip("polars")
    table = made("arrow", trace, "activities")
    frame = polars.DataFrame(table)
    heaviest = frame.group_by("name").agg(polars.col("duration_ns").sum())
    assert heaviest["duration_ns"].sum() == trace.profile.gpu_time


@pytest.mark.deep
@pytest.mark.parametrize("library", ["pyarrow", "polars", "duckdb"])
def test_a_trace_is_a_table_to_what_reads_arrow(library: str, trace: Trace) -> None:
    reader = pytest.importorskip(library)
    pytest.importorskip("pyarrow")
    if library == "duckdb":
        [(rows, total)] = reader.sql("select count(*), sum(duration_ns) from trace").fetchall()
    elif library == "polars":
        frame = reader.DataFrame(trace)
        rows, total = len(frame), frame["duration_ns"].sum()
    else:
        table = reader.table(trace)
        rows, total = len(table), sum(table["duration_ns"].to_pylist())
    assert (rows, total) == (len(trace.profile.activities), trace.profile.gpu_time)


@pytest.mark.parametrize("library", LIBRARIES)
def test_without_the_library_it_is_said_what_to_install(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, MODULES[library], None)
    with pytest.raises(UsageError, match=f"pip install {MODULES[library]}"):
        getattr(Trace(profile_of([Row("gemm", 5)])), f"to_{library}")()


def test_other_rows_than_these_are_refused() -> None:
    trace = Trace(profile_of([Row("gemm", 5)]))
    with pytest.raises(UsageError, match="'activities', or 'tree'"):
        trace.to_arrow("kernels")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="with arguments of"):
        trace.to_arrow("activities", levels="kernel")


def test_a_notebook_shows_the_flame_graph(tmp_path: Path) -> None:
    text = Trace(load(SAMPLES / "decode_small.sqlite"))._repr_html_()
    assert text.startswith("<svg") and "<script" not in text
    assert "decode_small.sqlite: GPU time 371 ms" in text
    assert "GptOssForCausalLM" in text
    assert len(text) < 400_000


def test_a_notebook_says_where_there_is_nothing() -> None:
    assert Trace(profile_of([Row("gemm", 0)]))._repr_html_() == "<p>trace: GPU time is zero</p>"


def test_codes_of_texts_are_within_their_names(trace: Trace) -> None:
    from flame.exporters.tables.columns import Categories, activity_columns, tree_columns

    for columns in (activity_columns(trace.profile), tree_columns(trace.tree(**TREE))):
        for values in columns.values():
            if isinstance(values, Categories):
                assert values.code.dtype == np.int32
                assert values.code.min() >= -1 and values.code.max() < len(values.names)
                assert len(set(values.names)) == len(values.names)
