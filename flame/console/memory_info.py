"""Write what is known of the memory of GPUs, for ``flame info``: as JSON, and for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from flame.core.allocator.growth import LEAST_BOUNDARIES
from flame.core.allocator.out_of_memory import failure_words
from flame.core.allocator.reserved import PART_MEANINGS
from flame.core.model.allocator.recorded import (
    Growth,
    MemoryOfDevice,
    OutOfMemory,
    RecordedMemory,
    ReservedParts,
)
from flame.core.model.profile import Profile
from flame.core.units import format_bytes, format_count, format_counted, format_ns, format_percent

_MOST = 5


def memory_facts(profile: Profile) -> dict[str, object] | None:
    """Return the part of ``flame info --json`` on memory; None where none was recorded.

    Sizes are in bytes, times in ns; ``reserved`` and its parts are null where the state at the end
    was not recorded.
    """
    if profile.memory is None:
        return None
    return {
        "devices": [_device(profile, each) for each in profile.memory.devices],
        "elsewhere": [each._asdict() for each in profile.memory.elsewhere],
    }


def _device(profile: Profile, each: MemoryOfDevice) -> dict[str, object]:
    parts = each.parts._asdict() if each.parts else dict.fromkeys(ReservedParts._fields)
    return {
        "id": profile.devices[each.device].id,
        "events": each.events,
        "peak": each.peak,
        "peak_position": each.peak_position,
        "peak_time_ns": each.peak_time,
        "before": each.before,
        "live_end": each.live_end,
        **parts,
        "oom": [_failed(profile, one) for one in each.out_of_memory],
        "boundaries": each.boundaries,
        "leaks": [_growth(profile, one) for one in each.growth],
    }


def _failed(profile: Profile, one: OutOfMemory) -> dict[str, object]:
    return {
        "position": one.position,
        "time_ns": one.time if one.time >= 0 else None,
        "size": one.size,
        "device_free": one.device_free,
        "free": one.free,
        "largest_free": one.largest_free,
        "fragmented": one.is_fragmented if one.free is not None else None,
        "full": one.is_full if one.free is not None else None,
        "stack": _names(profile, one.stack),
    }


def _growth(profile: Profile, one: Growth) -> dict[str, object]:
    return {"stack": _names(profile, one.stack), "bytes": list(one.sizes)}


def _names(profile: Profile, stack: int) -> list[str]:
    """The names of the frames of a Python stack, outermost first."""
    path = profile.activities.stacks.path(stack)
    return [profile.frames[frame].name for frame in path]


def memory_lines(profile: Profile) -> Iterator[str]:
    """Write how the memory of each GPU was used, and what is wrong with it."""
    memory: RecordedMemory | None = profile.memory
    for each in memory.devices if memory else ():
        yield from _device_lines(profile, each)
    for other in memory.elsewhere if memory else ():
        yield f"{other.kind or 'unknown'} memory, which is no GPU's own"
        yield _line("peak", other.peak, format_counted(other.events, "event", "events"))
        yield _line("at the end", other.live_end, "")


def _device_lines(profile: Profile, each: MemoryOfDevice) -> Iterator[str]:
    device = profile.devices[each.device]
    label = f" of {profile.sources[device.source].label}" if len(profile.sources) > 1 else ""
    yield f"memory of GPU{device.id}{label}"
    yield _line("peak", each.peak, _when(profile, each))
    if each.before and each.events:
        share = format_percent(each.before, each.peak)
        yield _line("  from before", each.before, f"{share} of it, allocated before recording")
    yield _line("at the end", each.live_end, "")
    if each.parts is not None:
        yield from _part_lines(each.parts)
    yield from _failure_lines(each.out_of_memory)
    yield from _growth_lines(profile, each)


def _when(profile: Profile, each: MemoryOfDevice) -> str:
    """When the peak was."""
    if each.peak_position < 0:
        return "before the first event" if each.events else "at the end: there is no history"
    place = f"event {format_count(each.peak_position + 1)} of {format_count(each.events)}"
    if each.peak_time is None:
        return place
    return f"{place}, after {format_ns(each.peak_time - profile.begin)}"


def _part_lines(parts: ReservedParts) -> Iterator[str]:
    yield _line("reserved", parts.reserved, "at the end, from the driver")
    for name, meaning in PART_MEANINGS.items():
        size: int = getattr(parts, name)
        yield _line(f"  {name}", size, f"{format_percent(size, parts.reserved):>7}  {meaning}")
    yield _line("largest free", parts.largest_free, "block")


def _failure_lines(failures: Sequence[OutOfMemory]) -> Iterator[str]:
    for one in failures[:_MOST]:
        yield _line("out of memory", one.size, f"asked for; {failure_words(one)}")
    if len(failures) > _MOST:
        yield f"  and {format_count(len(failures) - _MOST)} more"


def _growth_lines(profile: Profile, each: MemoryOfDevice) -> Iterator[str]:
    if each.boundaries < LEAST_BOUNDARIES:
        return
    steps = format_counted(each.boundaries, "step", "steps")
    if not each.growth:
        yield f"  no stack grows from step to step ({steps})"
    for one in each.growth[:_MOST]:
        names = _names(profile, one.stack)
        yield _line("may leak", one.total, f"over {steps}: {' › '.join(names[-3:])}")


def _line(label: str, size: int, text: str) -> str:
    return f"  {label:<14}{format_bytes(size):>9}  {text}".rstrip()
