"""Traces of the PyTorch profiler, plain and gzipped."""

from __future__ import annotations

from typing import Any

from flame.core.options import LoadOptions
from tests.fuzz.checks import opens_or_refuses, packed, unpacked_size, write
from tests.fuzz.mutations import mutate_json
from tests.fuzz.target import Target
from tests.support.hostile.bad_texts import WHOLE, deep, hopeless
from tests.support.writers.kinetofile import KinetoFile

Args = dict[str, Any]

_FORWARD = LoadOptions(nvtx_names="raw", forward=True)


def check(data: bytes) -> None:
    options = _FORWARD if len(data) % 2 else None
    opens_or_refuses(write("trace.json", data), options)


def _small() -> bytes:
    file = KinetoFile()
    file.device(0, "NVIDIA H100 80GB HBM3")
    file.annotation("ProfilerStep#3", 0, 900)
    file.python("train.py(7): step", 10, 890, call=1)
    types: Args = {"Input_Dims": [[2, 3], [3, 4]], "Input_type": ["float", "float"]}
    types |= {"Input_Strides": [[3, 1], [4, 1]], "Concrete_Inputs": ["", ""]}
    file.op("aten::mm", 20, 80, Sequence_number=1, **types)
    file.launch(1, (30, 40), (100, 150), "gemm")
    file.memcpy(200, 230, 2)
    told: Args = {
        "Collective_name": "allreduce",
        "dtype": "Float",
        "In_msg_nelems": 8,
        "Group_size": 2,
    }
    file.op("record_param_comms", 300, 380, Process_Group_Ranks="[0, 1]", Seq=1, **told)
    file.runtime(3, 310, 320)
    file.kernel("ncclDevKernel_AllReduce", 400, 450, 3, Process_Group_Name="0", **told)
    file.span("overhead", "Buffer Flush", 312, 318, (-1, 0), {})
    used: Args = {"Total Allocated": 64, "Device Id": 0, "Device Type": 1}
    file.event(ph="i", cat="cpu_instant_event", name="[memory]", pid=1, tid=1, ts=0.33, args=used)
    return file.text().encode()


def seeds() -> list[bytes]:
    small = _small()
    cut = packed(small)[:-30]
    return [small, packed(small), cut, WHOLE["kineto"], deep(5)["arguments"], *hopeless(3).values()]


TARGET = Target("kineto", seeds, check, mutate_json, 1 << 13, unpacked_size)
