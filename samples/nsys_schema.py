"""The tables of nsys SQLite exports, as the first (2020) and the newest known exporter write them.

Columns and their order are those of real exports; a spec is one word per column: `!` marks NOT
NULL, `^` the primary key, and a column without a type after `:` is INTEGER.
"""

from __future__ import annotations

NEWEST_VERSION = "3.25.0"
VM_ID = 1 << 48

# ENUM_NSYS_EVENT_TYPE, ENUM_NSYS_EVENT_CLASS and ENUM_CUDA_MEMCPY_OPER
MARK, PUSH_POP, START_END, DOMAIN_CREATE = 34, 59, 60, 75
RUNTIME_API, DRIVER_API, GRAPH_NODE_CREATION, GRAPH_EXEC_CREATION, GRAPH_CREATION = 0, 1, 77, 94, 95
HTOD, DTOH, DTOD, HTOH, PTOP = 1, 2, 8, 9, 10

_RUNTIME = "start! end! eventClass! globalTid correlationId nameId! returnValue! callchainId"
_GPU_2020 = "start! end! deviceId! contextId! streamId! correlationId globalPid"
_GPU_2026 = "start! end! deviceId! contextId! greenContextId streamId! correlationId globalPid"
_LAUNCH = (
    "launchType cacheConfig registersPerThread! gridX! gridY! gridZ! blockX! blockY! blockZ!"
    " staticSharedMemory! dynamicSharedMemory! localMemoryPerThread! localMemoryTotal! gridId!"
    " sharedMemoryExecuted graphNodeId"
)
_COPY = "bytes! copyKind! deprecatedSrcId srcKind dstKind srcDeviceId srcContextId dstDeviceId"
_NVTX = (
    "start! end eventType! rangeId category color text:TEXT globalTid endGlobalTid textId domainId"
    " uint64Value int64Value doubleValue:REAL uint32Value int32Value floatValue:REAL jsonTextId"
    " jsonText:TEXT"
)
_NODE = "start! end! eventClass! globalTid nameId! graphNodeId! originalGraphNodeId"

_COMMON = {
    "StringIds": "id^ value:TEXT!",
    "ThreadNames": "nameId! priority globalTid",
    "CUDA_CALLCHAINS": "id! symbol! module! unresolved originalIP stackDepth!",
    "CUPTI_ACTIVITY_KIND_RUNTIME": _RUNTIME,
    "PROCESSES": "globalPid pid name:TEXT",
}

TABLES_2020 = _COMMON | {
    "CUPTI_ACTIVITY_KIND_KERNEL": f"{_GPU_2020} demangledName! shortName! {_LAUNCH}",
    "CUPTI_ACTIVITY_KIND_MEMCPY": f"{_GPU_2020} {_COPY} dstContextId graphNodeId",
    "CUPTI_ACTIVITY_KIND_MEMSET": f"{_GPU_2020} value! bytes! graphNodeId memKind",
    "NVTX_EVENTS": _NVTX,
    "CUDA_GRAPH_EVENTS": _NODE,
    "TARGET_INFO_GPU": "vmId! deviceId! name:TEXT busLocation:TEXT isDiscrete",
    "TARGET_INFO_CUDA_GPU": "vmId! name:TEXT! pciBusId:TEXT deviceId! pid",
    "EXPORT_META_DATA": "name:TEXT! value:TEXT",
}

