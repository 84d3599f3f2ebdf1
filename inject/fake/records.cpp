// CUPTI's activity records, as they lie in the client's buffers.
#include <unistd.h>

#include <cstring>

#include "fake/fake.h"

namespace fake {
namespace {

// What Kernel10, Memcpy6, MemcpyPtoP4 and Memset4 have in common, with the same names.
template <class Record>
void common(Record& record, const Operation& operation) {
  record.kind = operation.work.kind;
  record.start = operation.start;
  record.end = operation.end;
  record.deviceId = operation.device;
  record.contextId = operation.context;
  record.streamId = operation.stream;
  record.correlationId = operation.correlation;
  record.graphNodeId = operation.graph_node;
  record.graphId = operation.graph;
}

template <class Record>
std::string bytes_of(const Record& record, size_t size = sizeof(Record)) {
  return std::string(reinterpret_cast<const char*>(&record), size);
}

// The records of CUPTI 13.4 (Kernel13, Memcpy7, Memset5) are longer, and end with the source of a
// graph's node, at these offsets of its headers.
constexpr size_t kKernelSource = 240, kCopySource = 104, kSetSource = 96;

std::string with_source(std::string record, size_t offset, const Operation& operation) {
  if (faults().version < 130400) return record;
  record.resize(offset + sizeof operation.graph_source);
  memcpy(&record[offset], &operation.graph_source, sizeof operation.graph_source);
  return record;
}

std::string kernel_record(const Operation& operation) {
  static std::atomic<int64_t> grids{0};
  const Work& work = operation.work;
  CUpti_ActivityKernel10 record = {};
  common(record, operation);
  record.completed = CUPTI_TIMESTAMP_UNKNOWN;
  record.registersPerThread = uint16_t(operation.registers);
  record.gridX = int32_t(work.grid[0]);
  record.gridY = int32_t(work.grid[1]);
  record.gridZ = int32_t(work.grid[2]);
  record.blockX = int32_t(work.block[0]);
  record.blockY = int32_t(work.block[1]);
  record.blockZ = int32_t(work.block[2]);
  record.clusterX = work.cluster[0];
  record.clusterY = work.cluster[1];
  record.clusterZ = work.cluster[2];
  record.staticSharedMemory = int32_t(operation.static_shared);
  record.dynamicSharedMemory = int32_t(work.dynamic_shared);
  record.localMemoryPerThread = operation.local;
  record.gridId = ++grids;
  record.name = operation.name;
  // The record of CUPTI 12 is the beginning of that of 13.
  bool old = faults().version < 130000;
  return with_source(bytes_of(record, old ? sizeof(CUpti_ActivityKernel9) : sizeof record),
                     kKernelSource, operation);
}

template <class Record>
std::string copy_record(Record& record, const Operation& operation) {
  const Work& work = operation.work;
  common(record, operation);
  record.copyKind = work.copy_kind;
  record.srcKind = work.source;
  record.dstKind = work.target;
  record.flags = work.asynchronous ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : 0;
  record.bytes = work.bytes;
  return bytes_of(record);
}

std::string peer_record(const Operation& operation) {
  CUpti_ActivityMemcpyPtoP4 record = {};
  record.srcDeviceId = operation.device;
  record.srcContextId = operation.context;
  record.dstDeviceId = operation.work.peer_device;
  record.dstContextId = operation.work.peer_context;
  return copy_record(record, operation);
}

std::string set_record(const Operation& operation) {
  const Work& work = operation.work;
  CUpti_ActivityMemset4 record = {};
  common(record, operation);
  record.value = work.value;
  record.bytes = work.bytes;
  record.flags = work.asynchronous ? CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC : 0;
  record.memoryKind = work.target;
  return with_source(bytes_of(record), kSetSource, operation);
}

std::string graph_record(const Operation& operation) {
  CUpti_ActivityGraphTrace2 record = {};
  record.kind = operation.work.kind;
  record.correlationId = operation.correlation;
  record.start = operation.start;
  record.end = operation.end;
  record.deviceId = record.endDeviceId = operation.device;
  record.contextId = record.endContextId = operation.context;
  record.graphId = operation.graph;
  record.streamId = operation.stream;
  return bytes_of(record);
}

// The records of CUPTI 12.1 are the beginning of those of 12.8.
std::string memory_record(const Operation& operation) {
  const Work& work = operation.work;
  CUpti_ActivityMemory4 record = {};
  record.kind = work.kind;
  record.memoryOperationType = CUpti_ActivityMemoryOperationType(work.operation);
  record.memoryKind = CUpti_ActivityMemoryKind(work.target);
  record.correlationId = operation.correlation;
  record.address = work.address;
  record.bytes = work.bytes;
  record.timestamp = operation.start;
  record.processId = uint32_t(getpid());
  record.deviceId = operation.device;
  record.contextId = operation.context;
  record.streamId = operation.stream;
  record.isAsync = work.asynchronous;
  if (work.pool) {
    record.memoryPoolConfig.memoryPoolType = CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL;
    record.memoryPoolConfig.address = work.pool;
    record.memoryPoolConfig.releaseThreshold = work.pool_threshold;
    record.memoryPoolConfig.pool.size = work.pool_size;
    record.memoryPoolConfig.utilizedSize = work.pool_used;
  }
  return bytes_of(record, faults().version < 26 ? sizeof(CUpti_ActivityMemory3) : sizeof record);
}

std::string pool_record(const Operation& operation) {
  const Work& work = operation.work;
  CUpti_ActivityMemoryPool3 record = {};
  record.kind = work.kind;
  record.memoryPoolOperationType = CUpti_ActivityMemoryPoolOperationType(work.operation);
  record.memoryPoolType = CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL;
  record.correlationId = operation.correlation;
  record.processId = uint32_t(getpid());
  record.deviceId = operation.device;
  record.minBytesToKeep = work.bytes;
  record.address = work.pool;
  record.size = work.pool_size;
  record.releaseThreshold = work.pool_threshold;
  record.timestamp = operation.start;
  record.utilizedSize = work.pool_used;
  const bool old = faults().version < 130000;
  return bytes_of(record, old ? sizeof(CUpti_ActivityMemoryPool2) : sizeof record);
}

std::string record_of(const Operation& operation) {
  switch (operation.work.kind) {
    case CUPTI_ACTIVITY_KIND_MEMORY2: return memory_record(operation);
    case CUPTI_ACTIVITY_KIND_MEMORY_POOL: return pool_record(operation);
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE: return graph_record(operation);
    case CUPTI_ACTIVITY_KIND_MEMSET: return set_record(operation);
    case CUPTI_ACTIVITY_KIND_MEMCPY2: return peer_record(operation);
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      CUpti_ActivityMemcpy6 record = {};
      return with_source(copy_record(record, operation), kCopySource, operation);
    }
    default: return kernel_record(operation);
  }
}

// Those of a CUPTI that is newer than the library.
void make_odd(Work* work) {
  static uint32_t count = 0;
  if (++count % faults().odd_memory) return;
  const bool of_operation = count / faults().odd_memory % 2 == 0;
  if (of_operation) work->operation = 9;
  else work->target = 99;
}

}  // namespace

