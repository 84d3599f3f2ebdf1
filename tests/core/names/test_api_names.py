"""Names of API functions, without their versions."""

from __future__ import annotations

import csv
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from flame.core.names.cuda import api_name
from tests.conftest import TRACES


@pytest.mark.parametrize(
    ("recorded", "name"),
    [
        ("cudaLaunchKernel_v7000", "cudaLaunchKernel"),
        ("cudaLaunchKernelExC_v11060", "cudaLaunchKernelExC"),
        ("cudaLaunchKernel_v7000_ptsz", "cudaLaunchKernel"),
        ("cudaLaunchKernel_ptsz_v7000", "cudaLaunchKernel_ptsz"),
        ("cudaGetDeviceProperties_v2_v12000", "cudaGetDeviceProperties_v2"),
        ("cuGetProcAddress_v2", "cuGetProcAddress_v2"),
        ("cuLaunchKernel", "cuLaunchKernel"),
        ("", ""),
    ],
)
def test_api_name_loses_its_version(recorded: str, name: str) -> None:
    assert api_name(recorded) == name


def recorded_api_names(path: Path) -> set[str]:
    query = """SELECT DISTINCT value FROM CUPTI_ACTIVITY_KIND_RUNTIME
               JOIN StringIds ON StringIds.id = nameId"""
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as connection:
        return {value for (value,) in connection.execute(query)}


ORACLES = sorted(path.name for path in TRACES.glob("oracles/*.cuda_api_sum.csv"))


@pytest.mark.parametrize("oracle", ORACLES)
def test_api_names_agree_with_nvidia(oracle: str, nsys_trace: Callable[[str], Path]) -> None:
    with (TRACES / "oracles" / oracle).open(newline="") as file:
        printed = {row["Name"] for row in csv.DictReader(file)}
    recorded = recorded_api_names(nsys_trace(oracle.split(".")[0] + ".sqlite"))
    # NVIDIA's report takes off `_v` and exactly four digits; five-digit versions stay on.
    assert {name[:-6] if name[-6:-4] == "_v" else name for name in recorded} == printed
    assert {api_name(name) for name in recorded} == {api_name(name) for name in printed}
