"""Copies by direction, memory and size: as plain loops and NVIDIA's rules find them."""

from __future__ import annotations

import csv
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from flame.core.errors import UsageError
from flame.core.loading.many import load
from flame.core.report.measures.copy_references import read_links
from flame.core.report.report import Report
from flame.core.report.scope import Scope
from flame.core.report.sections.copies import copies_section
from tests.conftest import NSYS_TRACES, TRACES, needs_traces
from tests.support.profiles.report_rows import table_rows
from tests.support.writers.nsysfile import DTOD, DTOH, HTOD, NsysFile

MIB = 1 << 20
PAGEABLE, PINNED, DEVICE, MANAGED = 0, 1, 2, 4
RULES = {
    "async_pageable": "cuda_memcpy_async",
    "sync": "cuda_memcpy_sync",
    "sets_sync": "cuda_memset_sync",
}


class Copies:
    """Writes copies one after the other, 100 ns each, with the calls that began them."""

    def __init__(self, path: Path) -> None:
        self.path, self.file, self.number = path, NsysFile(path), 0

    def copy(self, call: str, kind: int, size: int, source: int, target: int) -> None:
        self._call(call)
        self.file.memcpy(kind, self._at(), self._at() + 100, corr=self.number, bytes=size)
        where = f"WHERE correlationId = {self.number}"
        self.file.db.execute(
            f"UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET srcKind = {source}, dstKind = {target} {where}"
        )

    def set(self, call: str, target: int) -> None:
        self._call(call)
        self.file.memset(self._at(), self._at() + 100, corr=self.number, bytes=64)
        where = f"WHERE correlationId = {self.number}"
        self.file.db.execute(f"UPDATE CUPTI_ACTIVITY_KIND_MEMSET SET memKind = {target} {where}")

    def _call(self, name: str) -> None:
        self.number += 1
        self.file.api(name, self._at() - 5, self._at(), corr=self.number)

    def _at(self) -> int:
        return 1_000 * self.number

    def scope(self) -> Scope:
        self.file.close()
        return Scope(load(self.path))


@pytest.fixture
def copies(tmp_path: Path) -> Copies:
    return Copies(tmp_path / "trace.sqlite")


def test_they_are_told_apart_by_direction_memory_and_size(copies: Copies) -> None:
    for size in (MIB, 2 * MIB, MIB - 1, 65_535):
        copies.copy("cudaMemcpyAsync_v3020", HTOD, size, PAGEABLE, DEVICE)
    copies.copy("cudaMemcpyAsync_v3020", HTOD, MIB, PINNED, DEVICE)
    rows = table_rows(copies_section(copies.scope()))
    keys = ("source", "target", "size", "count", "bytes", "ns", "alone_ns")
    found = {tuple(row[key] for key in keys) for row in rows}
    assert found == {
        ("pageable", "device", "≥ 1 MiB", 2, 3 * MIB, 200, 200),
        ("pageable", "device", "< 1 MiB", 1, MIB - 1, 100, 100),
        ("pageable", "device", "< 64 KiB", 1, 65_535, 100, 100),
        ("pinned", "device", "≥ 1 MiB", 1, MIB, 100, 100),
    }


def test_a_rate_is_bytes_by_time(copies: Copies) -> None:
    copies.copy("cudaMemcpyAsync_v3020", HTOD, 2_000, PINNED, DEVICE)
    copies.copy("cudaMemcpyAsync_v3020", HTOD, 4_000, PINNED, DEVICE)
    [row] = table_rows(copies_section(copies.scope()))
    rates = [row[key] for key in ("gb_per_s", "p50_gb_per_s", "min_gb_per_s", "max_gb_per_s")]
    assert rates == [30.0, 20.0, 20.0, 40.0]


def test_which_hold_the_host(copies: Copies) -> None:
    copies.copy("cudaMemcpyAsync_v3020", HTOD, 1, PAGEABLE, DEVICE)
    copies.copy("cudaMemcpyAsync_ptsz_v7000", DTOH, 2, DEVICE, PAGEABLE)
    copies.copy("cudaMemcpyAsync_v3020", HTOD, 4, PINNED, DEVICE)
    copies.copy("cudaMemcpy_v3020", HTOD, 64_000, PAGEABLE, DEVICE)
    copies.copy("cudaMemcpy_v3020", HTOD, 64_001, PAGEABLE, DEVICE)
    copies.copy("cudaMemcpy_v3020", DTOH, 8, DEVICE, PAGEABLE)
    copies.copy("cudaMemcpy_v3020", DTOD, 16, DEVICE, DEVICE)
    copies.set("cudaMemset_v3020", MANAGED)
    copies.set("cudaMemset_v3020", DEVICE)
    copies.set("cudaMemsetAsync_v3020", MANAGED)
    facts = copies_section(copies.scope()).facts
    assert facts["async_pageable"] == {"count": 2, "bytes": 3, "ns": 200}
    assert facts["sync"] == {"count": 2, "bytes": 64_009, "ns": 200}
    assert facts["sets_sync"] == {"count": 1, "bytes": 64, "ns": 100}