// What is not over has no times. Kernels are told of under either of two kinds.
std::string record_of(const Operation& operation, CUpti_ActivityKind kind, int64_t clock_offset) {
  Operation told = operation;
  if (operation.end) {
    told.start += uint64_t(clock_offset);
    told.end += uint64_t(clock_offset);
  }
  std::string record = record_of(told);
  memcpy(&record[offsetof(CUpti_Activity, kind)], &kind, sizeof kind);
  return record;
}

size_t record_size(const CUpti_Activity* record) {
  Operation operation;
  operation.work.kind = record->kind == CUPTI_ACTIVITY_KIND_KERNEL
                            ? CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL
                            : record->kind;
  static const auto size_of = [](CUpti_ActivityKind kind) {
    Operation one;
    one.work.kind = kind;
    return record_of(one).size();
  };
  static const size_t sizes[] = {
      size_of(CUPTI_ACTIVITY_KIND_MEMSET), size_of(CUPTI_ACTIVITY_KIND_MEMCPY),
      size_of(CUPTI_ACTIVITY_KIND_MEMCPY2), size_of(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL),
      size_of(CUPTI_ACTIVITY_KIND_MEMORY2), size_of(CUPTI_ACTIVITY_KIND_MEMORY_POOL)};
  switch (operation.work.kind) {
    case CUPTI_ACTIVITY_KIND_MEMSET: return sizes[0];
    case CUPTI_ACTIVITY_KIND_MEMCPY: return sizes[1];
    case CUPTI_ACTIVITY_KIND_MEMCPY2: return sizes[2];
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return sizes[3];
    case CUPTI_ACTIVITY_KIND_MEMORY2: return sizes[4];
    case CUPTI_ACTIVITY_KIND_MEMORY_POOL: return sizes[5];
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE: return sizeof(CUpti_ActivityGraphTrace2);
    default: return 0;
  }
}

Operation skewed(Operation operation) {
  static uint32_t count = 0;
  ++count;
  const Faults& all = faults();
  if (operation.untimed) operation.start = operation.end = 0;
  if (all.backward && count % all.backward == 0) std::swap(operation.start, operation.end);
  if (all.wild_times && count % all.wild_times == 0) operation.start *= 3, operation.end *= 3;
  if (all.odd_memory && is_of_memory(operation.work.kind)) make_odd(&operation.work);
  return operation;
}

}  // namespace fake
