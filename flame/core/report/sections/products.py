"""Tell which matrix products ran, and how near to the limit of memory they are."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flame.core.names.products import tensors_text, types_text
from flame.core.report.measures.products import ProductWork, product_work
from flame.core.report.scope import Scope
from flame.core.report.table import Section, Table, TableColumn, Value, share

NAME, TITLE = "products", "Matrix products, and the bytes they move at least"

_COLUMNS = (
    TableColumn("operator", "operator"),
    TableColumn("shapes", "shapes"),
    TableColumn("types", "types"),
    TableColumn("ns", "GPU time", "ns"),
    TableColumn("percent", "of GPU time", "percent"),
    TableColumn("calls", "calls", "count"),
    TableColumn("least_bytes", "least, each", "bytes"),
    TableColumn("gb_per_s", "rate", "GB/s"),
    TableColumn("bandwidth_percent", "of memory's", "percent"),
)


def products_section(scope: Scope) -> Section:
    """Tell the operators that multiply matrices by shapes and types, most GPU time first.

    The rate is of what goes in and comes out once, by the GPU time: a product that is bound by
    memory is near the bandwidth of the GPU's memory.
    """
    found = product_work(scope)
    if found is None:
        why = "no matrix product with shapes was recorded"
        how = "torch.profiler.profile(record_shapes=True)"
        return Section(NAME, TITLE, why=why, how=how)
    table = Table.of("rows", "", _COLUMNS, _rows(scope, found))
    return Section(NAME, TITLE, tables=(table,), notes=tuple(_notes(scope, found)))


def _rows(scope: Scope, found: ProductWork) -> Iterator[tuple[Value, ...]]:
    frames = scope.profile.frames
    whole, bandwidth = int(scope.weights.value.sum()), _bandwidth(scope)
    for at in np.argsort(-found.time, kind="stable").tolist():
        frame, time = frames[int(found.frame[at])], int(found.time[at])
        calls, least = int(found.calls[at]), found.least[at]
        rate = least * calls / time if least is not None and time else None
        yield (
            *(frame.name, tensors_text(frame.get("shapes"))),
            types_text(frame.get("types")) or scope.dtype or None,
            *(time, share(time, whole), calls),
            least,
            None if rate is None else round(rate, 3),
            None if rate is None or not bandwidth else round(1e11 * rate / bandwidth, 3),
        )


def _bandwidth(scope: Scope) -> int | None:
    """The bandwidth of the GPUs' memory, bytes per second; None where they differ or are silent."""
    devices = scope.profile.devices
    told = {devices[gpu.device].facts.bandwidth for gpu in scope.gpus if gpu.device >= 0}
    return told.pop() if len(told) == 1 else None


def _notes(scope: Scope, found: ProductWork) -> Iterator[str]:
    frames = scope.profile.frames
    untyped = [at for at in found.frame.tolist() if not frames[at].get("types")]
    if untyped and scope.dtype:
        yield f"bytes and rates of those without types: if all is {scope.dtype}"
    elif untyped:
        yield "types of the inputs were not recorded: --dtype bf16 says what they are"
    if not len(found.frame):
        yield "nothing that passes was launched in a matrix product"
