"""Dumps of the injection library that have ended, or are read once while they grow."""

from __future__ import annotations

from collections.abc import Iterator

from tests.fuzz import dump_pieces
from tests.fuzz.checks import opens_or_refuses, write
from tests.fuzz.dump_pieces import CELL, HEADER_ROOM
from tests.fuzz.target import Target
from tests.support.writers.fdumpfile import DEVICE, STALL_REASON, THREAD, DumpFile
from tests.support.writers.fdumpscripts import recorded


def check(data: bytes) -> None:
    opens_or_refuses(write("1.fdump", dump_pieces.build(dump_pieces.unpack(data))))


def dumps() -> Iterator[DumpFile]:
    """Small recordings: of all kinds of records, in many chunks, one that has not ended."""
    script = [
        ("push", 100, "step", 0),
        ("launch", 100, "gemm", 3, False, True),
        ("push", 101, "layer", 1),
        ("copy", 101, 0, 1),
        ("capture", 100, 2, 2),
        ("replay", 101, 1),
        ("block", 101, 47, 1, "gemm"),
        ("block", 100, 17, 2, None),
        ("pop", 101, 1),
    ]
    yield recorded(script, DumpFile())
    many = recorded(script[:4], DumpFile(rows=1))
    many.meta("argv", "python train.py")
    many.name(THREAD, 100, "main")
    many.name(DEVICE, 0, "NVIDIA H100")
    yield many
    growing = recorded(script[:2], DumpFile())
    growing.ended = False
    yield growing
    yield _sampled()
    yield _with_memory()


def _sampled() -> DumpFile:
    file = DumpFile()
    file.name(STALL_REASON, 1, "stall_wait")
    file.launch(1, 2, 7, api=307)
    file.kernel("gemm", 3, 9, 7)
    for module, content in enumerate((11, 12)):
        file.record("module", crc=9, hash=content, module=module, time=file.time(1), context=1)
    file.record("module_end", module=0, time=file.time(4), context=1)
    fields = {"function": file.text("gemm"), "samples": 5, "reason": 1, "offset": 16}
    when = {"time": file.time(5), "span": 1, "context": 1}
    file.record("sample", crc=9, correlation=7, **when, **fields)
    return file


def _with_memory() -> DumpFile:
    file = DumpFile()
    where = {"python": file.python(("load", "m.py", 3)), "nvtx": file.nvtx("step")}
    pool = {"pool": 9, "pool_size": 4_096, "pool_used": 512, "pool_type": 1}
    file.call(1, 3, api=17)
    file.memory(2, 0x1000, 700, **where)
    file.record("memory", time=file.time(4), what=1, operation=1, pool=9, pool_type=1)
    file.memory(5, 0x2000, 512, device=1, **pool)
    file.record("memory", time=file.time(6), what=1, operation=3, **pool)
    file.memory(7, 0x1000, 700, True)
    file.memory(8, 0x3000, 50, True, kind=2)
    return file


def seeds() -> list[bytes]:
    return [dump_pieces.pack(dump_pieces.shrink(dump)) for dump in dumps()]


def room(data: bytes) -> int:
    """The size of the dump that an input stands for."""
    return HEADER_ROOM + CELL * len(dump_pieces.unpack(data))


TARGET = Target("fdump", seeds, check, dump_pieces.mutate, 1 << 13, room)
