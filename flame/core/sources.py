"""What several files are called when they are shown together."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
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
    return tuple(_without_suffix([str(Path(*one)) for one in tails]))


def _without_suffix(names: Sequence[str]) -> list[str]:
    """``names`` without the ends, from a dot on, that all of them have; none gets empty."""
    parts = [name.split(".") for name in names]
    while len({one[-1] for one in parts}) == 1 and min(map(len, parts)) > 1:
        parts = [one[:-1] for one in parts]
    shorter = [".".join(one) for one in parts]
    return shorter if all(Path(name).name for name in shorter) else list(names)


@dataclass(frozen=True)
class Inputs:
    """The files that are opened together, as they were named."""

    paths: tuple[Path, ...]

    @property
    def title(self) -> str:
        """The file's name; of several how many they are, and the first and last label."""
        if len(self.paths) == 1:
            return self.paths[0].name
        labels = path_labels(self.paths)
        between = ", " if len(labels) == 2 else "…"
        return f"{len(labels)} traces: {labels[0]}{between}{labels[-1]}"

    @property
    def stem(self) -> str:
        """What files that are written of them are called, before the suffix."""
        if len(self.paths) == 1:
            return self.paths[0].stem
        first = Path(path_labels(self.paths)[0]).name
        return f"{first}-and-{len(self.paths) - 1}-more"

    def hold(self, path: Path) -> bool:
        """Whether ``path`` is one of the files, under whatever name."""
        for one in self.paths:
            with suppress(OSError):
                if path.samefile(one):
                    return True
        return False
