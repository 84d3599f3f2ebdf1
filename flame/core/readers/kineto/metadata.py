"""Read metadata of a trace: processes, threads, GPUs, versions of the profiler."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from flame.core.columns import I4
from flame.core.lazy_regex import lazy_regex
from flame.core.model.activities import NONE
from flame.core.model.meta import Device, Meta, Process, Thread
from flame.core.readers.kineto.context import KinetoContext, Place
from flame.core.readers.kineto.events import Number

_OPTIONS = ("with_stack", "record_shapes", "profile_memory", "with_flops", "with_modules")
_VERSIONS = {"cuda_runtime_version": "CUDA", "hip_runtime_version": "HIP"}
_BASE, _DISTRIBUTED, _DEVICES = "baseTimeNanoseconds", "distributedInfo", "deviceProperties"
_PROPERTIES = {"memory": "totalGlobalMem", "multiprocessors": "numSms"}
_SYNTHETIC = "FLAME_SYNTHETIC"
WANTED = frozenset(
    {"schemaVersion", _SYNTHETIC, _BASE, _DISTRIBUTED, _DEVICES, *_OPTIONS, *_VERSIONS}
)
"""Keys beside the events that are read. Others may hold the user's environment: never read."""

# JSON, or JSON or a Python dict printed into a string.
_RANK = lazy_regex(rb"""["']rank\\?["']\s*:\s*["']?(\d{1,9})\b""")
_RANKS = lazy_regex(rb"""["']world_size\\?["']\s*:\s*["']?(\d{1,9})\b""")
_NCCL = lazy_regex(rb"""["']nccl_version\\?["']\s*:\s*\\?["'](\d[\d.]{0,30})\\?["']""")
_UNIX = (978_307_200 * 10**9, 1 << 61)
"""Times from 2001 on, in ns, are Unix times: a machine that has been up for so long is none."""


_DEFAULT_NAME = lazy_regex(r"thread -?\d+ \((.*)\)", re.DOTALL)


class _Properties(msgspec.Struct, rename=_PROPERTIES):
    """An entry of `deviceProperties`; what is no number is not known."""

    id: Number
    name: str = ""
    memory: object = None
    multiprocessors: object = None


def read_meta(path: str, top: Mapping[str, bytes], first_time: int) -> Meta:
    """Read versions, capture options, the rank, and when the trace's clock was 0."""
    known = {key: number for key in top if (number := _number(top[key])) is not None}
    versions = [
        f"{title} {_version(known[key])}" for key, title in _VERSIONS.items() if key in known
    ]
    job = top.get(_DISTRIBUTED, b"")
    rank, ranks, nccl = (pattern.search(job) for pattern in (_RANK, _RANKS, _NCCL))
    if nccl:
        versions.append(f"NCCL {nccl[1].decode()}")
    schema = known.get("schemaVersion")
    return Meta(
        path=path,
        format="kineto",
        producer=", ".join(["PyTorch profiler", *versions]),
        schema_version="" if schema is None else str(schema),
        origin=known.get(_BASE, 0 if _UNIX[0] <= first_time <= _UNIX[1] else None),
        rank=int(rank[1]) if rank else None,
        ranks=int(ranks[1]) if ranks else None,
        synthetic=_SYNTHETIC in top,
        options={key: str(known[key]) for key in _OPTIONS if key in known},
    )


def _number(text: bytes) -> int | None:
    try:
        return msgspec.json.decode(text, type=Number, strict=False)
    except ValueError:
        return None


def _version(number: int) -> str:
    """Format a version: `12040` is 12.4; HIP counts `60342134` for 6.3."""
    if number >= 10_000_000:
        return f"{number // 10_000_000}.{number // 100_000 % 100}"
    return f"{number // 1000}.{number % 1000 // 10}"


def read_devices(top: Mapping[str, bytes], numbers: I4) -> tuple[Device, ...]:
    """Describe the GPUs with these ``numbers``."""
    known = {device.id: device for device in decode_devices(top.get(_DEVICES, b"[]"))}
    return tuple(_device(number, known.get(number)) for number in numbers.tolist())


def _device(number: int, known: _Properties | None) -> Device:
    if known is None:
        return Device(number)
    memory, multiprocessors = map(_positive, (known.memory, known.multiprocessors))
    return Device(number, known.name, memory=memory, multiprocessors=multiprocessors)


def _positive(value: object) -> int | None:
    return value if type(value) is int and 0 < value < 1 << 62 else None


def decode_devices(listed: bytes) -> list[_Properties]:
    """Decode `deviceProperties`; nothing where that is damaged."""
    try:
        return msgspec.json.decode(listed, type=list[_Properties])
    except (ValueError, RecursionError):
        return []


def read_processes(context: KinetoContext) -> tuple[tuple[Process, ...], tuple[Thread, ...]]:
    """List the processes that did something, and their threads by number.

    Python functions of threads that the profiler did not know stand in process 0: they belong to
    the only process there is, if there is only one.
    """
    pids = dict.fromkeys(pid for pid, _ in context.threads.places)
    if len(pids) == 2 and 0 in pids:
        del pids[0]
    place = {pid: number for number, pid in enumerate(pids)}
    processes = tuple(
        Process(pid if isinstance(pid, int) else 0, _process_name(context, pid)) for pid in pids
    )
    threads = tuple(
        Thread(place.get(pid, 0), *_thread_name(context, (pid, tid)))
        for pid, tid in context.threads.places
    )
    return processes, threads


def _process_name(context: KinetoContext, pid: int | str) -> str:
    return context.process_names.get(pid, pid if isinstance(pid, str) else "")


def _thread_name(context: KinetoContext, place: Place) -> tuple[int, str]:
    tid = place[1]
    if isinstance(tid, str):
        return NONE, context.thread_names.get(place, tid)
    name = context.thread_names.get(place, "")
    default = _DEFAULT_NAME.fullmatch(name)
    return tid, default[1] if default else name
