"""The pool of each allocation: of what is there at the end, unless its memory was another's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import flame
from flame.core.loading.merge.profiles import merge_profiles
from flame.core.model.profile import Profile
from flame.core.projection.project import project
from flame.core.projection.selection import select

PRIVATE = (3, 0)
LAST_ADDRESS = (1 << 63) - 1


def event(action: str, address: int, size: int) -> dict[str, Any]:
    return {"action": action, "addr": address, "size": size, "stream": 0, "frames": []}


def segment(address: int, size: int, pool: Sequence[int]) -> dict[str, Any]:
    block = {"address": address, "size": size, "state": "inactive", "requested_size": 0}
    return {
        "device": 0,
        "address": address,
        "total_size": size,
        "stream": 0,
        "segment_pool_id": pool,
        "blocks": [block],
    }


def load(tmp_path: Path, trace: list[Any], segments: list[Any], name: str = "a") -> Profile:
    path = tmp_path / f"{name}.json"
    path.write_text(json.dumps({"segments": segments, "device_traces": [trace]}))
    return flame.load(path).profile


def by_pool(profile: Profile, levels: tuple[str, ...] = ("pool",)) -> dict[str, int]:
    tree = project(profile, select(levels, (), "alloc"))
    return {
        "/".join(tree.names(node)): int(tree.own[node])
        for node in range(len(tree))
        if tree.own[node]
    }


TRACE = [
    event("segment_alloc", 0, 100),
    event("alloc", 0, 1),  # its segment goes, and another one comes there
    event("free_requested", 0, 1),
    event("segment_free", 0, 100),
    event("segment_alloc", 0, 60),
    event("alloc", 0, 2),
    event("alloc", 500, 4),  # of a segment that was there before
    event("free_requested", 500, 4),
    event("alloc", 900, 8),  # of none that is there at the end
    event("free_requested", 900, 8),
]
SEGMENTS = [segment(0, 60, (0, 0)), segment(480, 100, PRIVATE)]


def test_private_pools_have_their_name(tmp_path: Path) -> None:
    profile = load(tmp_path, TRACE, SEGMENTS)
    assert by_pool(profile) == {"default pool": 2, "pool 3.0": 4, "[pool not known]": 1 + 8}


def test_memory_that_grows_in_place_keeps_its_pool(tmp_path: Path) -> None:
    trace = [
        event("segment_map", 0, 20),
        event("alloc", 10, 1),
        event("segment_map", 20, 20),
        event("alloc", 30, 2),
        event("segment_unmap", 20, 20),
        event("segment_map", 20, 20),  # what was here may have been another pool's
    ]
    assert by_pool(load(tmp_path, trace, [segment(0, 40, PRIVATE)])) == {
        "pool 3.0": 1,
        "[pool not known]": 2,
    }


def test_memory_that_would_end_beyond_all_addresses_ends_at_the_last(tmp_path: Path) -> None:
    first = LAST_ADDRESS - 60
    trace = [
        event("alloc", first, 1),
        event("free_requested", first, 1),
        event("alloc", first + 59, 2),
        event("segment_alloc", first + 10, LAST_ADDRESS),  # made up: no machine has so much
        event("alloc", first, 4),
        event("alloc", first + 10, 8),
    ]
    assert by_pool(load(tmp_path, trace, [segment(first, 60, PRIVATE)])) == {
        "pool 3.0": 1 + 4 + 8,
        "[pool not known]": 2,
    }


def test_streams_are_numbered_and_the_default_one_is_0(tmp_path: Path) -> None:
    """They are recorded as addresses, which say nothing to anybody."""
    trace = [event("alloc", at, 1) | {"stream": 0x7F00_0000_1000 + at} for at in (30, 10)]
    profile = load(tmp_path, trace, [])
    tree = project(profile, select(("stream",), (), "alloc"))
    assert [tree.names(node)[-1] for node in range(1, len(tree))] == ["stream 1", "stream 2"]
    assert profile.activities.stream.tolist() == [2, 1]


def test_pools_of_several_files(tmp_path: Path) -> None:
    files = [load(tmp_path, TRACE, SEGMENTS, name) for name in "ab"]
    merged = merge_profiles(files, ["rank 0", "rank 1"])
    assert by_pool(merged, ("rank", "pool")) == {
        f"rank {at}/{pool}": size for at in range(2) for pool, size in by_pool(files[at]).items()
    }
