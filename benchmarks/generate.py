#!/usr/bin/env python3
"""Writes large synthetic nsys exports: one step of four threads, repeated with a time shift.

Per million kernels 1.3 million API rows and 1.8 million NVTX ranges, 15 % of them with registered
names; two processes with two launching threads and one GPU each. Labelled synthetic.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.support.call_chains import chains_of_calls, write_chains
from samples.nsys_schema import (
    NEWEST_VERSION,
    PUSH_POP,
    RUNTIME_API,
    TABLES_2026,
    create_sql,
    gpid,
    gtid,
    required,
)

SIZES = {"100k": 100_000, "1M": 1_000_000, "10M": 10_000_000}
PIDS = (5001, 5002)
THREADS = 2
LAYERS = 25
MODULES = ("input_layernorm", "self_attn.qkv_proj", "self_attn.attn", "self_attn.o_proj", "mlp")
OPERATORS = ("mm", "add_", "mul", "silu", "rms_norm", "softmax", "index", "copy_", "cat", "to")
KERNELS_PER_STEP = len(PIDS) * THREADS * LAYERS * 2 * len(MODULES)
BATCHES = 16
STEP_NS = 4_000_000
CHUNK_STEPS = 50
FIRST_STEP_NS = 1_000_000_000

# What real files hold in the columns that do not matter here; it makes rows as long as theirs.
FIXED: dict[str, dict[str, int | str]] = {
    "CUPTI_ACTIVITY_KIND_KERNEL": {
        "contextId": 1,
        "greenContextId": 0,
        "launchType": 1,
        "cacheConfig": 1,
        "registersPerThread": 168,
        "gridX": 4096,
        "gridY": 4,
        "gridZ": 1,
        "blockX": 256,
        "blockY": 1,
        "blockZ": 1,
        "dynamicSharedMemory": 65_536,
        "localMemoryTotal": 250_871_808,
        "gridId": 75_429,
        "sharedMemoryExecuted": 102_400,
        "sharedMemoryLimitConfig": 0,
        "graphId": 0,
        "clusterX": 0,
        "clusterY": 0,
        "clusterZ": 0,
        "clusterSchedulingPolicy": 1,
        "maxPotentialClusterSize": 0,
        "maxActiveClusters": 0,
        "tensorSizeMinusOneElements": "[]",
    },
    "CUPTI_ACTIVITY_KIND_RUNTIME": {"eventClass": RUNTIME_API, "returnValue": 0},
    "NVTX_EVENTS": {"eventType": PUSH_POP, "domainId": 0},
}

Columns = dict[str, npt.NDArray[Any]]
Strings = dict[str, int]


@dataclass
class Template:
    """The rows of one step, as lists of columns; times from the beginning of the step."""

    strings: Strings
    kernels: list[dict[str, int]] = field(default_factory=list)
    calls: list[dict[str, int]] = field(default_factory=list)
    ranges: list[dict[str, Any]] = field(default_factory=list)
    correlations: dict[int, int] = field(default_factory=lambda: dict.fromkeys(PIDS, 0))

    def string(self, text: str) -> int:
        return self.strings.setdefault(text, len(self.strings) + 1)


class Thread:
    """Writes what one thread does in one step into a template."""

    def __init__(self, template: Template, device: int, number: int) -> None:
        self._template = template
        self._pid = PIDS[device]
        self._device = device
        self._number = number
        self._now = 137_000 * (2 * device + number)
        self._gpu = self._now + 6_000

    def step(self) -> None:
        """All layers, under one range."""
        root = self._push("execute_context_0(0)_generation_%d(%d)")
        for layer in range(LAYERS):
            self._layer(f"Model.model.layers.{layer}")
        self._pop(root)

    def _layer(self, path: str) -> None:
        outer = self._push(_dictionary(path))
        for index, module in enumerate(MODULES):
            inner = self._push(_dictionary(f"{path}.{module}"))
            self._operator(OPERATORS[2 * index], nested=index < 2)
            self._operator(OPERATORS[2 * index + 1], nested=False)
            if index >= 2:
                self._call("cudaEventRecord_v3020")
            self._pop(inner)
        self._pop(outer)

    def _operator(self, name: str, nested: bool) -> None:
        outer = self._push(f"aten::{name}")
        inner = self._push(f"aten::{name}_out") if nested else None
        self._launch(name)
        if inner:
            self._pop(inner)
        self._pop(outer)

    def _push(self, text: str) -> dict[str, Any]:
        ranges = self._template.ranges
        row = {"start": self._now, "text": text, "globalTid": self._thread}
        row["registered"] = len(ranges) % 20 < 3
        ranges.append(row)
        self._now += 700
        return row

    def _pop(self, row: dict[str, Any]) -> None:
        row["end"] = self._now
        self._now += 300

    @property
    def _thread(self) -> int:
        return gtid(self._pid, self._pid + self._number)

    def _call(self, name: str) -> int:
        correlations = self._template.correlations
        correlations[self._pid] += 1
        row = {"start": self._now, "end": self._now + 3_100, "globalTid": self._thread}
        row |= {"correlationId": correlations[self._pid], "pid": self._pid}
        row["nameId"] = self._template.string(name)
        self._template.calls.append(row)
        self._now += 3_500
        return correlations[self._pid]

    def _launch(self, name: str) -> None:
        start = max(self._gpu, self._now + 2_500)
        correlation = self._call("cudaLaunchKernel_v7000")
        self._gpu = start + 6_000 + 97 * len(self._template.kernels) % 5_000
        row = {"start": start, "end": self._gpu - 400, "deviceId": self._device}
        row |= {"streamId": 7 + 6 * self._number, "correlationId": correlation}
        short = f"{name.rstrip('_')}_kernel"
        demangled = f"void ops::{short}<float, (int)4>(const T1 *, T1 *, int)"
        row |= {"shortName": self._template.string(short), "pid": self._pid}
        row |= {"demangledName": self._template.string(demangled), "globalPid": gpid(self._pid)}
        row["mangledName"] = self._template.string(f"_ZN3ops{len(short)}{short}IfLi4EEEvPKT_PS1_i")
        self._template.kernels.append(row)


def _dictionary(path: str) -> str:
    weights = "{'weight': [6144, 4096], 'bias': [6144]}"
    return f"{{'Module': '{path}', 'TrainableParams': {weights}, 'Inputs': [[%d, 4096]]}}"


def generate(path: Path, kernels: int, opid: bool = False, chains: int = 0) -> None:
    """Writes at least `kernels` kernels (whole steps); with `opid`, most range texts are unique.

    Nine calls in ten have one of so many `chains`.
    """
    path.unlink(missing_ok=True)
    strings: Strings = {}
    template = Template(strings)
    for device in range(len(PIDS)):
        for number in range(THREADS):
            Thread(template, device, number).step()
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for pragma in ("journal_mode=OFF", "synchronous=OFF", "page_size=4096"):
            db.execute(f"PRAGMA {pragma}")
        db.execute("BEGIN")
        if chains:
            write_chains(db, chains, template.string)
        _write_steps(db, template, -(-kernels // KERNELS_PER_STEP), opid, chains)
        _write_description(db, strings)
        db.execute("COMMIT")


def _write_steps(
    db: sqlite3.Connection, template: Template, steps: int, opid: bool, chains: int
) -> None:
    tables = (
        Table(db, "CUPTI_ACTIVITY_KIND_KERNEL", _sorted(template.kernels), template),
        CallTable(db, "CUPTI_ACTIVITY_KIND_RUNTIME", _sorted(template.calls), template, chains),
        NvtxTable(db, "NVTX_EVENTS", _sorted(template.ranges), template, opid),
    )
    for table in tables:
        for first in range(0, steps, CHUNK_STEPS):
            table.write(np.arange(first, min(first + CHUNK_STEPS, steps)))


def _sorted(rows: list[dict[str, Any]]) -> Columns:
    rows = sorted(rows, key=lambda row: row["start"])
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


class Table:
    """One table: the template's columns, repeated for every step of a chunk."""

    def __init__(
        self, db: sqlite3.Connection, name: str, columns: Columns, template: Template
    ) -> None:
        self._db = db
        self._name = name
        self._rows = columns
        self._per_step = np.array([template.correlations[pid] for pid in PIDS])
        db.execute(create_sql(name, TABLES_2026[name]))

    def write(self, steps: npt.NDArray[np.int64]) -> None:
        """Appends the rows of `steps`."""
        columns = self.columns(steps)
        fixed = required(TABLES_2026[self._name]) | FIXED[self._name]
        values = {name: repr(value) for name, value in fixed.items()} | dict.fromkeys(columns, "?")
        sql = (
            f"INSERT INTO {self._name} ({', '.join(values)}) VALUES ({', '.join(values.values())})"
        )
        bound = (columns[name] for name, value in values.items() if value == "?")
        self._db.executemany(sql, zip(*bound, strict=True))

    def columns(self, steps: npt.NDArray[np.int64]) -> dict[str, list[Any]]:
        """Lists by column: the template once per step, shifted in time and correlation."""
        shift = dict.fromkeys(("start", "end"), steps * STEP_NS + FIRST_STEP_NS)
        columns = {
            name: np.add.outer(shift.get(name, 0 * steps), column).ravel().tolist()
            for name, column in self._rows.items()
            if name not in ("pid", "correlationId")
        }
        if "correlationId" in self._rows:
            columns["correlationId"] = self._correlations(steps).tolist()
        return columns

    def _correlations(self, steps: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        per_step = self._per_step[np.searchsorted(PIDS, self._rows["pid"])]
        return (np.outer(steps, per_step) + self._rows["correlationId"]).ravel()


class CallTable(Table):
    """API calls, with call chains where there are any."""

    def __init__(
        self, db: sqlite3.Connection, name: str, columns: Columns, template: Template, chains: int
    ) -> None:
        super().__init__(db, name, columns, template)
        self._chains = chains

    def columns(self, steps: npt.NDArray[np.int64]) -> dict[str, list[Any]]:
        """As the base class's, with the chains."""
        columns = super().columns(steps)
        if not self._chains:
            return columns
        calls = len(self._rows["start"])
        of = chains_of_calls(int(steps[0]), len(steps), calls, self._chains)
        return columns | {"callchainId": of}


class NvtxTable(Table):
    """NVTX ranges: a text or a registered name each, the batch size changing from step to step."""

    def __init__(
        self,
        db: sqlite3.Connection,
        name: str,
        columns: Columns,
        template: Template,
        opid: bool,
    ) -> None:
        by_id = columns.pop("registered").tolist()
        texts = columns.pop("text")
        lines = [_texts(texts, batch) for batch in range(1, BATCHES + 1)]
        super().__init__(db, name, columns, template)
        inline = [[None if r else t for t, r in zip(line, by_id, strict=True)] for line in lines]
        self._texts = np.array(inline, np.object_)
        ids = [
            [template.string(t) if r else None for t, r in zip(line, by_id, strict=True)]
            for line in lines
        ]
        self._ids = np.array(ids, np.object_)
        self._opid = opid

    def columns(self, steps: npt.NDArray[np.int64]) -> dict[str, list[Any]]:
        """As the base class's, with the names."""
        texts = self._texts[steps % BATCHES].ravel().tolist()
        if self._opid:
            texts = _numbered(texts, int(steps[0]) * self._texts.shape[1])
        ids = self._ids[steps % BATCHES].ravel().tolist()
        return super().columns(steps) | {"text": texts, "textId": ids}


def _texts(templates: Iterable[str], batch: int) -> list[str]:
    return [text.replace("%d", str(batch)) for text in templates]


def _numbered(texts: Sequence[str | None], first: int) -> list[str | None]:
    return [
        f"{text}, op_id = {first + i}" if text and text.startswith("aten::") else text
        for i, text in enumerate(texts)
    ]


def _write_description(db: sqlite3.Connection, strings: Strings) -> None:
    tables: dict[str, list[tuple[int | str, ...]]] = {
        "StringIds": [(id, text) for text, id in strings.items()],
        "PROCESSES": [(gpid(pid), pid, "synthetic") for pid in PIDS],
        "META_DATA_EXPORT": [
            ("FLAME_SYNTHETIC", "true, made by benchmarks/generate.py"),
            ("EXPORT_PRODUCT_VERSION", "synthetic"),
            ("EXPORT_SCHEMA_VERSION", NEWEST_VERSION),
        ],
    }
    for table, rows in tables.items():
        db.execute(create_sql(table, TABLES_2026[table]))
        db.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--kernels", choices=SIZES, default="100k")
    parser.add_argument("--opid", action="store_true", help="a unique op_id per operator range")
    parser.add_argument("--chains", type=int, default=0, help="different call chains of API calls")
    args = parser.parse_args()
    begin = time.perf_counter()
    generate(args.out, SIZES[args.kernels], args.opid, args.chains)
    size, seconds = args.out.stat().st_size / 2**20, time.perf_counter() - begin
    print(f"{args.out}: {size:.0f} MiB in {seconds:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
