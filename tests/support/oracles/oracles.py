"""NVIDIA's own report totals for some of the real traces, as its scripts printed them.

Median, quartile and deviation columns are approximations of the reports: nothing reads them here.
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from typing import NamedTuple

from tests.conftest import TRACES

FOLDER = TRACES / "oracles"
FOLDERS = (FOLDER, TRACES / "reports")
ORACLES = sorted({path.name.partition(".")[0] for path in FOLDER.glob("*.csv")})
NVTX_ORACLES = sorted({path.name.partition(".")[0] for path in FOLDER.glob("*.nvtx_*.csv")})

Row = dict[str, str]


class Total(NamedTuple):
    """Instances of something and their summed time, ns."""

    instances: int = 0
    ns: int = 0

    def plus(self, instances: int, ns: int) -> Total:
        return Total(self.instances + instances, self.ns + ns)


def report(trace: str, name: str) -> list[Row]:
    """Rows of one report on `trace` (a stem, such as ``a100_llm_nvtx``)."""
    paths = (folder / f"{trace}.{name}.csv" for folder in FOLDERS)
    with next(path for path in paths if path.exists()).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def traces_with(name: str) -> list[str]:
    """Stems of the traces of which there is a report of that name."""
    paths = (path for folder in FOLDERS for path in folder.glob(f"*.{name}.csv"))
    return sorted({path.name.partition(".")[0] for path in paths})


def plain_call(name: str) -> str:
    """A call without its version, which the reports keep where it has five digits."""
    return re.sub(r"_v\d{4,}$", "", name)


def kernel_totals(trace: str) -> dict[str, Total]:
    """By demangled kernel name."""
    found: dict[str, Total] = defaultdict(Total)
    for row in report(trace, "cuda_gpu_kern_sum"):
        name = row["Name"]
        found[name] = found[name].plus(int(row["Instances"]), int(row["Total Time:dur_ns"]))
    return found


def call_totals(trace: str) -> dict[str, Total]:
    """By name of API call, without version."""
    found: dict[str, Total] = defaultdict(Total)
    for row in report(trace, "cuda_api_sum"):
        name = plain_call(row["Name"])
        found[name] = found[name].plus(int(row["Num Calls"]), int(row["Total Time:dur_ns"]))
    return found


def range_kernel_totals(trace: str) -> dict[tuple[str, str, str, str], Total]:
    """By (range, pid, tid, kernel): kernels launched inside ranges of that name, at any depth.

    The range is ``domain:text``, or empty for kernels outside all ranges; pid and tid are empty
    for kernels without a recorded launch.
    """
    found: dict[tuple[str, str, str, str], Total] = defaultdict(Total)
    for row in report(trace, "nvtx_kern_sum"):
        key = row["NVTX Range"], row["PID"], row["TID"], row["Kernel Name"]
        found[key] = found[key].plus(int(row["Kern Inst"]), int(row["Total Time:dur_ns"]))
    return found


def range_totals(trace: str) -> dict[str, Total]:
    """Push/pop ranges by ``domain:text``."""
    found: dict[str, Total] = defaultdict(Total)
    for row in report(trace, "nvtx_pushpop_sum"):
        name = row["Range"]
        found[name] = found[name].plus(int(row["Instances"]), int(row["Total Time:dur_ns"]))
    return found
