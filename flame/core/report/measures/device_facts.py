"""Put what is known of a GPU into the columns that tables of GPUs have in common."""

from __future__ import annotations

from flame.core.model.meta import Device
from flame.core.report.table import TableColumn, Value

FACT_COLUMNS = (
    TableColumn("sms", "SMs", "count"),
    TableColumn("memory_bytes", "memory", "bytes"),
    TableColumn("memory_gb_per_s", "at", "GB/s"),
    TableColumn("chip", ""),
    TableColumn("capability", ""),
)


def fact_cells(device: Device | None) -> tuple[Value, ...]:
    """List the cells of `FACT_COLUMNS`; None where something is not known."""
    if device is None:
        return (None,) * len(FACT_COLUMNS)
    facts = device.facts
    rate = None if facts.bandwidth is None else round(facts.bandwidth / 1e9, 3)
    return facts.sms, facts.memory, rate, facts.chip or None, facts.capability or None
