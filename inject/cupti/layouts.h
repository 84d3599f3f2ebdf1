// Declares as what CUPTI's activity records are read, and that headers of other versions have the same
// fields at the same places: those of 12.1, 12.4, 12.8, 13.0 and 13.5 have been compared.
#pragma once
#include <cupti.h>

#include <cstddef>

namespace flame {

// CUPTI 12.0 and later write the same places, whatever they have appended since.
using KernelRecord = CUpti_ActivityKernel9;
using CopyRecord = CUpti_ActivityMemcpy5;
using PeerCopyRecord = CUpti_ActivityMemcpyPtoP4;
using SetRecord = CUpti_ActivityMemset4;
using GraphRecord = CUpti_ActivityGraphTrace2;
using MemoryRecord = CUpti_ActivityMemory3;
using PoolRecord = CUpti_ActivityMemoryPool2;
#define FLAME_AT(Record, field, offset) \
  static_assert(offsetof(Record, field) == offset, "another layout than CUPTI 12.0's");
#define FLAME_KERNEL_LAYOUT(Record)                                                     \
  FLAME_AT(Record, registersPerThread, 6) FLAME_AT(Record, start, 16)                   \
  FLAME_AT(Record, end, 24) FLAME_AT(Record, deviceId, 40)                              \
  FLAME_AT(Record, streamId, 48) FLAME_AT(Record, gridX, 52)                            \
  FLAME_AT(Record, blockX, 64) FLAME_AT(Record, staticSharedMemory, 76)                 \
  FLAME_AT(Record, localMemoryPerThread, 84) FLAME_AT(Record, correlationId, 92)        \
  FLAME_AT(Record, name, 104) FLAME_AT(Record, graphNodeId, 144)                        \
  FLAME_AT(Record, graphId, 156) FLAME_AT(Record, clusterX, 176)
FLAME_KERNEL_LAYOUT(CUpti_ActivityKernel9)
#if CUPTI_API_VERSION >= 130000
FLAME_KERNEL_LAYOUT(CUpti_ActivityKernel10)
#endif
#define FLAME_COPY_LAYOUT(Record)                                                       \
  FLAME_AT(Record, copyKind, 4) FLAME_AT(Record, bytes, 8) FLAME_AT(Record, start, 16)  \
  FLAME_AT(Record, end, 24) FLAME_AT(Record, deviceId, 32)                              \
  FLAME_AT(Record, streamId, 40) FLAME_AT(Record, correlationId, 44)                    \
  FLAME_AT(Record, graphNodeId, 64) FLAME_AT(Record, graphId, 72)
FLAME_COPY_LAYOUT(CUpti_ActivityMemcpy5)
FLAME_COPY_LAYOUT(CUpti_ActivityMemcpy6)
FLAME_AT(PeerCopyRecord, correlationId, 60)
FLAME_AT(PeerCopyRecord, graphNodeId, 72)
FLAME_AT(PeerCopyRecord, graphId, 80)
FLAME_AT(SetRecord, bytes, 8)
FLAME_AT(SetRecord, correlationId, 44)
FLAME_AT(SetRecord, memoryKind, 50)
FLAME_AT(SetRecord, graphNodeId, 64)
FLAME_AT(SetRecord, graphId, 72)
FLAME_AT(GraphRecord, correlationId, 4)
FLAME_AT(GraphRecord, start, 8)
FLAME_AT(GraphRecord, end, 16)
FLAME_AT(GraphRecord, deviceId, 24)
FLAME_AT(GraphRecord, graphId, 28)
FLAME_AT(GraphRecord, contextId, 32)
FLAME_AT(GraphRecord, streamId, 36)
#define FLAME_MEMORY_LAYOUT(Record)                                                     \
  FLAME_AT(Record, memoryOperationType, 4) FLAME_AT(Record, memoryKind, 8)              \
  FLAME_AT(Record, correlationId, 12) FLAME_AT(Record, address, 16)                     \
  FLAME_AT(Record, bytes, 24) FLAME_AT(Record, timestamp, 32)                           \
  FLAME_AT(Record, deviceId, 52) FLAME_AT(Record, contextId, 56)                        \
  FLAME_AT(Record, streamId, 60) FLAME_AT(Record, memoryPoolConfig.memoryPoolType, 80)  \
  FLAME_AT(Record, memoryPoolConfig.address, 88)                                        \
  FLAME_AT(Record, memoryPoolConfig.pool.size, 104)                                     \
  FLAME_AT(Record, memoryPoolConfig.utilizedSize, 112)
FLAME_MEMORY_LAYOUT(CUpti_ActivityMemory3)
#if CUPTI_API_VERSION >= 26  // 12.8
FLAME_MEMORY_LAYOUT(CUpti_ActivityMemory4)
#endif
#define FLAME_POOL_LAYOUT(Record)                                                       \
  FLAME_AT(Record, memoryPoolOperationType, 4) FLAME_AT(Record, memoryPoolType, 8)      \
  FLAME_AT(Record, correlationId, 12) FLAME_AT(Record, deviceId, 20)                    \
  FLAME_AT(Record, minBytesToKeep, 24) FLAME_AT(Record, address, 32)                    \
  FLAME_AT(Record, size, 40) FLAME_AT(Record, timestamp, 56)                            \
  FLAME_AT(Record, utilizedSize, 64)
FLAME_POOL_LAYOUT(CUpti_ActivityMemoryPool2)
#if CUPTI_API_VERSION >= 130000
FLAME_POOL_LAYOUT(CUpti_ActivityMemoryPool3)
#endif
#undef FLAME_POOL_LAYOUT
#undef FLAME_MEMORY_LAYOUT
#undef FLAME_COPY_LAYOUT
#undef FLAME_KERNEL_LAYOUT
#undef FLAME_AT

}  // namespace flame
