"""What the rules say of real traces: a change is to be read and explained."""

from __future__ import annotations

import json
import shlex

import pytest

from flame.cli.main import main
from flame.core.loading.many import load
from flame.core.projection.project import project
from flame.core.report.findings.section import findings_section
from flame.core.report.scope import Scope
from flame.options.selection import parse
from tests.conftest import TRACES, needs_traces

FIRES = {
    "nsys/a100_llm_nvtx.sqlite": "pageable 40.1 high, sync-drain 9.0 medium, loading 2.0 low",
    "nsys/h100_2gpu_window.sqlite": "copies-exposed 97.0 high, copies-exposed 97.0 high",
    "nsys/rtx3060_23k.sqlite": "",
    "nsys/rtx3070_train_17k.sqlite": "capture-window info, loading 13.3 medium, "
    "host-bound 6.8 medium, pageable 2.4 low, sync-drain 2.3 low",
    "nsys/two_processes_colliding_ids.sqlite": "host-bound 53.2 high, sync-copies 24.1 high, "
    "launch-bound 8.4 medium, alloc-in-loop 2.9 low",
    "nsys/ten_streams.sqlite": "alloc-in-loop 28.6 high, copies-exposed 9.5 medium, "
    "sync-drain 5.0 low",
    "nsys/oldest_schema.sqlite": "host-bound 93.3 high, sync-copies 6.1 medium",
    "nsys/cuda_graph_opaque.sqlite": "hidden-graphs info",
    "nsys/cuda_graph_small.sqlite": "launch-bound 92.7 info, hidden-graphs info",
    "nsys/cuda_backtraces_2021.sqlite": "loading 96.2 info",
    "nsys/cuda_backtraces_mpi.sqlite": "host-bound 65.6 info, sync-copies 26.0 info",
    "nsys/h200_nvtx_13k.sqlite": "host-bound 97.8 info",
    "nsys/rtx3080_trimmed.sqlite": "loading 79.1 info, alloc-in-loop 15.8 info",
    "nsys/synthetic_missing_columns.sqlite": "",
    "kineto/b200_eager_python.json.gz": "launch-bound 57.7 high, host-bound 25.5 high",
    "kineto/h100_bert_small.json.gz": "launch-bound 77.6 info, host-bound 11.6 info",
    "kineto/h100_qwen_python.json.gz": "below-bound 4.4 low",
    "kineto/mi300_vllm_hipgraph.json.gz": "",
    "kineto/v100_cuda_graphs.json.gz": "copies-exposed 12.9 medium, comm-exposed 9.8 medium",
    "kineto/v100_old_categories.json.gz": "host-bound 11.0 medium, launch-bound 10.3 medium, "
    "pageable 2.4 low",
}
"""Findings with their shares of the window in percent, and severities, in their order."""

ON_REQUEST = {
    "nsys/rtx3060_23k.sqlite": "one-kernel",
    "nsys/synthetic_missing_columns.sqlite": "one-kernel",
    "nsys/ten_streams.sqlite": "one-kernel",
    "kineto/v100_cuda_graphs.json.gz": "small-kernels",
    "kineto/v100_old_categories.json.gz": "small-kernels",
}
"""Findings that are told under --all, besides those that take less than a hundredth."""


def told(name: str, *, all: bool = False) -> list[dict[str, object]]:
    path = TRACES / name
    if not path.exists():
        pytest.skip(f"no trace {name}")
    table = findings_section(Scope(load(path), all_findings=all)).tables[0]
    keys = [column.key for column in table.columns]
    return [dict(zip(keys, row, strict=True)) for row in table.rows]


def words(row: dict[str, object]) -> str:
    percent = row.get("percent")
    share = "" if percent is None else f" {float(str(percent)):.1f}"
    return f"{row['id']}{share} {row['severity']}"


@needs_traces
@pytest.mark.deep
@pytest.mark.parametrize("name", FIRES)
def test_what_fires_on_real_traces(name: str) -> None:
    rows = told(name)
    assert ", ".join(map(words, rows)) == FIRES[name]
    more = [row for row in told(name, all=True) if row["id"] not in {each["id"] for each in rows}]
    assert ", ".join(str(row["id"]) for row in more if row.get("bound_ns") is None) == (
        ON_REQUEST.get(name, "")
    )
    assert all(float(str(row["percent"])) < 1 for row in more if row.get("bound_ns") is not None)


@needs_traces
@pytest.mark.deep
@pytest.mark.parametrize("name", FIRES)
def test_commands_of_findings_open_what_they_name(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = TRACES / name
    if not path.exists():
        pytest.skip(f"no trace {name}")
    assert main(["report", str(path), "--json", "--section", "findings", "--all"]) == 0
    document = json.loads(capsys.readouterr().out)["findings"]
    for row in document["rows"]:
        assert row["view"] is not None, row["id"]
        program, *call = shlex.split(row["view"])
        assert (program, main([*call, "--print"])) == ("flame", 0), row["view"]
        assert "no activity" not in capsys.readouterr().err, row["view"]
        place = call.index("--state")
        frames = tuple(json.loads(call[place + 1]).get("selected", ()))
        if frames:
            tree = project(load(path), parse(call[2:place])[1])
            assert tree.names(tree.find(frames)) == frames, row["view"]
