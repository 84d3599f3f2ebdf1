"""Tell what a trace is of, and what of it is looked at."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flame.core.analysis.iterations import iteration_name
from flame.core.analysis.trace_summary import TraceSummary, summarize
from flame.core.columns import sum_by
from flame.core.model.frames import ACTIVITY_KINDS, Kind
from flame.core.report.measures.device_facts import FACT_COLUMNS, fact_cells
from flame.core.report.scope import Scope
from flame.core.report.table import Section, Table, TableColumn, Value, share

NAME, TITLE = "summary", "What was recorded"

_SOURCES = (
    TableColumn("label", "file"),
    TableColumn("path", ""),
    TableColumn("format", "format"),
    TableColumn("schema_version", ""),
    TableColumn("producer", "recorded by"),
    TableColumn("activities", "activities", "count"),
    TableColumn("gpu_time_ns", "GPU time", "ns"),
    TableColumn("duration_ns", "recorded for", "ns"),
)
_RAN_ON = (
    TableColumn("label", "file"),
    TableColumn("name", "ran on"),
    TableColumn("version", "version"),
)
_DEVICES = (
    TableColumn("gpu", "GPU"),
    TableColumn("name", "model"),
    TableColumn("window_ns", "window", "ns"),
    TableColumn("busy_ns", "busy", "ns"),
    TableColumn("busy_percent", "of window", "percent"),
    *FACT_COLUMNS,
)
_KINDS = (
    TableColumn("kind", "kind"),
    TableColumn("count", "activities", "count"),
    TableColumn("ns", "GPU time", "ns"),
    TableColumn("percent", "of all", "percent"),
)
_ITERATIONS = (
    TableColumn("name", "iterations"),
    TableColumn("number", "number", "count"),
    TableColumn("p50_ns", "p50", "ns"),
    TableColumn("longest_ns", "longest", "ns"),
)


def summary_section(scope: Scope) -> Section:
    """Tell files, GPUs, kinds of activities and iterations."""
    summary = summarize(scope.profile)
    tables = [
        Table.of("sources", "", _SOURCES, _source_rows(summary)),
        Table.of("ran_on", "", _RAN_ON, _version_rows(summary)),
    ]
    facts = _facts(scope, summary)
    if not scope.profile.resolved:
        tables.append(Table.of("devices", "", _DEVICES, _device_rows(scope, summary)))
        tables.append(Table.of("kinds", "", _KINDS, _kind_rows(scope)))
        tables.append(Table.of("iterations", "", _ITERATIONS, _iteration_rows(summary)))
    return Section(NAME, TITLE, facts, tuple(tables), tuple(_notes(scope, summary)))


def _facts(scope: Scope, summary: TraceSummary) -> dict[str, object]:
    """What passes the filters, and what the trace has."""
    facts: dict[str, object] = {
        "duration_ns": summary.duration if summary.timed else None,
        "synthetic": summary.meta.synthetic,
        "options": dict(summary.meta.options),
        "versions": dict(summary.meta.versions),
        "processes": [{"pid": each.pid, "name": each.name} for each in summary.processes],
        "trace": {
            "activities": summary.activities,
            "gpu_time_ns": None if summary.resolved else summary.gpu_time,
        },
        "levels": list(summary.levels),
    }
    if summary.resolved:
        return {**facts, "activities": summary.activities, "gpu_time_ns": None}
    value, count = scope.weights
    kinds = {str(row[0]): row[1] for row in _kind_rows(scope)}
    return {
        **facts,
        "activities": int(count.sum()),
        "gpu_time_ns": int(value.sum()),
        "by_kind": kinds,
        "graph_nodes": summary.graph_nodes.activities,
        "graph_nodes_captured": summary.graph_nodes.captured,
    }


def _source_rows(summary: TraceSummary) -> Iterator[tuple[Value, ...]]:
    for total in summary.sources:
        meta = total.source.meta
        name = total.source.label or meta.path.rpartition("/")[2]
        time = None if summary.resolved else total.gpu_time
        kind = " ".join(filter(None, (meta.format, meta.schema_version)))
        about = (name, meta.path, kind, meta.schema_version, meta.producer)
        yield *about, total.activities, time, _duration(summary)


def _version_rows(summary: TraceSummary) -> Iterator[tuple[Value, ...]]:
    """The versions of driver and libraries; by file where these differ."""
    found = [(total.source.label, total.source.meta.versions) for total in summary.sources]
    if all(versions == found[0][1] for _, versions in found):
        found = [("", found[0][1])]
    for label, versions in found:
        yield from ((label or None, name, version) for name, version in versions.items())


def _duration(summary: TraceSummary) -> int | None:
    """How long a file lasts: what several of them last is not known of each."""
    return summary.duration if summary.timed and not summary.is_merged else None


def _device_rows(scope: Scope, summary: TraceSummary) -> Iterator[tuple[Value, ...]]:
    for gpu in scope.gpus:
        device = summary.devices[gpu.device] if gpu.device >= 0 else None
        name, facts = device.name if device else "", fact_cells(device)
        yield gpu.label, name or None, gpu.length, gpu.busy, share(gpu.busy, gpu.length), *facts


def _kind_rows(scope: Scope) -> Iterator[tuple[Value, ...]]:
    kind = scope.shown.activities.groups.kind
    time, count = (sum_by(kind, column, len(Kind)) for column in scope.weights)
    for each in ACTIVITY_KINDS:
        if count[each]:
            ns = int(time[each])
            yield each.title, int(count[each]), ns, share(ns, int(time.sum()))


def _iteration_rows(summary: TraceSummary) -> Iterator[tuple[Value, ...]]:
    found = summary.iterations
    if len(found):
        name = iteration_name(summary.profile, int(found.row[0]))
        yield f"{name} …", len(found), found.median, int(np.max(found.duration))


def _notes(scope: Scope, summary: TraceSummary) -> Iterator[str]:
    if summary.meta.synthetic:
        yield "no GPU ran this: the trace was made up"
    if not summary.resolved and len(scope.rows) < summary.activities:
        part, whole = f"{len(scope.rows):,}", f"{summary.activities:,}"
        yield f"{part} of {whole} activities pass the filters; how busy a GPU was counts all"
    yield from summary.warnings
