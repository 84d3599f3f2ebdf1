"""Write what the details say of memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from flame.core.analysis.distribution import Distribution
from flame.core.model.allocator.recorded import MemoryOfDevice, OutOfMemory
from flame.core.units import format_bytes, format_count, format_counted, format_ns, format_percent
from flame.tui.details.labels import Label, fields, titled
from flame.tui.details.memory_facts import GpuMemory, MemoryFacts
from flame.tui.toolkit.lines import Line

_MOST_GPUS = 4
_MOST_STEPS = 6
_PARTS = (Label.REQUESTED, Label.ROUNDING, Label.PENDING, Label.SPLIT, Label.RELEASABLE)


def memory_lines(facts: MemoryFacts | None, width: int) -> list[list[Line]]:
    """Write what is known of the allocations of a frame, and of all GPUs for the root."""
    if facts is None:
        return []
    gpus = [_gpu(each, facts, width) for each in facts.gpus[:_MOST_GPUS]]
    shown = fields([(Label.SHOWN, facts.moment)], width)
    return [shown, *gpus, fields(_allocations(facts), width)]


def memory_words(facts: MemoryFacts) -> Iterator[str]:
    """Write the most important of that in short: of the root of its GPUs, else of a frame."""
    for each in facts.gpus:
        gpu = f"GPU{each.number} " if len(facts.gpus) > 1 else ""
        yield f"{gpu}{Label.PEAK} {format_bytes(each.memory.peak)}"
        yield f"{Label.AT_END} {format_bytes(each.memory.live_end)}"
        if each.memory.parts is not None:
            yield f"{Label.RESERVED} {format_bytes(each.memory.parts.reserved)}"
        if failed := len(each.memory.out_of_memory):
            yield f"{format_count(failed)} {Label.FAILED}"
    if not facts.gpus:
        for label, value in _allocations(facts):
            yield f"{label} {value}"


def _allocations(found: MemoryFacts) -> Iterator[tuple[Label, str]]:
    number = found.sizes.count if found.sizes else 0
    yield Label.ALLOCATIONS, format_count(number)
    yield Label.SIZES, _spread(found.sizes, format_bytes)
    lifetimes = _spread(found.lifetimes, format_ns)
    unknown = f"{format_count(found.unknown)} unknown" if found.unknown else ""
    yield Label.LIFETIMES, ", ".join(filter(None, (lifetimes, unknown)))
    yield Label.FROM_BEFORE, _share(found.before, found.total)
    yield Label.ALIVE, _share(found.alive, found.total)
    if found.growth and not found.gpus:
        yield Label.GROWTH, _grown(found)


def _spread(found: Distribution | None, written: Callable[[float], str]) -> str:
    if found is None:
        return ""
    if found.minimum == found.maximum:
        return f"{written(found.maximum)} each" if found.count > 1 else written(found.maximum)
    values = ((Label.P50, found.p50), (Label.P95, found.p95), (Label.MAX, found.maximum))
    return "  ".join(f"{label} {written(value)}" for label, value in values)


def _share(part: int, whole: int) -> str:
    return f"{format_bytes(part)}  {format_percent(part, whole)}" if part else "nothing"


def _grown(found: MemoryFacts) -> str:
    """How much it has grown, and of one stack how much lived after each step."""
    total = sum(one.total for one in found.growth)
    steps = format_counted(found.steps, "step", "steps")
    if len(found.growth) > 1:
        return f"{format_bytes(total)} over {steps}, {format_count(len(found.growth))} stacks"
    sizes = found.growth[0].sizes
    series = ", ".join(map(format_bytes, sizes[-_MOST_STEPS:]))
    return f"{format_bytes(total)} over {steps}: {'…, ' * (len(sizes) > _MOST_STEPS)}{series}"


def _gpu(each: GpuMemory, found: MemoryFacts, width: int) -> list[Line]:
    """Peak, end, what is reserved and what went wrong on one GPU."""
    title = [titled(Label.GPUS, width, f"GPU{each.number}")] if len(found.gpus) > 1 else []
    return [*title, *fields(_facts(each.memory, each.when), width)]


def _facts(each: MemoryOfDevice, when: str) -> Iterator[tuple[Label, str]]:
    yield Label.PEAK, f"{format_bytes(each.peak)}  {when}"
    yield Label.AT_END, format_bytes(each.live_end)
    if each.parts is not None:
        yield Label.RESERVED, format_bytes(each.parts.reserved)
        for label in _PARTS:
            size: int = getattr(each.parts, label.value)
            if size:
                yield label, f"{format_bytes(size)}  {format_percent(size, each.parts.reserved)}"
    for one in each.out_of_memory[-1:]:
        number = len(each.out_of_memory)
        more = f", the last of {format_count(number)}" if number > 1 else ""
        free = f"{format_bytes(one.device_free)} free on the device"
        yield Label.FAILED, f"{format_bytes(one.size)}{more}: {_why(one)}{free}"
    if each.growth:
        total = sum(one.total for one in each.growth)
        stacks = format_counted(len(each.growth), "stack", "stacks")
        yield Label.GROWTH, f"{format_bytes(total)} in {stacks} over {each.boundaries} steps"


def _why(one: OutOfMemory) -> str:
    if one.is_fragmented:
        return f"fragmented, {format_bytes(one.free or 0)} in pieces, "
    return "full, " if one.is_full else ""
