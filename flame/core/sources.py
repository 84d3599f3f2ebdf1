"""What several files are called when they are shown together."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from flame.core.profile import Meta


def labels_of(metas: Sequence[Meta]) -> tuple[str, ...]:
    """A name for each of several files: ``rank 3`` where all know their rank and no two share one.

    Else what tells their paths apart, see `path_labels`.
    """
    ranks = [one.rank for one in metas]
    if None not in ranks and len(set(ranks)) == len(ranks):
        return tuple(f"rank {rank}" for rank in ranks)
    return path_labels([one.path for one in metas])


def path_labels(paths: Sequence[str | Path]) -> tuple[str, ...]:
    """The shortest ends of ``paths`` that tell them apart, without what all of them end with.

    ``run/rank0.json.gz`` and ``run/rank1.json.gz`` are ``rank0`` and ``rank1``, ``a/trace.json``
    and ``b/trace.json`` are ``a`` and ``b``.
    """
    parts = [Path(os.path.abspath(path)).parts for path in paths]  # noqa: PTH100 (keeps links)
    length = 1
    while len({one[-length:] for one in parts}) < len(set(parts)):
        length += 1
    tails = [one[-length:] for one in parts]
    while len({one[-1] for one in tails}) == 1 and min(map(len, tails)) > 1:
        tails = [one[:-1] for one in tails]
    return tuple(_without_suffix([os.sep.join(tail) for tail in tails]))


def _without_suffix(names: Sequence[str]) -> list[str]:
    """``names`` without the ends, from a dot on, that all of them have; none gets empty."""
    turned = os.path.commonprefix([name[::-1] for name in names])[::-1]
    dot = turned.find(".")
    suffix = turned[dot:] if dot >= 0 else ""
    if suffix and all(Path(name).name != suffix for name in names):
        return [name.removesuffix(suffix) for name in names]
    return list(names)


def title_of(paths: Sequence[str | Path]) -> str:
    """The file's name, or for several how many there are and what the first and last are called."""
    if len(paths) == 1:
        return Path(paths[0]).name
    labels = path_labels(paths)
    return f"{len(paths)} traces: {labels[0]}…{labels[-1]}"
