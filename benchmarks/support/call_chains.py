"""Call chains of a synthetic nsys export: Python callers, and the native functions they call."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator

import numpy as np

from samples.backtraces import PYTHON
from samples.nsys_schema import TABLES_2026, create_sql

STEPS = 40
"""Steps after which calls come from the same places again."""

_PYTHON_DEPTH, _NATIVE_DEPTH = 15, 10
_SYMBOLS = 4_000

Row = tuple[int, int, int, int, int]


def chains_of_calls(first: int, steps: int, calls: int, chains: int) -> list[int | None]:
    """The chain of each of the calls of ``steps`` steps from ``first`` on; of one in ten none."""
    step, call = np.divmod(np.arange(steps * calls), calls)
    chain = ((first + step) % STEPS * 997 + call) % chains + 1
    has_none = (call % 10 == 9).tolist()
    return [None if none else of for of, none in zip(chain.tolist(), has_none, strict=True)]


def write_chains(db: sqlite3.Connection, chains: int, string: Callable[[str], int]) -> None:
    """Writes so many different chains; ``string`` numbers texts."""
    db.execute(create_sql("CUDA_CALLCHAINS", TABLES_2026["CUDA_CALLCHAINS"]))
    sql = "INSERT INTO CUDA_CALLCHAINS (id, symbol, module, unresolved, stackDepth) "
    rows = (row for chain in range(chains) for row in _frames(chain, string))
    db.executemany(f"{sql}VALUES (?, ?, ?, ?, ?)", rows)


def _frames(chain: int, string: Callable[[str], int]) -> Iterator[Row]:
    """The outermost first. Chains have their callers in common, and not what these call at last."""
    deepest = _PYTHON_DEPTH + _NATIVE_DEPTH - 1
    for depth in range(_PYTHON_DEPTH):
        of = (chain // 2 ** (_PYTHON_DEPTH - 1 - depth) + depth * 131) % _SYMBOLS
        name = string(f"{PYTHON}GPUModelRunner.fn_{of}")
        yield chain + 1, name, string("vllm/v1/worker/gpu_model_runner.py"), 0, deepest - depth
    for depth in range(_PYTHON_DEPTH, deepest + 1):
        of = (chain * 7919 + depth) % _SYMBOLS
        name = string(f"vllm::fn_{of}(at::Tensor const&, int)")
        yield chain + 1, name, string("libtorch_cuda.so"), 0, deepest - depth
