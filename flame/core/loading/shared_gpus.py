"""Tell which GPUs of several files are one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from flame.core.model.meta import Device, Source

_MOST_NAMED = 4


def shared_gpu_warnings(devices: Sequence[Device], sources: Sequence[Source]) -> Iterator[str]:
    """Yield a warning for each GPU that several files of one recording have, by its UUID."""
    owners: dict[tuple[str, str], list[Device]] = {}
    for device in devices:
        if device.uuid:
            key = device.uuid, sources[device.source].meta.clock
            owners.setdefault(key, []).append(device)
    for same in owners.values():
        if len(same) > 1:
            yield (
                f"{_named(same, sources)} are one GPU: how busy it was is told of what each of "
                "them ran alone"
            )


def _named(devices: Sequence[Device], sources: Sequence[Source]) -> str:
    names = [f"GPU {one.id} of {sources[one.source].label}" for one in devices[:_MOST_NAMED]]
    if more := len(devices) - len(names):
        return f"{', '.join(names)} and {more} more"
    return f"{', '.join(names[:-1])} and {names[-1]}"
