"""A tiny builder of nsys SQLite exports, so that a test arranges a trace in a few lines."""

from __future__ import annotations

from collections.abc import Sequence

from samples.nsys_schema import (
    DOMAIN_CREATE,
    DTOD,
    DTOH,
    GRAPH_NODE_CREATION,
    HTOD,
    HTOH,
    MARK,
    PTOP,
    PUSH_POP,
    START_END,
    VM_ID,
    gpid,
    gtid,
)
from tests.support.writers.nsystables import NsysTables, Text, Value

__all__ = [
    "DOMAIN_CREATE",
    "DTOD",
    "DTOH",
    "HTOD",
    "HTOH",
    "MARK",
    "PTOP",
    "PUSH_POP",
    "START_END",
    "NsysFile",
    "gpid",
    "gtid",
]

Dim = tuple[int, int, int]


class NsysFile(NsysTables):
    """Writes one export; a table exists only after the first row for it (or `create`).

    `schema` is "new" (3.25.0, 2026; CUDA graph nodes in CUDA_GRAPH_NODE_EVENTS) or "old" (2020;
    no version table, no mangledName, nodes in CUDA_GRAPH_EVENTS, no opaque graphs). Times are ns.
    A name may be `bytes` (stored as TEXT even if it is not UTF-8) or an `int`, a raw string id
    that need not exist. `db` is open for whatever the methods do not offer.
    """

    def kernel(
        self,
        name: Text,
        start: int,
        end: int,
        corr: int | None = 1,
        pid: int = 100,
        device: int = 0,
        stream: int = 7,
        demangled: Text | None = None,
        mangled: Text | None = None,
        graph_node: int | None = None,
        graph_id: int | None = None,
        grid: Dim = (1, 1, 1),
        block: Dim = (1, 1, 1),
    ) -> None:
        """One kernel; `name` is the short name and, unless given, the demangled one."""
        row = self._gpu_row(start, end, corr, pid, device, stream, graph_node)
        row |= dict(zip(("gridX", "gridY", "gridZ"), grid, strict=True))
        row |= dict(zip(("blockX", "blockY", "blockZ"), block, strict=True))
        row["shortName"] = self.string(name)
        row["demangledName"] = self.string(name if demangled is None else demangled)
        if not self._old:
            row["mangledName"] = None if mangled is None else self.string(mangled)
            row["graphId"] = graph_id
        self.insert("CUPTI_ACTIVITY_KIND_KERNEL", **row)

    def memcpy(
        self,
        kind: int,
        start: int,
        end: int,
        corr: int | None = 1,
        pid: int = 100,
        bytes: int = 4096,
        device: int = 0,
        stream: int = 7,
        graph_node: int | None = None,
    ) -> None:
        """One copy of `bytes`; `kind` is CUPTI's copyKind (HTOD, DTOH, DTOD, HTOH, PTOP…)."""
        row = self._gpu_row(start, end, corr, pid, device, stream, graph_node)
        self.insert("CUPTI_ACTIVITY_KIND_MEMCPY", **row, bytes=bytes, copyKind=kind)

    def memset(
        self,
        start: int,
        end: int,
        corr: int | None = 1,
        pid: int = 100,
        bytes: int = 4096,
        device: int = 0,
        stream: int = 7,
        graph_node: int | None = None,
    ) -> None:
        """One memset of `bytes`."""
        row = self._gpu_row(start, end, corr, pid, device, stream, graph_node)
        self.insert("CUPTI_ACTIVITY_KIND_MEMSET", **row, bytes=bytes)

    def graph(
        self,
        start: int,
        end: int,
        corr: int | None = 1,
        pid: int = 100,
        graph_id: int = 1,
        exec_id: int = 2,
        device: int = 0,
        stream: int = 7,
    ) -> None:
        """One CUDA graph traced as a whole (new schema only)."""
        row = self._gpu_row(start, end, corr, pid, device, stream, None)
        del row["graphNodeId"]
        row |= {"graphId": graph_id, "graphExecId": exec_id}
        self.insert("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", **row)

    def api(
        self,
        name: Text,
        start: int,
        end: int,
        corr: int | None = 1,
        pid: int = 100,
        tid: int = 100,
        chain: int | None = None,
        event_class: int = 0,
    ) -> None:
        """One runtime (`event_class` 0), driver (1) or backtrace (67) API row."""
        self.insert(
            "CUPTI_ACTIVITY_KIND_RUNTIME",
            start=start,
            end=end,
            eventClass=event_class,
            globalTid=gtid(pid, tid),
            correlationId=corr,
            nameId=self.string(name),
            callchainId=chain,
        )

    def os_call(
        self, name: Text, start: int, end: int, pid: int = 100, tid: int | None = 100
    ) -> None:
        """One call of the operating system's runtime (new schema only)."""
        self.insert(
            "OSRT_API",
            start=start,
            end=end,
            eventClass=27,
            globalTid=None if tid is None else gtid(pid, tid),
            nameId=self.string(name),
        )

    def metric(
        self, name: str, time: int, value: int, gpu: int = 0, number: int | None = None
    ) -> None:
        """One sample of a metric of a GPU (new schema only), called by its name.

        `number` is its id, which other GPUs may have for another one.
        """
        if number is None:
            number = self._metrics.setdefault(name, len(self._metrics))
        kind = VM_ID | 1 << 8 | gpu
        if (kind, number) not in self._named:
            self._named.add((kind, number))
            self.insert("TARGET_INFO_GPU_METRICS", typeId=kind, metricId=number, metricName=name)
        self.insert("GPU_METRICS", timestamp=time, typeId=kind, metricId=number, value=value)

    def memory(
        self,
        time: int,
        size: int,
        address: int,
        frees: bool = False,
        pid: int = 100,
        device: int = 0,
        kind: int = 2,
        context: int = 1,
        corr: int = 0,
        pool: tuple[int, int, int] | None = None,
    ) -> None:
        """Memory allocated or freed (new schema only); ``kind`` 1 is pinned, 2 the GPU's.

        ``pool``: the address of the pool that it is of, what that holds, and has given out.
        """
        names = ("localMemoryPoolAddress", "localMemoryPoolSize", "localMemoryPoolUtilizedSize")
        self.insert(
            "CUDA_GPU_MEMORY_USAGE_EVENTS",
            start=time,
            globalPid=gpid(pid),
            deviceId=device,
            contextId=context,
            address=address,
            bytes=size,
            correlationId=corr,
            memKind=kind,
            memoryOperationType=int(frees),
            **dict(zip(names, pool or (), strict=False)),
        )

    def pool(
        self, time: int, operation: int, size: int, used: int, address: int, pid: int = 100
    ) -> None:
        """A pool of memory that is created (1), destroyed (2) or trimmed (3)."""
        self.insert(
            "CUDA_GPU_MEMORY_POOL_EVENTS",
            start=time,
            globalPid=gpid(pid),
            deviceId=0,
            address=address,
            operationType=operation,
            poolType=1,
            localMemoryPoolSize=size,
            localMemoryPoolUtilizedSize=used,
        )

    def nvtx(
        self,
        text: Text,
        start: int | None,
        end: int | None,
        pid: int = 100,
        tid: int = 100,
        domain: int = 0,
        type: int = PUSH_POP,
        registered: bool = False,
        json: str | None = None,
        category: int | None = None,
        end_tid: int | None = None,
    ) -> None:
        """One range or mark; `registered` (or an `int` text) stores text and JSON by string id."""
        by_id = registered or isinstance(text, int)
        row: dict[str, Value] = {("textId" if by_id else "text"): text}
        if by_id:
            row["textId"] = self.string(text)
        if json is not None:
            row |= {"jsonTextId": self.string(json)} if by_id else {"jsonText": json}
        self.insert(
            "NVTX_EVENTS",
            start=start,
            end=end,
            eventType=type,
            category=category,
            globalTid=gtid(pid, tid),
            endGlobalTid=None if end_tid is None else gtid(pid, end_tid),
            domainId=domain,
            **row,
        )

    def domain(self, id: int, name: Text, pid: int = 100, tid: int = 100, start: int = 0) -> None:
        """Names NVTX domain `id` of a process."""
        self.nvtx(name, start, None, pid, tid, domain=id, type=DOMAIN_CREATE)

    def node(
        self,
        node_id: int,
        original: int | None,
        start: int,
        pid: int = 100,
        tid: int = 100,
        name: Text = "Graph Node Creation",
    ) -> None:
        """One CUDA graph node: captured (`original` None) or cloned from node `original`."""
        self.insert(
            "CUDA_GRAPH_EVENTS" if self._old else "CUDA_GRAPH_NODE_EVENTS",
            start=start,
            end=start,
            eventClass=GRAPH_NODE_CREATION,
            globalTid=gtid(pid, tid),
            nameId=self.string(name),
            graphNodeId=node_id,
            originalGraphNodeId=original,
        )

    def chain(self, id: int, frames: Sequence[tuple[Text, Text, bool]]) -> None:
        """One backtrace of (symbol, module, unresolved), leaf first."""
        for depth, (symbol, module, unresolved) in enumerate(frames):
            self.insert(
                "CUDA_CALLCHAINS",
                id=id,
                symbol=self.string(symbol),
                module=self.string(module),
                unresolved=int(unresolved),
                stackDepth=depth,
            )

    def process(self, pid: int, name: str | bytes) -> None:
        """Names a process."""
        self.insert("PROCESSES", globalPid=gpid(pid), pid=pid, name=name)

    def thread(self, pid: int, tid: int, name: Text) -> None:
        """Names a thread."""
        self.insert("ThreadNames", nameId=self.string(name), priority=20, globalTid=gtid(pid, tid))

    def gpu(
        self, id: int, name: str | bytes, cuda_id: int | None = None, pid: int | None = None
    ) -> None:
        """Names GPU `id`; with `pid`, that process sees it as CUDA device `cuda_id` (or `id`)."""
        cuda = id if cuda_id is None else cuda_id
        if self._old:
            self.insert("TARGET_INFO_GPU", vmId=VM_ID, deviceId=id, name=name)
            self.insert("TARGET_INFO_CUDA_GPU", vmId=VM_ID, deviceId=cuda, name=name, pid=pid)
            return
        self.insert("TARGET_INFO_GPU", vmId=VM_ID, id=id, name=name)
        if pid is not None:
            self.insert("TARGET_INFO_CUDA_DEVICE", gpuId=id, cudaId=cuda, pid=pid)

    def _gpu_row(
        self,
        start: int,
        end: int,
        corr: int | None,
        pid: int,
        device: int,
        stream: int,
        graph_node: int | None,
    ) -> dict[str, Value]:
        return {
            "start": start,
            "end": end,
            "deviceId": device,
            "contextId": 1,
            "streamId": stream,
            "correlationId": corr,
            "globalPid": gpid(pid),
            "graphNodeId": graph_node,
        }
