"""The table of frames in the programs that read it: of names that would like to be formulas."""

from __future__ import annotations

import csv
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from flame.cli.main import main
from tests.support.paths import SAMPLES
from tests.support.writers.nsysfile import NsysFile

pytestmark = pytest.mark.deep

NAMES = (
    *("=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", '"quoted", "twice"', "two\nlines", "a\r\nb"),
    *("caf\u00e9 \u202eevil", "\x1b[31mred", "x" * 1_000_000, "'", " = 1", "NULL", "nan", "1e3"),
)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("consumers") / "run.sqlite"
    with NsysFile(path) as file:
        for number, name in enumerate(NAMES):
            file.kernel(name, 1_000 * number, 1_000 * number + 10 + number, corr=number + 1)
    return path


def exported(trace: Path, name: str, *options: str) -> Path:
    target = trace.parent / f"out.{name}"
    words = ["export", str(trace), "-f", name, "--levels", "kernel", *options]
    assert main([*words, "-o", str(target)]) == 0
    return target


def plain(name: str) -> str:
    """A name as CSV has it: nothing that a spreadsheet would run."""
    return f"'{name}" if name[0] in "=+-@" else name


EXPECTED = {plain(name): 10 + number for number, name in enumerate(NAMES)}


def test_csv_in_python(trace: Path) -> None:
    csv.field_size_limit(1 << 21)
    with exported(trace, "csv").open(encoding="utf-8", newline="") as file:
        found = {row["name"]: int(row["self_ns"]) for row in csv.DictReader(file)}
    assert found == EXPECTED


def test_csv_in_pandas(trace: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(exported(trace, "csv"), keep_default_na=False)
    found = dict(zip(frame["name"], frame["self_ns"].tolist(), strict=True))
    assert found == EXPECTED
    assert frame["self_percent"].sum() == pytest.approx(100)


@pytest.mark.skipif(not shutil.which("sqlite3"), reason="no sqlite3 to import CSV with")
def test_csv_in_sqlite(trace: Path) -> None:
    path = exported(trace, "csv")
    asked = "select count(*), sum(self_ns), max(length(name)) from t;"
    command = ["sqlite3", ":memory:", "-cmd", ".mode csv", "-cmd", f".import {path} t", asked]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    assert done.stdout.strip() == f"{len(NAMES)},{sum(EXPECTED.values())},1000000"
    assert done.stderr == ""


def in_pyarrow(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pytest.importorskip("pyarrow.parquet").read_table(path).to_pylist()
    return rows


def in_polars(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pytest.importorskip("polars").read_parquet(path).to_dicts()
    return rows


def in_duckdb(path: Path) -> list[dict[str, Any]]:
    duckdb = pytest.importorskip("duckdb")
    found = duckdb.sql(f"select name, self_ns, count from '{path}'").fetchall()
    return [dict(zip(("name", "self_ns", "count"), row, strict=True)) for row in found]


@pytest.mark.parametrize("rows", [in_pyarrow, in_polars, in_duckdb])
def test_parquet(rows: Any, trace: Path) -> None:
    pytest.importorskip("pyarrow")
    found = rows(exported(trace, "parquet"))
    assert {row["name"]: row["self_ns"] for row in found} == {
        name: 10 + number for number, name in enumerate(NAMES)
    }
    assert {row["count"] for row in found} == {1}


def test_parquet_of_a_real_trace_adds_up(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    from flame.core.loading.many import load

    trace = SAMPLES / "decode_small.sqlite"
    path = tmp_path / "real.parquet"
    assert main(["export", str(trace), "-f", "parquet", "-o", str(path)]) == 0
    [(total,)] = duckdb.sql(f"select sum(self_ns) from '{path}'").fetchall()
    assert total == load(trace).gpu_time
