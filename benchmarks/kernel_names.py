#!/usr/bin/env python3
"""Measure how well names of kernels tell what ran: shares of GPU time per trace.

    python benchmarks/kernel_names.py TRACE…          shares of merged names, and of `other`
    python benchmarks/kernel_names.py --list TRACE…   a line per kernel: trace, category, names

A name merges kernels if their demangled names differ. Shares are of the GPU time of kernels.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from flame.core.loading.many import load_all
from flame.core.model.frames import Kind
from flame.core.model.grouping import category_of_frame
from flame.core.model.profile import Profile
from flame.core.names.kernel_category import OTHER
from flame.core.options import LoadOptions, silent
from flame.core.projection.labels import Naming, exact_labels


def main(words: list[str]) -> None:
    """Print a line per trace, or per kernel."""
    listing = words[:1] == ["--list"]
    if not listing:
        print(f"{'trace':<34}{'kernels':>8}{'base':>9}{'short':>9}{'other':>9}  longest")
    for path in words[listing:]:
        profile = load_all([Path(path)], LoadOptions(), silent)
        for line in listed(Path(path).name, profile) if listing else figures(path, profile):
            print(line)


def listed(trace: str, profile: Profile) -> Iterator[str]:
    """List the kernels of ``profile``, tabs between the columns, in the order of the names."""
    short, frames = exact_labels(profile.frames, Naming("short")).text, profile.frames
    for kernel in np.flatnonzero(frames.kind == Kind.KERNEL).tolist():
        frame = frames[kernel]
        yield f"{trace}\t{category_of_frame(frame)}\t{short[kernel]}\t{frame.name[:60]}"


def figures(path: str, profile: Profile) -> Iterator[str]:
    """Measure the shares of one trace."""
    times = kernel_times(profile)
    if not times:
        return
    whole, short = sum(times.values()), exact_labels(profile.frames, Naming("short")).text
    other = sum(ns for at, ns in times.items() if category_of_frame(profile.frames[at]) == OTHER)
    base = merged(profile, times, {at: profile.frames[at].name for at in times})
    told = merged(profile, times, {at: short[at] for at in times})
    shares = "".join(f"{100 * ns / whole:>8.2f}%" for ns in (base, told, other))
    longest = max(len(short[at]) for at in times)
    yield f"{Path(path).name:<34}{len(times):>8}{shares}  {longest}"


def kernel_times(profile: Profile) -> dict[int, int]:
    """Sum up the GPU time of each kernel's frame, ns."""
    times: dict[int, int] = defaultdict(int)
    groups = profile.activities.groups
    columns = (groups.kind.tolist(), groups.frame.tolist(), profile.gpu_by_group[0].tolist())
    for kind, frame, ns in zip(*columns, strict=True):
        if kind == Kind.KERNEL and ns:
            times[frame] += ns
    return times


def merged(profile: Profile, times: Mapping[int, int], names: Mapping[int, str]) -> int:
    """Sum up the GPU time of kernels that have their name in common with another one, ns."""
    users: dict[str, set[str]] = defaultdict(set)
    for at in times:
        users[names[at]].add(profile.frames[at].get("demangled") or profile.frames[at].name)
    return sum(ns for at, ns in times.items() if len(users[names[at]]) > 1)


if __name__ == "__main__":
    main(sys.argv[1:])