TABLES_2026 = _COMMON | {
    "TARGET_INFO_GPU": "vmId! id! name:TEXT busLocation:TEXT isDiscrete l2CacheSize totalMemory"
    " memoryBandwidth clockRate smCount pwGpuId uuid:TEXT luid chipName:TEXT cuDevice"
    " ctxswDevPath:TEXT ctrlDevPath:TEXT revision nodeMask constantMemory maxIPC"
    " maxRegistersPerBlock maxShmemPerBlock maxShmemPerBlockOptin maxShmemPerSm maxRegistersPerSm"
    " threadsPerWarp asyncEngines maxWarpsPerSm maxBlocksPerSm maxThreadsPerBlock maxBlockDimX"
    " maxBlockDimY maxBlockDimZ maxGridDimX maxGridDimY maxGridDimZ computeMajor computeMinor"
    " smMajor smMinor",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs utcTime:TEXT localTime:TEXT systemClockNs",
    "ANALYSIS_DETAILS": "globalVid! duration! startTime! stopTime!",
    "CUPTI_ACTIVITY_KIND_MEMCPY": f"{_GPU_2026} {_COPY} dstContextId migrationCause graphNodeId"
    " virtualAddress copyCount",
    "CUPTI_ACTIVITY_KIND_MEMSET": f"{_GPU_2026} value! bytes! graphNodeId memKind",
    "CUPTI_ACTIVITY_KIND_KERNEL": f"{_GPU_2026} demangledName! shortName! mangledName {_LAUNCH}"
    " sharedMemoryLimitConfig qmdBulkReleaseDone qmdPreexitDone qmdLastCtaDone graphId clusterX"
    " clusterY clusterZ clusterSchedulingPolicy maxPotentialClusterSize maxActiveClusters"
    " sharedMemoryRequestedPercentage tensorSizeMinusOneElements:TEXT!",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": f"{_GPU_2026} graphId! graphExecId!",
    "CUDA_GRAPH_EVENTS": "start! end! eventClass! globalTid nameId! graphId originalGraphId"
    " graphExecId",
    "CUDA_GRAPH_NODE_EVENTS": _NODE,
    "NVTX_EVENTS": f"{_NVTX} binaryData:TEXT",
    "NVTX_PAYLOAD_SCHEMAS": "domainId schemaId name:TEXT type flags numEntries payloadSize alignTo",
    "NVTX_PAYLOAD_SCHEMA_ENTRIES": "domainId! schemaId! idx! flags type name:TEXT description:TEXT"
    " arrayOrUnionDetail offset",
    "TARGET_INFO_CUDA_STREAM": "streamId! hwId! vmId! processId! contextId! priority! flag!",
    "TARGET_INFO_CUDA_DEVICE": "gpuId cudaId! pid! uuid:TEXT numMultiprocessors",
    "ENUM_NSYS_EVENT_TYPE": "id^ name:TEXT label:TEXT",
    "ENUM_CUDA_MEMCPY_OPER": "id^ name:TEXT label:TEXT",
    "OSRT_API": "start! end! eventClass! globalTid nameId! returnValue! nestingLevel callchainId!"
    " argumentsId!",
    "GPU_METRICS": "timestamp typeId! metricId! value!",
    "DIAGNOSTIC_EVENT": "timestamp! timestampType! source! severity! text:TEXT! globalPid",
    "TARGET_INFO_GPU_METRICS": "typeId! sourceId! typeName:TEXT! metricId! metricName:TEXT!",
    "CUDA_GPU_MEMORY_USAGE_EVENTS": "start! globalPid! deviceId! contextId! address! pc! bytes!"
    " memKind! memoryOperationType! name:TEXT correlationId localMemoryPoolAddress"
    " localMemoryPoolReleaseThreshold localMemoryPoolSize localMemoryPoolUtilizedSize"
    " importedMemoryPoolAddress importedMemoryPoolProcessId",
    "CUDA_GPU_MEMORY_POOL_EVENTS": "start! globalPid! deviceId! address! operationType! poolType!"
    " correlationId minBytesToKeep localMemoryPoolReleaseThreshold localMemoryPoolSize"
    " localMemoryPoolUtilizedSize",
    "TARGET_INFO_SYSTEM_ENV": "globalVid devStateName:TEXT! name:TEXT! nameEnum! value:TEXT!",
    "META_DATA_CAPTURE": "name:TEXT! value:TEXT",
    "META_DATA_EXPORT": "name:TEXT! value:TEXT",
}


def gpid(pid: int) -> int:
    """`globalPid` of a process, with the VM bits that real exports carry."""
    return VM_ID | pid << 24


def gtid(pid: int, tid: int) -> int:
    """`globalTid` of a thread, with the VM bits that real exports carry."""
    return gpid(pid) | tid


def create_sql(table: str, columns: str) -> str:
    """The CREATE TABLE statement for a spec of `TABLES_2020` or `TABLES_2026`."""
    return f"CREATE TABLE {table} ({', '.join(map(_column_sql, columns.split()))})"


def required(columns: str) -> dict[str, int | str]:
    """The NOT NULL columns of a spec, with a neutral value each: 0, or '[]' for text."""
    words = [word[:-1].split(":") for word in columns.split() if word.endswith("!")]
    return {word[0]: "[]" if len(word) > 1 else 0 for word in words}


def _column_sql(column: str) -> str:
    name, _, kind = column.rstrip("!^").partition(":")
    mark = {"!": " NOT NULL", "^": " NOT NULL PRIMARY KEY"}.get(column[-1], "")
    return f"{name} {kind or 'INTEGER'}{mark}"
