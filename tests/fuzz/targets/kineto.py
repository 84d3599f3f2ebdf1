"""Traces of the PyTorch profiler, plain and gzipped."""

from __future__ import annotations

from flame.core.options import LoadOptions
from tests.fuzz.checks import opens_or_refuses, packed, unpacked_size, write
from tests.fuzz.mutations import mutate_json
from tests.fuzz.target import Target
from tests.support.hostile.bad_texts import WHOLE, deep, hopeless
from tests.support.writers.kinetofile import KinetoFile

_FORWARD = LoadOptions(nvtx_names="raw", forward=True)


def check(data: bytes) -> None:
    options = _FORWARD if len(data) % 2 else None
    opens_or_refuses(write("trace.json", data), options)


def _small() -> bytes:
    file = KinetoFile()
    file.device(0, "NVIDIA H100")
    file.annotation("ProfilerStep#3", 0, 900)
    file.python("train.py(7): step", 10, 890, call=1)
    file.op("aten::mm", 20, 80, Sequence_number=1)
    file.launch(1, (30, 40), (100, 150), "gemm")
    file.memcpy(200, 230, 2)
    return file.text().encode()


def seeds() -> list[bytes]:
    small = _small()
    cut = packed(small)[:-30]
    return [small, packed(small), cut, WHOLE["kineto"], deep(5)["arguments"], *hopeless(3).values()]


TARGET = Target("kineto", seeds, check, mutate_json, 1 << 13, unpacked_size)
