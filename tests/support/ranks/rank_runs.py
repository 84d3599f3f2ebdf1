"""Make runs of many ranks as numbers: a tree of frames, and what each rank has of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from flame.core.columns import I8
from flame.core.model.frames import Frame, FrameBuilder, Kind
from flame.core.model.metrics import metric_of
from flame.core.model.tree import StackTree
from flame.core.rank_summary.summary import RankInfo
from flame.core.ranks.rank_sections.questions import RankQuestions
from flame.core.ranks.spread import ValuesOf

Path = tuple[str, ...]
MS = 1_000_000


def tree_of(stacks: Mapping[Path, Sequence[int]]) -> tuple[StackTree, I8]:
    """Make a tree of ``stacks``, and the inclusive values i8[nodes, ranks] by plain loops.

    The last frame of each stack is a kernel, those above are ranges.
    """
    ranks = len(next(iter(stacks.values())))
    paths = sorted({path[:size] for path in stacks for size in range(len(path) + 1)})
    number = {path: at for at, path in enumerate(paths)}
    builder, frame = FrameBuilder(), []
    for path in paths:
        kind = Kind.KERNEL if path in stacks else Kind.NVTX
        frame.append(builder.add(Frame(kind, path[-1])) if path else 0)
    values = [[0] * ranks for _ in paths]
    own = [sum(stacks.get(path, ())) for path in paths]
    for path, mine in stacks.items():
        for size in range(len(path) + 1):
            row = values[number[path[:size]]]
            for rank, value in enumerate(mine):
                row[rank] += value
    end = [at + sum(other[: len(path)] == path for other in paths) for at, path in enumerate(paths)]
    table = builder.build()
    i4: Any = np.int32
    tree = StackTree(
        table,
        tuple(one.name for one in table.frames),
        metric_of("gpu"),
        ("nvtx", "kernel"),
        np.array([number[path[:-1]] if path else -1 for path in paths], i4),
        np.array(frame, i4),
        np.array([len(path) for path in paths], i4),
        np.array(end, i4),
        np.array(own, np.int64),
        np.array(own, np.int64),
    )
    return tree, np.array(values, np.int64).reshape(len(paths), ranks)


def looking_up(values: I8) -> ValuesOf:
    return lambda nodes: values[nodes]


def questions_of(stacks: Mapping[Path, Sequence[int]], **more: Any) -> RankQuestions:
    tree, values = tree_of(stacks)
    ranks = values.shape[1]
    known: dict[str, Any] = {
        "info": tuple(RankInfo(at, f"runs/rank{at:04d}.sqlite") for at in range(ranks)),
        "left_out": np.zeros(ranks, np.int64),
    }
    return RankQuestions(tree=tree, values_of=looking_up(values), **(known | more))


def even_run(ranks: int, seed: int, layers: int = 4) -> dict[Path, list[int]]:
    """A run in which ranks differ by chance alone: 1 % in each kernel, waits in collectives."""
    random = np.random.default_rng(seed)
    found: dict[Path, list[int]] = {}
    for layer in range(layers):
        for kernel, ms in (("gemm", 40), ("softmax", 9), ("add", 1)):
            own = ms * MS * (1 + 0.01 * random.standard_normal(ranks))
            found["step", f"layer{layer}", kernel] = [int(one) for one in np.maximum(own, 0)]
        waits = MS * random.exponential(2, ranks)
        found["step", f"layer{layer}", "ncclDevKernel_AllReduce"] = [int(one) for one in waits]
    return found
