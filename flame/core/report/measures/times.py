"""Put sums and percentiles of times into the columns that many tables have in common."""

from __future__ import annotations

from collections.abc import Sequence

from flame.core.analysis.distribution import Distributions
from flame.core.columns import Column
from flame.core.report.table import TableColumn, Value, share


def times_columns(whole: str) -> tuple[TableColumn, ...]:
    """List the columns of `times_cells`; ``whole`` says what the shares are of."""
    return (
        TableColumn("ns", "time", "ns"),
        TableColumn("percent", f"of {whole}", "percent"),
        TableColumn("count", "number", "count"),
        TableColumn("mean_ns", "", "ns"),
        TableColumn("min_ns", "", "ns"),
        TableColumn("p50_ns", "p50", "ns"),
        TableColumn("p90_ns", "", "ns"),
        TableColumn("p95_ns", "", "ns"),
        TableColumn("p99_ns", "p99", "ns"),
        TableColumn("max_ns", "max", "ns"),
    )


def times_cells(times: Distributions) -> tuple[Column | Sequence[Value], ...]:
    """List the cells of `times_columns`; the whole that the shares are of is the sum of all."""
    return (
        times.total,
        shares(times.total, int(times.total.sum())),
        times.count,
        times.means,
        times.minimum,
        times.p50,
        times.p90,
        times.p95,
        times.p99,
        times.maximum,
    )


def shares(parts: Column, whole: int) -> list[Value]:
    """Compute what each of ``parts`` is of ``whole``, in percent."""
    return [share(part, whole) for part in parts.tolist()]


def ratios(parts: Column, wholes: Column) -> list[Value]:
    """Divide each of ``parts`` by its whole, to three digits; None of nothing."""
    pairs = zip(parts.tolist(), wholes.tolist(), strict=True)
    return [round(part / whole, 3) if whole else None for part, whole in pairs]
