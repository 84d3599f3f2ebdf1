"""Write memory snapshots as PyTorch does, by a small caching allocator whose truth is known.

Segments are of a fixed size and blocks are cut from them, so that states at the end are those of a
real allocator: blocks side by side, larger than what was asked for, pending, free.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

Frame = dict[str, Any]
STEP_US = 10
START_US = 1_780_000_000_000_000
_ROUND, _SEGMENT = 512, 1 << 21


class Truth(NamedTuple):
    """An allocation: its device, events (None: not ended), bytes, and the names of its frames."""

    device: int
    begin: int
    end: int | None
    size: int
    names: tuple[str, ...]


class _Block(NamedTuple):
    device: int
    number: int
    begin: int
    size: int
    frames: list[Frame]


def frames_of(names: Sequence[str]) -> list[Frame]:
    """Make frames of Python functions called ``names``, given outermost first."""
    return [
        {"name": name, "filename": "model.py", "line": 10 + at} for at, name in enumerate(names)
    ][::-1]


class SnapshotFile:
    """Simulates allocators, and writes what they have recorded."""

    def __init__(self, devices: int = 1) -> None:
        self.traces: list[list[dict[str, Any]]] = [[] for _ in range(devices)]
        self.annotations: list[dict[str, Any]] = []
        self.truth: list[Truth] = []
        self._blocks: dict[int, _Block] = {}
        self._pending: set[int] = set()
        self._free: list[list[int]] = [[] for _ in range(devices)]
        self._segments: list[int] = [0] * devices
        self._next = 0
        self._clock = 0

    def _record(self, device: int, action: str, **fields: Any) -> int:
        self._clock += 1
        entry = {"action": action, "stream": 0, "time_us": START_US + STEP_US * self._clock}
        self.traces[device].append(entry | fields)
        return len(self.traces[device]) - 1

    @property
    def now_us(self) -> int:
        """The time of the event that was recorded last."""
        return START_US + STEP_US * self._clock

    def address(self, device: int, number: int) -> int:
        """The address of a segment."""
        return (device + 1 << 40) + number * _SEGMENT

    def alloc(self, size: int, names: Sequence[str] = ("main",), device: int = 0) -> int:
        """Allocate ``size`` bytes, at most a segment; returns a number for `free`."""
        assert size <= _SEGMENT
        frames = frames_of(names)
        if self._free[device]:
            number = self._free[device].pop()
        else:
            number = self._segments[device]
            self._segments[device] += 1
            address = self.address(device, number)
            self._record(device, "segment_alloc", addr=address, size=_SEGMENT, frames=frames)
        address = self.address(device, number)
        at = self._record(device, "alloc", addr=address, size=size, frames=frames)
        self._blocks[self._next] = _Block(device, number, at, size, frames)
        self._next += 1
        return self._next - 1

    def free(self, which: int, pending: bool = False) -> None:
        """Give an allocation back; another stream may still use it, so that it stays pending."""
        block = self._blocks[which]
        address = self.address(block.device, block.number)
        fields = {"addr": address, "size": block.size, "frames": []}
        at = self._record(block.device, "free_requested", **fields)
        names = tuple(frame["name"] for frame in block.frames[::-1])
        self.truth.append(Truth(block.device, block.begin, at, block.size, names))
        if pending:
            self._pending.add(which)
            return
        self._record(block.device, "free_completed", **fields)
        self._free[block.device].append(block.number)
        del self._blocks[which]

    def fail(self, size: int, device_free: int, device: int = 0) -> None:
        """Record a request that failed."""
        fields = {"size": size, "device_free": device_free, "frames": frames_of(["too_much"])}
        self._record(device, "oom", **fields)

    def end_step(self, name: str = "Optimizer.step#Adam.step", device: int = 0) -> None:
        """Record that a step ended, after all events until now."""
        self._clock += 1
        self.annotations.append(
            {"stage": "END", "name": name, "device": device, "time_us": self.now_us}
        )

    def whole_truth(self) -> list[Truth]:
        """All allocations, those that live at the end too."""
        alive = [
            Truth(one.device, one.begin, None, one.size, tuple(f["name"] for f in one.frames[::-1]))
            for which, one in self._blocks.items()
            if which not in self._pending
        ]
        return [*self.truth, *alive]

    def segments(self, with_frames: bool = True) -> list[dict[str, Any]]:
        """The segments at the end, whose blocks know who allocated them ``with_frames``."""
        found = []
        for device, number in enumerate(self._segments):
            for segment in range(number):
                blocks = self._segment_blocks(device, segment, with_frames)
                found.append(self._segment(device, segment, blocks))
        return found

    def _segment(self, device: int, number: int, blocks: list[dict[str, Any]]) -> dict[str, Any]:
        used = [block for block in blocks if block["state"] == "active_allocated"]
        return {
            "device": device,
            "address": self.address(device, number),
            "total_size": _SEGMENT,
            "allocated_size": sum(block["size"] for block in used),
            "requested_size": sum(block["requested_size"] for block in used),
            "stream": 0,
            "segment_type": "large",
            "segment_pool_id": (0, 0),
            "is_expandable": False,
            "frames": [],
            "blocks": blocks,
        }

    def _segment_blocks(self, device: int, number: int, with_frames: bool) -> list[dict[str, Any]]:
        address, blocks, used = self.address(device, number), list[dict[str, Any]](), 0
        for which, one in self._blocks.items():
            if (one.device, one.number) != (device, number):
                continue
            used = min(-(-max(one.size, 1) // _ROUND) * _ROUND, _SEGMENT)
            state = "active_pending_free" if which in self._pending else "active_allocated"
            frames = one.frames if with_frames else []
            blocks.append(_block(address, used, one.size, state, frames))
        if used < _SEGMENT:
            blocks.append(_block(address + used, _SEGMENT - used, 0, "inactive", []))
        return blocks

    def document(self, first: int = 0, with_frames: bool = True) -> dict[str, Any]:
        """The snapshot, whose history has lost the ``first`` events of each device."""
        return {
            "segments": self.segments(with_frames),
            "device_traces": [trace[first:] for trace in self.traces],
            "allocator_settings": {"expandable_segments": False},
            "external_annotations": self.annotations,
        }

    def write(self, path: Path, **how: Any) -> Path:
        """Write the snapshot to ``path``."""
        path.write_bytes(pickle.dumps(self.document(**how), 4))
        return path


def _block(
    address: int, size: int, requested: int, state: str, frames: list[Frame]
) -> dict[str, Any]:
    return {
        "address": address,
        "size": size,
        "requested_size": requested,
        "state": state,
        "frames": frames,
    }
