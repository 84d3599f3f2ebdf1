"""Turns what a timeline recorded into rows of an nsys SQLite export."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from samples.backtraces import backtrace
from samples.decode_timeline import (
    COMPUTE_STREAM,
    COPIES,
    GRAPH_EXEC_ID,
    GRAPH_ID,
    NCCL_STREAM,
    Activity,
    Call,
    Range,
    Rank,
)
from samples.moe_model import KERNELS
from samples.nsys_schema import (
    DOMAIN_CREATE,
    DRIVER_API,
    DTOH,
    GRAPH_CREATION,
    GRAPH_EXEC_CREATION,
    GRAPH_NODE_CREATION,
    HTOD,
    MARK,
    NEWEST_VERSION,
    PUSH_POP,
    RUNTIME_API,
    START_END,
    VM_ID,
    gpid,
)

GPU_NAME = "NVIDIA H100 80GB HBM3 (synthetic)"
EPOCH_NS = 1_767_225_600_000_000_000  # 2026-01-01T00:00:00Z

Value = int | str | None
Row = Mapping[str, Value]
Tables = Mapping[str, Sequence[Row]]


class Strings:
    """The string table: ids by first use."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self._ids.setdefault(text, len(self._ids) + 1)

    def rows(self) -> list[Row]:
        return [{"id": id, "value": value} for value, id in self._ids.items()]


def events(ranks: Sequence[Rank], strings: Strings) -> Tables:
    """Rows of all that was recorded, by table, each table in order of start times."""
    chains = {key: id for id, key in enumerate(_traced(ranks), 1)}
    runs = [(rank, activity) for rank in ranks for activity in rank.activities]
    tables: dict[str, list[Row]] = {
        "CUPTI_ACTIVITY_KIND_KERNEL": [_kernel(r, a, strings) for r, a in runs if a.key in KERNELS],
        "CUPTI_ACTIVITY_KIND_MEMSET": [_memset(r, a) for r, a in runs if a.key == "memset"],
        "CUPTI_ACTIVITY_KIND_MEMCPY": [_memcpy(r, a) for r, a in runs if a.key in COPIES],
        "CUPTI_ACTIVITY_KIND_RUNTIME": [
            _call(call, strings, chains) for rank in ranks for call in rank.calls
        ],
        "NVTX_EVENTS": [_nvtx(event, strings) for rank in ranks for event in rank.ranges],
        "CUDA_GRAPH_NODE_EVENTS": [row for rank in ranks for row in _nodes(rank, strings)],
        "CUDA_GRAPH_EVENTS": [row for rank in ranks for row in _graphs(rank, strings)],
    }
    for rows in tables.values():
        rows.sort(key=_start)
    return tables | {"CUDA_CALLCHAINS": [*_chains(chains, strings)]}


def _start(row: Row) -> int:
    start = row["start"]
    assert isinstance(start, int)
    return start


def _traced(ranks: Sequence[Rank]) -> list[str]:
    return sorted({call.chain for rank in ranks for call in rank.calls if call.chain})


def _gpu(rank: Rank, activity: Activity) -> dict[str, Value]:
    return {
        "start": activity.start,
        "end": activity.end,
        "deviceId": rank.index,
        "contextId": 1,
        "greenContextId": 0,
        "streamId": activity.stream,
        "correlationId": activity.correlation,
        "globalPid": gpid(rank.pid),
        "graphNodeId": activity.node,
    }


def _kernel(rank: Rank, activity: Activity, strings: Strings) -> Row:
    kernel = KERNELS[activity.key]
    row = _gpu(rank, activity)
    row |= dict(zip(("gridX", "gridY", "gridZ"), kernel.grid, strict=True))
    row |= dict(zip(("blockX", "blockY", "blockZ"), kernel.block, strict=True))
    return row | {
        "shortName": strings(kernel.short),
        "demangledName": strings(kernel.demangled or kernel.short),
        "mangledName": strings(kernel.mangled or kernel.short),
        "launchType": 1,
        "cacheConfig": 1,
        "registersPerThread": kernel.registers,
        "dynamicSharedMemory": kernel.shared_bytes,
        "graphId": None if activity.node is None else GRAPH_EXEC_ID,
    }


def _memset(rank: Rank, activity: Activity) -> Row:
    return _gpu(rank, activity) | {"bytes": activity.bytes, "value": 0, "memKind": 2}


def _memcpy(rank: Rank, activity: Activity) -> Row:
    to_device = activity.key == "HtoD"
    kinds = {"srcKind": 1, "dstKind": 2} if to_device else {"srcKind": 2, "dstKind": 1}
    copy = {"bytes": activity.bytes, "copyKind": COPIES[activity.key], "copyCount": 1}
    return {**_gpu(rank, activity), **kinds, **copy}


def _call(call: Call, strings: Strings, chains: Mapping[str, int]) -> Row:
    return {
        "start": call.start,
        "end": call.end,
        "eventClass": RUNTIME_API if call.name.startswith("cuda") else DRIVER_API,
        "globalTid": call.thread,
        "correlationId": call.correlation,
        "nameId": strings(call.name),
        "returnValue": 0,
        "callchainId": chains[call.chain] if call.chain else None,
    }


def _nvtx(event: Range, strings: Strings) -> Row:
    by_id = event.text_registered
    return {
        "start": event.start,
        "end": event.end,
        "eventType": event.kind,
        "rangeId": event.id,
        "text": None if by_id else event.text,
        "textId": strings(event.text) if by_id else None,
        "globalTid": event.thread,
        "endGlobalTid": event.end_thread,
        "domainId": event.domain,
    }


