"""Say in a few words what iterations a trace has."""

from __future__ import annotations

from flame.core.analysis.iterations import IterationTable, iteration_name
from flame.core.model.profile import Profile
from flame.core.units import format_count, format_ns, format_percent


def count_words(profile: Profile, table: IterationTable) -> str:
    """Say how many there are and what tells: ``6 of the PyTorch profiler``."""
    number = format_count(len(table))
    if table.iterations.source == "profiler":
        return f"{number} of the PyTorch profiler"
    return f"{number}, ranges such as {iteration_name(profile, int(table.row[0]))}"


def length_words(table: IterationTable) -> str:
    """Say how long they take: ``median 107 ms, slowest 1011: 166 ms, 1.55 × the median``."""
    if len(table) == 1:
        return format_ns(table.median)
    number, longest = table.number[table.slowest], int(table.duration[table.slowest])
    ratio = f", {longest / table.median:.2f} × the median" if table.median else ""
    return f"median {format_ns(table.median)}, slowest {number}: {format_ns(longest)}{ratio}"


def outside_words(table: IterationTable) -> str:
    """Say what of the GPU time was launched outside of them, and where; empty without GPU time."""
    outside, total = table.outside, table.outside.total
    whole = total.gpu_time + int(table.gpu_time.sum())
    if not whole:
        return ""
    share = f"{format_ns(total.gpu_time)} of GPU time ({format_percent(total.gpu_time, whole)})"
    places = ("before the first", "between", "after the last", "in other processes")
    parts = [
        f"{format_ns(part.gpu_time)} {place}"
        for part, place in zip(outside, places, strict=True)
        if part.gpu_time
    ]
    return f"{share}: {', '.join(parts)}" if total.gpu_time else "no GPU time"
