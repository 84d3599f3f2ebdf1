"""Traces of steps of layers of operators, whose tree has as many nodes as asked for."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import numpy as np

from samples.nsys_schema import PUSH_POP, TABLES_2026, create_sql, gpid, gtid, required

LAYERS = 24
MODULES = ("qkv_proj", "attn", "o_proj", "mlp.up_proj", "mlp.act", "mlp.down_proj")
OPERATORS = LAYERS * len(MODULES)
NODES_PER_STEP = 1 + LAYERS + 2 * OPERATORS
BETWEEN = 10_000
PID = 100


def generate(path: Path, nodes: int, longer: float = 1.0) -> None:
    """A trace of steps of layers of operators: a name of its own for each, and a kernel in each.

    Every second name of kernels takes ``longer``.
    """
    steps = max(nodes // NODES_PER_STEP, 1)
    count = steps * OPERATORS
    with closing(sqlite3.connect(path)) as db:
        strings = ["cudaLaunchKernel", *(f"{module}_kernel" for module in MODULES)]
        insert(db, "StringIds", id=range(1, len(strings) + 1), value=strings)
        insert(db, "PROCESSES", globalPid=[gpid(PID)], pid=[PID], name=["synthetic"])
        meta = {"FLAME_SYNTHETIC": "true, made by benchmarks/support/tree_traces.py"}
        insert(db, "META_DATA_EXPORT", name=meta.keys(), value=meta.values())
        ranges(db, [f"step {i}" for i in range(steps)], OPERATORS, 3)
        layers = [f"model.layers.{i % LAYERS}" for i in range(steps * LAYERS)]
        ranges(db, layers, len(MODULES), 2)
        ranges(db, [f"{MODULES[i % len(MODULES)]} {i}" for i in range(count)], 1, 1)
        launches(db, count, longer)
        db.commit()


def launches(db: sqlite3.Connection, count: int, longer: float) -> None:
    """A launch for each operator, and the kernels one after the other."""
    operator = np.arange(count)
    # The first steps are far longer than the rest, so that frames of all widths are on screen.
    busy = 200 + 20_000 * (1 + operator * 7919 % 37) // (1 + operator // OPERATORS)
    busy = np.where(operator % 2, (longer * busy).astype(np.int64), busy)
    end = np.cumsum(busy) + BETWEEN
    called = operator * BETWEEN + 100
    names = (2 + operator % len(MODULES)).tolist()
    insert(
        db,
        "CUPTI_ACTIVITY_KIND_RUNTIME",
        start=called.tolist(),
        end=(called + 50).tolist(),
        globalTid=count * [gtid(PID, PID)],
        correlationId=range(1, count + 1),
        nameId=count * [1],
    )
    insert(
        db,
        "CUPTI_ACTIVITY_KIND_KERNEL",
        start=(end - busy).tolist(),
        end=end.tolist(),
        correlationId=range(1, count + 1),
        globalPid=count * [gpid(PID)],
        shortName=names,
        demangledName=names,
    )


def ranges(db: sqlite3.Connection, names: list[str], operators: int, margin: int) -> None:
    """A range after the other, each around so many operators."""
    length = operators * BETWEEN
    start = range(10 - margin, len(names) * length, length)
    end = range(length - 20 + margin, (len(names) + 1) * length, length)
    count = len(names)
    insert(
        db,
        "NVTX_EVENTS",
        start=start,
        end=end,
        text=names,
        eventType=count * [PUSH_POP],
        globalTid=count * [gtid(PID, PID)],
        domainId=count * [0],
    )


def insert(db: sqlite3.Connection, table: str, **columns: Iterable[object]) -> None:
    """Append rows to ``table``; what must have a value and has none becomes a neutral one."""
    spec = TABLES_2026[table]
    db.execute(create_sql(table, spec).replace("TABLE", "TABLE IF NOT EXISTS", 1))
    fixed = {name: value for name, value in required(spec).items() if name not in columns}
    values = [*map(repr, fixed.values()), *len(columns) * "?"]
    sql = f"INSERT INTO {table} ({', '.join([*fixed, *columns])}) VALUES ({', '.join(values)})"
    db.executemany(sql, zip(*columns.values(), strict=False))
