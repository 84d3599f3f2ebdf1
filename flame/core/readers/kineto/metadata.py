"""Read metadata of a trace: processes, threads, GPUs, versions of the profiler."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from flame.core.columns import I4
from flame.core.lazy_regex import lazy_regex
from flame.core.model.activities import NONE
from flame.core.model.meta import Device, DeviceFacts, Meta, Process, Thread
from flame.core.readers.kineto.context import KinetoContext, Place, place_key
from flame.core.readers.kineto.events import Number

_OPTIONS = ("with_stack", "record_shapes", "profile_memory", "with_flops", "with_modules")
_DRIVER = "cuda_driver_version"
_VERSIONS = {"cuda_runtime_version": "CUDA", "hip_runtime_version": "HIP"}
_BASE, _DISTRIBUTED, _DEVICES = "baseTimeNanoseconds", "distributedInfo", "deviceProperties"
_SYNTHETIC = "FLAME_SYNTHETIC"
WANTED = frozenset(
    {"schemaVersion", _SYNTHETIC, _BASE, _DISTRIBUTED, _DEVICES, *_OPTIONS, *_VERSIONS, _DRIVER}
)
"""Keys beside the events that are read. Others may hold the user's environment: never read."""

# JSON, or JSON or a Python dict printed into a string.
_RANK = lazy_regex(rb"""["']rank\\?["']\s*:\s*["']?(\d{1,9})\b""")
_NCCL = lazy_regex(
    rb"""["']nccl_version\\?["']\s*:\s*\\?["']([0-9]{1,9}(?:\.[0-9]{1,9}){1,3})\\?["']"""
)
_RANKS = lazy_regex(rb"""["']world_size\\?["']\s*:\s*["']?(\d{1,9})\b""")
_UNIX = (978_307_200 * 10**9, 1 << 61)
"""Times from 2001 on, in ns, are Unix times: a machine that has been up for so long is none."""


_DEFAULT_NAME = lazy_regex(r"thread -?\d+ \((.*)\)", re.DOTALL)


_NAMES = {
    "sms": "numSms",
    "memory": "totalGlobalMem",
    "major": "computeMajor",
    "minor": "computeMinor",
}


class _Properties(msgspec.Struct, rename=_NAMES):
    """An entry of `deviceProperties`."""

    id: Number
    name: str = ""
    sms: object = None
    memory: object = None
    major: object = None
    minor: object = None

    @property
    def facts(self) -> DeviceFacts:
        """What is known of the GPU; its memory's bandwidth is not."""
        numbers = (self.sms, self.memory, self.major, self.minor)
        sms, memory, major, minor = (
            one if type(one) is int and one > 0 else None for one in numbers
        )
        capability = f"{major}.{minor or 0}" if major else ""
        return DeviceFacts(sms=sms, memory=memory, capability=capability)


def read_meta(path: str, top: Mapping[str, bytes], first_time: int) -> Meta:
    """Read versions, capture options, the rank, and when the trace's clock was 0."""
    known = {key: number for key in top if (number := _number(top[key])) is not None}
    versions = [
        f"{title} {_version(known[key])}" for key, title in _VERSIONS.items() if key in known
    ]
    rank, ranks = (one.search(top.get(_DISTRIBUTED, b"")) for one in (_RANK, _RANKS))
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
        versions=_versions(known, top.get(_DISTRIBUTED, b"")),
    )


def _versions(known: Mapping[str, int], distributed: bytes) -> dict[str, str]:
    """What the program ran on: the toolkit's version, the one its driver is for, and NCCL's."""
    found = {title: _version(known[key]) for key, title in _VERSIONS.items() if key in known}
    if _DRIVER in known:
        found["CUDA of the driver"] = _version(known[_DRIVER])
    if nccl := _NCCL.search(distributed):
        found["NCCL"] = nccl[1].decode()
    return found


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
    found = ((number, known.get(number)) for number in numbers.tolist())
    return tuple(
        Device(number, one.name, 0, one.facts) if one else Device(number) for number, one in found
    )


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
    pids = {repr(pid): pid for pid, _ in context.threads.places}  # texts: see `place_key`
    if len(pids) == 2 and "0" in pids:
        del pids["0"]
    place = {pid: number for number, pid in enumerate(pids)}
    processes = tuple(
        Process(pid if isinstance(pid, int) else 0, _process_name(context, pid))
        for pid in pids.values()
    )
    threads = tuple(
        Thread(place.get(repr(pid), 0), *_thread_name(context, (pid, tid)))
        for pid, tid in context.threads.places
    )
    return processes, threads


def _process_name(context: KinetoContext, pid: int | str) -> str:
    return context.process_names.get(repr(pid), pid if isinstance(pid, str) else "")


def _thread_name(context: KinetoContext, place: Place) -> tuple[int, str]:
    tid = place[1]
    if isinstance(tid, str):
        return NONE, context.thread_names.get(place_key(place), tid)
    name = context.thread_names.get(place_key(place), "")
    default = _DEFAULT_NAME.fullmatch(name)
    return tid, default[1] if default else name