def efficiencies(scope: Scope) -> dict[str, tuple[float | None, str | None]]:
    rows = table_rows(copies_section(scope))
    return {row["name"]: (row["efficiency_percent"], row["reference"]) for row in rows}


def with_bandwidth(copies: Copies, rate: int) -> None:
    copies.file.insert("TARGET_INFO_GPU", id=0, name="H100", smCount=132, memoryBandwidth=rate)


def test_copies_within_a_gpu_read_and_write_its_memory(copies: Copies) -> None:
    with_bandwidth(copies, 100_000_000_000)
    copies.copy("cudaMemcpyAsync_v3020", DTOD, 4_000, DEVICE, DEVICE)
    assert efficiencies(copies.scope()) == {"memcpy DtoD": (80.0, "memory")}


def test_a_link_is_what_the_user_says(copies: Copies) -> None:
    copies.copy("cudaMemcpyAsync_v3020", HTOD, 1_000, PINNED, DEVICE)
    scope = replace(copies.scope(), links=read_links(["pcie=25"]))
    assert efficiencies(scope) == {"memcpy HtoD": (40.0, "--link")}


def test_else_the_best_of_enough_copies_is_the_measure(copies: Copies) -> None:
    for at in range(20):
        copies.copy("cudaMemcpyAsync_v3020", HTOD, 1_000 + 10 * at, PINNED, DEVICE)
    copies.copy("cudaMemcpyAsync_v3020", HTOD, 590, PAGEABLE, DEVICE)
    copies.copy("cudaMemcpyAsync_v3020", DTOH, 500, DEVICE, PINNED)
    copies.set("cudaMemsetAsync_v3020", DEVICE)
    rows = table_rows(copies_section(copies.scope()))
    found = {(row["name"], row["source"]): row for row in rows}
    pageable = found["memcpy HtoD", "pageable"]
    assert pageable["reference"] == "best p90" and pageable["reference_gb_per_s"] == 11.7
    assert pageable["efficiency_percent"] == pytest.approx(100 * 590 / 1_170, abs=0.001)
    # A single copy is no measure, and sets have none.
    assert found["memcpy DtoH", "device"]["reference"] is None
    assert found["memset", None]["reference"] is None


@pytest.mark.parametrize("text", ["pcie", "pcie=", "pcie=0", "pcie=-1", "usb=1", "pcie=1e3", "=5"])
def test_a_link_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--link"):
        read_links([text])


def test_a_trace_of_kernels_alone_has_none(tmp_path: Path) -> None:
    with NsysFile(tmp_path / "trace.sqlite") as file:
        file.kernel("gemm", 0, 10)
    section = Report(Scope(load(tmp_path / "trace.sqlite"))).section("copies")
    assert section.available and table_rows(section) == []


@needs_traces
@pytest.mark.parametrize("name", NSYS_TRACES)
def test_what_holds_the_host_is_what_nvidias_rules_say(name: str) -> None:
    path = TRACES / "nsys" / name
    stem = path.stem
    known = {key: TRACES / "reports" / f"{stem}.{rule}.csv" for key, rule in RULES.items()}
    known = {key: file for key, file in known.items() if file.exists()}
    if not known:
        pytest.skip("the rules have not been run on this trace")
    facts = copies_section(Scope(load(path))).facts
    for key, file in known.items():
        with file.open(newline="") as text:
            rows = list(csv.DictReader(text))
        expected = {
            "count": len(rows),
            "bytes": sum(int(row["Bytes:mem_B"]) for row in rows),
            "ns": sum(int(row["Duration:dur_ns"]) for row in rows),
        }
        assert facts[key] == expected, key


@needs_traces
@pytest.mark.parametrize("name", NSYS_TRACES)
def test_sums_are_those_of_sql(name: str) -> None:
    path = TRACES / "nsys" / name
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as db:
        tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master")}
        expected = [0, 0]
        for table in ("CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET"):
            if table in tables:
                query = f'SELECT COUNT(*), COALESCE(SUM("end" - start), 0) FROM {table}'
                expected = [
                    a + b for a, b in zip(expected, db.execute(query).fetchone(), strict=True)
                ]
    rows = table_rows(copies_section(Scope(load(path)))) if expected[0] else []
    assert [sum(row["count"] for row in rows), sum(row["ns"] for row in rows)] == expected
