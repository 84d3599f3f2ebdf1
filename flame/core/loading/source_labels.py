"""Label several files that are shown together: by rank, by their own labels, or by their paths."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flame.core.model.meta import Meta


def label_sources(metas: Sequence[Meta]) -> tuple[str, ...]:
    """Label several files: ``rank 3`` where all know their rank and no two share one.

    Else what they call themselves, behind their folder if there are several and numbered where they
    say the same; where they do not say that, what tells their paths apart, see `label_paths`.
    """
    ranks = [meta.rank for meta in metas]
    if None not in ranks and len(set(ranks)) == len(ranks):
        return tuple(f"rank {rank}" for rank in ranks)
    if all(meta.label for meta in metas):
        return _number_equal_names(_own_labels(metas))
    return label_paths([meta.path for meta in metas])


def _own_labels(metas: Sequence[Meta]) -> tuple[str, ...]:
    folders = [absolute_path(meta.path).parent for meta in metas]
    # A worker process has the rank of the one that started it.
    ranks = Counter(zip(folders, (meta.rank for meta in metas), strict=True))
    names = [
        " ".join(_name_parts(meta, alone=ranks[folder, meta.rank] == 1))
        for folder, meta in zip(folders, metas, strict=True)
    ]
    if len(set(folders)) == 1:
        return tuple(names)
    return tuple(map(" ".join, zip(label_paths(folders), names, strict=True)))


def _number_equal_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return ``names``; those after the first of several equal ones get a number.

    The programs that one process becomes all have its pid.
    """
    seen: Counter[str] = Counter()
    labels = []
    for name in names:
        seen[name] += 1
        labels.append(name if seen[name] == 1 else f"{name} #{seen[name]}")
    return tuple(labels)


def _name_parts(meta: Meta, alone: bool) -> Iterator[str]:
    """Yield the rank, if there is one, and the file's own name, unless the rank is all its own."""
    if meta.rank is not None:
        yield f"rank {meta.rank}"
    if meta.rank is None or not alone:
        yield meta.label


def order_sources(metas: Sequence[Meta]) -> list[int]:
    """Return the order of ``metas``: by rank where they are labelled by it, else as they are."""
    places = list(range(len(metas)))
    if all(meta.label for meta in metas):
        folders = list(dict.fromkeys(absolute_path(meta.path).parent for meta in metas))
        folder = [folders.index(absolute_path(meta.path).parent) for meta in metas]
        return sorted(places, key=lambda at: (folder[at], *_rank_key(metas[at])))
    if label_sources(metas) == tuple(f"rank {meta.rank}" for meta in metas):
        return sorted(places, key=lambda at: _rank_key(metas[at]))
    return places


def _rank_key(meta: Meta) -> tuple[bool, int]:
    return meta.rank is None, meta.rank or 0


def label_paths(paths: Sequence[str | Path]) -> tuple[str, ...]:
    """Return the shortest ends of ``paths`` that tell them apart, without a common ending.

    ``run/rank0.json.gz`` and ``run/rank1.json.gz`` are ``rank0`` and ``rank1``, ``a/trace.json``
    and ``b/trace.json`` are ``a`` and ``b``.
    """
    parts = [absolute_path(path).parts for path in paths]
    length = 1
    while len({part[-length:] for part in parts}) < len(set(parts)):
        length += 1
    tails = [part[-length:] for part in parts]
    while len({tail[-1] for tail in tails}) == 1 and min(map(len, tails)) > 1:
        tails = [tail[:-1] for tail in tails]
    return tuple(_strip_common_suffix([str(Path(*tail)) for tail in tails]))


def absolute_path(path: str | Path) -> Path:
    """Return the absolute path of a file; links are kept."""
    return Path(os.path.abspath(path))  # noqa: PTH100 (keeps links)


def _strip_common_suffix(names: Sequence[str]) -> list[str]:
    """Strip from ``names`` the ends, from a dot on, that all of them have; none gets empty."""
    parts = [name.split(".") for name in names]
    while len({part[-1] for part in parts}) == 1 and min(map(len, parts)) > 1:
        parts = [part[:-1] for part in parts]
    shorter = [".".join(part) for part in parts]
    return shorter if all(Path(name).name for name in shorter) else list(names)
