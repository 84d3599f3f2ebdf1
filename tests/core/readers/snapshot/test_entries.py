"""Entries of a history: taken apart many at once, or one by one where one is odd."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flame.core.model.allocator.history import NO_TIME, AllocatorHistory
from flame.core.readers.snapshot.document import read_history
from tests.support.writers.snapshotfile import SnapshotFile

MANY = 20_000


def entries(number: int) -> list[dict[str, Any]]:
    """Allocations of several stacks, given back again."""
    file = SnapshotFile()
    while len(file.traces[0]) < number:
        size = len(file.traces[0])
        file.free(file.alloc(size, ("main", f"f{size % 7}")))
    return file.traces[0][:number]


def read(*traces: list[dict[str, Any]]) -> AllocatorHistory:
    document = {"segments": [], "device_traces": list(traces)}
    return read_history(document, 1 << 30)


def columns(history: AllocatorHistory) -> dict[str, list[int]]:
    names = history.events.__dataclass_fields__
    return {name: getattr(history.events, name).tolist() for name in names}


def test_one_by_one_they_are_what_they_are_together() -> None:
    """The entry that is odd makes no sense, and is the only one that is left out."""
    alike = entries(MANY)
    together = read(alike)
    assert together.events.position.tolist() == list(range(MANY))
    odd = [*alike[: MANY - 10], {"action": "alloc", "addr": -1}, *alike[MANY - 10 :]]
    apart = read([*odd[:5], {"action": "alloc", "addr": -1}, *odd[5:]])
    assert (together.left_out, apart.left_out) == (0, 2)
    found, expected = columns(apart), columns(together)
    moved = np.arange(MANY) + 1 * (np.arange(MANY) >= 5) + 1 * (np.arange(MANY) >= MANY - 10)
    assert found.pop("position") == moved.tolist()
    del expected["position"]
    assert found == expected


@pytest.mark.parametrize(
    "odd",
    [
        {"addr": -1},
        {"size": -1},
        {"stream": 1 << 63},
        {"size": True},
        {"size": 1.0},
        {"addr": None},
        {"action": 3},
        {"action": "unheard of"},
    ],
    ids=str,
)
def test_an_odd_entry_among_many_is_left_out(odd: dict[str, Any]) -> None:
    trace = entries(6)
    trace[3] = trace[3] | odd
    assert columns(read(trace))["position"] == [0, 1, 2, 4, 5]


@pytest.mark.parametrize("time", [-1, (1 << 63) // 1_000 + 1, 1 << 64, 0.5, None, True, "1"])
def test_times_that_make_no_sense_are_unknown(time: object) -> None:
    trace = entries(6)
    trace[3] = trace[3] | {"time_us": time}
    found = columns(read(trace))
    assert found["time"][3] == NO_TIME
    assert min(one for at, one in enumerate(found["time"]) if at != 3) > 0


def test_a_failed_request_is_read_among_many() -> None:
    trace = entries(6)
    trace[3] = {"action": "oom", "size": 5, "device_free": 77, "stream": 0, "time_us": 3}
    found = columns(read(trace))
    assert (found["address"][3], found["size"][3]) == (77, 5)


def test_devices_are_numbered_by_their_place() -> None:
    found = columns(read(entries(3), [], entries(2)))
    assert found["device"] == [0, 0, 0, 2, 2]
    assert found["position"] == [0, 1, 2, 0, 1]


def test_blocks_without_addresses_lie_one_after_the_other() -> None:
    blocks = [{"size": size, "state": "inactive"} for size in (512, 1_024, 7)]
    more = {"size": 512, "requested_size": 513, "state": "active_allocated"}
    segment = {"device": 0, "address": 100, "total_size": 9, "blocks": [*blocks, more]}
    history = read_history({"segments": [segment]}, 1 << 30)
    assert history.blocks.address.tolist() == [100, 612, 1_636]
    assert history.left_out == 1, "no block is smaller than what was asked for"
