"""Matrix products: calls, GPU time and bytes as plain loops over events have them."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from flame.core.errors import UsageError
from flame.core.loading.many import load
from flame.core.names.products import PRODUCTS, tensors_text
from flame.core.projection.filters import Time
from flame.core.projection.selection import select
from flame.core.report.options import check_dtype
from flame.core.report.scope import Scope
from flame.core.report.sections.products import products_section
from tests.conftest import TRACES, needs_traces
from tests.support.report_rows import table_rows
from tests.support.tiers import deep_except
from tests.support.writers.kinetofile import KinetoFile

NAMES = sorted(path.name for path in TRACES.glob("kineto/*.json.gz"))


def written(path: Path, types: bool = True) -> Path:
    """Two calls of one product, of which the second launches two kernels, and another one."""
    file = KinetoFile()
    told: dict[str, Any] = {"Input_type": ["float", "float"]} if types else {}
    for at, corrs in ((0, [1]), (1_000, [2, 3])):
        file.op("aten::matmul", at, at + 100, Input_Dims=[[2, 3], [3, 4]])
        file.op("aten::mm", at + 10, at + 90, Input_Dims=[[2, 3], [3, 4]], **told)
        for corr in corrs:
            file.launch(
                corr, (at + 20 * corr, at + 20 * corr + 5), (at + 200 * corr, at + 200 * corr + 52)
            )
    file.launch(4, (2_000, 2_010), (2_100, 2_200))
    return file.write(path / "trace.pt.trace.json")


def test_calls_and_rates(tmp_path: Path) -> None:
    scope = Scope(load(written(tmp_path)))
    [row] = table_rows(products_section(scope))
    least = 4 * (6 + 12 + 8)
    assert (row["operator"], row["shapes"], row["types"]) == ("aten::mm", "2×3, 3×4", "float")
    assert (row["calls"], row["ns"], row["least_bytes"]) == (2, 156, least)
    assert row["gb_per_s"] == round(2 * least / 156, 3)
    assert row["bandwidth_percent"] is None
    [gpu] = scope.profile.devices
    known = replace(gpu, facts=replace(gpu.facts, bandwidth=4_000_000_000))
    [row] = table_rows(products_section(Scope(replace(scope.profile, devices=(known,)))))
    assert row["bandwidth_percent"] == round(100 * (2 * least / 156) / 4, 3)
    early = Scope(scope.profile, select(where=(Time(None, 300),)))
    [row] = table_rows(products_section(early))
    assert (row["calls"], row["ns"]) == (1, 52)


def test_types_that_were_not_recorded_are_told_by_the_user(tmp_path: Path) -> None:
    profile = load(written(tmp_path, types=False))
    section = products_section(Scope(profile))
    [row] = table_rows(section)
    assert (row["calls"], row["least_bytes"], row["gb_per_s"]) == (2, None, None)
    assert "--dtype" in section.notes[0]
    section = products_section(Scope(profile, dtype="bf16"))
    [row] = table_rows(section)
    assert (row["types"], row["least_bytes"]) == ("bf16", 2 * 26)
    assert section.notes == ("bytes and rates of those without types: if all is bf16",)
    with pytest.raises(UsageError):
        check_dtype("integer")


def test_without_shapes_it_says_how_to_record_them(tmp_path: Path) -> None:
    file = KinetoFile()
    file.op("aten::mm", 0, 100)
    file.launch(1, (10, 20), (30, 40))
    section = products_section(Scope(load(file.write(tmp_path / "trace.pt.trace.json"))))
    assert not section.available and "record_shapes" in section.how


@needs_traces
@pytest.mark.parametrize("name", deep_except(["h100_bert_small.json.gz"], NAMES))
def test_as_a_loop_over_events_says(name: str) -> None:
    path = TRACES / "kineto" / name
    with gzip.open(path) as file:
        events = json.load(file, parse_float=Decimal)["traceEvents"]
    whole = [one for one in events if one["ph"] == "X"]
    calls: dict[int, dict[str, Any]] = {}
    for one in whole:
        if one["cat"].endswith(("_runtime", "_driver")) or one["cat"] == "Runtime":
            first = calls.setdefault(one["args"]["correlation"], one)
            if (one["ts"], -one["dur"]) < (first["ts"], -first["dur"]):
                calls[one["args"]["correlation"]] = one
    made = [one for one in whole if one["name"] in PRODUCTS and any(one["args"]["Input Dims"])]
    made.sort(key=lambda one: (one["ts"], -one["dur"]))
    time: Counter[tuple[str, str]] = Counter()
    launching: dict[tuple[str, str], set[int]] = {}
    for one in whole:
        call = calls.get(one.get("args", {}).get("correlation", -1))
        if one["cat"].lower() not in ("kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"):
            continue
        if call is None:
            continue
        around = [
            at
            for at, op in enumerate(made)
            if op["tid"] == call["tid"] and op["ts"] <= call["ts"] <= op["ts"] + op["dur"]
        ]
        if around:
            op = made[around[-1]]
            key = op["name"], tensors_text(json.dumps(op["args"]["Input Dims"]))
            time[key] += int(one["dur"] * 1000)
            launching.setdefault(key, set()).add(around[-1])
    found: Counter[tuple[str, str]] = Counter()
    number: Counter[tuple[str, str]] = Counter()
    for row in table_rows(products_section(Scope(load(path)))):
        key = row["operator"], row["shapes"]
        found[key] += row["ns"]
        number[key] += row["calls"]
    assert found == time
    assert number == {key: len(ops) for key, ops in launching.items()}
