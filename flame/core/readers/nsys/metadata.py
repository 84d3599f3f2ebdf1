"""Read metadata of an export: processes, threads, GPUs, exporter and capture options."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from flame.core.lazy_regex import lazy_regex
from flame.core.model.meta import Device, DeviceFacts, Meta, Process, Thread
from flame.core.readers.nsys.context import TIME_LIMIT, NsysContext, pid_of, tid_of
from flame.core.readers.shared.cupti import ALLOW_PROFILING

_SCHEMA, _PRODUCT, _SYNTHETIC = "EXPORT_SCHEMA_VERSION", "EXPORT_PRODUCT_VERSION", "FLAME_SYNTHETIC"
_SYSTEM, _NAMED = "TARGET_INFO_SYSTEM_ENV", ("name", "value")
_CUDA = "CUDA of the driver"
_DRIVER = {"NvDriverVersion": "driver", "CudaDriverVersion": _CUDA}
_VERSION = lazy_regex(r"[0-9]{1,9}(\.[0-9]{1,9}){0,3}")
_FACTS = (
    *("id", "chipName", "smCount", "totalMemory", "memoryBandwidth"),
    *("computeMajor", "computeMinor", "clockRate"),
)
_OLD_FACTS = (
    *("deviceId", "chipName", "numMultiprocessors", "globalMemorySize", "globalMemoryBandwidth"),
    *("computeCapabilityMajor", "computeCapabilityMinor", "coreClockRate"),
)
_MOST = 1 << 50
_REFUSED = "ERR_NVGPUCTRPERM"
_OPTIONS = (
    "CUDA_GRAPH_TRACE_OPTIONS:MODE",
    "COLLECT_NVTX_TRACE",
    "COLLECT_CUDA_TRACE",
    "CUDA_BACKTRACE_OPTIONS:COLLECT_PYTHON_BACKTRACES",
)


def read_meta(context: NsysContext, path: str) -> Meta:
    """Read versions and a few capture options.

    Only by name: these tables also hold the user's environment.
    """
    exported: dict[str, str] = {}
    for table in ("EXPORT_META_DATA", "META_DATA_EXPORT"):
        exported |= _read_values(context, table, (_SCHEMA, _PRODUCT, _SYNTHETIC))
    version = exported.get(_PRODUCT, "")
    return Meta(
        path=path,
        format="nsys-sqlite",
        origin=_read_origin(context),
        host=_read_host(context),
        producer=f"Nsight Systems {version}".rstrip(),
        schema_version=exported.get(_SCHEMA, ""),
        synthetic=_SYNTHETIC in exported,
        options=_read_values(context, "META_DATA_CAPTURE", _OPTIONS),
        versions=_read_versions(context),
    )


def _read_versions(context: NsysContext) -> dict[str, str]:
    """Read the versions of driver and CUDA: of all that the table knows of the system these two."""
    if not context.source.columns(_SYSTEM) >= {*_NAMED}:
        return {}
    wanted = ", ".join(f"'{name}'" for name in _DRIVER)
    rows = context.source.rows(_SYSTEM, _NAMED, f"WHERE name IN ({wanted})")
    known = {str(name): str(value) for name, value in rows if _VERSION.fullmatch(str(value))}
    versions = {title: known[name] for name, title in _DRIVER.items() if name in known}
    if versions.get(_CUDA, "").isdecimal():
        number = int(versions[_CUDA])
        versions[_CUDA] = f"{number // 1000}.{number % 1000 // 10}"
    return versions


def _read_host(context: NsysContext) -> str:
    """Read the name of the machine, if the table knows one."""
    if not context.source.columns(_SYSTEM) >= {*_NAMED}:
        return ""
    rows = [*context.source.rows(_SYSTEM, _NAMED, "WHERE name = 'Hostname'")]
    names = {value for _, value in rows if isinstance(value, str)}
    return names.pop() if len(names) == 1 else ""


def _read_origin(context: NsysContext) -> int | None:
    """Read the Unix time of the session's start, at which its clock is 0, ns.

    By it nsys's own recipes align several reports; files without it are of 2020 and before.
    """
    rows = context.source.rows("TARGET_INFO_SESSION_START_TIME", ["utcEpochNs"])
    known = [time for (time,) in rows if isinstance(time, int) and 0 < time < TIME_LIMIT]
    return known[0] if len(known) == 1 else None


def _read_values(context: NsysContext, table: str, wanted: tuple[str, ...]) -> dict[str, str]:
    """Read values of the ``wanted`` keys, with or without a ``PROCESS_n:`` in front."""
    values = {}
    for name, value in context.source.rows(table, ["name", "value"]):
        key = str(name)
        plain = key.partition(":")[2] if key.startswith("PROCESS_") else key
        if plain in wanted and value is not None:
            values[plain] = str(value)
    return values


def read_processes(context: NsysContext) -> tuple[Process, ...]:
    """List the processes that did something, named where the trace names them."""
    names = process_names(context)
    return tuple(Process(pid_of(key), names.get(key, "")) for key in context.processes.keys)


def read_threads(context: NsysContext) -> tuple[Thread, ...]:
    """List the threads that did something, named where the trace names them."""
    names = thread_names(context)
    number = {key: place for place, key in enumerate(context.processes.keys)}
    return tuple(
        Thread(number[key & ~0xFFFFFF], tid_of(key), names.get(key, ""))
        for key in context.threads.keys
    )


def process_names(context: NsysContext) -> dict[int, str]:
    """Read the names of processes by globalPid."""
    return _read_texts(context, "PROCESSES", ["globalPid", "name"])


def thread_names(context: NsysContext) -> dict[int, str]:
    """Read the names of threads by globalTid."""
    return _read_texts(context, "ThreadNames", ["globalTid", "nameId"])


def _read_texts(context: NsysContext, table: str, names: list[str]) -> dict[int, str]:
    """Map the first column to the second (a text, or the id of one); the last row wins."""
    texts = {}
    for key, value in context.source.rows(table, names):
        text = value if isinstance(value, str) else context.text_of(value)
        if isinstance(key, int) and text:
            texts[key] = text
    return texts


def read_devices(context: NsysContext) -> tuple[tuple[Device, ...], list[int]]:
    """List GPUs, and for every (process, CUDA ordinal) the index of its GPU.

    The CUDA ordinal is a process's own (CUDA_VISIBLE_DEVICES shifts it); TARGET_INFO_CUDA_DEVICE
    maps it to the machine's GPU from schema 3.17.1 on.
    """
    rows = context.source.rows(
        "TARGET_INFO_CUDA_DEVICE", ["gpuId", "cudaId", "pid", "numMultiprocessors"]
    )
    known = [(gpu, ordinal, pid, sms) for gpu, ordinal, pid, sms in rows if isinstance(gpu, int)]
    gpu_of = {(pid, ordinal): gpu for gpu, ordinal, pid, _ in known}
    names, facts = _read_device_names(context), _read_facts(context, set(gpu_of.values()))
    for gpu, *_, sms in known:
        before = facts.get(gpu, DeviceFacts())
        facts[gpu] = replace(before, sms=before.sms or _facts("", sms).sms)
    processes = [pid_of(key) for key in context.processes.keys] + [-1]
    pairs = [((key >> 32) - 1, key & 0xFFFFFFFF) for key in context.devices.keys]
    gpus = [gpu_of.get((processes[process], ordinal), ordinal) for process, ordinal in pairs]
    ids = sorted(set(gpus))
    devices = (Device(gpu, names.get(gpu, ""), 0, facts.get(gpu, DeviceFacts())) for gpu in ids)
    return tuple(devices), [ids.index(gpu) for gpu in gpus]


def _read_facts(context: NsysContext, placed: set[int]) -> dict[int, DeviceFacts]:
    """Read what GPUs can do, by number.

    Where nothing says which GPU a process means by a number, only what is so of all of them.
    """
    facts = {
        key: _facts(*row)
        for key, *row in context.source.rows("TARGET_INFO_GPU", _FACTS)
        if isinstance(key, int)
    }
    known = {key: one for key, one in facts.items() if replace(one, clock=None) != DeviceFacts()}
    if not known:
        rows = context.source.rows("TARGET_INFO_CUDA_GPU", _OLD_FACTS)
        old = {key: _facts(*row) for key, *row in rows if isinstance(key, int)}
        return {key: _in_bytes_and_hertz(one) for key, one in old.items()}
    if len(set(known.values())) > 1:
        known = {key: one for key, one in known.items() if key in placed}
    return known


def _facts(
    chip: object,
    sms: object,
    memory: object = None,
    bandwidth: object = None,
    major: object = None,
    minor: object = None,
    clock: object = None,
) -> DeviceFacts:
    sms, memory, bandwidth, major, minor, clock = (
        number if isinstance(number, int) and 0 <= number < _MOST else None
        for number in (sms, memory, bandwidth, major, minor, clock)
    )
    capability = "" if not major or minor is None else f"{major}.{minor}"
    name = chip if isinstance(chip, str) else ""
    sizes = (sms or None, memory or None, bandwidth or None)
    return DeviceFacts(name, *sizes, capability, clock or None)


def _in_bytes_and_hertz(old: DeviceFacts) -> DeviceFacts:
    """The same of facts in kilobytes and kilohertz, which the older table has, as CUPTI does."""
    bandwidth, clock = (one and 1000 * one for one in (old.bandwidth, old.clock))
    return replace(old, bandwidth=bandwidth, clock=clock)


def _read_device_names(context: NsysContext) -> dict[int, str]:
    """Read GPU names by number; the table and its key column were renamed in 2021.

    The older table counts GPUs as CUDA does, which is what activities name.
    """
    names: dict[int, str] = {}
    for table in ("TARGET_INFO_GPU", "TARGET_INFO_CUDA_GPU"):
        key = "id" if "id" in context.source.columns(table) else "deviceId"
        names |= _read_texts(context, table, [key, "name"])
    return names


def placed_gpus(context: NsysContext, devices: Sequence[Device]) -> dict[int, int]:
    """Map numbers of the machine's GPUs to places in ``devices``, as far as that is known.

    Without TARGET_INFO_CUDA_DEVICE a device has the number by which a process calls it, which is
    the machine's for certain only where this has but one.
    """
    rows = context.source.rows("TARGET_INFO_CUDA_DEVICE", ["gpuId"])
    placed = {gpu for (gpu,) in rows if isinstance(gpu, int)}
    if placed:
        return {one.id: place for place, one in enumerate(devices) if one.id in placed}
    there = {key for (key,) in context.source.rows("TARGET_INFO_GPU", ["id"])}
    if len(devices) != 1 or len(there) > 1:
        return {}
    return {next((key for key in there if isinstance(key, int)), devices[0].id): 0}


def metric_warnings(context: NsysContext) -> Iterator[str]:
    """Say how GPU metrics are allowed, where the driver refused them and there are none."""
    if context.source.size("GPU_METRICS"):
        return
    if "text" not in context.source.columns("DIAGNOSTIC_EVENT"):
        return
    found = context.source.rows("DIAGNOSTIC_EVENT", ["text"], f"WHERE text LIKE '%{_REFUSED}%'")
    if any(isinstance(text, str) for (text,) in found):
        yield f"the driver refused GPU metrics ({_REFUSED}): {ALLOW_PROFILING}"