def _nodes(rank: Rank, strings: Strings) -> Iterator[Row]:
    for node in rank.nodes:
        yield {
            "start": node.start,
            "end": node.start,
            "eventClass": GRAPH_NODE_CREATION,
            "globalTid": rank.thread,
            "nameId": strings("Graph Node Creation"),
            "graphNodeId": node.id,
            "originalGraphNodeId": node.original,
        }


def _graphs(rank: Rank, strings: Strings) -> Iterator[Row]:
    calls = {
        call.name: call for call in rank.calls if "Capture" in call.name or "Graph" in call.name
    }
    graph = {"graphId": GRAPH_ID, "graphExecId": None}
    executable = {"graphId": GRAPH_ID, "graphExecId": GRAPH_EXEC_ID}
    for api, name, event_class, ids in (
        ("cudaStreamBeginCapture_v10000", "Graph Creation", GRAPH_CREATION, graph),
        ("cudaGraphInstantiate_v12000", "GraphExec Creation", GRAPH_EXEC_CREATION, executable),
    ):
        time = calls[api].start
        yield {
            "start": time,
            "end": time,
            "eventClass": event_class,
            "globalTid": rank.thread,
            "nameId": strings(name),
            **ids,
        }


def _chains(chains: Mapping[str, int], strings: Strings) -> Iterator[Row]:
    for key, id in chains.items():
        for depth, (symbol, module, unresolved) in enumerate(backtrace(key)):
            yield {
                "id": id,
                "symbol": strings(symbol),
                "module": strings(module),
                "unresolved": int(unresolved),
                "stackDepth": depth,
            }


def description(ranks: Sequence[Rank], strings: Strings) -> Tables:
    """Rows about the recording: processes, threads, GPUs, options, and the synthetic label."""
    stop = max(rank.now for rank in ranks)
    session: Row = {"utcEpochNs": EPOCH_NS, "utcTime": "2026-01-01 00:00:00", "systemClockNs": 0}
    details = {"globalVid": VM_ID, "duration": stop, "startTime": 0, "stopTime": stop}
    return {
        "PROCESSES": [_process(rank) for rank in ranks],
        "ThreadNames": [row for rank in ranks for row in _threads(rank, strings)],
        "TARGET_INFO_GPU": [_gpu_info(rank) for rank in ranks],
        "TARGET_INFO_CUDA_DEVICE": [
            {"gpuId": r.index, "cudaId": r.index, "pid": r.pid, "numMultiprocessors": 132}
            for r in ranks
        ],
        "TARGET_INFO_CUDA_STREAM": [row for rank in ranks for row in _streams(rank)],
        "TARGET_INFO_SESSION_START_TIME": [session],
        "ANALYSIS_DETAILS": [details],
        "ENUM_NSYS_EVENT_TYPE": _enum(_EVENT_TYPES),
        "ENUM_CUDA_MEMCPY_OPER": _enum(_COPY_KINDS),
        "META_DATA_EXPORT": [{"name": n, "value": v} for n, v in _EXPORT],
        "META_DATA_CAPTURE": [{"name": n, "value": v} for n, v in _CAPTURE],
    }


_EVENT_TYPES = {
    MARK: "NvtxMark",
    PUSH_POP: "NvtxPushPopRange",
    START_END: "NvtxStartEndRange",
    DOMAIN_CREATE: "NvtxDomainCreate",
}
_COPY_KINDS = {HTOD: "Host-to-Device", DTOH: "Device-to-Host"}
_EXPORT = (
    ("FLAME_SYNTHETIC", "true, made by samples/make_samples.py"),
    ("EXPORT_PRODUCT_NAME", "flame samples (not NVIDIA Nsight Systems)"),
    ("EXPORT_PRODUCT_VERSION", "synthetic"),
    ("EXPORT_SCHEMA_VERSION", NEWEST_VERSION),
    *zip(
        (f"EXPORT_SCHEMA_VERSION_{part}" for part in ("MAJOR", "MINOR", "MICRO")),
        NEWEST_VERSION.split("."),
        strict=True,
    ),
)
_CAPTURE = (
    ("CAPTURE_EVENT_TYPE", "NvtxEvents"),
    ("CAPTURE_EVENT_TYPE", "Cuda"),
    ("PROCESS_0:COMMAND", "python3"),
    ("CUDA_GRAPH_TRACE_OPTIONS:MODE", "Node"),
    ("CUDA_BACKTRACE_OPTIONS:COLLECT_PYTHON_BACKTRACES", "true"),
)


def _enum(labels: Mapping[int, str]) -> list[Row]:
    return [{"id": id, "name": label, "label": label} for id, label in labels.items()]


def _process(rank: Rank) -> Row:
    return {"globalPid": gpid(rank.pid), "pid": rank.pid, "name": f"VLLM::Worker_TP{rank.index}"}


def _threads(rank: Rank, strings: Strings) -> Iterator[Row]:
    names = {rank.thread: f"VLLM::Worker_TP{rank.index}", rank.watchdog: "pt_nccl_watchdg"}
    for thread, name in names.items():
        yield {"nameId": strings(name), "priority": 20, "globalTid": thread}


def _streams(rank: Rank) -> Iterator[Row]:
    for stream in (COMPUTE_STREAM, NCCL_STREAM):
        flags = {"priority": 0, "flag": 2, "hwId": 0, "vmId": 1, "contextId": 1}
        yield {"streamId": stream, "processId": rank.pid, **flags}


def _gpu_info(rank: Rank) -> Row:
    return {
        "vmId": VM_ID,
        "id": rank.index,
        "name": GPU_NAME,
        "isDiscrete": 1,
        "totalMemory": 85_520_809_984,
        "smCount": 132,
        "chipName": "GH100",
        "cuDevice": rank.index,
        "threadsPerWarp": 32,
        "computeMajor": 9,
        "computeMinor": 0,
    }
