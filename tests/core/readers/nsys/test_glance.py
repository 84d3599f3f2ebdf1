"""A glance at an export: its GPUs, for as little as that costs."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from flame.core.options import LoadOptions, silent
from flame.core.readers.nsys.export_file import read_export
from flame.core.readers.nsys.glance import glance
from tests.conftest import NSYS_TRACES
from tests.support.writers.nsysfile import NsysFile


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trace.sqlite"


@pytest.mark.parametrize("schema", ["new", "old"])
def test_the_gpus_of_the_machine_are_named(path: Path, schema: str) -> None:
    with NsysFile(path, schema) as trace:
        trace.gpu(0, "NVIDIA H100 80GB HBM3", pid=1)
        trace.gpu(1, "NVIDIA L4", pid=1)
    assert glance(path) == ("NVIDIA H100 80GB HBM3", "NVIDIA L4")


def test_an_export_that_names_none_is_one_all_the_same(path: Path) -> None:
    with NsysFile(path) as trace:
        trace.kernel("gemm", 0, 10)
    assert glance(path) == ()


def test_names_that_are_no_text_are_left_out(path: Path) -> None:
    with NsysFile(path) as trace:
        trace.gpu(0, "NVIDIA L4", pid=1)
        trace.db.execute("UPDATE TARGET_INFO_GPU SET name = x'00ff'")
    assert glance(path) == ()


def test_other_databases_are_no_exports(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE TARGET_INFO_GPU (name)")
    assert glance(path) is None


@pytest.mark.parametrize(
    "made",
    [
        "VIEW TARGET_INFO_GPU AS SELECT 'x' AS name",
        "TABLE TARGET_INFO_GPU (id, name AS ('x' || id))",
    ],
)
def test_names_that_are_computed_are_not_asked_for(path: Path, made: str) -> None:
    with NsysFile(path) as trace:
        trace.db.execute(f"CREATE {made}")
        if "TABLE TARGET" in made:
            trace.db.execute("INSERT INTO TARGET_INFO_GPU (id) VALUES (0)")
    assert glance(path) == ()


def test_a_name_without_end_is_given_up(path: Path) -> None:
    with NsysFile(path) as trace:
        trace.gpu(0, "x" * (2 << 20), pid=1)
    assert glance(path) == ()


def test_of_many_gpus_some_are_named(path: Path) -> None:
    with NsysFile(path) as trace:
        for number in range(100):
            trace.gpu(number, "NVIDIA L4", pid=1)
    assert glance(path) == ("NVIDIA L4",) * 64


def test_nothing_is_written_beside_the_file(path: Path) -> None:
    with NsysFile(path) as trace:
        trace.db.execute("PRAGMA journal_mode = WAL")
        trace.gpu(0, "NVIDIA L4", pid=1)
    before = sorted(path.parent.iterdir())
    glance(path)
    assert sorted(path.parent.iterdir()) == before


@pytest.mark.parametrize("name", NSYS_TRACES)
def test_the_gpus_that_ran_something_are_among_them(
    name: str, nsys_trace: Callable[[str], Path]
) -> None:
    path = nsys_trace(name)
    if path.stat().st_size > 2 << 20:
        pytest.skip("takes long to read")
    devices = read_export(path, LoadOptions(), silent).devices
    assert {device.name for device in devices if device.name} <= set(glance(path) or ())
